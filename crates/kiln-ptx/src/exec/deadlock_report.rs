//! Which threads of a block wait for what, when none of them can go on.

use super::block::Cta;
use super::code_location::{CodeSite, Line};
use super::fault::ExecFault;
use super::finding::ExecFindingKind;
use super::mbarrier_table::PhaseWait;
use super::warp::{LaneGroup, State, Warp};
use super::warp_register::{LANES, first_lane};

/// What the threads of a deadlock wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadlockPlace {
    /// A barrier of the whole block.
    Barrier,
    /// A barrier with a count of threads.
    CountedBarrier,
    /// A warp-level instruction, for lanes that its mask names.
    Mask,
    /// A phase of an `mbarrier` object.
    Mbarrier,
    /// The barrier of the cluster.
    Cluster,
}

/// What the threads of a block wait for, in words, and one of them.
pub(crate) struct BlockWaits {
    pub(crate) words: String,
    pub(crate) place: DeadlockPlace,
    pc: u32,
    thread: usize,
}

/// Threads that wait for the same.
struct Waiting {
    pc: u32,
    state: State,
    phase: Option<PhaseWait>,
    /// The number of the first of them in the block.
    thread: usize,
    threads: u32,
}

impl Waiting {
    fn of(warp: usize, group: &LaneGroup) -> Self {
        let phase = group.phase_wait.filter(|_| group.state == State::Ready);
        Self {
            pc: phase.map_or(group.pc, |wait| wait.pc),
            state: group.state,
            phase,
            thread: warp * LANES + first_lane(group.mask),
            threads: group.mask.count_ones(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let address = |one: &Self| one.phase.map(|wait| wait.address);
        (self.pc, self.state, address(self)) == (other.pc, other.state, address(other))
    }

    fn place(&self, cta: &Cta<'_>) -> DeadlockPlace {
        match self.state {
            State::Ready => DeadlockPlace::Mbarrier,
            State::Collective => DeadlockPlace::Mask,
            State::Cluster => DeadlockPlace::Cluster,
            State::Barrier(number) => match cta.barriers[usize::from(number)].open() {
                Some((Some(_), ..)) => DeadlockPlace::CountedBarrier,
                _ => DeadlockPlace::Barrier,
            },
        }
    }

    fn words(&self, cta: &Cta<'_>) -> String {
        let site = CodeSite::of(cta.launch.code, self.pc);
        let threads = match self.threads {
            1 => "1 thread waits".to_owned(),
            count => format!("{count} threads wait"),
        };
        let line = Line(&site);
        match (self.state, self.phase) {
            (State::Barrier(number), _) => {
                let came = match cta.barriers[usize::from(number)].open() {
                    Some((Some(count), came, _)) => format!(", where {came} of {count} threads came"),
                    _ => String::new(),
                };
                format!("{threads} at barrier {number} at {line}{came}")
            }
            (State::Ready, Some(wait)) => {
                format!(
                    "{threads} at {line} for {}",
                    cta.mbarriers.phase_words(wait.address, &cta.shared_place(wait.address))
                )
            }
            (State::Cluster, _) => {
                let (arrived, of) = cta.cluster.as_ref().map_or((0, 0), |cluster| cluster.arrivals());
                format!(
                    "{threads} at the barrier of the cluster at {line}, where {arrived} of {of} threads arrived"
                )
            }
            _ => format!("{threads} at `{}` at {line}", site.instruction),
        }
    }
}

impl Cta<'_> {
    /// Keeps a finding about threads of which none can go on.
    pub(super) fn report_deadlock(&self, warps: &[Warp]) -> ExecFault {
        let waits = self.waiting(warps);
        let text = format!("deadlock: no thread of the block can go on; {}", waits.words);
        self.report_waiting(text, &waits)
    }

    pub(super) fn report_waiting(&self, text: String, waits: &BlockWaits) -> ExecFault {
        let BlockWaits { place, pc, thread, .. } = *waits;
        self.report(thread / LANES, thread % LANES, pc, ExecFindingKind::Deadlock { text, place });
        ExecFault::LaunchTimeout
    }

    /// What the threads of the block wait for.
    pub(super) fn waiting(&self, warps: &[Warp]) -> BlockWaits {
        let mut all: Vec<Waiting> = Vec::new();
        for warp in warps {
            for waiting in warp.lane_groups.iter().map(|group| Waiting::of(warp.index, group)) {
                match all.iter_mut().find(|known| known.is_like(&waiting)) {
                    Some(known) => known.threads += waiting.threads,
                    None => all.push(waiting),
                }
            }
        }
        let mut parts: Vec<String> = all.iter().map(|waiting| waiting.words(self)).collect();
        let gone: u32 =
            self.existing.iter().zip(&self.live).map(|(all, live)| (all & !live).count_ones()).sum();
        if gone > 0 {
            parts.push(format!("{gone} have exited"));
        }
        // A mask that names too many lanes also keeps a barrier from being complete, and so does a phase that is never complete.
        let first = [DeadlockPlace::Mask, DeadlockPlace::Mbarrier]
            .iter()
            .find_map(|place| all.iter().find(|waiting| waiting.place(self) == *place))
            .or(all.first());
        let place = first.map_or(DeadlockPlace::Barrier, |waiting| waiting.place(self));
        let (pc, thread) = first.map_or((0, 0), |waiting| (waiting.pc, waiting.thread));
        BlockWaits { words: parts.join(", "), place, pc, thread }
    }

    /// Where a shared address lies, in words.
    fn shared_place(&self, address: u64) -> String {
        let map = &self.launch.code.shared;
        let place = map.variable_place(address).or_else(|| map.dynamic_place(address));
        place.unwrap_or_else(|| format!("shared address {address:#x}"))
    }
}
