//! Host memory of a graph: what its uploads read and its downloads write.
//!
//! Only the graph has it, so no other code can look at bytes that a replay is about to write, or change bytes that one is reading: a slice
//! of it borrows the whole graph, and is given out once the replays that matter are done.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use kiln_driver::{Access, Place};
use kiln_order::Use;

use super::node::NodeId;
use crate::buffer::{Element, PinnedBuffer};

/// What an upload of a graph reads. Its elements are changed through [`Graph::input`](super::Graph::input).
pub struct Input<T> {
    pub(super) node: NodeId,
    pub(super) index: usize,
    element: PhantomData<fn() -> T>,
}

/// What a download of a graph writes. Its elements are read through [`Graph::output`](super::Graph::output).
pub struct Output<T> {
    pub(super) node: NodeId,
    pub(super) index: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Input<T> {
    pub(super) fn new(node: NodeId, index: usize) -> Self {
        Self { node, index, element: PhantomData }
    }

    /// The upload itself.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl<T> Output<T> {
    pub(super) fn new(node: NodeId, index: usize) -> Self {
        Self { node, index, element: PhantomData }
    }

    /// The download itself.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl<T> Clone for Input<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Input<T> {}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Output<T> {}

impl<T> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input of {:?}", self.node)
    }
}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "output of {:?}", self.node)
    }
}

/// A pinned buffer whose elements are of some type.
pub(super) trait HostData: Any + Send + Sync {
    /// All its bytes, used by a replay.
    fn used(&self, access: Access) -> Use<'_>;

    /// Where commands find it; none if it has no bytes.
    fn place(&self) -> Option<Place>;

    /// Itself, to be asked for its type.
    fn any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Element> HostData for PinnedBuffer<T> {
    fn used(&self, access: Access) -> Use<'_> {
        self.used(access)
    }

    fn place(&self) -> Option<Place> {
        self.place()
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The host data of one graph.
#[derive(Default)]
pub(super) struct HostList(Vec<Box<dyn HostData>>);

impl HostList {
    pub(super) fn push<T: Element>(&mut self, data: PinnedBuffer<T>) -> usize {
        self.0.push(Box::new(data));
        self.0.len() - 1
    }

    pub(super) fn find(&self, index: usize) -> Option<&dyn HostData> {
        self.0.get(index).map(|data| &**data)
    }

    /// The data with the type it was given; none for another type.
    pub(super) fn typed<T: Element>(&mut self, index: usize) -> Option<&mut PinnedBuffer<T>> {
        self.0.get_mut(index)?.any_mut().downcast_mut()
    }
}
