//! A stack of resources as text: `budget(8GiB, stats(heap))`.
//!
//! The text is a base inside of layers. A layer has its numbers first and what it is around last:
//!
//! ```text
//!   heap                       kiln's heap over pages, or over chunks where the device has none
//!   heap(spare=50%)            the same, which may hold half as much again as is in use (see `Spare`)
//!   heap(mapping=1GiB)         the same, whose mapped remaps may cost the host so much (see `HeapConfig`)
//!   chunks  host               the same heap over plain device memory; over pinned host memory
//!   pages                      whole pages of 2 MiB for each block, mapped until memory is short
//!   direct  pool               cuMemAlloc; cuMemAllocAsync
//!
//!   budget(8GiB, …)            limit(8GiB, …)              align(4KiB, …)            stats(…)
//!   trace(65536, …)  trace(…)  records a thread keeps
//!   guard(256B, 64MiB, …)      bytes of a red zone, bytes in quarantine; guard(…) has these
//!   leaks(100, …)  leaks(…)    takes the call context of every hundredth; of none
//!   retry(2, …)                rounds of the ladder
//!   fail(10, 3, 1MiB, …)       every tenth allocation, every third free, whatever is larger; 0 is never
//! ```
//!
//! [`Stack`] is that text as a value; [`build`](Stack::build) makes the resource. What a resource prints is the text of
//! its stack, so it can be read back.

mod build;
mod layer;
mod parse;

use std::fmt;

use crate::byte_size::ByteSize;
use crate::heap::Spare;

pub use build::StackContext;
pub use layer::{StackBase, StackLayer};
pub use parse::{StackError, StackProblem};

/// A stack of resources, outermost layer first.
///
/// ```
/// use kiln_mem::{ByteSize, Stack};
/// use kiln_mem::resource_stack::{StackBase, StackLayer};
///
/// let stack: Stack = "budget(8GiB, stats(heap))".parse()?;
/// assert_eq!(stack.layers(), [StackLayer::Budget(ByteSize(8 << 30)), StackLayer::Statistics]);
/// assert_eq!(stack.base(), StackBase::Heap);
/// assert_eq!(stack.to_string(), "budget(8 GiB, stats(heap))");
///
/// let error = "budget(8GiB, stack(heap))".parse::<Stack>().unwrap_err();
/// assert_eq!(error.at, 13);
/// # Ok::<(), kiln_mem::resource_stack::StackError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stack {
    layers: Vec<StackLayer>,
    base: StackBase,
    spare: Option<Spare>,
    mapping: Option<ByteSize>,
}

impl Stack {
    /// More layers than this are refused; each costs a call deeper.
    pub const LAYERS_LIMIT: usize = 32;

    /// A base with nothing around it.
    pub fn new(base: StackBase) -> Self {
        Self { layers: Vec::new(), base, spare: None, mapping: None }
    }

    /// The same with a heap that may hold so much beside what is in use; another base has nothing to spare.
    #[must_use]
    pub fn with_spare(self, spare: Spare) -> Self {
        Self { spare: (self.base == StackBase::Heap).then_some(spare), ..self }
    }

    /// The same with a heap whose mapped remaps may cost the host `host_bytes`; another base maps none.
    #[must_use]
    pub fn with_mapping(self, host_bytes: ByteSize) -> Self {
        Self { mapping: (self.base == StackBase::Heap).then_some(host_bytes), ..self }
    }

    /// The same with one more layer around everything.
    #[must_use]
    pub fn inside(mut self, layer: StackLayer) -> Self {
        self.layers.insert(0, layer);
        self
    }

    /// The layers, outermost first.
    pub fn layers(&self) -> &[StackLayer] {
        &self.layers
    }

    /// What is inside of them.
    pub fn base(&self) -> StackBase {
        self.base
    }

    /// What the heap may hold beside what is in use, if the stack says it.
    pub fn spare(&self) -> Option<Spare> {
        self.spare
    }

    /// What the heap's mapped remaps may cost the host, if the stack says it.
    pub fn mapping(&self) -> Option<ByteSize> {
        self.mapping
    }
}

/// Writes what was said about a heap, as it is read.
pub(crate) fn write_options(
    f: &mut fmt::Formatter<'_>,
    spare: Option<Spare>,
    mapping: Option<ByteSize>,
) -> fmt::Result {
    match (spare, mapping) {
        (None, None) => Ok(()),
        (Some(spare), None) => write!(f, "(spare={spare})"),
        (None, Some(mapping)) => write!(f, "(mapping={mapping})"),
        (Some(spare), Some(mapping)) => write!(f, "(spare={spare}, mapping={mapping})"),
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layers.iter().try_for_each(|layer| write!(f, "{layer}"))?;
        write!(f, "{}", self.base)?;
        write_options(f, self.spare, self.mapping)?;
        self.layers.iter().try_for_each(|_| f.write_str(")"))
    }
}
