//! A stream as the order sees it: its numbers, its clock, and the points where an event was recorded.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use kiln_driver::StreamId;

use crate::event_pool::EventLease;
use crate::launch_sites::LaunchSites;
use crate::stamp::Stamp;
use crate::stream_counters::{StreamCount, StreamCounters, StreamCounts};
use crate::stream_key::{StreamKey, StreamRef};
use crate::sync_shim::{
    AtomicBool, AtomicU32, AtomicU64, BiasedGuard, BiasedLock, Ordering, spin_loop, yield_now,
};
use crate::vector_clock::StreamClock;
use crate::wait_planner::Waits;
use kiln_sync::{Gate, GatePass};

/// Recorded points a stream remembers.
const MAX_POINTS: usize = 16;
/// Waits that had to cover later work before a stream records at once.
const EAGER_AFTER: u32 = 8;
/// Submissions recorded at once and not consumed before a stream stops doing so.
const LAZY_AFTER: u32 = 64;

/// One stream.
// In this order, here and in `Entry`: all that a submission looks at lies in the first two cache lines, and what is to be known of it to wait
// for it in two others.
#[repr(C, align(128))]
pub struct StreamState {
    /// Its key.
    pub key: StreamKey,
    /// It is not given back before the runtime ends.
    is_lasting: bool,
    /// Its name at the driver.
    pub stream: StreamId,
    /// Closed when the stream takes no more work.
    gate: Gate,
    /// Waits that had to cover later work than they needed.
    overshoots: AtomicU32,
    /// The latest number that is given out; at least as large as any stamp that was published.
    planned: AtomicU64,
    /// The latest number whose work the driver has.
    submitted: AtomicU64,
    /// Which line launched what.
    sites: LaunchSites,
    /// Launches. Written by the thread that has entered the stream, without a locked instruction.
    launches: AtomicU64,
    /// Held over one submission to this stream and to no other; lock this before any block.
    entry: BiasedLock<StreamEntry>,
    /// What else the stream did.
    counters: StreamCounters,
    /// Events recorded. Written by the thread that holds the points, without a locked instruction.
    signals: AtomicU64,
    /// Waits for other streams. Written by the thread that has entered the stream.
    waits: AtomicU64,
    /// Held for moments, never over a driver call.
    points: BiasedLock<Points>,
    /// A recorded point was asked for since the stream last looked.
    asked: AtomicBool,
    /// The first number whose work was not queued whole because the device was lost meanwhile.
    broken: AtomicU64,
    /// Another stream is about to take its place.
    claimed: AtomicBool,
}

/// What the submitting thread may change.
#[repr(C)]
pub struct StreamEntry {
    /// The number of the next submission.
    pub next: u64,
    eager: bool,
    /// Recorded submissions in a row that were not asked about.
    unasked: u32,
    /// Room for planning.
    pub waits: Waits,
    /// What a submission looks at that has to wait starts a line behind this.
    _apart: [u64; 3],
    /// The stream that was waited for last, which is likely the next one, too.
    pub peer: Option<(StreamKey, Weak<StreamState>)>,
    /// What everything submitted from here on is ordered after.
    pub clock: StreamClock,
}

// In this order: what is looked at of a program with few streams lies in two cache lines, and the latch with it.
#[repr(C)]
struct Points {
    /// By number. A search looks at the numbers here and not into each point.
    recorded: VecDeque<Known>,
    /// What everything the driver has is ordered after; never ahead of what was submitted.
    clock: StreamClock,
}

/// A recorded point, and its number once more.
struct Known {
    number: u64,
    point: Point,
}

/// A place in a stream's work that can be waited for. It does not change while it is held outside its stream.
pub type Point = Arc<Recorded>;

/// An event, and what is ordered before work that waits for it.
#[repr(C)]
pub struct Recorded {
    /// The event is done when everything up to here is.
    pub stamp: Stamp,
    /// The event.
    pub event: EventLease,
    /// What that brings along.
    pub clock: StreamClock,
}

impl StreamState {
    /// A stream that has done nothing under this key since `number`, which is known to be done.
    pub fn new(key: StreamKey, stream: StreamId, number: u64) -> Self {
        let entry = StreamEntry {
            next: number + 1,
            clock: StreamClock::default(),
            waits: Waits::default(),
            _apart: [0; 3],
            peer: None,
            unasked: 0,
            eager: false,
        };
        let points =
            Points { clock: StreamClock::default(), recorded: VecDeque::with_capacity(MAX_POINTS + 1) };
        Self {
            key,
            stream,
            is_lasting: false,
            launches: AtomicU64::new(0),
            signals: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            entry: BiasedLock::new(entry),
            planned: AtomicU64::new(number),
            submitted: AtomicU64::new(number),
            points: BiasedLock::new(points),
            overshoots: AtomicU32::new(0),
            asked: AtomicBool::new(false),
            gate: Gate::default(),
            counters: StreamCounters::default(),
            sites: LaunchSites::default(),
            broken: AtomicU64::new(u64::MAX),
            claimed: AtomicBool::new(false),
        }
    }

    /// Whether it lives until the runtime ends.
    pub fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// The same for a stream that lives until the runtime ends.
    pub fn lasting(self) -> Self {
        Self { is_lasting: true, ..self }
    }

    /// A stream that takes the place of this one, which was given back. All that is stamped with the key so far is done, or comes before
    /// whatever the new one does, because that waits for `end`, the last point of this one.
    pub fn successor(&self, stream: StreamId, end: Option<&Recorded>) -> Self {
        let mut successor = Self::new(self.key, stream, self.submitted());
        successor.counters.inherit(&self.counters);
        successor.launches = AtomicU64::new(self.launches.load(Ordering::Relaxed));
        successor.signals = AtomicU64::new(self.signals.load(Ordering::Relaxed));
        successor.waits = AtomicU64::new(self.waits.load(Ordering::Relaxed));
        successor.broken = AtomicU64::new(self.broken.load(Ordering::Acquire));
        if let Some(end) = end {
            successor.entry.get_mut().clock.clone_from(&end.clock);
            successor.points.get_mut().clock.clone_from(&end.clock);
        }
        successor
    }

    /// The stream by its key and its handle, as memory takes it.
    pub fn stream_ref(&self) -> StreamRef {
        StreamRef::new(self.key, self.stream)
    }

    /// Claims the place of a stream that was given back; later callers are told no.
    pub fn claim(&self) -> bool {
        self.is_retired() && !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Nothing came of a claim.
    pub fn unclaim(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// Adds what the stream did to other numbers.
    pub fn add_counts(&self, numbers: &mut StreamCounts) {
        self.counters.add_to(numbers);
        let own = [
            (StreamCount::Launches, &self.launches),
            (StreamCount::Signals, &self.signals),
            (StreamCount::StreamWaits, &self.waits),
        ];
        for (count, cell) in own {
            let number = &mut numbers[count as usize];
            *number = number.wrapping_add(cell.load(Ordering::Relaxed));
        }
    }

    /// Counts a launch; the caller has entered the stream.
    #[inline]
    pub fn note_launch(&self) {
        add_alone(&self.launches);
    }

    /// Counts a wait for another stream; the caller has entered this one.
    #[inline]
    pub fn note_wait(&self) {
        add_alone(&self.waits);
    }

    /// The work of a number was queued in part or not at all.
    #[cold]
    pub fn note_broken(&self, number: u64) {
        self.broken.fetch_min(number, Ordering::AcqRel);
    }

    /// The first number whose work was not queued whole, since the last of them was forgotten.
    pub fn broken(&self) -> Option<u64> {
        Some(self.broken.load(Ordering::Acquire)).filter(|number| *number != u64::MAX)
    }

    /// Forgets which work was not queued whole; for a device that was rebuilt.
    pub fn forget_broken(&self) {
        self.broken.store(u64::MAX, Ordering::Release);
    }

    /// What the stream did, in numbers.
    #[inline]
    pub fn counters(&self) -> &StreamCounters {
        &self.counters
    }

    /// Which line launched what.
    #[inline]
    pub fn sites(&self) -> &LaunchSites {
        &self.sites
    }

    /// Lets a thread queue something on the stream without entering it, as long as what is returned lives. Nothing, if the stream
    /// takes no more work. One that lasts need not be held for that.
    #[inline]
    pub fn admit(&self) -> Option<Admission<'_>> {
        if self.is_lasting {
            return Some(Admission(None));
        }
        self.gate.pass().map(|pass| Admission(Some(pass)))
    }

    /// Takes no more work, once the threads that were let in are done.
    pub fn close(&self) {
        self.gate.close();
    }

    /// Whether the stream takes no more work.
    pub fn is_retired(&self) -> bool {
        self.gate.is_closed()
    }

    /// Enters the stream: no other submission to it until the guard is dropped.
    #[inline]
    pub fn enter(&self) -> BiasedGuard<'_, StreamEntry> {
        self.entry.lock()
    }

    /// As [`enter`](Self::enter), if no other thread is inside.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<BiasedGuard<'_, StreamEntry>> {
        self.entry.try_lock()
    }

    /// The latest number that is given out; its work may not be with the driver yet.
    #[inline]
    pub fn planned(&self) -> u64 {
        self.planned.load(Ordering::Acquire)
    }

    /// Gives out the next number, before any block is stamped with it.
    pub fn plan(&self, entry: &mut StreamEntry) -> u64 {
        let number = entry.next;
        entry.next += 1;
        self.announce(number);
        number
    }

    /// Says that a number is given out. Others may wait for it from here on.
    #[inline]
    pub(crate) fn announce(&self, number: u64) {
        self.planned.store(number, Ordering::Release);
    }

    /// The latest number whose work the driver has.
    #[inline]
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// The driver has the work of that number.
    #[inline]
    pub fn set_submitted(&self, number: u64) {
        self.submitted.store(number, Ordering::Release);
    }

    /// Waits until the driver has the work of a number that another thread is submitting right now. That thread waits for
    /// no lock of ours and only for submissions that were planned before its own, so this ends.
    #[inline]
    pub fn await_submitted(&self, number: u64) -> u64 {
        let submitted = self.submitted();
        if submitted >= number { submitted } else { self.spin_for(number) }
    }

    #[cold]
    #[inline(never)]
    fn spin_for(&self, number: u64) -> u64 {
        let mut spins = 0_u32;
        loop {
            let submitted = self.submitted();
            if submitted >= number {
                return submitted;
            }
            spins += 1;
            if spins < 100 { spin_loop() } else { yield_now() }
        }
    }

    /// The earliest recorded point that covers a number.
    #[inline]
    pub fn point(&self, number: u64) -> Option<Point> {
        let found = self.points().find(number)?.clone();
        self.asked.store(true, Ordering::Relaxed);
        Some(found)
    }

    /// Whether waiting for a number of this stream is likely to order a stamp of another one before, too. A guess: the point that is
    /// waited for in the end may be one that another thread is recording right now.
    pub fn implies(&self, number: u64, stamp: Stamp) -> bool {
        let points = self.points();
        points.find(number).map_or(&points.clock, |point| &point.clock).covers(stamp)
    }

    /// Whether everything the driver has so far is ordered after a stamp.
    pub fn published_covers(&self, stamp: Stamp) -> bool {
        self.points().clock.covers(stamp)
    }

    /// Brings an earlier clock of this stream up to what everything the driver has so far is ordered after.
    #[inline]
    pub fn read_published_clock(&self, into: &mut StreamClock) {
        into.join(&self.points().clock);
    }

    /// Publishes what the stream is ordered after, once the waits that make it so are with the driver.
    #[inline]
    pub fn publish_clock(&self, clock: &StreamClock) {
        self.points().clock.join(clock);
    }

    /// The oldest point, if the stream remembers as many as it may and it is not held elsewhere: it is recorded again.
    #[inline]
    pub fn take_oldest(&self) -> Option<Point> {
        let mut points = self.points();
        if points.recorded.len() < MAX_POINTS {
            return None;
        }
        // A thread that takes a point holds the lock for it, so one that is not held now stays so.
        let is_spare =
            |oldest: &&Known| Arc::strong_count(&oldest.point) == 1 && oldest.point.event.is_sole();
        points.recorded.front().filter(is_spare)?;
        points.recorded.pop_front().map(|oldest| oldest.point)
    }

    /// Remembers a point that was recorded.
    #[inline]
    pub fn remember(&self, point: Point) {
        let number = point.stamp.number;
        let forgotten = {
            let mut points = self.points();
            add_alone(&self.signals);
            // Nearly always it is the newest.
            match points.recorded.back() {
                Some(newest) if newest.number > number => {
                    let at = points.recorded.partition_point(|known| known.number <= number);
                    points.recorded.insert(at, Known { number, point });
                }
                _ => points.recorded.push_back(Known { number, point }),
            }
            if points.recorded.len() > MAX_POINTS { points.recorded.pop_front() } else { None }
        };
        drop(forgotten);
    }

    /// Forgets all recorded points, so that their events can be used again.
    pub fn forget_points(&self) {
        let forgotten = std::mem::take(&mut self.points().recorded);
        drop(forgotten);
    }

    /// A wait asked for a number and got a point that covers a later one.
    pub fn note_overshoot(&self) {
        self.overshoots.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether to record right after this submission: yes while others keep asking for points of this stream that were
    /// not recorded where they wanted them.
    pub fn records_at_once(&self, entry: &mut StreamEntry) -> bool {
        if self.overshoots.load(Ordering::Relaxed) >= EAGER_AFTER {
            self.overshoots.store(0, Ordering::Relaxed);
            entry.eager = true;
            entry.unasked = 0;
        }
        if entry.eager {
            entry.unasked = if self.asked.swap(false, Ordering::Relaxed) { 0 } else { entry.unasked + 1 };
            entry.eager = entry.unasked < LAZY_AFTER;
        }
        entry.eager
    }

    #[inline]
    fn points(&self) -> BiasedGuard<'_, Points> {
        self.points.lock()
    }
}

/// Counts one more; only one thread does.
#[inline]
fn add_alone(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl Points {
    /// The earliest point that covers a number.
    #[inline]
    fn find(&self, number: u64) -> Option<&Point> {
        // Most who ask want one that is newer than all of them.
        self.recorded.back().filter(|newest| newest.number >= number)?;
        let at = self.recorded.partition_point(|known| known.number < number);
        self.recorded.get(at).map(|known| &known.point)
    }
}

/// The right to queue something on a stream without having entered it.
pub struct Admission<'a>(#[expect(dead_code, reason = "held until it is dropped")] Option<GatePass<'a>>);
