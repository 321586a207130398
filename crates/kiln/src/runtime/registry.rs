//! Runtimes by name, for those who name one without holding it.
//!
//! A ticket is made for every submission and mostly thrown away. Holding the runtime by it would be two locked instructions a
//! launch, each of which waits for all stores before it. A ticket carries the name, and only who asks it something looks here.
//!
//! A runtime waits for its work when it ends. A name that is not known any more therefore stands for work that is done; a runtime
//! that ended otherwise leaves the reason behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::inner::Inner;
use crate::error::Error;

/// The name of a runtime; no other one of this process ever has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RuntimeKey(u64);

/// What became of a runtime.
pub(crate) enum Whereabouts {
    /// It can be asked.
    Here(Arc<Inner>),
    /// It is being taken down right now, and its work waited for.
    Ending,
    /// It is gone, and all its work was done.
    Done,
    /// It is gone, and its work was not waited for to the end.
    Failed(Error),
}

enum Known {
    Live(Weak<Inner>),
    Failed(Error),
}

static RUNTIMES: RwLock<BTreeMap<RuntimeKey, Known>> = RwLock::new(BTreeMap::new());

impl RuntimeKey {
    /// A name nobody has.
    pub(super) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a runtime known by its name.
    pub(super) fn enter(self, runtime: Weak<Inner>) {
        write(|runtimes| drop(runtimes.insert(self, Known::Live(runtime))));
    }

    /// The runtime ended; the reason if that was before its work did.
    pub(super) fn leave(self, reason: Option<Error>) {
        write(|runtimes| {
            drop(match reason {
                Some(reason) => runtimes.insert(self, Known::Failed(reason)),
                None => runtimes.remove(&self),
            });
        });
    }

    /// What became of it.
    pub(crate) fn find(self) -> Whereabouts {
        let runtimes = RUNTIMES.read().unwrap_or_else(PoisonError::into_inner);
        match runtimes.get(&self) {
            None => Whereabouts::Done,
            Some(Known::Failed(reason)) => Whereabouts::Failed(reason.clone()),
            Some(Known::Live(runtime)) => runtime.upgrade().map_or(Whereabouts::Ending, Whereabouts::Here),
        }
    }
}

fn write(change: impl FnOnce(&mut BTreeMap<RuntimeKey, Known>)) {
    change(&mut RUNTIMES.write().unwrap_or_else(PoisonError::into_inner));
}
