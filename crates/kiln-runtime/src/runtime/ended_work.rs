//! Work that is ended before it is done, on a device that goes on: collectives of a communicator that lost a rank.

use std::sync::Arc;

use kiln_order::{Stamp, StreamClock};

use super::DeviceRuntime;
use crate::device_state::Cause;

/// Which work of a device is ended.
#[derive(Clone, Copy, Debug)]
pub enum EndedWork<'a> {
    /// These submissions.
    Submissions(&'a [Stamp]),
    /// Everything that is not known to be done.
    AllUnfinished,
}

/// Says that work is ended before it is done. Its tickets fail with `told` from here on, and so do those of unfinished work that is ordered after it, since that may
/// have read what is not there. What such work was to write cannot be read until it is overwritten whole. Everything else stays as it is.
///
/// To be called before the device is made to end the work, so that no wait takes its end for success. A thread that has looked at its buffers and not yet
/// begun its submission at this moment is not seen. False if the device takes no work.
pub fn end_work(
    gpu: &DeviceRuntime,
    ended: EndedWork<'_>,
    told: Arc<dyn std::error::Error + Send + Sync>,
) -> bool {
    let inner = gpu.inner();
    let (known, planned) = inner.tracker().horizon();
    let mut untouched = StreamClock::default();
    inner.tracker().each_stream(|lane| {
        let done = known.at(lane.key);
        let number = match ended {
            EndedWork::AllUnfinished => done,
            EndedWork::Submissions(stamps) => {
                let (own, others): (Vec<Stamp>, Vec<Stamp>) =
                    stamps.iter().copied().partition(|stamp| stamp.stream == lane.key);
                let first = own.iter().map(|stamp| stamp.number.saturating_sub(1)).min();
                let behind = others.iter().any(|stamp| lane.published_covers(*stamp)).then_some(done);
                first.into_iter().chain(behind).min().unwrap_or(u64::MAX)
            }
        };
        untouched.learn(Stamp { stream: lane.key, number: number.min(planned.at(lane.key)) });
    });
    let next = "see the error of the work";
    let cause = Cause::new(kiln_driver::Error::invalid("submit", told.to_string(), next)).told_as(told);
    inner.state().interrupt(cause, untouched, planned)
}
