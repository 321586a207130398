//! Order that is known only once work ran: a step that waited for a value in memory comes after the step that wrote it.
//!
//! A step gets its clock when it is submitted. What a wait for memory comes after is seen when the wait is over; steps that come after the wait
//! learn it when they begin, and the host when it learns that the wait is over.

use std::sync::Arc;

use crate::check::vector_clock::{Lane, VectorClock};

/// Edges beyond this many take the place of the oldest ones.
const EDGES: usize = 1024;

/// What steps were found to come after while they ran.
#[derive(Debug, Default)]
pub(crate) struct AcquiredOrder {
    edges: Vec<Edge>,
}

/// Who has this step of a lane behind it has all of the clock behind it.
#[derive(Debug)]
struct Edge {
    lane: Lane,
    tick: u64,
    clock: Arc<VectorClock>,
}

impl AcquiredOrder {
    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// A step comes after all that a clock knows.
    pub(crate) fn add(&mut self, (lane, tick): (Lane, u64), clock: &Arc<VectorClock>) {
        if self.edges.len() >= EDGES {
            self.edges.remove(0);
        }
        self.edges.push(Edge { lane, tick, clock: clock.clone() });
    }

    /// Forgets what a clock knows that everything to come joins.
    pub(crate) fn forget_known(&mut self, known: &VectorClock) {
        self.edges.retain(|edge| !known.covers(&edge.clock));
    }

    /// Adds to a clock what follows from it; whether that was anything.
    pub(crate) fn complete(&self, clock: &mut VectorClock) -> bool {
        let mut has_grown = false;
        loop {
            let mut is_more = false;
            for edge in &self.edges {
                if clock.of(edge.lane) >= edge.tick && !clock.covers(&edge.clock) {
                    clock.join(&edge.clock);
                    is_more = true;
                }
            }
            if !is_more {
                return has_grown;
            }
            has_grown = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::vector_clock::Lanes;

    fn clock(knows: &[(Lane, u64)]) -> VectorClock {
        let mut clock = VectorClock::default();
        knows.iter().for_each(|(lane, tick)| clock.set(*lane, *tick));
        clock
    }

    #[test]
    fn a_clock_with_a_wait_behind_it_gets_what_the_wait_came_after() {
        let mut lanes = Lanes::new();
        let [a, b, c] = [(); 3].map(|()| lanes.take(&VectorClock::default()));
        let mut order = AcquiredOrder::default();
        // Step 2 of b waited for step 5 of a, and step 3 of c for step 2 of b.
        order.add((c, 3), &Arc::new(clock(&[(b, 2)])));
        order.add((b, 2), &Arc::new(clock(&[(a, 5)])));
        let mut before = clock(&[(b, 1), (c, 2)]);
        assert!(!order.complete(&mut before));
        let mut after = clock(&[(c, 4)]);
        assert!(order.complete(&mut after));
        assert_eq!((after.of(a), after.of(b)), (5, 2));
        order.forget_known(&after);
        assert!(order.is_empty());
    }
}
