//! Checks the lengths and overlaps of the buffers of an operation.

use kiln_runtime::{Element, GpuRef};

use crate::Result;
use crate::error::LibraryError;
use crate::operands::EXACT_HINT;

/// Whether two buffers begin at the same byte of the same memory. Buffers of two runtimes can have equal addresses, and buffers without elements have no memory.
pub(crate) fn begin_together<T: Element>(first: &GpuRef<T>, second: &GpuRef<T>) -> bool {
    first.overlaps(second) && first.address() == second.address()
}

/// An operation's name, and what it refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Check(pub(crate) &'static str);

impl Check {
    /// Why the operation is refused.
    pub(crate) fn refusal(self, what: String, hint: &'static str) -> LibraryError {
        LibraryError::argument(self.0, what, hint)
    }

    /// Refuses the operation.
    pub(crate) fn refuse(self, what: String, hint: &'static str) -> Result<()> {
        Err(self.refusal(what, hint))
    }

    /// A buffer has exactly so many elements.
    pub(crate) fn length<T: Element>(self, name: &str, buffer: &GpuRef<T>, wanted: usize) -> Result<()> {
        if buffer.len() == wanted {
            return Ok(());
        }
        let what = format!("`{name}` has {} elements and must have {wanted}", buffer.len());
        self.refuse(what, EXACT_HINT)
    }

    /// A buffer has exactly as many elements as another one.
    pub(crate) fn length_of<A: Element, B: Element>(
        self,
        (name, buffer): (&str, &GpuRef<A>),
        (other_name, other): (&str, &GpuRef<B>),
    ) -> Result<()> {
        if buffer.len() == other.len() {
            return Ok(());
        }
        let (len, wanted) = (buffer.len(), other.len());
        let what = format!("`{name}` has {len} elements and must have {wanted}, as `{other_name}` has");
        self.refuse(what, EXACT_HINT)
    }

    /// A buffer has room for so many elements.
    pub(crate) fn room<T: Element>(self, name: &str, buffer: &GpuRef<T>, wanted: usize) -> Result<()> {
        if buffer.len() >= wanted {
            return Ok(());
        }
        let what = format!("`{name}` has {} elements, and {wanted} may be written", buffer.len());
        self.refuse(what, "use a buffer that has room for all of them")
    }

    /// Two buffers share no bytes.
    pub(crate) fn apart<A: Element, B: Element>(
        self,
        (first_name, first): (&str, &GpuRef<A>),
        (second_name, second): (&str, &GpuRef<B>),
    ) -> Result<()> {
        if !first.cast::<u8>()?.overlaps(&second.cast::<u8>()?) {
            return Ok(());
        }
        let what = format!("`{first_name}` and `{second_name}` share memory");
        self.refuse(what, "use buffers that do not overlap")
    }

    /// Two buffers of the same length are the same one, or share no bytes.
    pub(crate) fn same_or_apart<T: Element>(
        self,
        (first_name, first): (&str, &GpuRef<T>),
        (second_name, second): (&str, &GpuRef<T>),
    ) -> Result<()> {
        if !first.overlaps(second) || begin_together(first, second) {
            return Ok(());
        }
        let what = format!("`{first_name}` and `{second_name}` share a part of their memory");
        self.refuse(what, "use the same buffer for both, or buffers that do not overlap")
    }

    /// Not more elements than the kernels count.
    pub(crate) fn at_most(self, name: &str, len: usize, limit: u64) -> Result<()> {
        if len as u64 <= limit {
            return Ok(());
        }
        self.refuse(
            format!("`{name}` has {len} elements, more than {limit}"),
            "work on views of it, one after the other",
        )
    }
}
