//! What the others do to a rank of this process.

use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Object, Refusal};

use super::Inner;
use crate::collective_overdue::CollectiveOverdue;
use crate::ended_communicator::EndedCommunicator;
use crate::membership::LocalRank;
use crate::rendezvous::LostRank;

/// How long an abort waits for a submission that is under way.
const TURN_LIMIT: Duration = Duration::from_millis(200);

impl LocalRank for Inner {
    fn end(&self, lost: &LostRank) -> bool {
        // Held until all is said, so that no thread that knows of the loss counts before.
        let mut ledger = self.ledger();
        if self.lost.set(lost.clone()).is_err() {
            return false;
        }
        self.end_unfinished(&mut ledger, Arc::new(self.loss(lost)));
        true
    }

    fn failure(&self) -> Option<String> {
        let module = self.module.as_ref()?;
        // A worker process takes one request at a time, and may be inside of a call of the library.
        if self.runtime.info().kind != DeviceKind::Cuda
            || self.runtime.driver().native(Object::Module(module.id())).is_err()
        {
            return None;
        }
        let error = self.lookup()?;
        matches!(error.refusal(), Some(Refusal::Library { .. })).then(|| error.to_string())
    }

    fn fail(&self, why: &str) {
        Inner::fail(self, why);
    }

    fn deadline(&self) -> Duration {
        self.rank.deadline
    }

    fn end_overdue(&self, told: CollectiveOverdue) {
        // Held until all is said, so that a call that is submitted meanwhile is ended as well.
        let mut ledger = self.ledger();
        let told = EndedCommunicator::Overdue(told);
        let _ = self.failed.set(told.clone());
        self.end_unfinished(&mut ledger, told.told());
    }

    fn abort(&self) {
        // A submission under way is done first, so that it is not refused half-way; one that waits for other ranks is not waited for.
        let began = Instant::now();
        let turn = loop {
            match self.turn.try_lock() {
                Ok(turn) => break Some(turn),
                Err(TryLockError::Poisoned(turn)) => break Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if began.elapsed() < TURN_LIMIT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        if let Some(loaded) = self.loaded() {
            loaded.abort();
        }
        drop(turn);
    }

    fn stop(&self) -> bool {
        match &self.bridge {
            Some(bridge) if self.lost.get().is_none() => bridge.end_shut_down(),
            _ => true,
        }
    }
}
