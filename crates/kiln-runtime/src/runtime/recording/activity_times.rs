//! The times of work from CUPTI, by stream and number.

use kiln_cuda::cupti::CuptiSession;
use kiln_order::StreamKey;
use kiln_trace::TimeSpan;

/// Bits of a submission's number; those of its stream stand above them.
const NUMBER_BITS: u32 = 48;

/// The times of one device's work.
pub(super) struct ActivityTimes {
    session: CuptiSession,
}

impl ActivityTimes {
    pub(super) fn new(session: CuptiSession) -> Self {
        Self { session }
    }

    /// Submits work that is known by its stream and number.
    pub(super) fn around<R>(&self, stream: StreamKey, number: u64, submit: impl FnOnce() -> R) -> R {
        self.session.begin((stream.index() as u64) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1));
        let submitted = submit();
        self.session.end();
        submitted
    }

    /// Has the times of work that is over given out.
    pub(super) fn flush(&self, whole: bool) {
        self.session.flush(whole);
    }

    /// Gives the times that came since the last call. The recording's time of now says how CUPTI's clock goes.
    pub(super) fn take(&self, now_ns: u64, mut each: impl FnMut(StreamKey, u64, TimeSpan)) {
        let now = self.session.now_ns();
        let time = |at: u64| now_ns.saturating_add(at).saturating_sub(now);
        self.session.take(|ran| {
            if let Ok(stream) = StreamKey::new((ran.number >> NUMBER_BITS) as usize) {
                let number = ran.number & ((1 << NUMBER_BITS) - 1);
                each(stream, number, TimeSpan::new(time(ran.begin_ns), time(ran.end_ns)));
            }
        });
    }

    /// Records that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.session.dropped()
    }
}
