//! What memory asks about the order of work, answered by the tracker.

use std::sync::Arc;

use kiln_driver::{Result, Timeout, Waited};
use kiln_mem::Order;
use kiln_order::{DependencyTracker, Stamp, Stamps, StreamKey, StreamState};

/// The tracker of a runtime, as its memory sees it.
pub(crate) struct MemoryOrder {
    tracker: Arc<DependencyTracker>,
}

impl MemoryOrder {
    pub(crate) fn new(tracker: Arc<DependencyTracker>) -> Self {
        Self { tracker }
    }

    fn lane(&self, stream: kiln_mem::StreamKey) -> Option<Arc<StreamState>> {
        self.tracker.state_at(stream.number() as usize)
    }
}

impl Order for MemoryOrder {
    fn latest(&self, stream: kiln_mem::StreamKey) -> u64 {
        self.lane(stream).map_or(0, |lane| lane.planned())
    }

    fn is_ordered(&self, stream: kiln_mem::StreamKey, stamp: kiln_mem::Stamp) -> bool {
        let stamp = from_memory(stamp);
        self.lane(stream).zip(stamp).is_some_and(|(lane, stamp)| self.tracker.is_ordered(&lane, stamp))
    }

    fn is_complete(&self, stamp: kiln_mem::Stamp) -> bool {
        from_memory(stamp).is_some_and(|stamp| self.tracker.host().covers(stamp))
    }

    fn refresh(&self, stream: kiln_mem::StreamKey) -> Result<()> {
        let Some(lane) = self.lane(stream) else { return Ok(()) };
        self.tracker.is_done(Stamp { stream: lane.key, number: lane.submitted() }).map(|_| ())
    }

    fn wait_on(&self, stream: kiln_mem::StreamKey, stamp: kiln_mem::Stamp) -> Result<()> {
        match self.lane(stream).zip(from_memory(stamp)) {
            Some((lane, stamp)) => match self.tracker.order_after(&lane, &Stamps::of(stamp)) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.into_driver("wait_on")),
            },
            None => Ok(()),
        }
    }

    fn wait(&self, stamp: kiln_mem::Stamp, timeout: Timeout) -> Result<Waited> {
        match from_memory(stamp) {
            Some(stamp) => self.tracker.wait(stamp, timeout),
            None => Ok(Waited::Done),
        }
    }
}

/// A stream as memory names it.
pub(crate) fn stream_ref(lane: &StreamState) -> kiln_mem::StreamRef {
    kiln_mem::StreamRef { key: kiln_mem::StreamKey::new(lane.key.index() as u32), id: lane.stream }
}

/// The uses of a block on streams other than its own, as memory takes them. More streams than it can name are joined first: the
/// block's own stream is made to wait for the rest, or another one if that is gone, which then stands for all of them. A stream that was
/// given back takes no more work, so what is done with the memory next is not ordered after it by being queued there: its uses are
/// named as well.
pub(crate) fn other_uses(
    tracker: &DependencyTracker,
    own: &StreamState,
    other: &StreamState,
    uses: &Stamps,
) -> kiln_mem::Stamps {
    let mut named = kiln_mem::Stamps::default();
    let is_gone = own.is_retired();
    let needs_name = |stamp: &Stamp| (is_gone || stamp.stream != own.key) && !tracker.host().covers(*stamp);
    for stamp in uses.iter().filter(needs_name) {
        let joined =
            named.add(to_memory(stamp)).is_ok() || tracker.order_after(own, &Stamps::of(stamp)).is_ok();
        // A device that takes the wait on neither is lost, and then nothing on it is used again.
        if !joined && tracker.order_after(other, uses).is_ok() {
            let mut all = kiln_mem::Stamps::default();
            let _ = all.add(to_memory(Stamp { stream: other.key, number: other.submitted() }));
            return all;
        }
    }
    named
}

fn to_memory(stamp: Stamp) -> kiln_mem::Stamp {
    let stream = kiln_mem::StreamKey::new(stamp.stream.index() as u32);
    kiln_mem::Stamp { stream, number: stamp.number }
}

fn from_memory(stamp: kiln_mem::Stamp) -> Option<Stamp> {
    let stream = StreamKey::new(stamp.stream.number() as usize)?;
    Some(Stamp { stream, number: stamp.number })
}
