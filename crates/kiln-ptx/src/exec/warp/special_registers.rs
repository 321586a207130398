//! Special registers.

use super::Warp;
use crate::Axis;
use crate::exec::address_halves::HALF;
use crate::exec::block::Cta;
use crate::exec::lane_pattern::LanePattern;
use crate::exec::lowered_code::{Reg, Special};
use crate::exec::memory::generic_address::WORKSPACE;
use crate::exec::warp_register::{Column, LANES};

impl Warp {
    pub(super) fn special(&mut self, cta: &Cta<'_>, at: usize, to: Reg, which: Special, lanes: u32) {
        let mut value = [0; LANES];
        self.special_value(cta, which, &mut value);
        self.frames[self.lane_groups[at].frame].write(to, &value, lanes);
    }

    pub(super) fn special_value(&self, cta: &Cta<'_>, which: Special, out: &mut Column) {
        let launch = cta.launch;
        let axis = |of: [u32; 3], axis: Axis| u64::from(of.get(axis.index()).copied().unwrap_or(0));
        let mut lane = |f: fn(u32) -> u32| {
            (0u32..).zip(out.iter_mut()).for_each(|(lane, out)| *out = u64::from(f(lane)));
        };
        match which {
            Special::Thread(at) => {
                let [width, height, _] = launch.shape.block;
                let mut thread = cta.thread(self.index, 0);
                if at == Axis::X && thread[0] + LANES as u32 <= width {
                    return (thread[0]..).zip(out).for_each(|(x, out)| *out = u64::from(x));
                }
                for out in out {
                    *out = axis(thread, at);
                    thread[0] += 1;
                    if thread[0] == width {
                        thread = [0, thread[1] + 1, thread[2]];
                    }
                    if thread[1] == height {
                        thread = [thread[0], 0, thread[2] + 1];
                    }
                }
            }
            Special::LocalWindow => {
                (0..).zip(out).for_each(|(lane, out)| *out = self.local_window(cta, lane));
            }
            Special::Lane => lane(|lane| lane),
            Special::LanesEqual => lane(|lane| 1 << lane),
            Special::LanesBelow { inclusive: false } => lane(|lane| (1 << lane) - 1),
            Special::LanesBelow { inclusive: true } => lane(|lane| u32::MAX >> (31 - lane)),
            Special::LanesAbove { inclusive: true } => lane(|lane| u32::MAX << lane),
            Special::LanesAbove { inclusive: false } => lane(|lane| (u32::MAX << lane) << 1),
            which => out.fill(self.shared_special(cta, which).unwrap_or(0)),
        }
    }

    /// The pattern of a special register in a whole warp, where it is seen from the shape of the block.
    pub(super) fn special_pattern(&self, cta: &Cta<'_>, which: Special) -> Option<LanePattern> {
        match which {
            // Neither half of the warp goes over the end of a line of threads.
            Special::Thread(axis) if (cta.launch.shape.block[0] as usize).is_multiple_of(HALF) => {
                let starts = [0, HALF].map(|lane| u64::from(cta.thread(self.index, lane)[axis.index()]));
                Some(LanePattern { starts, step: u64::from(axis == Axis::X) })
            }
            Special::Lane => Some(LanePattern { starts: [0, HALF as u64], step: 1 }),
            _ => None,
        }
    }

    /// The value of a special register that all lanes of a warp share; `None` of one that differs between them.
    pub(super) fn shared_special(&self, cta: &Cta<'_>, which: Special) -> Option<u64> {
        let launch = cta.launch;
        let axis = |of: [u32; 3], axis: Axis| u64::from(of.get(axis.index()).copied().unwrap_or(0));
        let half = |value: u64, high: bool, wide: bool| match (high, wide) {
            (_, true) => value,
            (true, _) => value >> 32,
            (false, _) => value & 0xffff_ffff,
        };
        Some(match which {
            Special::Thread(_) | Special::LocalWindow | Special::Lane | Special::LanesEqual => return None,
            Special::LanesBelow { .. } | Special::LanesAbove { .. } => return None,
            Special::BlockShape(at) => axis(launch.shape.block, at),
            Special::Block(at) => axis(cta.index, at),
            Special::GridShape(at) => axis(launch.shape.grid, at),
            Special::Warp => self.index as u64,
            Special::Warps => launch.shape.threads().div_ceil(LANES as u64),
            // Time is counted in steps, so that it moves the same way in every run.
            Special::Clock { high, wide } => half(self.steps, high, wide),
            Special::Timer { high, wide } => half(cta.counters.warp_instructions, high, wide),
            Special::DynamicShared => u64::from(launch.shape.dynamic_shared_bytes),
            Special::TotalShared => launch.code.shared_bytes + u64::from(launch.shape.dynamic_shared_bytes),
            // The runtime hands the address of the grid's meeting place over in two registers.
            Special::Environment(1) if launch.shape.cooperative => WORKSPACE >> 32,
            Special::Environment(2) if launch.shape.cooperative => WORKSPACE & 0xffff_ffff,
            Special::Environment(_) => 0,
            Special::Constant(value) => value,
            Special::Processor => 0,
            Special::SharedWindow => cta.shared_window,
            Special::Cluster(at) => axis(launch.clusters.cluster_index(cta.index), at),
            Special::ClusterGridShape(at) => axis(launch.clusters.clusters(), at),
            Special::BlockInCluster(at) => axis(launch.clusters.index_in_cluster(cta.index), at),
            Special::ClusterShape(at) => axis(launch.clusters.blocks, at),
            Special::ClusterRank => cta.rank() as u64,
            Special::ClusterBlocks => launch.clusters.size(),
            Special::IsExplicitCluster => u64::from(launch.clusters.is_explicit),
        })
    }
}
