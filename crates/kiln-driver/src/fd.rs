//! File descriptors of exported pages.
//!
//! On Unix these are the standard library's types. Elsewhere pages cannot be exported, and the types have no values.

#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(not(unix))]
pub use none::{AsFd, BorrowedFd, OwnedFd};

#[cfg(not(unix))]
mod none {
    use std::convert::Infallible;
    use std::io;
    use std::marker::PhantomData;

    /// A descriptor; this system has none.
    #[derive(Debug)]
    pub struct OwnedFd(Infallible);

    /// A borrowed descriptor; this system has none.
    #[derive(Clone, Copy, Debug)]
    pub struct BorrowedFd<'a>(Infallible, PhantomData<&'a OwnedFd>);

    /// Something that has a descriptor.
    pub trait AsFd {
        /// Borrows it.
        fn as_fd(&self) -> BorrowedFd<'_>;
    }

    impl AsFd for OwnedFd {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }
    }

    impl AsFd for BorrowedFd<'_> {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }
    }

    impl OwnedFd {
        /// Another descriptor of the same file.
        ///
        /// # Errors
        /// None; there is no descriptor to ask.
        pub fn try_clone(&self) -> io::Result<Self> {
            match self.0 {}
        }
    }
}
