//! An owned code image: PTX, a cubin, or the name of host kernels.

use kiln_driver::Image;

/// Code to load, owned, as a build step hands it over.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CodeImage {
    /// PTX text.
    Ptx(String),
    /// Machine code.
    Cubin(Vec<u8>),
    /// The name of host functions registered with a simulated device.
    HostKernels(String),
}

impl CodeImage {
    /// The same, borrowed, as a driver takes it.
    pub fn as_image(&self) -> Image<'_> {
        match self {
            Self::Ptx(text) => Image::Ptx(text),
            Self::Cubin(bytes) => Image::Cubin(bytes),
            Self::HostKernels(name) => Image::HostKernels(name),
        }
    }
}
