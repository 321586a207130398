//! The times of work from CUPTI in the worker that has the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use kiln_driver::StreamId;
use kiln_isolate::{IsolatedDevice, TimesFlush};
use kiln_trace::TimeSpan;

use crate::runtime::ActivitySource;

/// What the next question has the worker do first, as a number.
const FLUSHES: [TimesFlush; 3] = [TimesFlush::None, TimesFlush::Complete, TimesFlush::All];

/// The times that a device's workers tell, one after the other. What goes wrong is left alone: work has no times then, and the loss of a worker is
/// told elsewhere.
pub(super) struct WorkerActivity {
    device: Arc<IsolatedDevice>,
    flush: AtomicU8,
    dropped: AtomicU64,
}

impl WorkerActivity {
    /// Has the worker begin; why not, in words, where it cannot.
    pub(super) fn start(device: &Arc<IsolatedDevice>) -> Result<Self, String> {
        device.start_times().map_err(|error| match error.kind() {
            kiln_driver::ErrorKind::Unsupported { why, .. } => why.clone(),
            _ => error.to_string(),
        })?;
        Ok(Self { device: device.clone(), flush: AtomicU8::new(0), dropped: AtomicU64::new(0) })
    }
}

impl Drop for WorkerActivity {
    fn drop(&mut self) {
        let _ = self.device.stop_times();
    }
}

impl ActivitySource for WorkerActivity {
    fn begin(&self, stream: StreamId, number: u64) {
        let _ = self.device.number_work(stream, Some(number));
    }

    fn end(&self, stream: StreamId) {
        let _ = self.device.number_work(stream, None);
    }

    fn flush(&self, whole: bool) {
        self.flush.fetch_max(if whole { 2 } else { 1 }, Ordering::Relaxed);
    }

    fn take(&self, now_ns: &dyn Fn() -> u64, each: &mut dyn FnMut(u64, TimeSpan)) {
        let asked = usize::from(self.flush.swap(0, Ordering::Relaxed));
        let flush = FLUSHES.get(asked).copied().unwrap_or_default();
        let mut told = Vec::new();
        let dropped = self.device.take_times(flush, |time| {
            let now = now_ns();
            let span =
                TimeSpan::new(now.saturating_sub(time.began_ago_ns), now.saturating_sub(time.ended_ago_ns));
            told.push((time.number, span));
        });
        if let Ok(dropped) = dropped {
            self.dropped.fetch_max(dropped, Ordering::Relaxed);
        }
        told.into_iter().for_each(|(number, span)| each(number, span));
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
