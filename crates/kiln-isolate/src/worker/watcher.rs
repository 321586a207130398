//! The thread that looks at what the client waits for, and publishes what it finds.
//!
//! Asking is all a driver offers that ends by a deadline and after a fault, so the watcher asks: eagerly while something
//! was found lately, then with pauses that grow with the time nothing was. With nothing to watch it sleeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use kiln_driver::{Error, Health, Timeout, WaitTarget};

use super::mirror::{EventEntry, StreamEntry};
use super::reporter::Reporter;
use super::{Observer, SharedDriver, Step};
use crate::area::{Area, Sleep};

/// A shorter pause ends no sooner.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
/// A longer one would be noticed.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// A pause lasts this part of the time nothing was found.
const PAUSE_PART: u32 = 64;

/// Something the client waits for.
pub(super) enum Watch {
    Stream { stream: Arc<StreamEntry>, number: u64 },
    Event { event: Arc<EventEntry>, ticket: u64 },
    Health { number: u64 },
}

/// What a look found.
enum Look {
    /// It is done and published; no more looks.
    Done,
    /// Something was published, and there is more to come.
    Moved,
    /// Nothing new.
    Same,
}

/// The watcher's own things.
pub(super) struct Watcher {
    pub(super) area: Area,
    pub(super) driver: SharedDriver,
    pub(super) reporter: Arc<Reporter>,
    pub(super) observe: Arc<Observer>,
    pub(super) spin: Duration,
}

impl Watcher {
    /// Looks until there is nobody left to ask for it.
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
                self.area.bell(Sleep::Progress).ring();
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
        let cell = self.area.stream(stream.cell);
        let known = cell.load(Ordering::Relaxed);
        if known >= number {
            return Look::Done;
        }
        match self.driver.progress(stream.id) {
            Ok(progress) => {
                let completed = stream.numbering().up_to(progress.completed.0);
                if completed > known {
                    (self.observe)(Step::Found);
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
            // Another signal came; the client asks for the stream instead.
            return Look::Done;
        }
        let waited = self.driver.wait(WaitTarget::Event(event.id), Timeout::Poll);
        drop(last);
        match waited {
            Ok(waited) if waited.is_done() => {
                (self.observe)(Step::Found);
                event.area.event(event.cell).store(ticket, Ordering::Release);
                Look::Done
            }
            Ok(_) => Look::Same,
            Err(error) => self.failed(&error, None),
        }
    }

    fn look_at_health(&self, number: u64) -> Look {
        if let Health::Lost(error) = self.driver.health() {
            self.reporter.examine(&error);
        }
        self.area.examined().store(number, Ordering::Release);
        Look::Done
    }

    /// A lost device ends the watch; the late failure of one submission is told and the watch goes on.
    fn failed(&self, error: &Error, stream: Option<&StreamEntry>) -> Look {
        self.reporter.examine(error);
        match stream.filter(|_| !error.is_sticky()) {
            Some(stream) if error.site().is_some() => {
                let number = error.site().map_or(0, |site| site.submission.0);
                self.reporter.late(stream.wire, stream.numbering().of(number), error);
                Look::Moved
            }
            _ => Look::Done,
        }
    }
}
