//! Waits of the program's threads.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_order::Stamp;
use kiln_trace::{HostWaitCause, RecordingClock, TimeSpan};

use super::work_context::{self, RecordedMoment};
use crate::error::Result;
use crate::runtime::inner::Inner;

static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// A number for each thread that waited.
    static THREAD: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
    /// Whether the thread is in a wait that is recorded: one within another is a part of it.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

impl Inner {
    /// Records that a call waited for other ranks since a moment. The time of a simulated device stands still meanwhile.
    pub(super) fn waited_for_ranks(&self, since: RecordedMoment) {
        let Some(recording) = self.recording().filter(|_| self.recording_clock() == RecordingClock::Wall)
        else {
            return;
        };
        let (span, thread) = (TimeSpan::new(since.time_ns, recording.now()), THREAD.with(|thread| *thread));
        if let Some(line) = work_context::line() {
            recording.waited(HostWaitCause::Collective, None, line, thread, span);
        }
    }

    /// Waits, and records that. The line is that of the caller.
    #[inline]
    #[track_caller]
    pub(crate) fn waiting<R>(
        &self,
        cause: HostWaitCause,
        awaited: Option<Stamp>,
        wait: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_recorded() {
            self.waiting_recorded(cause, awaited, Location::caller(), wait)
        } else {
            wait()
        }
    }

    #[cold]
    #[inline(never)]
    fn waiting_recorded<R>(
        &self,
        cause: HostWaitCause,
        awaited: Option<Stamp>,
        line: &'static Location<'static>,
        wait: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let is_known = awaited.is_some_and(|stamp| self.tracker().host().covers(stamp));
        if is_known || WAITS.get() {
            return wait();
        }
        #[cfg(feature = "metrics")]
        let wait = || match self.metered() {
            Some(metered) => {
                let began = std::time::Instant::now();
                let waited = wait();
                metered.waits.record(began.elapsed());
                waited
            }
            None => wait(),
        };
        let Some(recording) = self.recording() else { return wait() };
        let begin = recording.now();
        WAITS.set(true);
        let waited = {
            let _context = self.called_from(line);
            wait()
        };
        WAITS.set(false);
        let span = TimeSpan::new(begin, recording.now());
        // What was found in the work is known now, and may be all that is known of it if the program is killed next.
        recording.note_findings(self, true);
        recording.collect(self);
        recording.waited(
            cause,
            awaited,
            work_context::line().unwrap_or(line),
            THREAD.with(|thread| *thread),
            span,
        );
        waited.inspect_err(|error| recording.failed(self, error))
    }
}
