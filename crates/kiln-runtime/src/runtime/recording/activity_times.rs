//! The times of work from CUPTI, by stream and number.

use kiln_cuda::cupti::CuptiSession;
use kiln_driver::StreamId;
use kiln_order::StreamKey;
use kiln_trace::TimeSpan;

/// Bits of a submission's number; those of its stream stand above them.
const NUMBER_BITS: u32 = 48;

/// Where the times of numbered work come from: this process, or the worker that has the device.
pub(crate) trait ActivitySource: Send + Sync {
    /// What this thread submits to a stream from here on has a number.
    fn begin(&self, stream: StreamId, number: u64);

    /// It is submitted.
    fn end(&self, stream: StreamId);

    /// Has the times of work that is over told; at the end, all of them.
    fn flush(&self, whole: bool);

    /// Gives what came since the last call, in the time of the recording, which says what is now.
    fn take(&self, now_ns: &dyn Fn() -> u64, each: &mut dyn FnMut(u64, TimeSpan));

    /// Times that found no room.
    fn dropped(&self) -> u64;
}

impl ActivitySource for CuptiSession {
    fn begin(&self, _: StreamId, number: u64) {
        self.begin(number);
    }

    fn end(&self, _: StreamId) {
        self.end();
    }

    fn flush(&self, whole: bool) {
        self.flush(whole);
    }

    fn take(&self, now_ns: &dyn Fn() -> u64, each: &mut dyn FnMut(u64, TimeSpan)) {
        let (recording, now) = (now_ns(), self.now_ns());
        let time = |at: u64| recording.saturating_add(at).saturating_sub(now);
        self.take(|ran| each(ran.number, TimeSpan::new(time(ran.begin_ns), time(ran.end_ns))));
    }

    fn dropped(&self) -> u64 {
        self.dropped()
    }
}

/// The times of one device's work.
pub(super) struct ActivityTimes {
    source: Box<dyn ActivitySource>,
}

impl ActivityTimes {
    pub(super) fn new(source: Box<dyn ActivitySource>) -> Self {
        Self { source }
    }

    /// Submits work that is known by its stream and number.
    pub(super) fn around<R>(
        &self,
        (key, stream): (StreamKey, StreamId),
        number: u64,
        submit: impl FnOnce() -> R,
    ) -> R {
        self.source.begin(stream, (key.index() as u64) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1));
        let submitted = submit();
        self.source.end(stream);
        submitted
    }

    /// Has the times of work that is over given out.
    pub(super) fn flush(&self, whole: bool) {
        self.source.flush(whole);
    }

    /// Gives the times that came since the last call.
    pub(super) fn take(&self, now_ns: impl Fn() -> u64, mut each: impl FnMut(StreamKey, u64, TimeSpan)) {
        self.source.take(&now_ns, &mut |number, span| {
            if let Ok(stream) = StreamKey::new((number >> NUMBER_BITS) as usize) {
                each(stream, number & ((1 << NUMBER_BITS) - 1), span);
            }
        });
    }

    /// Records that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.source.dropped()
    }
}
