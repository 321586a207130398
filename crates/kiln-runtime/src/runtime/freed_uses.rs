//! The uses of a block that memory has to be told when the block is freed.

use kiln_order::{DependencyTracker, Stamp, Stamps, StreamState};

/// The uses on streams other than the block's own, as far as they are not known to be done. What the own stream did before the free comes
/// before whatever is queued there next. That is no help if the stream was given back and takes no more work: its uses are named, too.
pub(crate) fn uses_elsewhere(tracker: &DependencyTracker, own: &StreamState, mut uses: Stamps) -> Stamps {
    let is_gone = own.is_retired();
    let needs_name = |stamp: Stamp| (is_gone || stamp.stream != own.key) && !tracker.host().covers(stamp);
    uses.retain(needs_name);
    uses
}
