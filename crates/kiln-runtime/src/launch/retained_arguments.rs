//! The buffers and declared accesses that a launch in a graph, or on a device that checks accesses, keeps.
//!
//! A launch of a graph keeps the memory of its buffers. A launch on a device that checks accesses also lists what it may touch. A launch on
//! a stream of any other device keeps nothing, and allocates nothing.

use kiln_driver::{Access, DeclaredSpan};

use super::kernel::Kernel;
use super::owned_launch::TemplateArgument;
use crate::buffer::{BlockRange, BufferBytes};

/// What a launch keeps beside its packed arguments.
#[derive(Clone)]
pub(crate) struct Kept {
    /// The arguments a graph keeps; none for a launch on a stream.
    pub(super) arguments: Option<Vec<TemplateArgument>>,
    /// Buffers a graph keeps that are no arguments.
    pub(super) beside: Vec<(BlockRange, Access)>,
    /// What the launch may touch; none where the device does not look at it.
    pub(super) declared: Option<Vec<DeclaredSpan>>,
}

impl Kept {
    /// For a launch on a stream, if there is anything to keep.
    #[inline(always)]
    pub(super) fn on_stream(kernel: &Kernel) -> Option<Box<Self>> {
        if kernel.is_checked() { Some(Self::new(kernel, None)) } else { None }
    }

    /// For a launch that becomes a node of a graph.
    pub(crate) fn in_graph(kernel: &Kernel) -> Option<Box<Self>> {
        Some(Self::new(kernel, Some(Vec::new())))
    }

    #[cold]
    #[inline(never)]
    fn new(kernel: &Kernel, arguments: Option<Vec<TemplateArgument>>) -> Box<Self> {
        let declared = kernel.is_checked().then(Vec::new);
        Box::new(Self { arguments, beside: Vec::new(), declared })
    }

    /// Declares a buffer.
    pub(super) fn declare(&mut self, buffer: &BufferBytes<'_>, access: Access, parameter: Option<usize>) {
        if let (Some(declared), false) = (&mut self.declared, buffer.is_empty()) {
            let parameter = parameter.and_then(|index| u16::try_from(index).ok());
            declared.push(DeclaredSpan { address: buffer.address(), bytes: buffer.len(), access, parameter });
        }
    }
}
