//! What lies at which device address.
//!
//! The map is a sorted list behind an `Arc`: a kernel takes a snapshot when it starts and looks up without a lock, and
//! a change copies the list only if the old one is still held. Addresses that were given back are remembered
//! for a while, so that a late user can be told whose memory it was.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use kiln_driver::Protection;

use crate::check::access_origin::Mark;
use crate::memory::memory_identity::{Region, Tomb};
use crate::memory::physical_memory::Physical;

/// A stretch of addresses with one piece of memory behind it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) physical: Arc<Physical>,
    /// Where in the memory the segment begins.
    pub(crate) offset: u64,
    pub(crate) protection: Protection,
    pub(crate) region: Arc<Region>,
}

impl Segment {
    /// Where an address lies in the memory behind it.
    pub(crate) fn place_of(&self, address: u64) -> u64 {
        self.offset + (address - self.start)
    }
}

/// A sorted list of segments that do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressMap {
    segments: Vec<Segment>,
    /// How many segments have each piece of memory behind them, by its address in this process.
    uses: HashMap<usize, u32>,
}

impl AddressMap {
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment that holds an address.
    pub(crate) fn index_of(&self, address: u64) -> Option<usize> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        let at = after.checked_sub(1)?;
        (address < self.segments[at].end).then_some(at)
    }

    /// The last segment that begins at or before an address.
    pub(crate) fn nearest_before(&self, address: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        self.segments.get(after.checked_sub(1)?)
    }

    pub(crate) fn insert(&mut self, segment: Segment) {
        self.insert_row(vec![segment]);
    }

    /// Inserts segments that lie one after the other, with nothing between them: what lies behind is moved once.
    pub(crate) fn insert_row(&mut self, row: Vec<Segment>) {
        let Some(first) = row.first() else { return };
        let at = self.segments.partition_point(|other| other.start < first.start);
        for segment in &row {
            *self.uses.entry(name_of(&segment.physical)).or_default() += 1;
        }
        self.segments.splice(at..at, row);
    }

    /// Whether a piece of memory is behind some segment.
    pub(crate) fn has(&self, physical: &Arc<Physical>) -> bool {
        self.uses.contains_key(&name_of(physical))
    }

    /// The segments that overlap a range.
    pub(crate) fn overlapping(&self, range: Range<u64>) -> &[Segment] {
        &self.segments[self.indices(range)]
    }

    pub(crate) fn overlapping_mut(&mut self, range: Range<u64>) -> &mut [Segment] {
        let indices = self.indices(range);
        &mut self.segments[indices]
    }

    pub(crate) fn remove(&mut self, range: Range<u64>) -> Vec<Segment> {
        let indices = self.indices(range);
        let removed: Vec<Segment> = self.segments.drain(indices).collect();
        for segment in &removed {
            let name = name_of(&segment.physical);
            match self.uses.get_mut(&name) {
                Some(uses) if *uses > 1 => *uses -= 1,
                _ => drop(self.uses.remove(&name)),
            }
        }
        removed
    }

    /// Whether every address of a range has memory behind it.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        self.first_hole(range).is_none()
    }

    /// The first address of a range with nothing behind it.
    pub(crate) fn first_hole(&self, range: Range<u64>) -> Option<u64> {
        let mut at = range.start;
        for segment in self.overlapping(range.clone()) {
            if segment.start > at {
                return Some(at);
            }
            at = segment.end;
        }
        (at < range.end).then_some(at)
    }

    fn indices(&self, range: Range<u64>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let first = self.segments.partition_point(|segment| segment.end <= range.start);
        let last = self.segments.partition_point(|segment| segment.start < range.end);
        first..last.max(first)
    }
}

/// What a piece of memory is told apart by as long as a segment holds it.
fn name_of(physical: &Arc<Physical>) -> usize {
    Arc::as_ptr(physical).addr()
}

/// Regions that are gone, the newest kept longest.
#[derive(Debug, Default)]
pub(crate) struct Graveyard {
    tombs: BTreeMap<u64, Tomb>,
    order: VecDeque<u64>,
}

/// More than a program can leave unfinished work for; older ones are forgotten.
const TOMBS: usize = 4096;

impl Graveyard {
    pub(crate) fn bury(&mut self, region: &Arc<Region>, death: &Arc<Mark>) {
        let end = region.address + region.bytes;
        self.tombs.insert(region.address, Tomb { region: region.clone(), end, death: death.clone() });
        self.order.push_back(region.address);
        if self.order.len() > TOMBS
            && let Some(oldest) = self.order.pop_front()
        {
            self.tombs.remove(&oldest);
        }
    }

    /// Who last lay at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Tomb> {
        let (_, tomb) = self.tombs.range(..=address).next_back()?;
        (address < tomb.end).then_some(tomb)
    }
}
