//! A door that closes once, behind whoever is inside.
//!
//! A stream of another library is given back while other threads may be about to record an event on it, without having entered it.
//! They pass the gate for that; closing it waits for those inside, and from then on nobody passes.

use crate::sync::{AtomicU32, Ordering, yield_now};

/// Set for ever once the gate closes; the rest counts who is inside.
const CLOSED: u32 = 1 << 31;

/// A gate that is open until it is closed.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

impl Gate {
    /// Goes in, unless it is closed; whoever goes in is inside until the pass is dropped.
    pub fn pass(&self) -> Option<Pass<'_>> {
        let pass = Pass(self);
        // Counted before the look, so that whoever closes sees this one or this one sees that it is closed.
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        (before & CLOSED == 0).then_some(pass)
    }

    /// Closes it and waits until nobody is inside, which is a driver call at the most.
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

/// Being inside.
#[derive(Debug)]
pub struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_waits_for_those_inside_and_lets_nobody_in() {
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
