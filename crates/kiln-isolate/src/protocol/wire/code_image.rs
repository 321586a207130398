//! The kinds of code images, as they are sent.

pub(crate) const IMAGE_PTX: u8 = 0;
pub(crate) const IMAGE_CUBIN: u8 = 1;
pub(crate) const IMAGE_HOST_KERNELS: u8 = 2;
/// PTX whose machine code is part of the answer: its length, and a descriptor unless the length is 0.
pub(crate) const IMAGE_PTX_TO_KEEP: u8 = 3;
pub(crate) const IMAGE_LIBRARY: u8 = 4;
