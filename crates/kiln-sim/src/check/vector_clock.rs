//! Vector clocks: the happens-before relation.
//!
//! Work is split into lanes: one for the host, one for each stream, and more for the branches of graphs. Steps on one
//! lane are ordered and numbered. A clock says, for every lane, up to which number everything has happened before.

/// A line of steps that are ordered among themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lane(u32);

impl Lane {
    /// Everything the host does.
    pub(crate) const HOST: Self = Self(0);
}

/// For each lane, the number of the last step that is known to have happened before.
///
/// A sorted list of the lanes something is known of: most steps know of few.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct VectorClock {
    ticks: Vec<(Lane, u64)>,
}

impl VectorClock {
    pub(crate) fn of(&self, lane: Lane) -> u64 {
        self.find(lane).map_or(0, |at| self.ticks[at].1)
    }

    pub(crate) fn set(&mut self, lane: Lane, tick: u64) {
        match self.find(lane) {
            Ok(at) => self.ticks[at].1 = tick,
            Err(at) => self.ticks.insert(at, (lane, tick)),
        }
    }

    /// Takes over everything the other clock knows.
    pub(crate) fn join(&mut self, other: &Self) {
        let mut at = 0;
        for (lane, tick) in &other.ticks {
            while self.ticks.get(at).is_some_and(|(mine, _)| mine < lane) {
                at += 1;
            }
            match self.ticks.get_mut(at) {
                Some((mine, known)) if mine == lane => *known = (*known).max(*tick),
                _ => self.ticks.insert(at, (*lane, *tick)),
            }
        }
    }

    /// Whether everything the other clock knows is known here too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.ticks.iter().all(|(lane, tick)| self.of(*lane) >= *tick)
    }

    fn find(&self, lane: Lane) -> Result<usize, usize> {
        self.ticks.binary_search_by_key(&lane, |(known, _)| *known)
    }
}

/// Gives out lanes and numbers the steps on them.
#[derive(Debug)]
pub(crate) struct Lanes {
    ticks: Vec<u64>,
    retired: Vec<Retired>,
}

/// A lane whose owner is gone, and the step after which everything on it is done.
#[derive(Debug)]
struct Retired {
    lane: Lane,
    last: (Lane, u64),
}

impl Lanes {
    /// The host's lane and no other.
    pub(crate) fn new() -> Self {
        Self { ticks: vec![0], retired: Vec::new() }
    }

    /// A lane for a new line of work. A lane whose owner is gone is used again only once the host knows everything
    /// on it to be done: what comes next starts after the host's call and is then really ordered after it.
    pub(crate) fn take(&mut self, host: &VectorClock) -> Lane {
        let is_known = |retired: &Retired| host.of(retired.last.0) >= retired.last.1;
        if let Some(at) = self.retired.iter().position(is_known) {
            return self.retired.remove(at).lane;
        }
        self.ticks.push(0);
        Lane(self.ticks.len() as u32 - 1)
    }

    /// Takes a lane back; everything on it is done once the last step is.
    pub(crate) fn give_back(&mut self, lane: Lane, last: (Lane, u64)) {
        self.retired.push(Retired { lane, last });
    }

    /// The number of the next step on a lane.
    pub(crate) fn next_tick(&mut self, lane: Lane) -> u64 {
        let tick = &mut self.ticks[lane.0 as usize];
        *tick += 1;
        *tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_takes_the_larger_of_each() {
        let (mut a, mut b) = (VectorClock::default(), VectorClock::default());
        a.set(Lane(1), 5);
        b.set(Lane(1), 3);
        b.set(Lane(4), 9);
        a.join(&b);
        assert_eq!((a.of(Lane(1)), a.of(Lane(4)), a.of(Lane(2))), (5, 9, 0));
        assert!(a.covers(&b) && !b.covers(&a));
    }

    #[test]
    fn a_lane_comes_back_only_when_the_host_knows_it_is_done() {
        let mut lanes = Lanes::new();
        let mut host = VectorClock::default();
        let first = lanes.take(&host);
        let tick = lanes.next_tick(first);
        lanes.give_back(first, (first, tick));
        assert_ne!(lanes.take(&host), first);
        host.set(first, tick);
        assert_eq!(lanes.take(&host), first);
    }
}
