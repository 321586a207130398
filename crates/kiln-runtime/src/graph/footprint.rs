//! All ranges of bytes that one launch of a graph reads and writes.
//!
//! A replay is one submission, so it names each byte once, with the strongest access any node has to it. Kept by owner, so that changing one
//! node looks at the blocks it used and uses, and at no others. A replay goes through a list that the first one after a change makes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use kiln_driver::Access;
use kiln_order::{Use, Uses};

use super::host_data::HostList;
use super::node_access::{Owner, Touch};
use crate::buffer::used;
use crate::runtime::Block;

/// What a graph does to which bytes.
#[derive(Default)]
pub(super) struct Footprint {
    owners: BTreeMap<Owner, Owned>,
    /// The spans of all owners one after the other, once they were asked for.
    spans: OnceLock<Box<[Span]>>,
}

#[derive(Default)]
struct Owned {
    /// None for host data, which the graph itself holds.
    block: Option<Arc<Block>>,
    touches: Vec<(u32, Touch)>,
    merged: Vec<(Range<u64>, Access)>,
}

/// One range of bytes as the rest of the world sees it.
struct Span {
    owner: Owner,
    /// None for host data.
    block: Option<Arc<Block>>,
    range: Range<u64>,
    access: Access,
}

impl Footprint {
    /// Adds a touch of a node. [`merge`](Self::merge) its owner before the spans are looked at.
    pub(super) fn add(&mut self, node: u32, touch: Touch, block: Option<&Arc<Block>>) {
        self.spans.take();
        let owned = self.owners.entry(touch.owner).or_default();
        if owned.block.is_none() {
            owned.block = block.cloned();
        }
        owned.touches.push((node, touch));
    }

    /// Takes out what a node does to an owner.
    pub(super) fn remove(&mut self, node: u32, owner: Owner) {
        self.spans.take();
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.touches.retain(|(of, _)| *of != node);
        }
    }

    /// Works an owner's spans out anew; forgets it if no node touches it any more.
    pub(super) fn merge(&mut self, owner: Owner) {
        self.spans.take();
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.merged = merged(owned.touches.iter().map(|(_, touch)| touch));
            if owned.merged.is_empty() {
                self.owners.remove(&owner);
            }
        }
    }

    /// Works all spans out.
    pub(super) fn merge_all(&mut self) {
        let owners: Vec<Owner> = self.owners.keys().copied().collect();
        owners.into_iter().for_each(|owner| self.merge(owner));
    }

    /// The first other node with which a touch conflicts and that `ordered` does not hold for.
    pub(super) fn conflict(&self, node: u32, touch: &Touch, ordered: impl Fn(u32) -> bool) -> Option<u32> {
        let touches = self.owners.get(&touch.owner).map_or(&[][..], |owned| &owned.touches);
        let conflicts =
            |(other, theirs): &&(u32, Touch)| *other != node && theirs.conflicts(touch) && !ordered(*other);
        touches.iter().find(conflicts).map(|(other, _)| *other)
    }

    /// Adds every byte with what a replay does to it, by owner and place; no two uses share bytes. They are too large to be handed back.
    #[inline(always)]
    pub(super) fn add_uses<'a>(&'a self, hosts: &'a HostList, uses: &mut Uses<'a>) {
        for Span { owner, block, range, access } in self.spans.get_or_init(|| self.list()) {
            if let Some(each) = used_of(*owner, block.as_ref(), range, *access, hosts) {
                uses.push(each);
            }
        }
    }

    /// The same for who asks once.
    pub(super) fn add_uses_once<'a>(&'a self, hosts: &'a HostList, uses: &mut Uses<'a>) {
        for (owner, owned) in &self.owners {
            for (range, access) in &owned.merged {
                if let Some(each) = used_of(*owner, owned.block.as_ref(), range, *access, hosts) {
                    uses.push(each);
                }
            }
        }
    }

    #[cold]
    fn list(&self) -> Box<[Span]> {
        let spans = self.owners.iter().flat_map(|(owner, owned)| {
            owned.merged.iter().map(|(range, access)| Span {
                owner: *owner,
                block: owned.block.clone(),
                range: range.clone(),
                access: *access,
            })
        });
        spans.collect()
    }

    /// The blocks that some node writes.
    pub(super) fn written(&self) -> impl Iterator<Item = &Arc<Block>> {
        let writes = |owned: &&Owned| owned.touches.iter().any(|(_, touch)| touch.access.writes());
        self.owners.values().filter(writes).filter_map(|owned| owned.block.as_ref())
    }

    /// How many spans an owner with these touches added would bring.
    pub(super) fn span_count(&self) -> usize {
        self.owners.values().map(|owned| owned.merged.len()).sum()
    }
}

/// Bytes of an owner, as a submission uses them.
#[inline(always)]
fn used_of<'a>(
    owner: Owner,
    block: Option<&'a Arc<Block>>,
    range: &Range<u64>,
    access: Access,
    hosts: &'a HostList,
) -> Option<Use<'a>> {
    match (owner, block) {
        (_, Some(block)) => Some(used(block, range.clone(), access)),
        (Owner::Host(index), None) => Some(hosts.find(index)?.used(access)),
        (Owner::Device(_), None) => None,
    }
}

/// The bytes that are written, and those that are only read; in order.
fn merged<'a>(touches: impl Iterator<Item = &'a Touch> + Clone) -> Vec<(Range<u64>, Access)> {
    let ranges = |writes: bool| {
        union(
            touches.clone().filter(|touch| touch.access.writes() == writes).map(|touch| touch.range.clone()),
        )
    };
    let written = ranges(true);
    let mut merged: Vec<(Range<u64>, Access)> = Vec::with_capacity(written.len());
    for read in ranges(false) {
        let mut start = read.start;
        for hole in written.iter().filter(|hole| hole.start < read.end && read.start < hole.end) {
            merged.push((start..hole.start.max(start), Access::Read));
            start = hole.end;
        }
        merged.push((start..read.end.max(start), Access::Read));
    }
    merged.extend(written.into_iter().map(|range| (range, Access::ReadWrite)));
    merged.retain(|(range, _)| !range.is_empty());
    merged.sort_unstable_by_key(|(range, _)| range.start);
    merged
}

/// Ranges in order, those that meet joined.
fn union(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Byte by byte, the spans say what the touches say, and no byte is named twice.
        #[test]
        fn spans_are_the_touches_with_each_byte_named_once(
            touches in prop::collection::vec((0..40_u64, 1..10_u64, any::<bool>()), 1..12)
        ) {
            let touches: Vec<Touch> = touches
                .into_iter()
                .map(|(at, len, writes)| Touch {
                    owner: Owner::Host(0),
                    range: at..at + len,
                    access: if writes { Access::Write } else { Access::Read },
                })
                .collect();
            let spans = merged(touches.iter());
            for byte in 0..64 {
                let here = || touches.iter().filter(|touch| touch.range.contains(&byte));
                let named: Vec<_> = spans.iter().filter(|(range, _)| range.contains(&byte)).collect();
                prop_assert_eq!(named.len(), usize::from(here().count() > 0));
                if let [(_, access)] = named[..] {
                    prop_assert_eq!(access.writes(), here().any(|touch| touch.access.writes()));
                }
            }
        }
    }
}
