//! The collectives of a communicator.

use kiln_operation::{Collective, CollectiveElement, CollectiveKind, CollectiveType, Reduction};
use kiln_runtime::{Element, GpuRef};

use crate::collective_call::CollectiveCall;
use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};

impl DeviceCommunicator {
    /// Every rank gets in `recv` the reduction of all ranks' `send`, element by element.
    pub fn all_reduce<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: &GpuRef<T>,
        reduction: Reduction,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::AllReduce, T::TYPE).reduction(reduction);
        self.call(collective, (send.len(), 1), &[("send", send, 1), ("recv", recv, 1)])
    }

    /// As [`all_reduce`](Self::all_reduce), with one buffer for both.
    pub fn all_reduce_in_place<T: Element + CollectiveElement>(
        &self,
        buffer: &GpuRef<T>,
        reduction: Reduction,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::AllReduce, T::TYPE).reduction(reduction).in_place();
        self.call(collective, (buffer.len(), 1), &[("buffer", buffer, 1)])
    }

    /// The root gets in `recv` the reduction of all ranks' `send`. Only the root gives a `recv`.
    pub fn reduce<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: Option<&GpuRef<T>>,
        reduction: Reduction,
        root: u32,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Reduce, T::TYPE).reduction(reduction).root(root);
        self.rooted(collective, (send.len(), 1), root, ("send", Some(send), 1), ("recv", recv, 1))
    }

    /// As [`reduce`](Self::reduce), where the root's `buffer` becomes the reduction. Those of other ranks stay as they are.
    pub fn reduce_in_place<T: Element + CollectiveElement>(
        &self,
        buffer: &GpuRef<T>,
        reduction: Reduction,
        root: u32,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Reduce, T::TYPE).reduction(reduction);
        self.call(collective.root(root).in_place(), (buffer.len(), 1), &[("buffer", buffer, 1)])
    }

    /// Every rank's `buffer` becomes that of the root.
    pub fn broadcast<T: Element + CollectiveElement>(
        &self,
        buffer: &GpuRef<T>,
        root: u32,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Broadcast, T::TYPE).root(root);
        self.call(collective, (buffer.len(), 1), &[("buffer", buffer, 1)])
    }

    /// Every rank gets in `recv` all ranks' `send`, in the order of the ranks.
    pub fn all_gather<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: &GpuRef<T>,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::AllGather, T::TYPE);
        self.call(collective, (send.len(), 1), &[("send", send, 1), ("recv", recv, self.size())])
    }

    /// As [`all_gather`](Self::all_gather), where what this rank sends lies at its place in `buffer` already.
    pub fn all_gather_in_place<T: Element + CollectiveElement>(
        &self,
        buffer: &GpuRef<T>,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::AllGather, T::TYPE).in_place();
        self.call(collective, (buffer.len(), self.size()), &[("buffer", buffer, self.size())])
    }

    /// Rank `r` gets in `recv` block `r` of the reduction of all ranks' `send`, which has as many blocks as there are ranks.
    pub fn reduce_scatter<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: &GpuRef<T>,
        reduction: Reduction,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::ReduceScatter, T::TYPE).reduction(reduction);
        self.call(collective, (recv.len(), 1), &[("send", send, self.size()), ("recv", recv, 1)])
    }

    /// As [`reduce_scatter`](Self::reduce_scatter), where block `r` of rank `r`'s `buffer` becomes the result. NCCL may change the other blocks.
    pub fn reduce_scatter_in_place<T: Element + CollectiveElement>(
        &self,
        buffer: &GpuRef<T>,
        reduction: Reduction,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::ReduceScatter, T::TYPE).reduction(reduction);
        let collective = collective.in_place();
        self.call(collective, (buffer.len(), self.size()), &[("buffer", buffer, self.size())])
    }

    /// Rank `r` gets in `recv` block `r` of all ranks' `send`, in the order of the ranks.
    pub fn all_to_all<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: &GpuRef<T>,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::AllToAll, T::TYPE);
        let size = self.size();
        self.call(collective, (send.len(), size), &[("send", send, size), ("recv", recv, size)])
    }

    /// The root gets in `recv` all ranks' `send`, in the order of the ranks. Only the root gives a `recv`.
    pub fn gather<T: Element + CollectiveElement>(
        &self,
        send: &GpuRef<T>,
        recv: Option<&GpuRef<T>>,
        root: u32,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Gather, T::TYPE).root(root);
        self.rooted(collective, (send.len(), 1), root, ("send", Some(send), 1), ("recv", recv, self.size()))
    }

    /// Every rank gets in `recv` its block of the root's `send`. Only the root gives a `send`.
    pub fn scatter<T: Element + CollectiveElement>(
        &self,
        send: Option<&GpuRef<T>>,
        recv: &GpuRef<T>,
        root: u32,
    ) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Scatter, T::TYPE).root(root);
        self.rooted(collective, (recv.len(), 1), root, ("send", send, self.size()), ("recv", Some(recv), 1))
    }

    /// Sends a buffer to a rank, which receives it. It is done when the other rank has begun to receive.
    pub fn send<T: Element + CollectiveElement>(&self, buffer: &GpuRef<T>, peer: u32) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Send, T::TYPE).root(peer);
        self.call(collective, (buffer.len(), 1), &[("send", buffer, 1)])
    }

    /// Receives a buffer from a rank, which sends it.
    pub fn recv<T: Element + CollectiveElement>(&self, buffer: &GpuRef<T>, peer: u32) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Recv, T::TYPE).root(peer);
        self.call(collective, (buffer.len(), 1), &[("recv", buffer, 1)])
    }

    /// Is done on no rank before all ranks have come to it. It orders streams of ranks, not hosts; a host waits for the ticket.
    pub fn barrier(&self) -> CollectiveCall<'_> {
        let collective = Collective::new(CollectiveKind::Barrier, CollectiveType::U8);
        self.call(collective, (1, 1), &[("scratch", self.scratch(), 1)])
    }

    /// A call whose count is a length divided by a number of blocks; each buffer has so many blocks of the count.
    fn call<T: Element>(
        &self,
        collective: Collective,
        (len, blocks): (usize, u32),
        buffers: &[(&'static str, &GpuRef<T>, u32)],
    ) -> CollectiveCall<'_> {
        CollectiveCall::new(self, fitted(collective, len, blocks, buffers))
    }

    /// A call with a buffer that only the root has.
    fn rooted<T: Element>(
        &self,
        collective: Collective,
        count: (usize, u32),
        root: u32,
        send: (&'static str, Option<&GpuRef<T>>, u32),
        recv: (&'static str, Option<&GpuRef<T>>, u32),
    ) -> CollectiveCall<'_> {
        let is_root = self.rank() == root;
        let at_root = if collective.kind() == CollectiveKind::Scatter { send } else { recv };
        if at_root.1.is_some() != is_root {
            let (name, kind) = (at_root.0, collective.name());
            let what = match is_root {
                true => format!("{kind}: rank {root} is the root and gives no `{name}`"),
                false => format!("{kind}: rank {} is not the root and gives a `{name}`", self.rank()),
            };
            let error = GroupError::Collective { what, next: "give that buffer on the root, and only there" };
            return CollectiveCall::new(self, Err(error));
        }
        let given =
            [send, recv].into_iter().filter_map(|(name, buffer, blocks)| Some((name, buffer?, blocks)));
        self.call(collective, count, &given.collect::<Vec<_>>())
    }
}

fn fitted<T: Element>(
    collective: Collective,
    len: usize,
    blocks: u32,
    buffers: &[(&'static str, &GpuRef<T>, u32)],
) -> Result<Part> {
    let name = collective.name();
    if !len.is_multiple_of(blocks as usize) {
        let what = format!("{name}: {len} elements for {blocks} ranks");
        return Err(GroupError::Collective { what, next: "use a length that is a multiple of the ranks" });
    }
    let count = len / blocks as usize;
    let mut part = Part::new(collective, count as u64);
    for (buffer_name, buffer, blocks) in buffers {
        let wanted = count.saturating_mul(*blocks as usize);
        if buffer.len() != wanted {
            let what =
                format!("{name}: `{buffer_name}` has {} elements and must have {wanted}", buffer.len());
            return Err(GroupError::Collective { what, next: "use a buffer or a view of that length" });
        }
        part = part.with(buffer)?;
    }
    Ok(part)
}
