//! Which rank looks after which: the ranks of a host form a ring, and each one looks whether the thread of the next one has ended.
//!
//! This part is pure; the store sends what changes.

use std::collections::BTreeMap;

/// Where a rank is: what names its host, and its thread on that host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) thread: String,
}

/// A rank that is to look after another one, and the thread of that; none if it is the only one of its host.
pub(super) type Duty = (u32, Option<(u32, String)>);

#[derive(Default, Debug)]
pub(super) struct HostRing {
    places: BTreeMap<u32, Place>,
    duties: BTreeMap<u32, (u32, String)>,
}

impl HostRing {
    /// A rank says where it is. What changes for the ranks of its host.
    pub(super) fn enter(&mut self, rank: u32, place: Place) -> Vec<Duty> {
        let host = place.host.clone();
        self.places.insert(rank, place);
        self.arrange(&host)
    }

    /// A rank is gone.
    pub(super) fn leave(&mut self, rank: u32) -> Vec<Duty> {
        self.duties.remove(&rank);
        match self.places.remove(&rank) {
            Some(place) => self.arrange(&place.host),
            None => Vec::new(),
        }
    }

    /// Whether a rank has this thread.
    pub(super) fn is_at(&self, rank: u32, thread: &str) -> bool {
        self.places.get(&rank).is_some_and(|place| place.thread == thread)
    }

    fn arrange(&mut self, host: &str) -> Vec<Duty> {
        let here: Vec<(u32, &str)> = self
            .places
            .iter()
            .filter(|(_, place)| place.host == host)
            .map(|(rank, place)| (*rank, place.thread.as_str()))
            .collect();
        let mut changed = Vec::new();
        for ((rank, _), (next, thread)) in here.iter().zip(here.iter().cycle().skip(1)) {
            let duty = (next != rank).then(|| (*next, (*thread).to_owned()));
            if self.duties.get(rank) != duty.as_ref() {
                changed.push((*rank, duty));
            }
        }
        for (rank, duty) in &changed {
            match duty {
                Some(duty) => self.duties.insert(*rank, duty.clone()),
                None => self.duties.remove(rank),
            };
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, thread: &str) -> Place {
        Place { host: host.into(), thread: thread.into() }
    }

    #[test]
    fn each_rank_looks_after_the_next_one_of_its_host() {
        let mut ring = HostRing::default();
        let after = |rank: u32, thread: &str| Some((rank, thread.to_owned()));
        assert_eq!(ring.enter(4, place("a", "t4")), []);
        assert_eq!(ring.enter(1, place("b", "t1")), []);
        assert_eq!(ring.enter(2, place("a", "t2")), [(2, after(4, "t4")), (4, after(2, "t2"))]);
        assert_eq!(ring.enter(3, place("a", "t3")), [(2, after(3, "t3")), (3, after(4, "t4"))]);
        assert!(ring.is_at(3, "t3") && !ring.is_at(3, "t4") && !ring.is_at(9, ""));
        assert_eq!(ring.leave(4), [(3, after(2, "t2"))]);
        assert_eq!(ring.leave(4), []);
        // A replacement has another thread.
        assert_eq!(ring.enter(3, place("a", "new")), [(2, after(3, "new"))]);
        assert_eq!(ring.leave(2), [(3, None)]);
        assert_eq!(ring.leave(1), []);
    }
}
