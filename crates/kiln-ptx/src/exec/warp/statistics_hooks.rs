//! What statistics count of a step, before it is executed.

use super::Warp;
use crate::exec::block::Cta;
use crate::exec::lowered_code::{Address, ClusterBarrier, Op, Step};
use crate::exec::memory::generic_address::Place;
use crate::exec::statistics::ExecutionCounts;
use crate::exec::warp_register::{Column, LANES, each};

/// Bytes of a sector of global memory.
const SECTOR_BYTES: u64 = 32;
/// Bytes of a word of a bank of shared memory, and how many banks there are.
const WORD_BYTES: u64 = 4;
const BANKS: usize = 32;

/// What a step does to memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
    Update,
}

impl Warp {
    /// Keeps that a step is executed in `lanes`, and counts it.
    #[cold]
    #[inline(never)]
    pub(super) fn count_step(&self, cta: &mut Cta<'_>, at: usize, step: &Step, (active, lanes): (u32, u32)) {
        if let (Some(coverage), true) = (cta.launch.options.coverage, lanes != 0) {
            coverage.mark(self.lane_groups[at].pc);
        }
        if cta.launch.options.statistics.is_some() {
            let counts = self.counts_of(cta, at, step, (active, lanes));
            if let Some(counted) = cta.step_counts.get_mut(self.lane_groups[at].pc as usize) {
                *counted += counts;
            }
        }
    }

    /// The counts of a step that `lanes` of the `active` ones execute.
    fn counts_of(
        &self,
        cta: &Cta<'_>,
        at: usize,
        step: &Step,
        (active, lanes): (u32, u32),
    ) -> ExecutionCounts {
        let mut counts = ExecutionCounts::default();
        if step.first {
            counts.warp_instructions = 1;
            counts.thread_instructions = u64::from(lanes.count_ones());
            counts.active_threads = u64::from(active.count_ones());
            counts.warp_threads = u64::from(cta.lanes(self.index).count_ones());
        }
        if lanes != 0 {
            match &step.op {
                Op::Load(load) => {
                    let bytes = load.bytes * load.to.len() as u32;
                    self.count_access(
                        cta,
                        at,
                        (load.place, load.address),
                        (lanes, bytes),
                        Direction::Load,
                        &mut counts,
                    );
                }
                Op::Store(store) => {
                    let bytes = store.bytes * store.from.len() as u32;
                    let place = (store.place, store.address);
                    self.count_access(cta, at, place, (lanes, bytes), Direction::Store, &mut counts);
                }
                Op::Atomic(atomic) => {
                    let place = (atomic.place, atomic.address);
                    self.count_access(cta, at, place, (lanes, atomic.bytes), Direction::Update, &mut counts);
                }
                Op::CopyAsync(copy) => {
                    let (from, to) = ((Place::Global, copy.from), (Place::Shared, copy.to));
                    self.count_access(cta, at, from, (lanes, copy.bytes), Direction::Load, &mut counts);
                    self.count_access(cta, at, to, (lanes, copy.bytes), Direction::Store, &mut counts);
                }
                Op::Barrier(_) | Op::ClusterBarrier(ClusterBarrier { arrives: false, .. }) => {
                    counts.barriers = 1
                }
                _ => {}
            }
        }
        counts
    }

    fn count_access(
        &self,
        cta: &Cta<'_>,
        at: usize,
        (place, address): (Place, Address),
        (lanes, bytes): (u32, u32),
        direction: Direction,
        counts: &mut ExecutionCounts,
    ) {
        let addresses = self.addresses(cta, at, address);
        // The memory each lane reaches: global, constant, shared, local, parameters.
        let (mut global, mut constant, mut shared, mut local, mut parameter) = (0u32, 0u32, 0u32, 0u32, 0u32);
        each(lanes, |lane| {
            let reached = if place == Place::Generic { Place::at(addresses[lane]) } else { place };
            let set = match reached {
                Place::Shared | Place::Cluster => &mut shared,
                Place::Local => &mut local,
                Place::Param => &mut parameter,
                _ if cta.launch.is_constant(addresses[lane]) => &mut constant,
                _ => &mut global,
            };
            *set |= 1 << lane;
        });
        let moved = |set: u32| u64::from(set.count_ones()) * u64::from(bytes);
        if direction != Direction::Store {
            counts.bytes.global_loaded += moved(global);
            counts.bytes.shared_loaded += moved(shared);
            counts.bytes.local_loaded += moved(local);
            counts.bytes.constant_loaded += moved(constant);
            counts.bytes.parameter_loaded += moved(parameter);
        }
        if direction != Direction::Load {
            counts.bytes.global_stored += moved(global);
            counts.bytes.shared_stored += moved(shared);
            counts.bytes.local_stored += moved(local);
        }
        if global != 0 {
            let (sectors, ideal) = sectors(&addresses, global, bytes);
            counts.global_requests += 1;
            counts.global_sectors += sectors;
            counts.ideal_sectors += ideal;
        }
        if shared != 0 {
            let (wavefronts, ideal) = wavefronts(&addresses, shared, bytes);
            counts.shared_requests += 1;
            counts.shared_wavefronts += wavefronts;
            counts.ideal_wavefronts += ideal;
        }
        if direction == Direction::Update {
            counts.atomic_updates += u64::from(lanes.count_ones());
            counts.atomic_passes += most_at_one_place(&addresses, lanes);
        }
    }
}

/// The addresses of lanes, each once, from the lowest.
fn distinct(addresses: &Column, lanes: u32) -> Vec<u64> {
    let mut list = Vec::with_capacity(LANES);
    each(lanes, |lane| list.push(addresses[lane]));
    list.sort_unstable();
    list.dedup();
    list
}

/// How many sectors a request touches, and how many would hold its bytes.
fn sectors(addresses: &Column, lanes: u32, bytes: u32) -> (u64, u64) {
    let bytes = u64::from(bytes);
    let (mut sectors, mut touched, mut next_sector, mut end) = (0, 0, 0, 0);
    for address in distinct(addresses, lanes) {
        let last = address.saturating_add(bytes);
        touched += last - address.max(end).min(last);
        end = last.max(end);
        let (from, to) = ((address / SECTOR_BYTES).max(next_sector), last.div_ceil(SECTOR_BYTES));
        sectors += to.saturating_sub(from);
        next_sector = to.max(next_sector);
    }
    (sectors, touched.div_ceil(SECTOR_BYTES))
}

/// How many rounds a request to shared memory takes, and how many without conflicts. Accesses of 8 and 16 bytes are made by halves and quarters of the warp.
fn wavefronts(addresses: &Column, lanes: u32, bytes: u32) -> (u64, u64) {
    let words = u64::from(bytes).div_ceil(WORD_BYTES).max(1);
    let lanes_at_once = (LANES as u64 / words).max(1) as u32;
    let (mut rounds, mut ideal) = (0, 0);
    for first in (0..LANES as u32).step_by(lanes_at_once as usize) {
        let part = lanes & ((u64::from(u32::MAX) >> (32 - lanes_at_once)) << first) as u32;
        if part == 0 {
            continue;
        }
        let mut list = Vec::with_capacity(LANES);
        each(part, |lane| {
            let start = addresses[lane] / WORD_BYTES;
            list.extend(start..start + words);
        });
        list.sort_unstable();
        list.dedup();
        let mut banks = [0u64; BANKS];
        list.iter().for_each(|word| banks[(word % BANKS as u64) as usize] += 1);
        rounds += banks.into_iter().max().unwrap_or(1).max(1);
        ideal += 1;
    }
    (rounds, ideal)
}

/// The most lanes that mean the same address.
fn most_at_one_place(addresses: &Column, lanes: u32) -> u64 {
    let mut list = Vec::with_capacity(LANES);
    each(lanes, |lane| list.push(addresses[lane]));
    list.sort_unstable();
    list.chunk_by(|a, b| a == b).map(|same| same.len() as u64).max().unwrap_or(0)
}
