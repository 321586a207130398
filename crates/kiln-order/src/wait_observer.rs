//! Told of the waits between streams.

use std::sync::{Arc, OnceLock};

use kiln_driver::Access;

use crate::access_history::AccessHistory;
use crate::plan_and_publish::Use;
use crate::stamp::Stamp;

/// Told of every wait that a stream is made to do for another, by the thread that submits, while it is inside of the stream. It must
/// not submit anything itself.
pub trait WaitObserver: Send + Sync {
    /// A submission has to come after another one of another stream, because of a block. It is told before anything is waited for, while
    /// blocks are locked, and also where nothing will have to be: because another need covers it, or it is done.
    fn needs(&self, need: &Need);

    /// A submission waits for another one that it needs. The event in between covers the work of that stream up to number `covers`.
    fn waits(&self, waiter: Stamp, needed: Stamp, covers: u64);

    /// A submission was refused: nothing comes of what it needed.
    fn refused(&self, waiter: Stamp);
}

/// What makes a submission come after another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// What has to come after.
    pub waiter: Stamp,
    /// What it has to come after.
    pub needed: Stamp,
    /// The number of the block.
    pub block: u64,
    /// Why.
    pub reason: NeedReason,
}

/// Why a submission has to come after another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeedReason {
    /// It reads what the other writes.
    ReadAfterWrite,
    /// It overwrites what the other writes.
    WriteAfterWrite,
    /// It overwrites what the other reads.
    WriteAfterRead,
}

/// Who is told, once there is an observer.
pub(crate) type Observed = OnceLock<Arc<dyn WaitObserver>>;

/// Tells an observer what a use of a block has to come after: writes before reads.
#[cold]
#[inline(never)]
pub(crate) fn tell_needs(
    observer: &dyn WaitObserver,
    waiter: Stamp,
    history: &AccessHistory,
    each: &Use<'_>,
) {
    let Some(block) = history.block().filter(|_| !history.is_sole(waiter.stream)) else { return };
    let tell = |needed: Stamp, reason| {
        if needed.stream != waiter.stream && needed.number != 0 {
            observer.needs(&Need { waiter, needed, block, reason });
        }
    };
    let reads = matches!(each.access, Access::Read | Access::ReadWrite);
    let reason = if reads { NeedReason::ReadAfterWrite } else { NeedReason::WriteAfterWrite };
    history.needs(&each.range, Access::Read, |stamp| tell(stamp, reason));
    if each.access.writes() {
        history.needs(&each.range, each.access, |stamp| tell(stamp, NeedReason::WriteAfterRead));
    }
}
