//! A value in separate cache lines.

use std::ops::{Deref, DerefMut};

/// A value that several threads write. What lies beside it in memory stays in the caches of threads that only read that. Processors fetch lines of 64 bytes
/// in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(T);

impl<T> OwnLine<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for OwnLine<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for OwnLine<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
