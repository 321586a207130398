//! Loops that cannot end.
//!
//! A lane group that comes back to an instruction with the same registers, and only computed in between, does the same again for ever. If it
//! read memory in between, it does so until another thread writes that memory. Brent's method finds both: now and then the state of the
//! lane group is kept, and compared whenever the lane group is back at that instruction. The intervals double, so that a loop of any length is
//! found once an interval is as long as the loop, and the copies cost nothing in the long run.
//!
//! Everything whose result depends on more than registers and memory (clocks, calls, collectives, barriers) or that writes drops the
//! kept state. A loop that does such things is not found here; limits end it.

use super::frame::{Frame, FrameId};
use super::kept_state::KeptState;
use super::lane_group::{LaneGroup, State};
use super::{Done, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{MbarrierAction, Op, Special};

/// Steps until the first state of a lane group is kept.
const FIRST_INTERVAL: u64 = 512;
/// No instruction.
const NOWHERE: u32 = u32::MAX;

/// The kept state of a lane group.
pub(super) struct Watch {
    /// The instruction at which it was kept.
    pub(super) pc: u32,
    /// The step of the warp at which the next state is kept.
    pub(super) next: u64,
    interval: u64,
    /// The lane group that ran last, if the warp has several.
    followed: (u32, FrameId),
    state: KeptState,
    /// Whether memory was read since.
    reads: bool,
    /// How often memory had been changed.
    changes: u64,
    /// Whether all that was done since a [strong read](super::repeated_poll) was looked at follows from registers and memory.
    pub(super) is_intact: bool,
    /// How often memory was read.
    pub(super) read_count: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            pc: NOWHERE,
            next: FIRST_INTERVAL,
            interval: FIRST_INTERVAL,
            followed: (0, 0),
            state: KeptState::default(),
            reads: false,
            changes: 0,
            is_intact: false,
            read_count: 0,
        }
    }
}

impl Watch {
    /// Follows the lane group that runs now, and starts again if it is another one than before.
    pub(super) fn follow(&mut self, lane_group: &LaneGroup, steps: u64) {
        let now = (lane_group.mask, lane_group.frame);
        if std::mem::replace(&mut self.followed, now) != now {
            self.restart(steps);
        }
    }

    /// Starts again with a short interval.
    pub(super) fn restart(&mut self, steps: u64) {
        self.pc = NOWHERE;
        self.interval = FIRST_INTERVAL;
        self.next = steps + FIRST_INTERVAL;
    }

    /// Forgets the kept state: the lane group did something whose result may be another one next time.
    #[inline(always)]
    pub(super) fn drop_state(&mut self) {
        self.pc = NOWHERE;
        self.is_intact = false;
    }

    /// The same for what only threads of this warp have a part in, all of which are in the lane group: a strong read may still be repeated.
    pub(super) fn drop_loop(&mut self) {
        self.pc = NOWHERE;
    }

    /// Notes that memory was read that others may write.
    #[inline(always)]
    pub(super) fn read(&mut self) {
        self.reads = true;
        self.read_count = self.read_count.wrapping_add(1);
    }

    fn keep(&mut self, lane_group: &LaneGroup, frame: &Frame, steps: u64, changes: u64) {
        self.interval = self.interval.saturating_mul(2);
        self.next = steps.saturating_add(self.interval);
        self.pc = lane_group.pc;
        self.state.keep(lane_group, frame);
        self.reads = false;
        self.changes = changes;
    }
}

impl Warp {
    /// Keeps the state of a lane group.
    #[cold]
    pub(super) fn keep_state(&mut self, cta: &Cta<'_>, at: usize) {
        let lane_group = self.lane_groups[at];
        self.frames[lane_group.frame].settle_all();
        self.watch.keep(&lane_group, &self.frames[lane_group.frame], self.steps, cta.all_changes());
    }

    /// Looks whether a lane group that is back at the watched instruction is in the state it had there.
    ///
    /// # Errors
    /// It is, and nothing can end it.
    pub(super) fn compare_state(&mut self, cta: &Cta<'_>, at: usize) -> Done<()> {
        let lane_group = self.lane_groups[at];
        if !self.watch.state.holds(&lane_group, &self.frames[lane_group.frame]) {
            return Ok(());
        }
        if !self.watch.reads {
            return Err(Trouble::new(self.first_lane(at), ExecFindingKind::Endless));
        }
        let changes = cta.all_changes();
        if self.watch.changes == changes {
            self.lane_groups[at].repeats = Some(changes);
        }
        self.watch.restart(self.steps);
        Ok(())
    }

    /// Whether no thread of the warp can go on until memory changes: each waits, or repeats what it does.
    pub(crate) fn only_repeats(&self, changes: u64, mbarrier_changes: u64) -> bool {
        self.lane_groups.iter().all(|lane_group| match lane_group.state {
            State::Ready => {
                lane_group.repeats == Some(changes) || lane_group.waits_for_phase(mbarrier_changes)
            }
            State::Collective | State::Barrier(_) | State::Cluster => true,
        })
    }

    /// Whether each thread of the warp waits for others or for a phase of an `mbarrier` object; `changes`: how often objects of the block were changed.
    pub(crate) fn only_waits(&self, changes: u64) -> bool {
        self.lane_groups.iter().all(|lane_group| match lane_group.state {
            State::Ready => lane_group.waits_for_phase(changes),
            State::Collective | State::Barrier(_) | State::Cluster => true,
        })
    }

    /// A thread that could run.
    pub(crate) fn ready_thread(&self) -> Option<(usize, u32)> {
        let at = self.lane_groups.iter().position(|lane_group| lane_group.state == State::Ready)?;
        Some((self.first_lane(at), self.lane_groups[at].pc))
    }
}

impl Op {
    /// Whether the result follows from registers alone, or, for an atomic, from memory as well.
    pub(super) fn only_computes(&self) -> bool {
        match self {
            Self::Special { which, .. } => !matches!(which, Special::Clock { .. } | Special::Timer { .. }),
            Self::Mbarrier(mbarrier) => matches!(mbarrier.action, MbarrierAction::Wait { .. }),
            Self::Alu { .. }
            | Self::Compare(_)
            | Self::Select { .. }
            | Self::Logic { .. }
            | Self::Copy { .. }
            | Self::Carry(_)
            | Self::Split { .. }
            | Self::Join { .. }
            | Self::FrameAddress { .. }
            | Self::IsSpace { .. }
            | Self::ClusterAddress(_)
            | Self::CheckMetadata { .. }
            | Self::TileAddresses(_)
            | Self::Atomic(_)
            | Self::ActiveMask { .. }
            | Self::Branch { .. }
            | Self::Jump { .. }
            | Self::Table { .. }
            | Self::Fence(_)
            | Self::Yield
            | Self::Nothing => true,
            Self::Allocate { .. }
            | Self::StackSave { .. }
            | Self::StackRestore { .. }
            | Self::Load(_)
            | Self::Store(_)
            | Self::CopyAsync(_)
            | Self::Texture(_)
            | Self::BulkCopy(_)
            | Self::TensorCopy(_)
            | Self::TensorMapEdit(_)
            | Self::CommitBulkCopies
            | Self::WaitForBulkCopies { .. }
            | Self::CommitCopies
            | Self::WaitForCopies { .. }
            | Self::Warpgroup(_)
            | Self::Collective(_)
            | Self::Barrier(_)
            | Self::ClusterBarrier(_)
            | Self::Call(_)
            | Self::Builtin(_)
            | Self::Return
            | Self::Exit
            | Self::Trap
            | Self::Unsupported(_) => false,
        }
    }
}
