//! The thread that writes a recording.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::held_waits::HeldWaits;
use super::lane::RecordingLane;
use super::locked;
use super::output::{EndOutcome, Output};
use super::recording_failure::RecordingFailure;
use super::recording_file::RecordingFile;
use super::stream_lane::StreamLane;
use super::tick_scale::TickScale;
use crate::record::{TraceEvent, TraceStream};

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordingTotals {
    /// Events in the file.
    pub written: u64,
    /// Events that are not, because there was no room in memory or on the disk.
    pub dropped: u64,
    /// Why the file has less than it was given, the last time that it did; its `Display` says what to do.
    pub failure: Option<RecordingFailure>,
}

/// What the thread shares with the program.
pub(super) struct RecordingThread {
    lanes: Mutex<Vec<Arc<RecordingLane>>>,
    streams: Mutex<Vec<Arc<StreamLane>>>,
    requests: Mutex<Requests>,
    changed: Condvar,
    totals: Mutex<RecordingTotals>,
    /// Taken by the thread.
    output: Mutex<Option<Output>>,
    /// The process that has the thread. One that was forked from it has a copy of all else, and locks that the thread may have held.
    process: u32,
}

#[derive(Default)]
struct Requests {
    asked: u64,
    served: u64,
    is_woken: bool,
    stops: bool,
    /// The time of an end that is to be marked.
    end: Option<u64>,
    has_ended: bool,
}

impl RecordingThread {
    pub(super) fn new(file: Box<dyn RecordingFile>) -> io::Result<Self> {
        Ok(Self {
            lanes: Mutex::default(),
            streams: Mutex::default(),
            requests: Mutex::default(),
            changed: Condvar::new(),
            totals: Mutex::default(),
            output: Mutex::new(Some(Output::begin(file)?)),
            process: std::process::id(),
        })
    }

    pub(super) fn lane(self: &Arc<Self>, room: usize) -> Arc<RecordingLane> {
        let lane = Arc::new(RecordingLane::new(room, Arc::downgrade(self)));
        locked(&self.lanes).push(lane.clone());
        lane
    }

    pub(super) fn stream_lane(
        self: &Arc<Self>,
        stream: TraceStream,
        scale: Arc<dyn TickScale>,
        room: usize,
    ) -> Arc<StreamLane> {
        let lane = Arc::new(StreamLane::new(stream, scale, room, Arc::downgrade(self)));
        locked(&self.streams).push(lane.clone());
        lane
    }

    pub(super) fn start(self: &Arc<Self>, every: Duration) -> io::Result<()> {
        let Some(output) = locked(&self.output).take() else { return Ok(()) };
        let shared = self.clone();
        let name = "kiln-recording".to_owned();
        std::thread::Builder::new().name(name).spawn(move || shared.run(output, every)).map(|_| ())
    }

    pub(super) fn wake(&self) {
        locked(&self.requests).is_woken = true;
        self.changed.notify_all();
    }

    pub(super) fn totals(&self) -> RecordingTotals {
        if self.is_of_other_process() {
            let known = self.totals.try_lock().map(|totals| totals.clone()).unwrap_or_default();
            return RecordingTotals {
                failure: Some(RecordingFailure::Forked { process: self.process }),
                ..known
            };
        }
        locked(&self.totals).clone()
    }

    /// Whether this process was forked from the one that records: there is no thread to wait for.
    fn is_of_other_process(&self) -> bool {
        std::process::id() != self.process
    }

    pub(super) fn flush(&self, limit: Duration) -> bool {
        if self.is_of_other_process() {
            return false;
        }
        let mut requests = locked(&self.requests);
        requests.asked += 1;
        let asked = requests.asked;
        self.await_that(requests, limit, |requests| requests.served >= asked)
    }

    pub(super) fn mark_end(&self, time_ns: u64, limit: Duration) -> bool {
        if self.is_of_other_process() {
            return false;
        }
        let mut requests = locked(&self.requests);
        requests.end = Some(time_ns);
        requests.asked += 1;
        let asked = requests.asked;
        self.await_that(requests, limit, |requests| requests.served >= asked)
    }

    pub(super) fn finish(&self, time_ns: u64, limit: Duration) -> bool {
        if self.is_of_other_process() {
            return false;
        }
        locked(&self.requests).end = Some(time_ns);
        self.stop(limit)
    }

    /// Whether everything was written in time. A disk that hangs keeps its thread, and not the program.
    pub(super) fn stop(&self, limit: Duration) -> bool {
        if self.is_of_other_process() {
            return false;
        }
        let mut requests = locked(&self.requests);
        requests.stops = true;
        requests.asked += 1;
        self.await_that(requests, limit, |requests| requests.has_ended)
    }

    fn await_that(
        &self,
        mut requests: std::sync::MutexGuard<'_, Requests>,
        limit: Duration,
        is_so: impl Fn(&Requests) -> bool,
    ) -> bool {
        self.changed.notify_all();
        let end = Instant::now() + limit;
        while !is_so(&requests) && !requests.has_ended {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (requests, _) = self.changed.wait_timeout(requests, left).unwrap_or_else(PoisonError::into_inner);
        }
        is_so(&requests)
    }

    fn run(&self, mut output: Output, every: Duration) {
        let (mut taken, mut waits, mut served) = (Vec::new(), HeldWaits::default(), 0);
        loop {
            let (asked, stops, end) = self.await_request(every);
            self.write_all(&mut output, &mut waits, &mut taken);
            if end.is_some() || stops {
                self.write(&mut output, &waits.rest(), 0);
            }
            // Who asks is told, also where there was nothing to write.
            if asked != served
                && let Err(error) = output.check_kept()
            {
                locked(&self.totals).failure = Some(RecordingFailure::of(&error));
            }
            served = asked;
            if end.is_some() || stops && !output.is_ended() {
                self.ended(output.append_end(end));
            }
            if stops {
                // Before that is told: the file is free for another recording then.
                drop(output);
                return self.tell(asked, true);
            }
            self.tell(asked, false);
        }
    }

    fn tell(&self, served: u64, has_ended: bool) {
        let mut requests = locked(&self.requests);
        (requests.served, requests.has_ended) = (served, has_ended);
        drop(requests);
        self.changed.notify_all();
    }

    /// Waits for something to do; what was asked for so far, whether this is all, and an end that is to be marked.
    fn await_request(&self, every: Duration) -> (u64, bool, Option<u64>) {
        let mut requests = locked(&self.requests);
        if requests.asked == requests.served && !requests.is_woken && !requests.stops {
            (requests, _) =
                self.changed.wait_timeout(requests, every).unwrap_or_else(PoisonError::into_inner);
        }
        requests.is_woken = false;
        (requests.asked, requests.stops, requests.end.take())
    }

    /// Writes what all lanes hold, but for waits before their turn.
    fn write_all(&self, output: &mut Output, waits: &mut HeldWaits, taken: &mut Vec<TraceEvent<'static>>) {
        let lanes = locked(&self.lanes).clone();
        for lane in lanes {
            let dropped = lane.take(taken);
            self.write(output, waits.order(taken), dropped);
        }
        let streams = locked(&self.streams).clone();
        for stream in streams {
            taken.clear();
            let dropped = stream.take(taken);
            self.write(output, waits.order(taken), dropped);
        }
        output.end_round();
    }

    /// The mark of the end was written, or could not be.
    fn ended(&self, EndOutcome { given_up, result }: EndOutcome) {
        let mut totals = locked(&self.totals);
        totals.written = totals.written.saturating_sub(given_up);
        totals.dropped += given_up;
        if let Err(error) = result {
            totals.failure = Some(RecordingFailure::of(&error));
        }
    }

    fn write(&self, output: &mut Output, taken: &[TraceEvent<'static>], dropped: u64) {
        let result = output.append(taken, dropped);
        let mut totals = locked(&self.totals);
        totals.dropped += dropped;
        match result {
            Ok(()) => totals.written += taken.len() as u64,
            Err(error) => {
                totals.dropped += taken.len() as u64;
                totals.failure = Some(RecordingFailure::of(&error));
            }
        }
    }
}
