//! Waits of the host while ranks wait for each other.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::collective::deadlock::Stalled;
use crate::schedule::machine_core::{Core, Guard};
use crate::schedule::machine_state::State;

/// What came of a wait for other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RanksWait {
    /// No work waits for another rank.
    NotWaiting,
    /// Another thread did something, or what waited was ended.
    Moved,
    /// The time of the caller is over.
    TimedOut,
}

impl Core {
    /// Nothing can run. If work waits for other ranks, waits until another thread submits something, in real time: for no longer than the
    /// caller allows, and until the deadline of the communicator, which ends the work.
    pub(crate) fn wait_for_ranks<'a>(
        &'a self,
        mut state: Guard<'a>,
        until: Option<Instant>,
    ) -> (Guard<'a>, RanksWait) {
        let stalled = state.stalled();
        if stalled.is_empty() {
            return (state, RanksWait::NotWaiting);
        }
        if state.end_overdue(&stalled) {
            self.notify();
            return (state, RanksWait::Moved);
        }
        let deadline = state.deadline(&stalled);
        let idle = state.last_moved.elapsed();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return (state, RanksWait::TimedOut);
        }
        let sleep = left.map_or(deadline, |left| left.min(deadline)).min(deadline.saturating_sub(idle));
        let slept = self.moved.wait_timeout(state, sleep.max(Duration::from_micros(100)));
        (slept.unwrap_or_else(PoisonError::into_inner).0, RanksWait::Moved)
    }

    /// The same for a caller that does not wait.
    pub(crate) fn look_after_ranks(&self, state: &mut State) {
        if state.communicators.is_empty() || state.running > 0 || !state.ready().is_empty() {
            return;
        }
        let stalled = state.stalled();
        if !stalled.is_empty() && state.end_overdue(&stalled) {
            self.notify();
        }
    }
}

impl State {
    /// Something was submitted or done.
    pub(crate) fn note_movement(&mut self) {
        if !self.communicators.is_empty() {
            self.last_moved = Instant::now();
        }
    }

    /// The program makes a call, or one has ended.
    pub(crate) fn note_call(&mut self) {
        if !self.communicators.is_empty() {
            self.last_called = Instant::now();
        }
    }

    fn deadline(&self, stalled: &[Stalled]) -> Duration {
        let deadline = |one: &Stalled| {
            self.communicators.get(&one.run.call.rank.id).map(|communicator| communicator.deadline)
        };
        stalled.iter().filter_map(deadline).min().unwrap_or(Duration::ZERO)
    }

    /// Ends work that waits for a rank which cannot come, or for longer than its deadline. True if there is any.
    fn end_overdue(&mut self, stalled: &[Stalled]) -> bool {
        if self.end_hopeless(stalled) {
            return true;
        }
        if self.last_moved.elapsed() < self.deadline(stalled) {
            return false;
        }
        self.end_deadlock(stalled);
        true
    }
}
