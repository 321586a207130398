//! The blocks that resources hand out of larger memory: which are live, and which lay where and were freed.
//!
//! A heap keeps its pages mapped, so the address map cannot tell one block from the next. Resources say where their blocks begin and end
//! (`MemoryRequest::Part`), and this table remembers it by address. Parts may lie inside of each other: each level of the live ones holds
//! parts that do not overlap. Of freed ones the newest at each address is kept, [`ENDED_PARTS`] pieces at most.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use kiln_driver::{MemoryId, PartLabel};

use crate::check::access_origin::Mark;

/// Freed parts that are remembered, in pieces; the oldest are forgotten first.
pub(crate) const ENDED_PARTS: usize = 16 << 10;

/// A block that was handed out.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) id: MemoryId,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) label: PartLabel,
    /// Who asked for it. Its place in the order is that of the last submission before.
    pub(crate) born: Arc<Mark>,
    serial: u64,
}

/// A block that was freed.
#[derive(Debug)]
pub(crate) struct EndedPart {
    pub(crate) part: Arc<Part>,
    /// Who freed it, behind the last submission before.
    pub(crate) death: Arc<Mark>,
    /// When, on the virtual clock.
    pub(crate) time_ns: u64,
    serial: u64,
}

/// What lies at an address, as work with a place in the order sees it.
#[derive(Clone, Debug)]
pub(crate) enum PartAt {
    Live(Arc<Part>),
    Ended(Arc<EndedPart>),
}

#[derive(Debug, Default)]
pub(crate) struct PartTable {
    live: Vec<BTreeMap<u64, Arc<Part>>>,
    /// Pieces of freed parts by their start, without overlaps.
    ended: BTreeMap<u64, (u64, Arc<EndedPart>)>,
    /// The same pieces by age.
    ages: BTreeSet<(u64, u64)>,
    serial: u64,
}

impl PartTable {
    pub(crate) fn begin(&mut self, id: MemoryId, range: Range<u64>, label: PartLabel, born: Arc<Mark>) {
        self.forget_ended(range.clone());
        self.serial += 1;
        let part = Part { id, start: range.start, end: range.end, label, born, serial: self.serial };
        let free = self.live.iter().position(|level| overlapping(level, &range).is_none());
        let level = free.unwrap_or_else(|| {
            self.live.push(BTreeMap::new());
            self.live.len() - 1
        });
        self.live[level].insert(range.start, Arc::new(part));
    }

    pub(crate) fn end(&mut self, id: MemoryId, start: u64, death: Arc<Mark>, time_ns: u64) {
        let level = self.live.iter_mut().find(|level| level.get(&start).is_some_and(|part| part.id == id));
        let Some(part) = level.and_then(|level| level.remove(&start)) else { return };
        self.serial += 1;
        let range = part.start..part.end;
        let ended = Arc::new(EndedPart { part, death, time_ns, serial: self.serial });
        self.forget_older(range.clone(), ended.part.serial);
        for gap in self.gaps(range, ended.part.serial) {
            self.keep(gap, &ended);
        }
        while self.ended.len() > ENDED_PARTS
            && let Some((_, start)) = self.ages.pop_first()
        {
            self.ended.remove(&start);
        }
    }

    /// Other memory lies at these addresses from here on.
    pub(crate) fn forget(&mut self, range: Range<u64>) {
        if self.is_empty() {
            return;
        }
        self.forget_ended(range.clone());
        for level in &mut self.live {
            while let Some(start) = overlapping(level, &range).map(|part| part.start) {
                level.remove(&start);
            }
        }
    }

    /// The innermost part at an address, as a submission with that place in the order sees it.
    pub(crate) fn at(&self, address: u64, order: u64) -> Option<PartAt> {
        let one = address..address.saturating_add(1);
        let live = self.live.iter().rev().filter_map(|level| overlapping(level, &one));
        let known = live.filter(|part| part.born.order < order).max_by_key(|part| part.serial);
        let ended = self.ended_in(one, u64::MAX);
        match (known, ended) {
            // A part that was freed inside of a live one is the narrower answer.
            (Some(live), Some(ended)) if ended.part.serial < live.serial => Some(PartAt::Live(live.clone())),
            (_, Some(ended)) if ended.death.order < order => Some(PartAt::Ended(ended)),
            (_, Some(ended)) if ended.part.born.order < order => Some(PartAt::Live(ended.part.clone())),
            (live, _) => live.cloned().map(PartAt::Live),
        }
    }

    /// The first freed part in a range that was freed before a submission with that place in the order.
    pub(crate) fn ended_in(&self, range: Range<u64>, order: u64) -> Option<Arc<EndedPart>> {
        if self.ended.is_empty() {
            return None;
        }
        let before = self.ended.range(..range.start).next_back().filter(|(_, (end, _))| *end > range.start);
        let pieces = before.into_iter().chain(self.ended.range(range));
        pieces.map(|(_, (_, ended))| ended).find(|ended| ended.death.order < order).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.live.iter().all(BTreeMap::is_empty)
    }

    fn forget_ended(&mut self, range: Range<u64>) {
        self.forget_older(range, u64::MAX);
    }

    /// Forgets freed parts in a range, except for those that began after a part which they lay in.
    fn forget_older(&mut self, range: Range<u64>, serial: u64) {
        self.cut(range.start);
        self.cut(range.end);
        let inside = self.ended.range(range).filter(|(_, (_, ended))| ended.part.serial < serial);
        let starts: Vec<u64> = inside.map(|(start, _)| *start).collect();
        for start in starts {
            if let Some((_, ended)) = self.ended.remove(&start) {
                self.ages.remove(&(ended.serial, start));
            }
        }
    }

    /// The parts of a range in which no freed part is remembered, and no live one that began after a part.
    fn gaps(&self, range: Range<u64>, serial: u64) -> Vec<Range<u64>> {
        let younger = self.live.iter().flat_map(|level| all_overlapping(level, &range));
        let younger = younger.filter(|part| part.serial > serial).map(|part| (part.start, part.end));
        let freed = self.ended.range(range.clone()).map(|(start, (end, _))| (*start, *end));
        let mut taken: Vec<(u64, u64)> = younger.chain(freed).collect();
        taken.sort_unstable();
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (start, end) in taken {
            if at < start {
                gaps.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Makes a piece that reaches across an address into two.
    fn cut(&mut self, at: u64) {
        let Some((_, (end, ended))) = self.ended.range_mut(..at).next_back() else { return };
        if *end > at {
            let (rest, ended) = (at..*end, ended.clone());
            *end = at;
            self.keep(rest, &ended);
        }
    }

    fn keep(&mut self, piece: Range<u64>, ended: &Arc<EndedPart>) {
        self.ended.insert(piece.start, (piece.end, ended.clone()));
        self.ages.insert((ended.serial, piece.start));
    }
}

fn overlapping<'a>(level: &'a BTreeMap<u64, Arc<Part>>, range: &Range<u64>) -> Option<&'a Arc<Part>> {
    let (_, last) = level.range(..range.end).next_back()?;
    (last.end > range.start).then_some(last)
}

fn all_overlapping<'a>(
    level: &'a BTreeMap<u64, Arc<Part>>,
    range: &Range<u64>,
) -> impl Iterator<Item = &'a Arc<Part>> {
    let before = level.range(..range.start).next_back().filter(|(_, part)| part.end > range.start);
    before.into_iter().chain(level.range(range.clone())).map(|(_, part)| part)
}

#[cfg(test)]
mod tests {
    use kiln_driver::{DeviceKey, Slots, kind};

    use super::*;
    use crate::check::access_origin::{Action, Actor};
    use crate::check::vector_clock::{Lane, VectorClock};

    fn mark(order: u64) -> Arc<Mark> {
        let actor = Actor::host(0, Action::Map);
        Arc::new(Mark {
            lane: Lane::HOST,
            tick: 0,
            end: None,
            clock: Arc::new(VectorClock::default()),
            order,
            actor,
        })
    }

    fn ids() -> impl FnMut() -> MemoryId {
        let slots = Slots::<kind::Memory, ()>::new(DeviceKey::fresh());
        move || slots.insert(()).unwrap()
    }

    fn name(at: Option<PartAt>) -> String {
        match at {
            None => "nothing".into(),
            Some(PartAt::Live(part)) => format!("live {}", part.label),
            Some(PartAt::Ended(ended)) => format!("freed {}", ended.part.label),
        }
    }

    #[test]
    fn the_place_in_the_order_says_which_block_is_meant() {
        let (mut table, mut id) = (PartTable::default(), ids());
        let first = id();
        table.begin(first, 0..100, PartLabel::new("a"), mark(0));
        table.end(first, 0, mark(5), 70);
        assert_eq!(name(table.at(50, 5)), "live a", "a submission before the free");
        assert_eq!(name(table.at(50, 6)), "freed a");
        assert!(table.ended_in(0..100, 5).is_none());
        assert_eq!(table.ended_in(99..200, 6).unwrap().time_ns, 70);
        table.begin(id(), 0..40, PartLabel::new("b"), mark(8));
        assert_eq!((name(table.at(10, 9)), name(table.at(50, 9))), ("live b".into(), "freed a".into()));
        assert!(table.ended_in(0..40, 9).is_none());
    }

    #[test]
    fn a_part_inside_of_another_is_the_narrower_answer() {
        let (mut table, mut id) = (PartTable::default(), ids());
        let (outer, inner) = (id(), id());
        table.begin(outer, 0..100, PartLabel::new("outer"), mark(0));
        table.begin(inner, 20..80, PartLabel::new("inner"), mark(0));
        assert_eq!(
            (name(table.at(10, 1)), name(table.at(50, 1))),
            ("live outer".into(), "live inner".into())
        );
        table.end(inner, 20, mark(1), 1);
        assert_eq!(
            (name(table.at(10, 2)), name(table.at(50, 2))),
            ("live outer".into(), "freed inner".into())
        );
        table.end(outer, 0, mark(2), 2);
        assert_eq!(
            (name(table.at(10, 3)), name(table.at(50, 3))),
            ("freed outer".into(), "freed inner".into())
        );
        assert_eq!(name(table.at(90, 3)), "freed outer");
    }

    #[test]
    fn a_late_end_says_nothing_about_a_younger_block() {
        let (mut table, mut id) = (PartTable::default(), ids());
        let old = id();
        table.begin(old, 0..100, PartLabel::new("old"), mark(0));
        table.begin(id(), 0..50, PartLabel::new("young"), mark(1));
        table.end(old, 0, mark(2), 2);
        assert!(table.ended_in(0..50, 9).is_none());
        assert_eq!((name(table.at(10, 9)), name(table.at(60, 9))), ("live young".into(), "freed old".into()));
    }

    #[test]
    fn other_memory_at_the_addresses_is_another_story() {
        let (mut table, mut id) = (PartTable::default(), ids());
        let (a, b) = (id(), id());
        table.begin(a, 0..100, PartLabel::new("a"), mark(0));
        table.begin(b, 100..200, PartLabel::new("b"), mark(0));
        table.end(a, 0, mark(1), 1);
        table.forget(50..150);
        assert_eq!((name(table.at(20, 9)), name(table.at(70, 9))), ("freed a".into(), "nothing".into()));
        assert_eq!(name(table.at(120, 9)), "nothing");
        table.end(b, 100, mark(2), 2);
        assert_eq!(name(table.at(120, 9)), "nothing", "it was forgotten");
    }

    #[test]
    fn what_is_remembered_has_a_limit_and_the_newest_stays() {
        let (mut table, mut id) = (PartTable::default(), ids());
        let parts = 2 * ENDED_PARTS as u64;
        for at in 0..parts {
            let part = id();
            table.begin(part, at * 64..at * 64 + 64, PartLabel::new("x"), mark(at));
            table.end(part, at * 64, mark(at), at);
        }
        assert_eq!((table.ended.len(), table.ages.len()), (ENDED_PARTS, ENDED_PARTS));
        assert_eq!(name(table.at(0, u64::MAX)), "nothing");
        assert_eq!(name(table.at(parts * 64 - 1, u64::MAX)), "freed x");
        // The same place again and again takes no room.
        for at in 0..parts {
            let part = id();
            table.begin(part, 0..64, PartLabel::new("y"), mark(at));
            table.end(part, 0, mark(at), at);
        }
        assert_eq!(name(table.at(0, u64::MAX)), "freed y");
    }
}
