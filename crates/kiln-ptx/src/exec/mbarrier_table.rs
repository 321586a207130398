//! `mbarrier` objects: barriers in shared memory, with phases.
//!
//! A phase is complete when as many arrivals were counted as the object expects, and as many bytes were copied as were announced. Then the
//! next phase begins with the same count. The 64 bits of an object mean nothing to a program; here they are kept beside shared memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::{Clock, Time, joined_options};
use super::code_location::{CodeSite, Line};
use super::lowered_code::Code;
use super::warp_register::LANES;

/// Bytes of an object.
pub(crate) const MBARRIER_BYTES: u64 = 8;
/// The most arrivals that a phase may expect, and the most bytes that may be announced.
pub(crate) const MOST: i64 = (1 << 20) - 1;

/// The objects of a block, by address.
#[derive(Default)]
pub(crate) struct MbarrierTable {
    objects: BTreeMap<u64, Mbarrier>,
    /// How often any of them was changed.
    changes: u64,
    /// Where objects were that have ended, and the step that ended each.
    ended: BTreeMap<u64, u32>,
}

/// The last use of an object by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MbarrierUse {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    pub(crate) time: Time,
    pub(crate) pc: u32,
    /// Whether it was a wait.
    pub(crate) waits: bool,
}

/// A wait for a phase that failed, and that threads repeat until it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseWait {
    pub(crate) pc: u32,
    pub(crate) address: u64,
    /// How often objects of the block had been changed.
    pub(crate) changes: u64,
}

/// One object.
#[derive(Default)]
pub(crate) struct Mbarrier {
    /// Arrivals that the next phase expects.
    expected: i64,
    /// Arrivals that this phase still waits for.
    pending: i64,
    /// Arrivals of this phase.
    arrived: i64,
    /// Bytes announced and not copied yet.
    bytes: i64,
    /// How many phases are complete.
    phase: u64,
    /// What happened before the arrivals of this phase, and before those of the last complete one.
    gathering: Option<Arc<Clock>>,
    complete: Option<Arc<Clock>>,
    /// Copies that are done with this phase: warp, lane, and the number of the first that is not among them.
    copies: Vec<(usize, usize, u32)>,
    /// The last use by each thread of the block.
    uses: Vec<Option<MbarrierUse>>,
}

/// Why an operation on an object is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// No object is there.
    Absent,
    /// The object has ended at this step.
    Ended { pc: u32 },
    /// An object is there already.
    Present,
    /// A count that an object cannot hold.
    Count(i64),
    /// More arrivals than the phase still waits for.
    TooMany { arrivals: i64, pending: i64, of: i64 },
    /// `.noComplete` and the last arrival.
    Completes,
    /// More bytes announced or copied than an object can count.
    Bytes(i64),
    /// A phase that is neither the present nor the last one; of an object that expects so many arrivals in each.
    Phase { expected: i64 },
}

impl Misuse {
    pub(crate) fn text(self, code: &Code) -> String {
        match self {
            Self::Ended { pc } => format!(
                "the mbarrier object here was ended with `mbarrier.inval` at {}: let all threads that use it meet before that",
                Line(&CodeSite::of(code, pc))
            ),
            Self::Absent => "there is no mbarrier object here: initialise it with `mbarrier.init`, and order all other \
                             threads behind that, before it is used"
                .to_owned(),
            Self::Present => "an mbarrier object is initialised here already: end it with `mbarrier.inval` before its memory \
                              is initialised again"
                .to_owned(),
            Self::Count(count) => format!("an mbarrier object cannot count {count}: from 1 to {MOST} arrivals are possible"),
            Self::TooMany { arrivals, pending, of } => format!(
                "{arrivals} arrivals at an mbarrier object that waits for {pending} more of {of} in this phase: initialise it \
                 with the number of all arrivals of a phase"
            ),
            Self::Completes => "this arrival completes the phase of the mbarrier object, and it is `.noComplete`".to_owned(),
            Self::Bytes(bytes) => {
                format!("the mbarrier object would wait for {bytes} bytes: it can count from -{MOST} to {MOST}")
            }
            Self::Phase { expected } => format!(
                "the phase that is asked for is older than the last one of the mbarrier object: its completion cannot be told any \
                 more. A phase of it ends with {expected} arrivals: initialise it with the number of all arrivals of a phase, and wait \
                 for each phase before the next one ends"
            ),
        }
    }
}

impl MbarrierTable {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// An object that an access touches.
    pub(crate) fn touched(&self, address: u64, bytes: u64) -> Option<u64> {
        let first = address.saturating_sub(MBARRIER_BYTES - 1);
        self.objects.range(first..address.saturating_add(bytes)).next().map(|(at, _)| *at)
    }

    /// `init`: a new object, also where one was.
    pub(crate) fn start(&mut self, address: u64, count: i64) -> Option<Misuse> {
        let object = Mbarrier { expected: count, pending: count, ..Mbarrier::default() };
        let before = self.objects.insert(address, object);
        self.ended.remove(&address);
        if !(1..=MOST).contains(&count) {
            Some(Misuse::Count(count))
        } else {
            before.map(|_| Misuse::Present)
        }
    }

    /// `inval`.
    pub(crate) fn end(&mut self, address: u64, pc: u32) -> Option<Misuse> {
        if self.objects.remove(&address).is_none() {
            return Some(self.absent(address));
        }
        self.ended.insert(address, pc);
        None
    }

    /// Why there is no object.
    pub(crate) fn absent(&self, address: u64) -> Misuse {
        self.ended.get(&address).map_or(Misuse::Absent, |pc| Misuse::Ended { pc: *pc })
    }

    pub(crate) fn at(&mut self, address: u64) -> Option<&mut Mbarrier> {
        self.objects.get_mut(&address)
    }

    /// How often any object was changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Counts a change.
    pub(crate) fn change(&mut self) {
        self.changes += 1;
    }

    /// What threads wait for that wait for the present phase of an object, in words.
    pub(crate) fn phase_words(&self, address: u64, place: &str) -> String {
        let Some(object) = self.objects.get(&address) else {
            return format!("a phase of the mbarrier object at {place}, which was ended");
        };
        let Mbarrier { phase, pending, arrived, bytes, .. } = object;
        let parity = phase & 1;
        let mut words = format!(
            "phase {phase} (parity {parity}) of the mbarrier object at {place}: {arrived} of {} arrivals came",
            arrived + pending
        );
        match *bytes {
            0 => {}
            bytes @ 1.. => words.push_str(&format!(", {bytes} announced bytes were not copied")),
            bytes => words.push_str(&format!(", {} bytes were copied that no arrival announced", -bytes)),
        }
        words.push_str(", and no thread is left that could arrive");
        if *arrived == 0 && *bytes == 0 && *phase > 0 {
            words.push_str(&format!("; phase {} (parity {}) is complete", phase - 1, parity ^ 1));
        }
        words
    }
}

/// One arrival as an instruction makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MbarrierArrival {
    pub(crate) count: i64,
    /// Bytes that are announced with it.
    pub(crate) bytes: i64,
    pub(crate) drops: bool,
    pub(crate) completes: bool,
}

impl Mbarrier {
    /// The state before an arrival, as a program gets it: the phase, and the arrivals it waited for.
    pub(crate) fn state(&self) -> u64 {
        self.phase << 20 | (self.pending.clamp(0, MOST) as u64)
    }

    /// Notes a use by a thread.
    pub(crate) fn note_use(&mut self, used: MbarrierUse) {
        let thread = used.warp * LANES + used.lane;
        if self.uses.len() <= thread {
            self.uses.resize(thread + 1, None);
        }
        self.uses[thread] = Some(used);
    }

    /// The last use by each thread.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &MbarrierUse> {
        self.uses.iter().flatten()
    }

    /// Leaves what happened before an arrival.
    pub(crate) fn gather(&mut self, clock: Option<&Arc<Clock>>) {
        self.gathering = joined_options(self.gathering.as_ref(), clock);
    }

    /// Copies of a thread end with this phase.
    pub(crate) fn add_copies(&mut self, warp: usize, lane: usize, until: u32) {
        self.copies.push((warp, lane, until));
    }

    /// One arrival more is expected in this phase.
    pub(crate) fn expect_one(&mut self) {
        self.pending += 1;
    }

    /// Counts an arrival.
    pub(crate) fn arrive(&mut self, arrival: MbarrierArrival) -> Option<Misuse> {
        let MbarrierArrival { count, bytes, drops, completes } = arrival;
        if !(1..=MOST).contains(&count) {
            return Some(Misuse::Count(count));
        }
        if let Some(misuse) = self.announce(bytes) {
            return Some(misuse);
        }
        if count > self.pending {
            return Some(Misuse::TooMany {
                arrivals: count,
                pending: self.pending,
                of: self.arrived + self.pending,
            });
        }
        if drops {
            self.expected = (self.expected - count).max(0);
        }
        self.pending -= count;
        self.arrived += count;
        (self.pending == 0 && !completes).then_some(Misuse::Completes)
    }

    /// Announces bytes that are going to be copied, or takes those off that were.
    pub(crate) fn announce(&mut self, bytes: i64) -> Option<Misuse> {
        self.bytes += bytes;
        (self.bytes.abs() > MOST).then_some(Misuse::Bytes(self.bytes))
    }

    /// Begins the next phase if this one is complete: the copies that are done.
    pub(crate) fn advance(&mut self) -> Vec<(usize, usize, u32)> {
        if self.pending != 0 || self.bytes != 0 {
            return Vec::new();
        }
        self.phase += 1;
        self.pending = self.expected;
        self.arrived = 0;
        self.complete = self.gathering.take();
        std::mem::take(&mut self.copies)
    }

    /// Whether the phase of a state is complete.
    pub(crate) fn is_complete(&self, state: u64) -> Result<bool, Misuse> {
        match self.phase.checked_sub(state >> 20) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(Misuse::Phase { expected: self.expected }),
        }
    }

    /// Whether the phase of a parity is complete: the present one is not, the last one is.
    pub(crate) fn is_parity_complete(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
    }

    /// How many phases are complete.
    pub(crate) fn phase(&self) -> u64 {
        self.phase
    }

    /// What happened before the last complete phase.
    pub(crate) fn released(&self) -> Option<Arc<Clock>> {
        self.complete.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MbarrierArrival = MbarrierArrival { count: 1, bytes: 0, drops: false, completes: true };

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_byte() {
        let mut table = MbarrierTable::default();
        assert_eq!(table.start(16, 2), None);
        assert_eq!(table.touched(20, 1), Some(16));
        assert_eq!(table.touched(24, 4), None);
        let object = table.at(16).unwrap();
        let state = object.state();
        assert_eq!(object.arrive(MbarrierArrival { bytes: 32, ..ONE }), None);
        assert_eq!(object.arrive(MbarrierArrival { drops: true, ..ONE }), None);
        object.advance();
        assert_eq!((object.is_complete(state), object.is_parity_complete(0)), (Ok(false), false));
        assert_eq!(object.announce(-32), None);
        object.advance();
        assert_eq!((object.is_complete(state), object.is_parity_complete(0)), (Ok(true), true));
        // One arrival was dropped.
        assert_eq!(object.arrive(ONE), None);
        object.advance();
        assert_eq!(
            (object.is_complete(state), object.is_parity_complete(1)),
            (Err(Misuse::Phase { expected: 1 }), true)
        );
    }

    #[test]
    fn wrong_counts_are_told() {
        let mut table = MbarrierTable::default();
        assert_eq!(table.start(0, 0), Some(Misuse::Count(0)));
        assert_eq!(table.start(0, 1), Some(Misuse::Present));
        let object = table.at(0).unwrap();
        assert_eq!(object.arrive(MbarrierArrival { completes: false, ..ONE }), Some(Misuse::Completes));
        assert_eq!(object.arrive(ONE), Some(Misuse::TooMany { arrivals: 1, pending: 0, of: 1 }));
        assert_eq!(table.absent(0), Misuse::Absent);
        assert_eq!((table.end(0, 7), table.end(0, 8)), (None, Some(Misuse::Ended { pc: 7 })));
    }
}
