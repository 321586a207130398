//! The state of one device: changed by the table alone, read without a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use kiln_order::{DependencyTracker, Stamp, StreamClock, StreamKey};

use super::cause::Cause;
use super::loss::Loss;
use super::phase::{ForbiddenChange, Phase};
use super::state_data::StateData;
use super::state_observer::StateObserver;
use super::status::{DeviceState, Status};
use super::submission_set::SubmissionSet;
use crate::ids::Generation;
use crate::wake::{WakeSignal, wake};

/// The state of one device. Changing it may happen under any lock of ours, so no callback is called from here: blocked threads are
/// notified, and all others are told by the reactor, which is woken.
// In this order and place: every submission looks at the first two, in one cache line.
#[repr(C, align(16))]
pub(crate) struct StateCell {
    /// The phase behind the lock, for those who only compare.
    phase: AtomicU8,
    pub(super) generation: AtomicU64,
    /// A `RecoveryControl` or the recovery thread decides what becomes of a lost device.
    controlled: AtomicBool,
    /// Work that was unfinished when the device was lost may be done again, so that no waiter is told before that is known.
    defers: AtomicBool,
    data: Mutex<StateData>,
    changed: Condvar,
    signal: Arc<WakeSignal>,
    /// Who brings the device back.
    rebuilder: OnceLock<ThreadId>,
    pub(super) observer: OnceLock<Box<dyn StateObserver>>,
}

impl StateCell {
    pub(crate) fn new(signal: Arc<WakeSignal>) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Starting as u8),
            generation: AtomicU64::new(0),
            controlled: AtomicBool::new(false),
            defers: AtomicBool::new(false),
            data: Mutex::new(StateData::new()),
            changed: Condvar::new(),
            signal,
            rebuilder: OnceLock::new(),
            observer: OnceLock::new(),
        }
    }

    /// The phase; what is seen may be over already.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Ordering::Acquire))
    }

    /// Whether work is taken.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Ready as u8
    }

    #[inline]
    pub(crate) fn generation(&self) -> Generation {
        // In one order with what the host learns: see `interrupt`.
        Generation(self.generation.load(Ordering::SeqCst))
    }

    pub(crate) fn status(&self) -> Status {
        self.data().status.clone()
    }

    /// Why the device was last lost, whatever became of it since.
    pub(crate) fn cause(&self) -> Option<Arc<Cause>> {
        self.data().losses.last().map(|loss| loss.cause.clone())
    }

    /// Why the device of now is lost; none if it was rebuilt since.
    pub(crate) fn fault(&self) -> Option<Arc<Cause>> {
        let data = self.data();
        let last = data.losses.last().filter(|loss| loss.generation == data.status.generation);
        last.map(|loss| loss.cause.clone())
    }

    /// Changes the state to one that carries no cause.
    pub(crate) fn change(&self, to: Phase) -> Result<Status, ForbiddenChange> {
        self.apply(to)
    }

    /// The device is lost. The first cause of a generation stays; without a recovery control there is no way back. While it is being rebuilt the old
    /// context still answers with its fault, which is no news: the builder of the new one says what becomes of that.
    pub(crate) fn lose(&self, cause: impl FnOnce() -> Cause, tracker: Option<&DependencyTracker>) {
        let known = match self.phase() {
            Phase::Lost | Phase::Failed | Phase::Stopped | Phase::Rebuilding => true,
            Phase::ShuttingDown => self.fault().is_some(),
            Phase::Starting | Phase::Ready => false,
        };
        if !known {
            self.lose_from(&[Phase::Starting, Phase::Ready, Phase::ShuttingDown], cause(), tracker);
        }
    }

    /// The new context is lost too, before it was ready.
    pub(crate) fn lose_again(&self, cause: Cause, tracker: Option<&DependencyTracker>) {
        self.lose_from(&[Phase::Rebuilding], cause, tracker);
    }

    /// As [`lose`](Self::lose), for a follower of a device that is rebuilt elsewhere.
    pub(crate) fn lose_whenever(&self, cause: Cause) {
        self.lose_from(&[Phase::Starting, Phase::Ready, Phase::ShuttingDown, Phase::Rebuilding], cause, None);
    }

    fn lose_from(&self, phases: &[Phase], cause: Cause, tracker: Option<&DependencyTracker>) {
        let (known, planned) = tracker.map(DependencyTracker::horizon).unwrap_or_default();
        {
            let mut data = self.data();
            let (from, generation) = (data.status.phase(), data.status.generation);
            let first = data.losses.last().is_none_or(|last| last.generation < generation);
            // Decided under the lock: of two who notice at the same time one is first, and the other has nothing to say.
            if !phases.contains(&from) || !(first || from == Phase::Rebuilding) {
                return;
            }
            let cause = Arc::new(cause.with_successor(self.is_controlled() && !from.is_over()));
            let (replayed, is_decided) = (Arc::default(), !self.defers());
            // Also while shutting down: the state stays, and callers are told why.
            let (everything, is_interruption) = (false, false);
            let loss =
                Loss { generation, cause, known, planned, replayed, is_decided, everything, is_interruption };
            data.losses.push(loss);
            let _ = self.apply_to(data, Phase::Lost);
        }
        if !self.is_controlled() {
            self.fail();
        }
    }

    /// A lost device is given up, and this is why it could not be brought back.
    pub(crate) fn fail_because(&self, why: &str) {
        if let Some(loss) = self.data().losses.last_mut() {
            loss.cause = Arc::new(loss.cause.given_up(why));
        }
        self.fail();
    }

    /// A lost device is given up.
    pub(crate) fn fail(&self) {
        if let Some(loss) = self.data().losses.last_mut() {
            loss.cause = Arc::new(loss.cause.with_successor(false));
        }
        // A device that is shutting down, or failed already, stays so.
        let _ = self.apply(Phase::Failed);
    }

    /// Whether a context that is lost now may be replaced by another.
    pub(crate) fn may_come_back(&self) -> bool {
        self.is_controlled() && !self.phase().is_over()
    }

    pub(crate) fn is_controlled(&self) -> bool {
        self.controlled.load(Ordering::Acquire)
    }

    /// Takes or gives up the right to decide about a lost device; false if it was taken or given up already.
    pub(crate) fn set_controlled(&self, controlled: bool) -> bool {
        self.controlled.swap(controlled, Ordering::AcqRel) != controlled
    }

    /// From here on it is this thread that brings the device back.
    pub(crate) fn rebuild_here(&self) {
        // There is one for each device.
        let _ = self.rebuilder.set(std::thread::current().id());
    }

    /// Whether this is the thread that brings the device back, and so cannot wait for that.
    pub(crate) fn is_rebuilt_here(&self) -> bool {
        self.rebuilder.get() == Some(&std::thread::current().id())
    }

    /// The loss that caught something, if one did: the earliest that `caught` says yes to.
    pub(crate) fn loss_where(&self, caught: impl Fn(&Loss) -> bool) -> Option<Loss> {
        self.data().losses.iter().find(|loss| caught(loss)).cloned()
    }

    /// Every time the device was lost.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.data().losses.clone()
    }

    /// Says what more was found to be done when the device was lost, and what had been asked for by the time of the freeze.
    pub(crate) fn resolve_loss(&self, known: &StreamClock, planned: &StreamClock) -> Option<Loss> {
        let mut data = self.data();
        let loss = data.losses.last_mut()?;
        loss.known.join(known);
        loss.planned.join(planned);
        Some(loss.clone())
    }

    /// From here on, unfinished work of a lost device fails only when it was [decided](Self::decide) so.
    pub(crate) fn defer(&self) {
        self.defers.store(true, Ordering::Release);
    }

    pub(crate) fn defers(&self) -> bool {
        self.defers.load(Ordering::Acquire)
    }

    /// Whether the device is lost and it is not known yet which of its work will have been done.
    pub(crate) fn is_undecided(&self) -> bool {
        self.defers() && matches!(self.phase(), Phase::Lost | Phase::Rebuilding)
    }

    /// Waits until that is known; false if time ran out.
    pub(crate) fn await_decision(&self, limit: Option<Duration>) -> bool {
        let open = |status: &Status| matches!(status.phase(), Phase::Lost | Phase::Rebuilding);
        !open(&self.wait_until(|status| !open(status), limit))
    }

    /// Says which unfinished work was done again. Questions about a block are answered from here on.
    pub(crate) fn set_replayed(&self, replayed: SubmissionSet) {
        if let Some(loss) = self.data().losses.last_mut() {
            loss.replayed = Arc::new(replayed);
        }
    }

    /// What was not done again has failed, and waiters are told.
    pub(crate) fn decide(&self) {
        if let Some(loss) = self.data().losses.last_mut() {
            loss.is_decided = true;
        }
    }

    /// The loss that caught some work, if one did. Numbers are never used twice, so no more than one can have.
    pub(crate) fn failure_of(&self, stamp: Stamp) -> Option<Arc<Cause>> {
        // The phase first: once a rebuilt device is ready, its generation is another. One that is shut down may have been rebuilt as far as the
        // driver goes, which then knows nothing of what was lost.
        let phase = self.phase();
        let untold = !matches!(phase, Phase::Rebuilding | Phase::ShuttingDown | Phase::Stopped);
        if untold && self.generation().0 == 0 {
            return None;
        }
        let data = self.data();
        // A device that is not brought back any more decides itself.
        let over = !matches!(data.status.phase(), Phase::Lost | Phase::Rebuilding);
        let mut decided = data.losses.iter().filter(|loss| loss.is_decided || over);
        decided.find(|loss| loss.caught(stamp)).map(|loss| loss.cause.clone())
    }

    /// The loss since generation `generation` in which work of a stream stayed unfinished.
    pub(crate) fn failure_since(&self, generation: Generation, stream: StreamKey) -> Option<Arc<Cause>> {
        let failed = |loss: &Loss| loss.generation >= generation && loss.caught_any_of(stream);
        self.loss_where(failed).map(|loss| loss.cause)
    }

    /// The last loss in which work of these streams stayed unfinished, if nothing was asked of any of them since.
    pub(crate) fn last_failure(&self, latest: &[Stamp]) -> Option<Arc<Cause>> {
        if self.generation().0 == 0 {
            return None;
        }
        let data = self.data();
        let last = data.losses.iter().rev().find(|loss| {
            latest.iter().all(|stamp| loss.planned.covers(*stamp))
                && latest.iter().any(|stamp| loss.caught_any_of(stamp.stream))
        });
        last.map(|loss| loss.cause.clone())
    }

    /// Says that nothing of the last generation is kept.
    pub(crate) fn keep_nothing(&self) {
        if let Some(loss) = self.data().losses.last_mut() {
            loss.everything = true;
        }
    }

    /// Waits until something is true of the state, it can become true no more, or time ran out; says how it was then.
    pub(crate) fn wait_until(&self, want: impl Fn(&Status) -> bool, limit: Option<Duration>) -> Status {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut data = self.data();
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let over = data.status.phase() == Phase::Stopped || left == Some(Duration::ZERO);
            if over || want(&data.status) {
                return data.status.clone();
            }
            data = match left {
                None => self.changed.wait(data).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.changed.wait_timeout(data, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(crate) fn data(&self) -> MutexGuard<'_, StateData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are watchers of changes.
    pub(crate) fn is_watched(&self) -> bool {
        self.data().is_watched()
    }

    /// Tells watchers what they have not heard yet. Called by the reactor, with no lock held.
    pub(crate) fn deliver(&self) {
        let wakers = self.data().take_wakers();
        wakers.into_iter().for_each(wake);
        while let Some((callback, status)) = { self.data().next_call() } {
            let call = AssertUnwindSafe(|| callback(&status));
            if catch_unwind(call).is_err() {
                tracing::error!(%status, "a callback for changes of a device's state panicked");
            }
        }
    }

    fn apply(&self, to: Phase) -> Result<Status, ForbiddenChange> {
        self.apply_to(self.data(), to)
    }

    fn apply_to(&self, mut data: MutexGuard<'_, StateData>, to: Phase) -> Result<Status, ForbiddenChange> {
        let from = data.status.phase();
        let generation = data.status.generation;
        if !from.may_become(to) {
            return Err(ForbiddenChange { from, to });
        }
        let cause = data.losses.last().map(|loss| loss.cause.clone());
        let state = match (to, cause) {
            (Phase::Lost, Some(cause)) => DeviceState::Lost(cause),
            (Phase::Rebuilding, Some(cause)) => DeviceState::Rebuilding(cause),
            (Phase::Failed, Some(cause)) => DeviceState::Failed(cause),
            (Phase::Starting, _) => DeviceState::Starting,
            (Phase::Ready, _) => DeviceState::Ready,
            (Phase::ShuttingDown, _) => DeviceState::ShuttingDown,
            (Phase::Stopped, _) => DeviceState::Stopped,
            // A device does not fail without a reason.
            (Phase::Lost | Phase::Rebuilding | Phase::Failed, None) => {
                return Err(ForbiddenChange { from, to });
            }
        };
        if (from, to) == (Phase::Rebuilding, Phase::Ready) {
            data.status.generation = Generation(generation.0 + 1);
            self.generation.store(generation.0 + 1, Ordering::Release);
        }
        self.phase.store(to as u8, Ordering::Release);
        data.publish(state);
        let status = data.status.clone();
        // Before another thread can go on to the next state: changes are told in their order.
        self.observer.get().inspect(|observer| observer.changed(&status));
        drop(data);
        self.changed.notify_all();
        self.signal.notify();
        tracing::debug!(%from, %status, "the device's state changed");
        Ok(status)
    }
}

impl std::fmt::Debug for StateCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_driver::{Code, Error, Fault};

    fn cell() -> StateCell {
        StateCell::new(Arc::default())
    }

    fn cause() -> Cause {
        Cause::new(Error::lost("wait", Fault { code: Code::LAUNCH_FAILED, detail: String::new() }))
    }

    /// A cell in each phase, reached by the table.
    fn in_phase(phase: Phase) -> StateCell {
        let cell = cell();
        cell.set_controlled(true);
        let lost = || cell.lose(cause, None);
        let change = |to| assert!(cell.change(to).is_ok());
        match phase {
            Phase::Starting => {}
            Phase::Ready => change(Phase::Ready),
            Phase::Lost => lost(),
            Phase::Rebuilding => {
                lost();
                change(Phase::Rebuilding);
            }
            Phase::Failed => {
                lost();
                cell.fail();
            }
            Phase::ShuttingDown => change(Phase::ShuttingDown),
            Phase::Stopped => {
                change(Phase::ShuttingDown);
                change(Phase::Stopped);
            }
        }
        cell
    }

    #[test]
    fn every_pair_of_phases_is_changed_or_refused_as_the_table_says() {
        for from in Phase::ALL {
            for to in Phase::ALL {
                let cell = in_phase(from);
                let before = cell.status();
                // A cause is there for every phase that needs one.
                let has_cause = cell.cause().is_some();
                let needs_cause = matches!(to, Phase::Lost | Phase::Rebuilding | Phase::Failed);
                let answer = cell.apply(to);
                let after = cell.status();
                if from.may_become(to) && (has_cause || !needs_cause) {
                    assert!(answer.is_ok());
                    assert_eq!((cell.phase(), after.phase(), after.changes), (to, to, before.changes + 1));
                } else {
                    assert_eq!(answer.unwrap_err(), ForbiddenChange { from, to });
                    assert_eq!((cell.phase(), after.phase(), after.changes), (from, from, before.changes));
                }
                let rebuilt = (from, to) == (Phase::Rebuilding, Phase::Ready);
                assert_eq!(after.generation.0, before.generation.0 + u64::from(rebuilt));
                assert_eq!(cell.generation(), after.generation);
            }
        }
    }

    #[test]
    fn without_a_recovery_control_lost_is_failed_and_the_first_cause_stays() {
        let cell = cell();
        cell.change(Phase::Ready).unwrap();
        cell.lose(cause, None);
        cell.lose(|| panic!("a second cause is not asked for"), None);
        assert!(matches!(cell.status().state, DeviceState::Failed(_)));
        assert_eq!(cell.status().changes, 3, "ready, lost, failed");
    }

    #[test]
    fn of_many_who_notice_a_loss_at_the_same_time_one_is_heard() {
        let rounds = if cfg!(miri) { 3 } else { 200 };
        for _ in 0..rounds {
            let cell = in_phase(Phase::Ready);
            std::thread::scope(|scope| {
                (0..4).for_each(|_| drop(scope.spawn(|| cell.lose(cause, None))));
            });
            assert_eq!((cell.phase(), cell.data().losses.len()), (Phase::Lost, 1));
            cell.change(Phase::Rebuilding).unwrap();
            cell.lose(cause, None);
            assert_eq!((cell.phase(), cell.data().losses.len()), (Phase::Rebuilding, 1), "it is no news");
            cell.lose_again(cause(), None);
            assert_eq!((cell.phase(), cell.data().losses.len()), (Phase::Lost, 2));
        }
    }

    #[test]
    fn a_fault_while_shutting_down_is_kept_and_changes_nothing() {
        let cell = in_phase(Phase::ShuttingDown);
        cell.lose(cause, None);
        assert_eq!((cell.phase(), cell.fault().is_some()), (Phase::ShuttingDown, true));
        cell.lose(|| panic!("a second cause is not asked for"), None);
    }

    #[test]
    fn work_that_was_caught_stays_so_when_the_device_is_shut_down_before_it_is_rebuilt() {
        let stamp = |number| Stamp { stream: StreamKey::default(), number };
        let clock = |number| {
            let mut clock = StreamClock::default();
            clock.learn(stamp(number));
            clock
        };
        for defers in [false, true] {
            let cell = in_phase(Phase::Ready);
            if defers {
                cell.defer();
            }
            cell.lose(cause, None);
            cell.change(Phase::Rebuilding).unwrap();
            cell.resolve_loss(&clock(1), &clock(2));
            for phase in [Phase::ShuttingDown, Phase::Stopped] {
                cell.change(phase).unwrap();
                let fates = [1, 2].map(|number| cell.failure_of(stamp(number)).is_some());
                assert_eq!(fates, [false, true], "{phase:?}, defers: {defers}");
            }
        }
    }

    #[test]
    fn waits_end_by_time_and_by_the_end_of_all_changes() {
        let never = |_: &Status| false;
        let cell = in_phase(Phase::Ready);
        assert_eq!(cell.wait_until(never, Some(Duration::ZERO)).phase(), Phase::Ready);
        assert_eq!(in_phase(Phase::Stopped).wait_until(never, None).phase(), Phase::Stopped);
    }
}
