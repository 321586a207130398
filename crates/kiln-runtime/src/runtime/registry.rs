//! Runtimes by name, for those who name one without holding it.
//!
//! A ticket is made for every submission and mostly thrown away. Holding the runtime by it would be two locked instructions a
//! launch, each of which waits for all stores before it. A ticket carries the name, and only who asks it something looks here.
//!
//! A runtime waits for its work when it ends. A name that is not known any more therefore stands for work that is done; a runtime
//! that ended otherwise leaves the reason behind, and one that had lost work before leaves what that was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use kiln_order::{Clock, Stamp};

use super::DeviceRuntime;
use super::inner::Inner;
use crate::error::Error;
use crate::state::Loss;

/// The name of a runtime; no other one of this process ever has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RuntimeKey(u64);

/// What became of a runtime.
pub(crate) enum Whereabouts {
    /// It can be asked.
    Here(Arc<Inner>),
    /// It is being taken down right now, and its work waited for.
    Ending,
    /// It is gone, and the work that was asked about was done.
    Done,
    /// It is gone, and the work was lost or not waited for to the end.
    Failed(Error),
}

enum Known {
    Live(Weak<Inner>),
    Ended(Box<Remains>),
}

/// What a runtime leaves behind for its tickets.
pub(super) struct Remains {
    /// The times it lost work.
    pub(super) losses: Vec<Loss>,
    /// What was known to be done, and why that was not waited for which was not; none if everything was.
    pub(super) cut_short: Option<(Clock, Error)>,
}

static RUNTIMES: RwLock<BTreeMap<RuntimeKey, Known>> = RwLock::new(BTreeMap::new());

impl RuntimeKey {
    /// A new name.
    pub(super) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// It as a number.
    pub(super) fn number(self) -> u64 {
        self.0
    }

    /// Makes a runtime known by its name.
    pub(super) fn enter(self, runtime: Weak<Inner>) {
        write(|runtimes| drop(runtimes.insert(self, Known::Live(runtime))));
    }

    /// The runtime ended.
    pub(super) fn leave(self, remains: Remains) {
        let nothing = remains.losses.is_empty() && remains.cut_short.is_none();
        write(|runtimes| {
            drop(if nothing {
                runtimes.remove(&self)
            } else {
                runtimes.insert(self, Known::Ended(Box::new(remains)))
            });
        });
    }

    /// What became of it, and if it is gone, of that work.
    pub(crate) fn find(self, stamp: Stamp) -> Whereabouts {
        let runtimes = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
        match runtimes.get(&self) {
            None => Whereabouts::Done,
            Some(Known::Ended(remains)) => remains.fate(stamp).map_or(Whereabouts::Done, Whereabouts::Failed),
            Some(Known::Live(runtime)) => runtime.upgrade().map_or(Whereabouts::Ending, Whereabouts::Here),
        }
    }
}

/// Every runtime of this process that is alive, in the order they were made.
pub(crate) fn live_runtimes() -> Vec<DeviceRuntime> {
    let runtimes = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
    let live = runtimes.values().filter_map(|known| match known {
        Known::Live(runtime) => runtime.upgrade(),
        Known::Ended(_) => None,
    });
    live.map(DeviceRuntime::from_inner).collect()
}

impl Remains {
    fn fate(&self, stamp: Stamp) -> Option<Error> {
        if let Some(loss) = self.losses.iter().find(|loss| loss.caught(stamp)) {
            // The runtime that could do it again is gone.
            return Some(loss.cause.error().clone().with_successor(false).into());
        }
        // What a loss did not catch was done before it or again after it.
        let done =
            |known: &Clock| known.covers(stamp) || self.losses.iter().any(|loss| loss.planned.covers(stamp));
        self.cut_short.as_ref().filter(|(known, _)| !done(known)).map(|(_, reason)| reason.clone())
    }
}

fn write(change: impl FnOnce(&mut BTreeMap<RuntimeKey, Known>)) {
    change(&mut RUNTIMES.write().unwrap_or_else(PoisonError::into_inner));
}
