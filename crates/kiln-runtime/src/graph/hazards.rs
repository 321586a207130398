//! Which nodes a node has to come after, from what each does to which bytes. Pure.
//!
//! The rules are those of the order between streams: a read comes after the last write, a write after the last write and all reads
//! since. Bytes are kept apart exactly, so two nodes that share none get no edge.

use std::collections::{BTreeMap, HashMap};

use super::node_access::{Owner, Touch};

/// What the nodes so far did, by bytes.
#[derive(Default, Debug)]
pub(super) struct Hazards {
    owners: HashMap<Owner, Segments>,
}

/// Segments by their first byte; each ends where the next begins.
#[derive(Debug)]
struct Segments(BTreeMap<u64, Segment>);

#[derive(Clone, Default, Debug)]
struct Segment {
    write: Option<u32>,
    reads: Vec<u32>,
}

impl Hazards {
    /// Adds a node and says which ones it has to come after; some may be named twice.
    pub(super) fn add(&mut self, node: u32, touches: &[Touch]) -> Vec<u32> {
        let mut after = Vec::new();
        for touch in touches {
            for segment in self.segments(touch) {
                after.extend(segment.write);
                if touch.access.writes() {
                    after.extend(&segment.reads);
                }
            }
        }
        // Reads first: a write of the same bytes by the same node is then the last word.
        for touch in touches.iter().filter(|touch| !touch.access.writes()) {
            self.segments(touch).for_each(|segment| segment.reads.push(node));
        }
        for touch in touches.iter().filter(|touch| touch.access.writes()) {
            for segment in self.segments(touch) {
                segment.write = Some(node);
                segment.reads.clear();
            }
        }
        after
    }

    fn segments(&mut self, touch: &Touch) -> impl Iterator<Item = &mut Segment> {
        let segments = self.owners.entry(touch.owner).or_default();
        segments.split_at(touch.range.start);
        segments.split_at(touch.range.end);
        segments.0.range_mut(touch.range.clone()).map(|(_, segment)| segment)
    }
}

impl Default for Segments {
    fn default() -> Self {
        Self(BTreeMap::from([(0, Segment::default())]))
    }
}

impl Segments {
    fn split_at(&mut self, at: u64) {
        let before = self.0.range(..=at).next_back();
        if let Some((start, segment)) = before
            && *start != at
        {
            let segment = segment.clone();
            self.0.insert(at, segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use kiln_driver::Access;
    use proptest::prelude::*;

    use super::*;

    fn touch(owner: usize, range: Range<u64>, access: Access) -> Touch {
        Touch { owner: Owner::Host(owner), range, access }
    }

    #[test]
    fn readers_do_not_wait_for_each_other_and_a_writer_waits_for_all() {
        let mut hazards = Hazards::default();
        assert!(hazards.add(0, &[touch(0, 0..8, Access::Write)]).is_empty());
        assert_eq!(hazards.add(1, &[touch(0, 0..8, Access::Read)]), [0]);
        assert_eq!(hazards.add(2, &[touch(0, 4..8, Access::Read)]), [0]);
        assert!(hazards.add(3, &[touch(1, 0..8, Access::Write)]).is_empty());
        assert_eq!(hazards.add(4, &[touch(0, 0..4, Access::Write)]), [0, 1]);
        assert_eq!(hazards.add(5, &[touch(0, 0..8, Access::Read)]), [4, 0]);
    }

    fn touches() -> impl Strategy<Value = Vec<Touch>> {
        let access = prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::ReadWrite)];
        let one = (0..3_usize, 0..12_u64, 1..8_u64, access);
        prop::collection::vec(one, 1..3).prop_map(|all| {
            all.into_iter().map(|(owner, at, len, access)| touch(owner, at..at + len, access)).collect()
        })
    }

    proptest! {
        /// Exactly the pairs that conflict, found byte by byte, are ordered by a path, and no others get an edge.
        #[test]
        fn nodes_are_ordered_if_and_only_if_something_needs_it(nodes in prop::collection::vec(touches(), 1..12)) {
            let mut hazards = Hazards::default();
            let mut edges = crate::graph::edges::Edges::default();
            for (node, touches) in nodes.iter().enumerate() {
                edges.push(hazards.add(node as u32, touches));
            }
            let conflict = |a: usize, b: usize| {
                nodes[a].iter().any(|left| nodes[b].iter().any(|right| left.conflicts(right)))
            };
            for later in 0..nodes.len() {
                let ordered = edges.ordered_with(later);
                for (earlier, ordered) in ordered.iter().enumerate().take(later) {
                    prop_assert!(!conflict(earlier, later) || *ordered, "{earlier} and {later}");
                }
                for edge in edges.of(later) {
                    prop_assert!(conflict(*edge as usize, later), "an edge from {edge} to {later} for nothing");
                }
            }
        }
    }
}
