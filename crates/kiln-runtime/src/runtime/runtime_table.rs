//! Runtimes by name, for those who name one without holding it.
//!
//! A ticket is made for every submission and mostly thrown away. Holding the runtime by it would be two locked instructions a
//! launch, each of which waits for all stores before it. A ticket carries the name, and only who asks it something looks here.
//!
//! A runtime waits for its work when it ends. A name that is not known any more therefore stands for work that is done; a runtime
//! that ended otherwise leaves the reason behind, and one that had lost work before leaves what that was. What a runtime had counted
//! stays, added up for each device.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use kiln_driver::DeviceInfo;
use kiln_order::{Stamp, StreamClock};

use super::inner::Inner;
use super::telemetry_source::Meters;
use crate::counters::Numbers;
use crate::device_state::Loss;
use crate::error::Error;
use crate::findings::KeptFinding;

/// The name of a runtime; no other one of this process ever has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RuntimeKey(u64);

/// What became of a runtime.
pub(crate) enum RuntimeLookup {
    /// It can be asked.
    Live(Arc<Inner>),
    /// It is being taken down right now, and its work waited for.
    Ending,
    /// It is gone, and the work that was asked about was done.
    Done,
    /// It is gone, and the work was lost or not waited for to the end.
    Failed(Error),
}

enum Known {
    Live(Weak<Inner>, Box<Meters>),
    Ended(Box<EndedRuntime>),
}

/// What a runtime leaves behind for its tickets.
pub(super) struct EndedRuntime {
    /// The times it lost work.
    pub(super) losses: Vec<Loss>,
    /// What was known to be done, and why that was not waited for which was not; none if everything was.
    pub(super) cut_short: Option<(StreamClock, Error)>,
    /// What the device found in its work.
    pub(super) findings: Vec<KeptFinding>,
}

/// All runtimes of this process.
struct Registry {
    runtimes: BTreeMap<RuntimeKey, Known>,
    /// What runtimes that are gone had counted, by device.
    ended: Vec<(DeviceInfo, Numbers)>,
}

impl Registry {
    fn keep_counts(&mut self, device: &DeviceInfo, counts: &Numbers) {
        match self.ended.iter_mut().find(|(known, _)| is_same(known, device)) {
            Some((_, sums)) => sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count),
            None => self.ended.push((device.clone(), *counts)),
        }
    }
}

static RUNTIMES: RwLock<Registry> = RwLock::new(Registry { runtimes: BTreeMap::new(), ended: Vec::new() });

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
    pub(super) fn enter(self, runtime: Weak<Inner>, meters: Meters) {
        write(|registry| drop(registry.runtimes.insert(self, Known::Live(runtime, Box::new(meters)))));
    }

    /// The runtime ended. Its parts are dropped by itself, after this.
    pub(super) fn leave(self, ended: EndedRuntime) {
        let nothing = ended.losses.is_empty() && ended.cut_short.is_none() && ended.findings.is_empty();
        write(|registry| {
            let known = registry.runtimes.remove(&self);
            if !nothing {
                registry.runtimes.insert(self, Known::Ended(Box::new(ended)));
            }
            if let Some(Known::Live(_, meters)) = known {
                registry.keep_counts(meters.device(), &meters.counts());
            }
        });
    }

    /// The runtime, if it has not ended and is not being taken down.
    pub(crate) fn live(self) -> Option<Arc<Inner>> {
        match RUNTIMES.read().unwrap_or_else(PoisonError::into_inner).runtimes.get(&self)? {
            Known::Live(runtime, _) => runtime.upgrade(),
            Known::Ended(_) => None,
        }
    }

    /// Whether the runtime has not ended and is not being taken down.
    pub(super) fn is_live(self) -> bool {
        let registry = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
        matches!(registry.runtimes.get(&self), Some(Known::Live(runtime, _)) if runtime.strong_count() > 0)
    }

    /// What became of it, and if it is gone, of that work.
    pub(crate) fn find(self, stamp: Stamp) -> RuntimeLookup {
        let registry = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
        match registry.runtimes.get(&self) {
            None => RuntimeLookup::Done,
            Some(Known::Ended(ended)) => {
                ended.failure_of(stamp).map_or(RuntimeLookup::Done, RuntimeLookup::Failed)
            }
            Some(Known::Live(runtime, _)) => {
                runtime.upgrade().map_or(RuntimeLookup::Ending, RuntimeLookup::Live)
            }
        }
    }
}

/// Reads the meters of all runtimes that have not ended; with them, what those that have ended had counted, by device. Of one
/// moment: no runtime is missing, and none is counted twice.
pub(crate) fn process_runtimes<T>(read: impl FnMut(&Meters) -> T) -> (Vec<T>, Vec<(DeviceInfo, Numbers)>) {
    let registry = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
    let running = registry.runtimes.values().filter_map(|known| match known {
        Known::Live(_, meters) => Some(&**meters),
        Known::Ended(_) => None,
    });
    (running.map(read).collect(), registry.ended.clone())
}

/// Whether two are the same device to those who read numbers.
fn is_same(one: &DeviceInfo, other: &DeviceInfo) -> bool {
    (one.kind, one.ordinal, one.uuid) == (other.kind, other.ordinal, other.uuid) && one.name == other.name
}

impl EndedRuntime {
    fn failure_of(&self, stamp: Stamp) -> Option<Error> {
        if let Some(loss) = self.losses.iter().find(|loss| loss.caught(stamp)) {
            // The runtime that could do it again is gone.
            return Some(Error::of_cause(&loss.cause.with_successor(false)));
        }
        // What a loss did not catch was done before it or again after it.
        let done = |known: &StreamClock| {
            known.covers(stamp) || self.losses.iter().any(|loss| loss.planned.covers(stamp))
        };
        let cut_short = self.cut_short.as_ref().filter(|(known, _)| !done(known));
        let finding = || self.findings.iter().find_map(|finding| finding.failure_of(stamp));
        cut_short.map(|(_, reason)| reason.clone()).or_else(finding)
    }
}

fn write(change: impl FnOnce(&mut Registry)) {
    change(&mut RUNTIMES.write().unwrap_or_else(PoisonError::into_inner));
}
