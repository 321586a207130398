//! Work that is ended before it is done, on a device that goes on: collectives of a communicator that lost a rank.

use std::sync::Arc;

use kiln_order::{Stamp, StreamClock, StreamKey, StreamState};

use super::{DeviceRuntime, Inner};
use crate::device_state::{Cause, Loss};
use crate::ids::Generation;

/// Which work of a device is ended.
#[derive(Clone, Copy, Debug)]
pub enum EndedWork<'a> {
    /// These submissions, which are done in this order: one that is known to be done is not ended, nor are those before it.
    Submissions(&'a [Stamp]),
    /// A submission that came when the device may have been made to end it, so that it may look as if it were done.
    Late(Stamp),
    /// Everything that is not known to be done.
    AllUnfinished,
}

/// Says that work is ended before it is done. Its tickets fail with `told` from here on, and so do those of unfinished work that is ordered after it, since that may
/// have read what is not there. What such work was to write cannot be read until it is overwritten whole. Everything else stays as it is: no ticket fails of which a
/// caller was told that it is done.
///
/// To be called before the device is made to end the work, so that no wait takes its end for success. A submission that has begun and waits for its stream at this
/// moment is ended too if it is ordered after the work. A thread that has looked at its buffers and not yet begun its submission is not seen. False if the device takes
/// no work.
pub fn end_work(
    gpu: &DeviceRuntime,
    ended: EndedWork<'_>,
    told: Arc<dyn std::error::Error + Send + Sync>,
) -> bool {
    let next = "see the error of the work";
    let cause = Cause::new(kiln_driver::Error::invalid("submit", told.to_string(), next)).told_as(told);
    end_because(gpu.inner(), ended, Arc::new(cause))
}

impl Inner {
    /// Looks again at a submission during which work was ended: it may have waited for its stream meanwhile, and read what is not there.
    #[cold]
    #[inline(never)]
    pub(super) fn recheck_submission(&self, generation: Generation, lane: &StreamState, stamp: Stamp) {
        let mut streams = Vec::new();
        self.tracker().each_stream(|lane| streams.push(lane.key));
        let is_behind = |first: Stamp| first.stream == lane.key || lane.published_covers(first);
        let is_touched =
            |loss: &Loss| streams.iter().filter_map(|stream| loss.first_unfinished(*stream)).any(is_behind);
        if let Some(cause) = self.state().ended_where(generation, is_touched) {
            end_because(self, EndedWork::Late(stamp), cause);
        }
    }
}

fn end_because(inner: &Inner, ended: EndedWork<'_>, cause: Arc<Cause>) -> bool {
    let (_, planned) = inner.tracker().horizon();
    let late;
    let stamps = match ended {
        EndedWork::Submissions(stamps) => stamps,
        EndedWork::Late(stamp) => {
            late = [stamp];
            &late
        }
        EndedWork::AllUnfinished => &[],
    };
    let mut shares = Vec::new();
    inner.tracker().each_stream(|lane| {
        let is_behind = |stamp: &Stamp| stamp.stream != lane.key && lane.published_covers(*stamp);
        shares.push(StreamShare { key: lane.key, behind: stamps.iter().rposition(is_behind) });
    });
    // What is known to be done is read when no waiter can be told more: see `interrupt`.
    inner.state().interrupt(cause, || {
        let known = inner.tracker().host().snapshot();
        let first = match ended {
            EndedWork::Submissions(stamps) => stamps.iter().rposition(|stamp| known.covers(*stamp)),
            EndedWork::Late(_) | EndedWork::AllUnfinished => None,
        };
        let first = first.map_or(0, |last_done| last_done + 1);
        let mut untouched = StreamClock::default();
        for share in &shares {
            let number = match ended {
                EndedWork::AllUnfinished => known.at(share.key),
                EndedWork::Submissions(_) | EndedWork::Late(_) => share.untouched(stamps, first, &known),
            };
            untouched.learn(Stamp { stream: share.key, number: number.min(planned.at(share.key)) });
        }
        (untouched, planned)
    })
}

/// What the ended work has to do with a stream.
struct StreamShare {
    key: StreamKey,
    /// The last submission of another stream that the stream is ordered after, by its place in the list.
    behind: Option<usize>,
}

impl StreamShare {
    /// The last submission of the stream that stays as it is, if the list from `first` on is ended.
    fn untouched(&self, stamps: &[Stamp], first: usize, known: &StreamClock) -> u64 {
        let own = stamps.iter().skip(first).filter(|stamp| stamp.stream == self.key);
        let own = own.map(|stamp| stamp.number.saturating_sub(1)).min();
        let behind = self.behind.filter(|last| *last >= first).map(|_| known.at(self.key));
        own.into_iter().chain(behind).min().unwrap_or(u64::MAX)
    }
}
