//! Memory files on systems without them: none can be made.

use std::convert::Infallible;
use std::io;

use kiln_driver::SharedBytes;
use kiln_driver::fd::{BorrowedFd, OwnedFd};

use crate::memory::page_file_error::RejectedPages;

/// A memory file; there is none.
#[derive(Debug)]
pub(crate) struct PageFile(Infallible);

impl PageFile {
    pub(crate) fn create(_: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn size(_: BorrowedFd<'_>) -> Result<u64, RejectedPages> {
        Err(RejectedPages::NotPages)
    }

    pub(crate) fn import(_: BorrowedFd<'_>, _: u64) -> Result<Self, RejectedPages> {
        Err(RejectedPages::NotPages)
    }

    pub(crate) fn map(&self) -> io::Result<SharedBytes> {
        match self.0 {}
    }

    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        match self.0 {}
    }

    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        match self.0 {}
    }
}
