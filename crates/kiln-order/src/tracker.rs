//! The order of one device: streams, what is done, and the step that submits.

use std::sync::{Arc, PoisonError};

use kiln_driver::{Command, Driver, Error, StreamId, Submission, Timeout, WaitTarget, Waited};

use crate::clock::{Clock, HostClock};
use crate::events::{EventLease, EventPool};
use crate::held::held_here;
use crate::lane::{Entry, Lane, Point, Recorded};
use crate::mutation::Mutation;
use crate::stamp::{Stamp, Stamps, StreamKey};
use crate::step::{Step, Use, publish_late};
use crate::stream_counters::{StreamCount, StreamCounts};
use crate::submit_error::{SubmitError, given_back, held_error};
use crate::sync::{AtomicBool, AtomicU32, BiasedGuard, Ordering, RwLock};

/// When an event is recorded for work that another stream consumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Recording {
    /// When it is first needed; cheap, but the wait may cover later work. A stream whose results keep being consumed
    /// elsewhere changes to recording at once.
    #[default]
    Adaptive,
    /// Only when it is needed.
    OnDemand,
    /// After every submission.
    AtOnce,
}

/// The order of one device.
// In this order and place: what every submission looks at stands first, in one cache line.
#[repr(C, align(64))]
pub struct Tracker {
    pub(crate) driver: Arc<dyn Driver>,
    recording: Recording,
    mutation: Option<Mutation>,
    pub(crate) lanes: RwLock<Vec<Arc<Lane>>>,
    pub(crate) host: HostClock,
    /// Another context answers for events of the last one, which says nothing about the work they stood behind.
    pub(crate) held: AtomicBool,
    events: Arc<EventPool>,
    /// Streams that had to take the place of another.
    pub(crate) turns: AtomicU32,
    /// Memory is made on streams, past the order.
    makes_memory: AtomicBool,
}

impl Tracker {
    /// An order with no streams yet.
    pub fn new(driver: Arc<dyn Driver>, recording: Recording, mutation: Option<Mutation>) -> Self {
        Self {
            driver,
            lanes: RwLock::new(Vec::new()),
            host: HostClock::default(),
            held: AtomicBool::new(false),
            events: EventPool::new(),
            turns: AtomicU32::new(0),
            makes_memory: AtomicBool::new(false),
            recording,
            mutation: Mutation::of_order(mutation),
        }
    }

    /// Somebody had the driver make memory on a stream. That is work without a number.
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

    /// Whether a rule of the order is taken out.
    pub fn mutation(&self) -> Option<Mutation> {
        self.mutation
    }

    /// Events made so far, and how many are in use.
    pub fn event_counts(&self) -> (usize, usize) {
        self.events.counts()
    }

    /// The latest submission of every stream that made one.
    pub fn latest(&self) -> Vec<Stamp> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().map(|lane| Stamp { stream: lane.key, number: lane.submitted() }).collect()
    }

    /// Adds up what the streams did.
    pub fn add_counts(&self, numbers: &mut StreamCounts) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().for_each(|lane| lane.add_counts(numbers));
    }

    /// Every stream that was not given back.
    pub fn streams(&self) -> Vec<StreamId> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().filter(|lane| !lane.is_retired()).map(|lane| lane.stream).collect()
    }

    /// Takes no more work for a stream whose name is about to be given back. Its end is recorded first, so that what it still runs
    /// can be waited for without the name.
    pub fn retire(&self, lane: &Lane) {
        // Whoever forgot that they are inside queues nothing more.
        let entry = self.enter_lane(lane).ok();
        let last = lane.submitted();
        if last > 0 && self.point(lane, last).is_err_and(|error| !error.is_sticky()) {
            // Without an event nobody could wait for it any more. If that fails too, the device is lost, and nothing on it is waited for.
            let _ = self.wait_stream(lane, last, Timeout::Never);
        }
        lane.close();
        drop(entry);
    }

    /// Submits work that uses blocks, after everything it has to come after. One step: whoever uses one of the blocks next
    /// sees this submission.
    ///
    /// # Errors
    /// As [`SubmitError`] says. If the driver refuses the work itself, the stamp stays as that of a submission that did
    /// nothing.
    #[inline(always)]
    pub fn submit(
        &self,
        lane: &Lane,
        uses: &mut [Use<'_>],
        work: impl FnOnce(&dyn Driver, StreamId) -> Result<(), Error>,
    ) -> Result<Stamp, SubmitError> {
        let mut begun = self.begin(lane, uses)?;
        work(&*self.driver, lane.stream).map_err(|error| begun.failed(error))?;
        if self.mutation == Some(Mutation::PublicationInsideStep) {
            publish_late(uses, begun.stamp, &self.host);
        }
        begun.record()?;
        Ok(begun.stamp)
    }

    /// The first half of [`submit`](Self::submit): everything but the work. The stream is entered until the value is dropped, and
    /// then whoever waits for the stamp may go on.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    // Always inlined, as what follows from it: the guards it hands on would otherwise go through memory.
    #[inline(always)]
    pub fn begin<'a>(&'a self, lane: &'a Lane, uses: &mut [Use<'_>]) -> Result<Begun<'a>, SubmitError> {
        let mut begun = self.enter(lane, uses)?;
        if !begun.entry.waits.is_empty() {
            self.queue_waits(lane, &mut begun.entry).map_err(|error| begun.failed(error))?;
        }
        Ok(begun)
    }

    /// Stamps blocks that work already queued on a stream uses. Nothing waits: the caller ordered that work.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn stamp(&self, lane: &Lane, uses: &mut [Use<'_>]) -> Result<Stamp, SubmitError> {
        let mut begun = self.enter(lane, uses)?;
        begun.record()?;
        Ok(begun.stamp)
    }

    /// Makes a stream wait, on the device, for stamps it is not ordered after yet. Returns how many waits that took.
    ///
    /// # Errors
    /// What the driver says; a stream of which this thread is inside.
    pub fn order_after(&self, lane: &Lane, stamps: &Stamps) -> Result<usize, SubmitError> {
        let mut guard = self.enter_lane(lane)?;
        let entry = &mut *guard;
        if lane.is_retired() {
            return Err(given_back(lane.stream).into());
        }
        entry.waits.clear();
        for stamp in stamps.iter() {
            entry.waits.need(stamp, lane.key, &entry.clock, &self.host);
        }
        if entry.waits.is_empty() {
            return Ok(0);
        }
        if let Some(stream) =
            held_here(&self.host, |held| entry.waits.iter().any(|wait| held.is_awaited_by(wait)))
        {
            return Err(SubmitError::Held { stream });
        }
        // The waits get a number, so that whoever waits for all of the stream's work waits for them too.
        let number = lane.plan(entry);
        let queued = self.queue_waits(lane, entry);
        lane.set_submitted(number);
        Ok(queued?)
    }

    /// Whether everything submitted to a stream from here on is ordered after a stamp, without any wait.
    pub fn is_ordered(&self, lane: &Lane, stamp: Stamp) -> bool {
        stamp.stream == lane.key || self.host.covers(stamp) || lane.published_covers(stamp)
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

    /// Waits on the host for a stamp.
    ///
    /// # Errors
    /// What the driver says; work that this thread has yet to queue.
    pub fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited, Error> {
        if self.host.covers(stamp) {
            return Ok(Waited::Done);
        }
        let lane = self.lane(stamp.stream)?;
        if lane.submitted() < stamp.number {
            if matches!(timeout, Timeout::Poll) {
                return Ok(Waited::TimedOut);
            }
            if let Some(stream) = held_here(&self.host, |held| held.is_awaited_by(stamp)) {
                return Err(held_error("wait", stream));
            }
        }
        let kind =
            if matches!(timeout, Timeout::Poll) { StreamCount::HostPolls } else { StreamCount::HostWaits };
        lane.counters().add(kind, 1);
        match self.point(&lane, stamp.number) {
            Ok(point) => self.wait_point(&point, timeout),
            Err(error) if error.is_sticky() => Err(error),
            Err(_) => self.wait_stream(&lane, stamp.number, timeout),
        }
    }

    /// Waits on the host for a point. What is done then is known from here on, unless the order is [held](Self::hold).
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait_point(&self, point: &Point, timeout: Timeout) -> Result<Waited, Error> {
        let waited = self.driver.wait(WaitTarget::Event(point.event.event()), timeout)?;
        if waited.is_done() && !self.held.load(Ordering::Acquire) {
            self.host.learn(point.stamp);
            self.host.join(&point.clock);
        }
        Ok(waited)
    }

    /// An event that is done when a stamp is, for those who wait by means of their own. It covers at least the stamp.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event_after(&self, stamp: Stamp) -> Result<Point, Error> {
        self.point(&*self.lane(stamp.stream)?, stamp.number)
    }

    /// An event for somebody who signals and waits by means of their own.
    ///
    /// # Errors
    /// What the driver says.
    pub fn take_event(&self) -> Result<EventLease, Error> {
        self.events.take(&*self.driver)
    }

    /// Gives all events back; for the end of a runtime.
    pub fn destroy_events(&self) {
        for lane in self.lanes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            lane.forget_points();
        }
        self.events.destroy_all(&*self.driver);
    }

    /// The stream of that name.
    pub fn lane_of(&self, stream: StreamId) -> Option<Arc<Lane>> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().find(|lane| lane.stream == stream).cloned()
    }

    /// Enters a stream and takes the step, with which a number is given out. Others may wait for it from then on, so whatever becomes of
    /// the submission, the number is theirs when the value is dropped. A step that is refused uses up no number.
    #[inline(always)]
    fn enter<'a>(&'a self, lane: &'a Lane, uses: &mut [Use<'_>]) -> Result<Begun<'a>, SubmitError> {
        let mut guard = self.enter_lane(lane)?;
        if lane.is_retired() {
            return Err(given_back(lane.stream).into());
        }
        let entry = &mut *guard;
        let stamp = Stamp { stream: lane.key, number: entry.next };
        entry.waits.clear();
        let (clock, host, waits) = (&entry.clock, &self.host, &mut entry.waits);
        let mut step = Step { lane, stamp, clock, host, waits, mutation: self.mutation };
        step.take(uses)?;
        entry.next = stamp.number + 1;
        Ok(Begun { tracker: self, lane, entry: guard, stamp })
    }

    /// The stream with that number, if there is one.
    pub fn lane_at(&self, index: usize) -> Option<Arc<Lane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).get(index).cloned()
    }

    fn lane(&self, key: StreamKey) -> Result<Arc<Lane>, Error> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.get(key.index()).cloned().ok_or_else(|| {
            Error::invalid(
                "wait",
                format!("no stream has the key {}", key.index()),
                "use a stamp of this runtime",
            )
        })
    }

    /// The stream with a key, to be waited for.
    fn peer(&self, entry: &mut Entry, key: StreamKey) -> Result<Arc<Lane>, Error> {
        if let Some((known, lane)) = &entry.peer
            && *known == key
            && let Some(lane) = lane.upgrade()
            // One that was given back may have an heir by now, who has the later numbers.
            && !lane.is_retired()
        {
            return Ok(lane);
        }
        let lane = self.lane(key)?;
        entry.peer = Some((key, Arc::downgrade(&lane)));
        Ok(lane)
    }

    /// Queues the planned waits, but for those that an earlier one brought along. Returns how many were needed.
    ///
    /// Which ones those are is decided by the points that were really waited for. What another stream publishes may be newer than a
    /// point that a third thread recorded there meanwhile, so it serves to guess a good order and for nothing else.
    #[inline(never)]
    fn queue_waits(&self, lane: &Lane, entry: &mut Entry) -> Result<usize, Error> {
        if entry.waits.len() > 1 {
            let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
            entry.waits.arrange(|of, stamp| {
                lanes.get(of.stream.index()).is_some_and(|lane| lane.brings_along(of.number, stamp))
            });
        }
        let mut queued = 0;
        for at in 0..entry.waits.len() {
            let stamp = entry.waits.at(at);
            if entry.clock.covers(stamp) {
                continue;
            }
            let peer = self.peer(entry, stamp.stream)?;
            let edge = self.with_point(&peer, stamp.number, |point| {
                self.driver.submit(lane.stream, &Command::Wait(point.event.event()))?;
                entry.clock.join(&point.clock);
                entry.clock.learn(match self.mutation {
                    Some(Mutation::TransitiveElision) => Stamp { number: u64::MAX, ..point.stamp },
                    _ => point.stamp,
                });
                Ok(())
            });
            match edge {
                Ok(()) => {
                    queued += 1;
                    lane.note_wait();
                }
                Err(error) if error.is_sticky() => return Err(error),
                // The blocks are stamped: whoever comes next counts on this edge.
                Err(_) => drop(self.wait_stream(&peer, stamp.number, Timeout::Never)?),
            }
        }
        lane.publish_clock(&entry.clock);
        Ok(queued)
    }

    /// A point that covers a number of a stream: one that is recorded, or a new one.
    pub(crate) fn point(&self, lane: &Lane, number: u64) -> Result<Point, Error> {
        self.with_point(lane, number, |point| Ok(point.clone()))
    }

    /// Does something with a point that covers a number of a stream. A new one is remembered by its stream after that, so that it need
    /// not be counted who holds it.
    fn with_point<R>(
        &self,
        lane: &Lane,
        number: u64,
        then: impl FnOnce(&Point) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if let Some(point) = lane.point(number) {
            return then(&point);
        }
        let submitted = lane.await_submitted(number);
        let Some(_admission) = lane.admit() else {
            // It was given back meanwhile, and its end recorded before that.
            return then(&lane.point(number).ok_or_else(|| given_back(lane.stream))?);
        };
        if submitted > number {
            lane.note_overshoot();
        }
        let stamp = Stamp { stream: lane.key, number: submitted };
        // Read before the event is recorded: every wait it speaks of is with the driver already.
        let point = self.record(lane, stamp, |clock| lane.read_published_clock(clock))?;
        let done = then(&point);
        lane.remember(point);
        done
    }

    /// Records an event, once `read` has said what it brings along. Its stream is to remember the point.
    fn record(&self, lane: &Lane, stamp: Stamp, read: impl FnOnce(&mut Clock)) -> Result<Point, Error> {
        let mut point = match lane.take_oldest() {
            Some(point) => point,
            None => {
                Arc::new(Recorded { stamp, clock: Clock::default(), event: self.events.take(&*self.driver)? })
            }
        };
        if let Some(recorded) = Arc::get_mut(&mut point) {
            recorded.stamp = stamp;
            read(&mut recorded.clock);
        }
        let _: Submission = self.driver.submit(lane.stream, &Command::Signal(point.event.event()))?;
        Ok(point)
    }

    #[inline(always)]
    fn record_at_once(&self, lane: &Lane, entry: &mut Entry, stamp: Stamp) -> Result<(), Error> {
        let now = match self.recording {
            Recording::Adaptive => lane.records_at_once(entry),
            Recording::OnDemand => false,
            Recording::AtOnce => true,
        };
        if now {
            match self.record(lane, stamp, |clock| clock.join(&entry.clock)) {
                Ok(point) => lane.remember(point),
                Err(error) if error.is_sticky() => return Err(error),
                // The work is queued; an event that could not be recorded now is recorded when somebody needs it.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// A submission whose work is being queued.
pub struct Begun<'a> {
    tracker: &'a Tracker,
    lane: &'a Lane,
    entry: BiasedGuard<'a, Entry>,
    stamp: Stamp,
}

impl Begun<'_> {
    /// What it will be known as.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The work is with the driver: records an event if this stream does so at once.
    ///
    /// # Errors
    /// What the driver says.
    #[inline]
    pub fn record(&mut self) -> Result<(), Error> {
        self.tracker.record_at_once(self.lane, &mut self.entry, self.stamp)
    }

    /// The work is not with the driver, or a part of it only. If that is because the device is lost, nothing says later how much of it
    /// happened; so that is noted here.
    #[cold]
    pub fn failed(&self, error: Error) -> Error {
        if error.is_sticky() {
            self.lane.note_broken(self.stamp.number);
        }
        error
    }
}

impl Drop for Begun<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lane.set_submitted(self.stamp.number);
    }
}
