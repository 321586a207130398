//! Collectives in sequences and their loops.

use kiln_runtime::{Element, GpuRef, Result};

use super::Sequence;
use super::loop_body::Turn;
use crate::single_rank_collective::{Collectives, Communicator, Reduction};

impl Sequence<'_> {
    /// All-reduce: every rank gets, element by element, the reduction over all ranks. `from` and `to` may be the same buffer.
    ///
    /// ```
    /// use kiln::program::{Communicator, CommunicatorConfig, ReduceOp};
    ///
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// let backend = kiln::program::Backend::over(gpu.clone());
    /// let world = Communicator::open(&gpu, CommunicatorConfig::single())?;
    /// let (gradient, mut average) = (gpu.upload(&[3.0f32, 4.0])?, Vec::new());
    /// let mut sequence = backend.sequence();
    /// sequence.all_reduce(&world, &gradient, &gradient, ReduceOp::Average)?.read(&gradient, &mut average)?;
    /// sequence.run()?;
    /// assert_eq!(average, [3.0, 4.0]);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Collectives::all_reduce`].
    pub fn all_reduce<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<&mut Self> {
        let recorded = self.builder.all_reduce(communicator, from, to, reduction);
        self.named(recorded)?;
        Ok(self)
    }

    /// All-gather: every rank gets the elements of all ranks, in the order of the ranks.
    ///
    /// # Errors
    /// As for [`Collectives::all_gather`].
    pub fn all_gather<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
    ) -> Result<&mut Self> {
        let recorded = self.builder.all_gather(communicator, from, to);
        self.named(recorded)?;
        Ok(self)
    }

    /// Reduce-scatter: each rank gets its piece of the reduction over all ranks.
    ///
    /// # Errors
    /// As for [`Collectives::reduce_scatter`].
    pub fn reduce_scatter<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<&mut Self> {
        let recorded = self.builder.reduce_scatter(communicator, from, to, reduction);
        self.named(recorded)?;
        Ok(self)
    }

    /// Broadcast: every rank gets the elements of the rank `root`.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn broadcast<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        root: u32,
    ) -> Result<&mut Self> {
        let recorded = self.builder.broadcast(communicator, from, to, root);
        self.named(recorded)?;
        Ok(self)
    }
}

impl Turn<'_, '_> {
    /// All-reduce, in each turn.
    ///
    /// # Errors
    /// As for [`Collectives::all_reduce`].
    pub fn all_reduce<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<&mut Self> {
        let node = self.sequence.builder.all_reduce(communicator, from, to, reduction)?;
        self.first.nodes.push(node);
        Ok(self)
    }

    /// All-gather, in each turn.
    ///
    /// # Errors
    /// As for [`Collectives::all_gather`].
    pub fn all_gather<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
    ) -> Result<&mut Self> {
        let node = self.sequence.builder.all_gather(communicator, from, to)?;
        self.first.nodes.push(node);
        Ok(self)
    }

    /// Reduce-scatter, in each turn.
    ///
    /// # Errors
    /// As for [`Collectives::reduce_scatter`].
    pub fn reduce_scatter<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        reduction: impl Into<Reduction>,
    ) -> Result<&mut Self> {
        let node = self.sequence.builder.reduce_scatter(communicator, from, to, reduction)?;
        self.first.nodes.push(node);
        Ok(self)
    }

    /// Broadcast, in each turn.
    ///
    /// # Errors
    /// As for [`Collectives::broadcast`].
    pub fn broadcast<T: Element>(
        &mut self,
        communicator: &Communicator,
        from: &GpuRef<T>,
        to: &GpuRef<T>,
        root: u32,
    ) -> Result<&mut Self> {
        let node = self.sequence.builder.broadcast(communicator, from, to, root)?;
        self.first.nodes.push(node);
        Ok(self)
    }
}
