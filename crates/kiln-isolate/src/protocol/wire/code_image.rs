//! The kinds of code images, as they are sent.

pub(crate) const IMAGE_PTX: u8 = 0;
pub(crate) const IMAGE_CUBIN: u8 = 1;
pub(crate) const IMAGE_HOST_KERNELS: u8 = 2;
/// PTX whose machine code is part of the answer: its length, and a descriptor unless the length is 0.
pub(crate) const IMAGE_PTX_TO_KEEP: u8 = 3;
pub(crate) const IMAGE_LIBRARY: u8 = 4;
/// A rank of a communicator. It lives in one worker and is not made again in the next: its place there is lost with it.
pub(crate) const IMAGE_COMMUNICATOR: u8 = 5;
/// The function of such an image that ends the rank, as `kiln_operation::ABORT`. It takes no arguments.
pub(crate) const ABORT: &str = "abort";
/// A new communicator, whose id is part of the answer.
pub(crate) const IMAGE_COMMUNICATOR_ID: u8 = 6;

/// Whether a successor of a worker gets the image.
pub(crate) fn is_kept(kind: u8) -> bool {
    !matches!(kind, IMAGE_COMMUNICATOR | IMAGE_COMMUNICATOR_ID)
}
