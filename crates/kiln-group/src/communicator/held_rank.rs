//! A rank as long as a program holds it. How it ends is decided when the program drops its last handle, and not by a thread that looks at the rank at that moment.

use std::ops::Deref;
use std::sync::Arc;

use super::{DeviceCommunicator, Inner};
use crate::abort::LoadedRank;
use crate::membership::LocalRank;
use crate::rank_loss::PANICKED;
use crate::rank_watch::rank_left;

/// What the handles of a rank share. Other threads may have the rank itself for a moment longer.
pub(super) struct HeldRank {
    inner: Arc<Inner>,
}

impl HeldRank {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

impl Deref for HeldRank {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DeviceCommunicator {
    /// Looks for losses that the job has told, and that the thread which looks for them has not seen yet.
    pub(crate) fn look(&self) {
        let Some(membership) = self.membership() else { return };
        membership.look(false);
        if let Some(lost) = membership.lost().into_iter().next()
            && self.inner.end(&lost)
        {
            self.inner.abort();
        }
    }
}

impl Drop for HeldRank {
    fn drop(&mut self) {
        let inner = &self.inner;
        let Some(membership) = &inner.membership else { return };
        match std::thread::panicking() {
            true => {
                let loaded = inner.loaded();
                let rank = inner.rank.rank;
                // Its device may be lost before, which is why the thread panics then.
                let cause = match membership.own_loss(rank) {
                    Some(loss) => format!("{PANICKED}, after its device was lost: {loss}"),
                    None => PANICKED.to_owned(),
                };
                membership.report(rank, cause, loaded);
            }
            false => {
                let has_left = membership.leave(inner.rank.rank);
                match inner.bridge.as_ref().or(inner.compared.get()) {
                    Some(bridge) if inner.lost.get().is_some() => bridge.forget(),
                    Some(bridge) if has_left => bridge.end(),
                    _ => {}
                }
                rank_left(membership);
            }
        }
    }
}

impl Inner {
    /// What its device has loaded of it.
    pub(super) fn loaded(&self) -> Option<LoadedRank> {
        let module = self.module.as_ref()?;
        Some(LoadedRank::new(&self.runtime, module, self.ready_abort.as_ref()))
    }
}
