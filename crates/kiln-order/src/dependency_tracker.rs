//! The dependency tracker of one device: it numbers submissions, finds what each must wait for, and submits it.

use std::sync::{Arc, PoisonError};

use kiln_driver::{Command, Driver, Error, StreamId, Submission, Timeout, Waited};

use crate::event_policy::Recording;
use crate::event_pool::{EventLease, EventPool};
use crate::held_streams::held_here;
use crate::pending_submission::PendingSubmission;
use crate::plan_and_publish::{Step, Use, publish_late};
use crate::rules::Rules;
use crate::stamp::{Stamp, Stamps};
use crate::stream_counters::StreamCounts;
use crate::stream_key::StreamKey;
use crate::stream_state::{Point, Recorded, StreamEntry, StreamState};
use crate::submit_error::{SubmitError, given_back};
use crate::sync_shim::{AtomicBool, AtomicU32, Ordering, RwLock};
use crate::vector_clock::{HostClock, StreamClock};
use crate::wait_observer::{Observed, WaitObserver};

/// The order of one device.
// In this order and place: what every submission looks at stands first, in one cache line.
#[repr(C, align(64))]
pub struct DependencyTracker {
    pub(crate) driver: Arc<dyn Driver>,
    recording: Recording,
    rules: Rules,
    pub(crate) streams: RwLock<Vec<Arc<StreamState>>>,
    pub(crate) host: HostClock,
    /// Another context answers for events of the last one, which says nothing about the work they stood behind.
    pub(crate) held: AtomicBool,
    events: Arc<EventPool>,
    /// Streams that had to take the place of another.
    pub(crate) turns: AtomicU32,
    /// Memory is made on streams, past the order.
    makes_memory: AtomicBool,
    /// Told of waits; looked at only where there are some.
    observer: Observed,
}

impl DependencyTracker {
    /// An order with no streams yet.
    pub fn new(driver: Arc<dyn Driver>, recording: Recording) -> Self {
        Self {
            driver,
            streams: RwLock::new(Vec::new()),
            host: HostClock::default(),
            held: AtomicBool::new(false),
            events: EventPool::new(),
            turns: AtomicU32::new(0),
            makes_memory: AtomicBool::new(false),
            observer: Observed::new(),
            recording,
            rules: Rules::default(),
        }
    }

    /// The same order with other rules.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Tells an observer of every wait from here on; false if there is one already, which stays.
    pub fn observe_waits(&self, observer: Arc<dyn WaitObserver>) -> bool {
        self.observer.set(observer).is_ok()
    }

    /// The driver made memory on a stream. That is work without a number.
    pub fn note_made_memory(&self) {
        self.makes_memory.store(true, Ordering::Release);
    }

    /// Whether memory is made on streams here.
    pub fn makes_memory(&self) -> bool {
        self.makes_memory.load(Ordering::Acquire)
    }

    /// The device.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// What is known to be done.
    pub fn host(&self) -> &HostClock {
        &self.host
    }

    /// The rules it keeps.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Events made so far, and how many are in use.
    pub fn event_counts(&self) -> (usize, usize) {
        self.events.counts()
    }

    /// The latest submission of every stream that made one.
    pub fn latest_stamps(&self) -> Vec<Stamp> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.iter().map(|state| Stamp { stream: state.key, number: state.submitted() }).collect()
    }

    /// Adds up what the streams did.
    pub fn add_counts(&self, numbers: &mut StreamCounts) {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.iter().for_each(|state| state.add_counts(numbers));
    }

    /// Every stream that was not given back.
    pub fn streams(&self) -> Vec<StreamId> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter(|state| !state.is_retired()).map(|state| state.stream).collect()
    }

    /// Takes no more work for a stream whose name is about to be given back. Its end is recorded first, so that what it still runs
    /// can be waited for without the name.
    pub fn retire(&self, state: &StreamState) {
        // A caller that forgot its guard queues nothing more.
        let entry = self.enter_stream(state).ok();
        let last = state.submitted();
        if last > 0 && self.point(state, last).is_err_and(|error| !error.is_sticky()) {
            // Without an event no stream could wait for it any more. If that fails too, the device is lost, and nothing on it is waited for.
            let _ = self.wait_stream(state, last, Timeout::Never);
        }
        state.close();
        drop(entry);
    }

    /// Submits work that uses blocks, after everything it has to come after. One step: the next use of one of the blocks
    /// sees this submission.
    ///
    /// # Errors
    /// As [`SubmitError`] says. If the driver refuses the work itself, the stamp stays as that of a submission that did
    /// nothing.
    #[inline(always)]
    pub fn submit(
        &self,
        state: &StreamState,
        uses: &mut [Use<'_>],
        work: impl FnOnce(&dyn Driver, StreamId) -> Result<(), Error>,
    ) -> Result<Stamp, SubmitError> {
        let mut begun = self.begin(state, uses)?;
        work(&*self.driver, state.stream).map_err(|error| begun.failed(error))?;
        if !self.rules.stamps_are_published_in_the_step() {
            publish_late(uses, begun.stamp, &self.host);
        }
        begun.record()?;
        Ok(begun.stamp)
    }

    /// The first half of [`submit`](Self::submit): everything but the work. The stream is entered until the value is dropped, and
    /// then a waiter for the stamp may go on.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    // Always inlined, as what follows from it: the guards it hands on would otherwise go through memory.
    #[inline(always)]
    pub fn begin<'a>(
        &'a self,
        state: &'a StreamState,
        uses: &mut [Use<'_>],
    ) -> Result<PendingSubmission<'a>, SubmitError> {
        let mut begun = self.enter(state, uses)?;
        if !begun.entry.waits.is_empty() {
            self.queue_waits(state, &mut begun.entry).map_err(|error| begun.failed(error))?;
        }
        Ok(begun)
    }

    /// Stamps blocks that work already queued on a stream uses. Nothing waits: the caller ordered that work.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn stamp(&self, state: &StreamState, uses: &mut [Use<'_>]) -> Result<Stamp, SubmitError> {
        let mut begun = self.enter(state, uses)?;
        begun.record()?;
        Ok(begun.stamp)
    }

    /// Makes a stream wait, on the device, for stamps it is not ordered after yet. Returns how many waits that took.
    ///
    /// # Errors
    /// What the driver says; a stream of which this thread is inside.
    pub fn order_after(&self, state: &StreamState, stamps: &Stamps) -> Result<usize, SubmitError> {
        let mut guard = self.enter_stream(state)?;
        let entry = &mut *guard;
        if state.is_retired() {
            return Err(given_back(state.stream).into());
        }
        entry.waits.clear();
        for stamp in stamps.iter() {
            entry.waits.need(stamp, state.key, &entry.clock, &self.host);
        }
        if entry.waits.is_empty() {
            return Ok(0);
        }
        if let Some(stream) =
            held_here(&self.host, |held| entry.waits.iter().any(|wait| held.is_awaited_by(wait)))
        {
            return Err(SubmitError::Held { stream });
        }
        // The waits get a number, so that a wait for all of the stream's work includes them.
        let number = state.plan(entry);
        let queued = self.queue_waits(state, entry);
        state.set_submitted(number);
        Ok(queued?)
    }

    /// Whether everything submitted to a stream from here on is ordered after a stamp, without any wait.
    pub fn is_ordered_after(&self, state: &StreamState, stamp: Stamp) -> bool {
        stamp.stream == state.key || self.host.covers(stamp) || state.published_covers(stamp)
    }

    /// Whether a stamp is done, as far as the device says when it is asked.
    ///
    /// # Errors
    /// What the driver says: a lost device answers every question with its fault.
    pub fn is_done(&self, stamp: Stamp) -> Result<bool, Error> {
        self.wait(stamp, Timeout::Poll).map(Waited::is_done)
    }

    /// Whether all stamps of a set are done.
    ///
    /// # Errors
    /// What the driver says.
    pub fn all_done(&self, stamps: &Stamps) -> Result<bool, Error> {
        for stamp in stamps.iter() {
            if !self.is_done(stamp)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An event that is done when a stamp is, for foreign code that waits for it. It covers at least the stamp.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event_after(&self, stamp: Stamp) -> Result<Point, Error> {
        self.point(&*self.state(stamp.stream)?, stamp.number)
    }

    /// Makes sure that what a stream has can be waited for without what is queued behind it, unless the host waited for it already: records an event there, if none stands there. For the sake of
    /// work that may wait for long, such as a collective for other ranks.
    ///
    /// # Errors
    /// What the driver says.
    pub fn mark_end(&self, state: &StreamState) -> Result<(), Error> {
        let end = Stamp { stream: state.key, number: state.submitted() };
        if end.number == 0 || self.host.covers(end) {
            return Ok(());
        }
        self.with_point(state, end.number, |_| Ok(()))
    }

    /// An event for foreign code that signals and waits.
    ///
    /// # Errors
    /// What the driver says.
    pub fn take_event(&self) -> Result<EventLease, Error> {
        self.events.take(&*self.driver)
    }

    /// Gives all events back; for the end of a runtime.
    pub fn destroy_events(&self) {
        for state in self.streams.read().unwrap_or_else(PoisonError::into_inner).iter() {
            state.forget_points();
        }
        self.events.destroy_all(&*self.driver);
    }

    /// The stream of that name.
    pub fn state_of(&self, stream: StreamId) -> Option<Arc<StreamState>> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.iter().find(|state| state.stream == stream).cloned()
    }

    /// Enters a stream and takes the step, with which a number is given out. Others may wait for it from then on, so whatever becomes of
    /// the submission, the number is theirs when the value is dropped. A step that is refused uses up no number.
    #[inline(always)]
    fn enter<'a>(
        &'a self,
        state: &'a StreamState,
        uses: &mut [Use<'_>],
    ) -> Result<PendingSubmission<'a>, SubmitError> {
        let mut guard = self.enter_stream(state)?;
        if state.is_retired() {
            return Err(given_back(state.stream).into());
        }
        let entry = &mut *guard;
        let stamp = Stamp { stream: state.key, number: entry.next };
        entry.waits.clear();
        let (clock, host, waits) = (&entry.clock, &self.host, &mut entry.waits);
        let mut step = Step { state, stamp, clock, host, waits, rules: self.rules, observed: &self.observer };
        step.take(uses).inspect_err(|_| self.tell_refused(stamp))?;
        entry.next = stamp.number + 1;
        Ok(PendingSubmission { tracker: self, state, entry: guard, stamp })
    }

    #[cold]
    fn tell_refused(&self, stamp: Stamp) {
        if let Some(observer) = self.observer.get() {
            observer.refused(stamp);
        }
    }

    /// The stream with that key, if there is one.
    pub fn state_at(&self, key: StreamKey) -> Option<Arc<StreamState>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner).get(key.index()).cloned()
    }

    pub(crate) fn state(&self, key: StreamKey) -> Result<Arc<StreamState>, Error> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.get(key.index()).cloned().ok_or_else(|| {
            Error::invalid(
                "wait",
                format!("no stream has the key {}", key.index()),
                "use a stamp of this runtime",
            )
        })
    }

    /// The stream with a key, to be waited for.
    fn peer(&self, entry: &mut StreamEntry, key: StreamKey) -> Result<Arc<StreamState>, Error> {
        if let Some((known, state)) = &entry.peer
            && *known == key
            && let Some(state) = state.upgrade()
            // One that was given back may have an successor by now, who has the later numbers.
            && !state.is_retired()
        {
            return Ok(state);
        }
        let state = self.state(key)?;
        entry.peer = Some((key, Arc::downgrade(&state)));
        Ok(state)
    }

    /// Queues the planned waits, except those that an earlier wait already covers. Returns how many were needed.
    ///
    /// Which ones those are is decided by the points that were really waited for. What another stream publishes may be newer than a
    /// point that a third thread recorded there meanwhile, so it serves to guess a good order and for nothing else.
    #[inline(never)]
    fn queue_waits(&self, state: &StreamState, entry: &mut StreamEntry) -> Result<usize, Error> {
        if entry.waits.len() > 1 {
            let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
            entry.waits.arrange(|of, stamp| {
                streams.get(of.stream.index()).is_some_and(|state| state.implies(of.number, stamp))
            });
        }
        let mut queued = 0;
        // The number is given out already.
        let waiter = Stamp { stream: state.key, number: entry.next.saturating_sub(1) };
        for at in 0..entry.waits.len() {
            let stamp = entry.waits.at(at);
            if entry.clock.covers(stamp) {
                continue;
            }
            let peer = self.peer(entry, stamp.stream)?;
            let edge = self.with_point(&peer, stamp.number, |point| {
                self.driver.submit(state.stream, &Command::Wait(point.event.event()))?;
                entry.clock.join(&point.clock);
                let is_exact = self.rules.waits_cover_the_past_only();
                let number = if is_exact { point.stamp.number } else { u64::MAX };
                entry.clock.learn(Stamp { number, ..point.stamp });
                if let Some(observer) = self.observer.get() {
                    observer.waits(waiter, stamp, point.stamp.number);
                }
                Ok(())
            });
            match edge {
                Ok(()) => {
                    queued += 1;
                    state.note_wait();
                }
                Err(error) if error.is_sticky() => return Err(error),
                // The blocks are stamped: the next submission relies on this edge.
                Err(_) => drop(self.wait_stream(&peer, stamp.number, Timeout::Never)?),
            }
        }
        state.publish_clock(&entry.clock);
        Ok(queued)
    }

    /// A point that covers a number of a stream: one that is recorded, or a new one.
    pub(crate) fn point(&self, state: &StreamState, number: u64) -> Result<Point, Error> {
        self.with_point(state, number, |point| Ok(point.clone()))
    }

    /// Does something with a point that covers a number of a stream. A new one is remembered by its stream after that, so that it need
    /// not be counted who holds it.
    fn with_point<R>(
        &self,
        state: &StreamState,
        number: u64,
        then: impl FnOnce(&Point) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if let Some(point) = state.point(number) {
            return then(&point);
        }
        let submitted = state.await_submitted(number);
        let Some(_admission) = state.admit() else {
            // It was given back meanwhile, and its end recorded before that.
            return then(&state.point(number).ok_or_else(|| given_back(state.stream))?);
        };
        if submitted > number {
            state.note_overshoot();
        }
        let stamp = Stamp { stream: state.key, number: submitted };
        // Read before the event is recorded: every wait it speaks of is with the driver already.
        let point = self.record(state, stamp, |clock| state.read_published_clock(clock))?;
        let done = then(&point);
        state.remember(point);
        done
    }

    /// Records an event, once `read` has said what it brings along. Its stream is to remember the point.
    fn record(
        &self,
        state: &StreamState,
        stamp: Stamp,
        read: impl FnOnce(&mut StreamClock),
    ) -> Result<Point, Error> {
        let mut point = match state.take_oldest() {
            Some(point) => point,
            None => Arc::new(Recorded {
                stamp,
                clock: StreamClock::default(),
                event: self.events.take(&*self.driver)?,
            }),
        };
        if let Some(recorded) = Arc::get_mut(&mut point) {
            recorded.stamp = stamp;
            read(&mut recorded.clock);
        }
        let _: Submission = self.driver.submit(state.stream, &Command::Signal(point.event.event()))?;
        Ok(point)
    }

    #[inline(always)]
    pub(crate) fn record_at_once(
        &self,
        state: &StreamState,
        entry: &mut StreamEntry,
        stamp: Stamp,
    ) -> Result<(), Error> {
        let now = match self.recording {
            Recording::Adaptive => state.records_at_once(entry),
            Recording::OnDemand => false,
            Recording::AtOnce => true,
        };
        if now {
            match self.record(state, stamp, |clock| clock.join(&entry.clock)) {
                Ok(point) => state.remember(point),
                Err(error) if error.is_sticky() => return Err(error),
                // The work is queued; an event that could not be recorded now is recorded when it is needed.
                Err(_) => {}
            }
        }
        Ok(())
    }
}
