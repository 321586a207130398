//! A one-shot gate: [`close`](Gate::close) waits for current users and admits no new ones.
//!
//! A stream of another library is given back while other threads may be about to record an event on it, without holding its lock. They
//! pass its gate for that; the thread that gives it back closes the gate first.

use crate::sync_shim::{AtomicU32, Ordering, yield_now};

/// Set for good when the gate closes; the other bits count current users.
const CLOSED: u32 = 1 << 31;

/// A gate that is open until it is closed, once.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

impl Gate {
    /// Admits a user until the pass is dropped, unless the gate is closed.
    pub fn pass(&self) -> Option<GatePass<'_>> {
        let pass = GatePass(self);
        // Counted before the look: the thread that closes it sees this user, or this one sees that it is closed.
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        (before & CLOSED == 0).then_some(pass)
    }

    /// Closes the gate and waits until the last user has left.
    pub fn close(&self) {
        self.0.fetch_or(CLOSED, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) != CLOSED {
            yield_now();
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED != 0
    }
}

/// A user of a [`Gate`]; dropping it is leaving.
#[must_use = "the user leaves when the pass is dropped"]
#[derive(Debug)]
pub struct GatePass<'a>(&'a Gate);

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
#[cfg(not(any(kiln_loom, kiln_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn closing_waits_for_users_and_admits_no_more() {
        let gate = Gate::default();
        let inside = gate.pass().unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| gate.close());
            while !gate.is_closed() {
                yield_now();
            }
            assert!(gate.pass().is_none() && !closing.is_finished());
            drop(inside);
        });
        assert!(gate.is_closed() && gate.pass().is_none());
    }
}
