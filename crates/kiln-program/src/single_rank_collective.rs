//! Collectives: operations that all ranks of a communicator do together.
//!
//! On one rank the result of each of the four is the buffer that went in, so they are recorded as copies, which are ordered like all other work. What they
//! would check with more ranks they check with one: lengths, types of elements, the root.

mod communicator;
mod error;
mod reduction;

use kiln_runtime::{Element, GpuRef, GraphBuilder, NodeId, Result};

pub use communicator::{Communicator, CommunicatorConfig};
pub use error::CollectiveError;
pub use reduction::{ReduceOp, Reduction};

/// Collectives that are recorded in a graph. [`Sequence`](crate::Sequence) and [`Turn`](crate::Turn) have methods of the same names.
///
/// Source and destination may be the same buffer, and must not overlap otherwise.
///
/// ```
/// use kiln::program::{Collectives, Communicator, CommunicatorConfig, ReduceOp};
///
/// let gpu = kiln::DeviceRuntime::simulated(1)?;
/// let world = Communicator::open(&gpu, CommunicatorConfig::single())?;
/// let (gradient, sum) = (gpu.upload(&[1.0f32, 2.0])?, gpu.zeros::<f32>(2)?);
/// let (graph, _) = gpu.record(|builder| builder.all_reduce(&world, &gradient, &sum, ReduceOp::Sum))?;
/// graph.replay()?;
/// assert_eq!(sum.download()?, [1.0, 2.0]);
/// # Ok::<(), kiln::Error>(())
/// ```
pub trait Collectives {
    /// Records an all-reduce: every rank gets, element by element, the reduction over all ranks.
    ///
    /// # Errors
    /// Buffers of different lengths, of elements that cannot be reduced, that overlap in part, or of another device; a communicator of another device.
    fn all_reduce<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<NodeId>;

    /// Records an all-gather: every rank gets the elements of all ranks, in the order of the ranks.
    ///
    /// # Errors
    /// If `to` has not `size` times as many elements as `from`; buffers that overlap in part, or of another device; a communicator of another device.
    fn all_gather<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
    ) -> Result<NodeId>;

    /// Records a reduce-scatter: the reduction over all ranks is cut into as many equal pieces as there are ranks, and each rank gets its own.
    ///
    /// # Errors
    /// If `from` has not `size` times as many elements as `to`; otherwise as for [`all_reduce`](Self::all_reduce).
    fn reduce_scatter<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<NodeId>;

    /// Records a broadcast: every rank gets the elements of the rank `root`.
    ///
    /// # Errors
    /// A root that does not exist; buffers of different lengths, that overlap in part, or of another device; a communicator of another device.
    fn broadcast<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        root: u32,
    ) -> Result<NodeId>;
}

impl Collectives for GraphBuilder {
    fn all_reduce<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<NodeId> {
        reduction.into().check::<T>()?;
        let lengths = Lengths { operation: "all-reduce", wanted: from.len() };
        copy(self, communicator, from, to, lengths)
    }

    fn all_gather<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
    ) -> Result<NodeId> {
        let wanted = from.len().saturating_mul(communicator.size() as usize);
        copy(self, communicator, from, to, Lengths { operation: "all-gather", wanted })
    }

    fn reduce_scatter<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<NodeId> {
        reduction.into().check::<T>()?;
        let (source_len, size) = (from.len(), communicator.size());
        if source_len % size as usize != 0 {
            return Err(CollectiveError::Uneven { source_len, size }.into());
        }
        let lengths = Lengths { operation: "reduce-scatter", wanted: source_len / size as usize };
        copy(self, communicator, from, to, lengths)
    }

    fn broadcast<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        root: u32,
    ) -> Result<NodeId> {
        let size = communicator.size();
        if root >= size {
            return Err(CollectiveError::Root { root, size }.into());
        }
        copy(self, communicator, from, to, Lengths { operation: "broadcast", wanted: from.len() })
    }
}

/// What an operation must find in its destination.
struct Lengths {
    operation: &'static str,
    wanted: usize,
}

/// Any of them on one rank: a copy, or nothing where source and destination are the same bytes.
fn copy<T: Element>(
    builder: &mut GraphBuilder,
    communicator: &Communicator,
    from: &GpuRef<T>,
    to: &GpuRef<T>,
    lengths: Lengths,
) -> Result<NodeId> {
    communicator.check_runtime(builder.runtime())?;
    let Lengths { operation, wanted } = lengths;
    let (source_len, destination_len, size) = (from.len(), to.len(), communicator.size());
    if destination_len != wanted {
        let error = CollectiveError::Length { operation, source_len, destination_len, wanted, size };
        return Err(error.into());
    }
    let is_in_place = from.block_id() == to.block_id() && from.place() == to.place();
    match is_in_place {
        // No bytes are a node that does nothing, after the same checks.
        true => builder.copy(&from.view(0..0)?, &to.view(0..0)?),
        false => builder.copy(from, to),
    }
}
