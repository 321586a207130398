//! One piece of work, to be recorded, queued by itself, or done on the host.

use std::ops::Range;

use kiln::{
    DeviceRuntime, GpuRef, Stream,
    graph::{GraphBuilder, NodeId},
};

use crate::order::kernels::{Kernels, joined, mixed};

/// Work on buffers, named by their places in a list.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Mix { to: usize, from: usize, range: Range<usize>, k: u32 },
    Join { to: usize, a: usize, b: usize, range: Range<usize> },
    Copy { to: usize, from: usize, range: Range<usize> },
    Fill { to: usize, range: Range<usize>, value: u32 },
}

impl Operation {
    /// The elements it reads and those it writes.
    pub(crate) fn uses(&self) -> Vec<(usize, Range<usize>, bool)> {
        match self {
            Self::Mix { to, from, range, .. } | Self::Copy { to, from, range } => {
                vec![(*to, range.clone(), true), (*from, range.clone(), false)]
            }
            Self::Join { to, a, b, range } => {
                let read = |at: &usize| (*at, range.clone(), false);
                vec![(*to, range.clone(), true), read(a), read(b)]
            }
            Self::Fill { to, range, .. } => vec![(*to, range.clone(), true)],
        }
    }

    /// Whether two must not happen at once, element by element.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.uses().iter().any(|(buffer, range, writes)| {
            other.uses().iter().any(|(theirs, others, they_write)| {
                buffer == theirs && (*writes || *they_write) && range.clone().any(|at| others.contains(&at))
            })
        })
    }

    pub(crate) fn on_host(&self, buffers: &mut [Vec<u32>]) {
        match self {
            Self::Mix { to, from, range, k } => {
                for at in range.clone() {
                    buffers[*to][at] = mixed(buffers[*to][at], buffers[*from][at], *k);
                }
            }
            Self::Join { to, a, b, range } => {
                for at in range.clone() {
                    buffers[*to][at] = joined(buffers[*a][at], buffers[*b][at]);
                }
            }
            Self::Copy { to, from, range } => {
                for at in range.clone() {
                    buffers[*to][at] = buffers[*from][at];
                }
            }
            Self::Fill { to, range, value } => buffers[*to][range.clone()].fill(*value),
        }
    }

    pub(crate) fn record(
        &self,
        builder: &mut GraphBuilder,
        kernels: &Kernels,
        buffers: &[GpuRef<u32>],
    ) -> NodeId {
        let view = |at: usize, range: &Range<usize>| buffers[at].view(range.clone()).unwrap();
        match self {
            Self::Mix { to, from, range, k } => {
                let (to, from) = (view(*to, range), view(*from, range));
                let mut launch = builder.launch(&kernels.mix);
                launch.grid(1).block(1);
                launch.read_write(&to).read(&from).value(range.len() as u32).value(*k);
                // SAFETY: `mix` touches the elements it is told of, which lie inside both views.
                unsafe { launch.record() }.unwrap()
            }
            Self::Join { to, a, b, range } => {
                let (to, a, b) = (view(*to, range), view(*a, range), view(*b, range));
                let mut launch = builder.launch(&kernels.join);
                launch.grid(1).block(1);
                launch.write(&to).read(&a).read(&b).value(range.len() as u32);
                // SAFETY: `join` touches the elements it is told of, which lie inside all three views.
                unsafe { launch.record() }.unwrap()
            }
            Self::Copy { to, from, range } => builder.copy(&view(*from, range), &view(*to, range)).unwrap(),
            Self::Fill { to, range, value } => builder.fill(&view(*to, range), *value).unwrap(),
        }
    }

    /// Changes a node into this, which is of the same kind.
    pub(crate) fn update(
        &self,
        graph: &mut kiln::Graph,
        node: NodeId,
        buffers: &[GpuRef<u32>],
    ) -> kiln::Result<()> {
        let view = |at: usize, range: &Range<usize>| buffers[at].view(range.clone()).unwrap();
        match self {
            Self::Mix { to, from, range, k } => {
                let (to, from) = (view(*to, range), view(*from, range));
                let mut update = graph.update(node)?;
                update.read_write(0, &to).read(1, &from).value(2, range.len() as u32).value(3, *k);
                // SAFETY: `mix` touches the elements it is told of, which lie inside both views.
                unsafe { update.apply() }
            }
            Self::Join { to, a, b, range } => {
                let (to, a, b) = (view(*to, range), view(*a, range), view(*b, range));
                let mut update = graph.update(node)?;
                update.write(0, &to).read(1, &a).read(2, &b).value(3, range.len() as u32);
                // SAFETY: `join` touches the elements it is told of, which lie inside all three views.
                unsafe { update.apply() }
            }
            Self::Copy { to, from, range } => graph.update_copy(node, &view(*from, range), &view(*to, range)),
            Self::Fill { to, range, value } => graph.update_fill(node, &view(*to, range), *value),
        }
    }

    pub(crate) fn submit(
        &self,
        gpu: &DeviceRuntime,
        stream: &Stream,
        kernels: &Kernels,
        buffers: &[GpuRef<u32>],
    ) {
        let view = |at: usize, range: &Range<usize>| buffers[at].view(range.clone()).unwrap();
        match self {
            Self::Mix { to, from, range, k } => {
                let (to, from) = (view(*to, range), view(*from, range));
                let mut launch = gpu.launch(&kernels.mix);
                launch.grid(1).block(1);
                launch.on(stream).read_write(&to).read(&from).value(range.len() as u32).value(*k);
                // SAFETY: `mix` touches the elements it is told of, which lie inside both views.
                unsafe { launch.submit() }.unwrap();
            }
            Self::Join { to, a, b, range } => {
                let (to, a, b) = (view(*to, range), view(*a, range), view(*b, range));
                let mut launch = gpu.launch(&kernels.join);
                launch.grid(1).block(1);
                launch.on(stream).write(&to).read(&a).read(&b).value(range.len() as u32);
                // SAFETY: `join` touches the elements it is told of, which lie inside all three views.
                unsafe { launch.submit() }.unwrap();
            }
            Self::Copy { to, from, range } => {
                view(*to, range).copy_from_on(stream, &view(*from, range)).unwrap();
            }
            Self::Fill { to, range, value } => drop(view(*to, range).fill(*value).unwrap()),
        }
    }
}
