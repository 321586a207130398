//! The thread that queries what the client waits for, and publishes what it finds.
//!
//! It polls, because a query is the only call of a driver that returns by a deadline and after a fault. It polls without a pause while it found
//! something lately, then with pauses that grow with the time since then. With nothing to query it sleeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use kiln_driver::{Error, Health, Timeout, WaitTarget};

use super::fault_reporter::FaultReporter;
use super::object_table::{EventEntry, StreamEntry};
use super::{Observer, SharedDriver, WorkerStep};
use crate::protocol::segment::{Condition, Segment};

/// Shorter pauses are rounded up by the system.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
/// Longer pauses would delay the client noticeably.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// A pause is this fraction of the time since something was found.
const PAUSE_PART: u32 = 64;

/// Something to query for the client.
pub(super) enum Watch {
    Stream { stream: Arc<StreamEntry>, number: u64 },
    Event { event: Arc<EventEntry>, ticket: u64 },
    Health { number: u64 },
}

/// What a query found.
enum Look {
    /// It is done and published; no more queries.
    Done,
    /// Progress was published, and there is more to come.
    Moved,
    /// Nothing new.
    Same,
}

/// Queries streams, events and the device's health.
pub(super) struct ProgressWatcher {
    pub(super) segment: Segment,
    pub(super) driver: SharedDriver,
    pub(super) reporter: Arc<FaultReporter>,
    pub(super) observe: Arc<Observer>,
    pub(super) spin: Duration,
}

impl ProgressWatcher {
    /// Runs until the server ends.
    pub(super) fn run(&self, asked: &Receiver<Watch>) {
        let mut watches = Vec::new();
        let mut found = Instant::now();
        loop {
            if watches.is_empty() {
                let Ok(watch) = asked.recv() else { return };
                watches.push(watch);
                found = Instant::now();
            }
            loop {
                match asked.try_recv() {
                    Ok(watch) => {
                        watches.push(watch);
                        found = Instant::now();
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            if self.look_at_all(&mut watches) {
                self.segment.event_count(Condition::Progress).notify();
                found = Instant::now();
            } else if found.elapsed() < self.spin {
                std::thread::yield_now();
            } else {
                let pause = (found.elapsed() / PAUSE_PART).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                match asked.recv_timeout(pause) {
                    Ok(watch) => {
                        watches.push(watch);
                        found = Instant::now();
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    fn look_at_all(&self, watches: &mut Vec<Watch>) -> bool {
        let mut published = false;
        watches.retain(|watch| {
            let look = match watch {
                Watch::Stream { stream, number } => self.look_at_stream(stream, *number),
                Watch::Event { event, ticket } => self.look_at_event(event, *ticket),
                Watch::Health { number } => self.look_at_health(*number),
            };
            published |= !matches!(look, Look::Same);
            !matches!(look, Look::Done)
        });
        published
    }

    fn look_at_stream(&self, stream: &StreamEntry, number: u64) -> Look {
        let cell = self.segment.stream(stream.cell);
        let known = cell.load(Ordering::Relaxed);
        if known >= number {
            return Look::Done;
        }
        match self.driver.progress(stream.id) {
            Ok(progress) => {
                let completed = stream.numbers().up_to(progress.completed.0);
                if completed > known {
                    (self.observe)(WorkerStep::Found);
                    cell.store(completed, Ordering::Release);
                }
                match (completed >= number, completed > known) {
                    (true, _) => Look::Done,
                    (false, true) => Look::Moved,
                    (false, false) => Look::Same,
                }
            }
            Err(error) => self.failed(&error, Some(stream)),
        }
    }

    fn look_at_event(&self, event: &EventEntry, ticket: u64) -> Look {
        let last = event.last();
        if *last != ticket {
            // There is a later signal; the client has the stream queried instead.
            return Look::Done;
        }
        let waited = self.driver.wait(WaitTarget::Event(event.id), Timeout::Poll);
        drop(last);
        match waited {
            Ok(waited) if waited.is_done() => {
                (self.observe)(WorkerStep::Found);
                event.segment.event(event.cell).store(ticket, Ordering::Release);
                Look::Done
            }
            Ok(_) => Look::Same,
            Err(error) => self.failed(&error, None),
        }
    }

    fn look_at_health(&self, number: u64) -> Look {
        if let Health::Lost(error) = self.driver.health() {
            self.reporter.report_if_lost(&error);
        }
        self.segment.examined().store(number, Ordering::Release);
        Look::Done
    }

    /// A lost device ends the query; the late failure of one submission is reported and the query continues.
    fn failed(&self, error: &Error, stream: Option<&StreamEntry>) -> Look {
        self.reporter.report_if_lost(error);
        match stream.filter(|_| !error.is_sticky()) {
            Some(stream) if error.site().is_some() => {
                let number = error.site().map_or(0, |site| site.submission.0);
                self.reporter.late(stream.wire, stream.numbers().of(number), error);
                Look::Moved
            }
            _ => Look::Done,
        }
    }
}
