//! `mbarrier` objects: barriers in shared memory, with phases.
//!
//! A phase is complete when as many arrivals were counted as the object expects, and as many bytes were copied as were announced. Then the
//! next phase begins with the same count. The 64 bits of an object mean nothing to a program; here they are kept beside shared memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::{Clock, joined_options};

/// Bytes of an object.
pub(crate) const MBARRIER_BYTES: u64 = 8;
/// The most arrivals that a phase may expect, and the most bytes that may be announced.
pub(crate) const MOST: i64 = (1 << 20) - 1;

/// The objects of a block, by address.
#[derive(Default)]
pub(crate) struct MbarrierTable {
    objects: BTreeMap<u64, Mbarrier>,
}

/// One object.
#[derive(Default)]
pub(crate) struct Mbarrier {
    /// Arrivals that the next phase expects.
    expected: i64,
    /// Arrivals that this phase still waits for.
    pending: i64,
    /// Bytes announced and not copied yet.
    bytes: i64,
    /// How many phases are complete.
    phase: u64,
    /// What happened before the arrivals of this phase, and before those of the last complete one.
    gathering: Option<Arc<Clock>>,
    complete: Option<Arc<Clock>>,
    /// Copies that are done with this phase: warp, lane, and the number of the first that is not among them.
    copies: Vec<(usize, usize, u32)>,
}

/// Why an operation on an object is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// No object is there.
    Absent,
    /// An object is there already.
    Present,
    /// A count that an object cannot hold.
    Count(i64),
    /// More arrivals than the phase still waits for.
    TooMany { arrivals: i64, pending: i64 },
    /// `.noComplete` and the last arrival.
    Completes,
    /// More bytes announced or copied than an object can count.
    Bytes(i64),
    /// A phase that is neither the present nor the last one.
    Phase,
}

impl Misuse {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Absent => "there is no mbarrier object here: initialise it with `mbarrier.init`, and order all other \
                             threads behind that, before it is used"
                .to_owned(),
            Self::Present => "an mbarrier object is initialised here already: end it with `mbarrier.inval` before its memory \
                              is initialised again"
                .to_owned(),
            Self::Count(count) => format!("an mbarrier object cannot count {count}: from 1 to {MOST} arrivals are possible"),
            Self::TooMany { arrivals, pending } => format!(
                "{arrivals} arrivals at an mbarrier object that waits for {pending} in this phase: initialise it with the \
                 number of all arrivals"
            ),
            Self::Completes => "this arrival completes the phase of the mbarrier object, and it is `.noComplete`".to_owned(),
            Self::Bytes(bytes) => {
                format!("the mbarrier object would wait for {bytes} bytes: it can count from -{MOST} to {MOST}")
            }
            Self::Phase => "the phase that is asked for is older than the last one of the mbarrier object: its completion \
                            cannot be told any more"
                .to_owned(),
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
        if !(1..=MOST).contains(&count) {
            Some(Misuse::Count(count))
        } else {
            before.map(|_| Misuse::Present)
        }
    }

    /// `inval`.
    pub(crate) fn end(&mut self, address: u64) -> Option<Misuse> {
        if self.objects.remove(&address).is_none() { Some(Misuse::Absent) } else { None }
    }

    pub(crate) fn at(&mut self, address: u64) -> Option<&mut Mbarrier> {
        self.objects.get_mut(&address)
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
            return Some(Misuse::TooMany { arrivals: count, pending: self.pending });
        }
        if drops {
            self.expected = (self.expected - count).max(0);
        }
        self.pending -= count;
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
        self.complete = self.gathering.take();
        std::mem::take(&mut self.copies)
    }

    /// Whether the phase of a state is complete.
    pub(crate) fn is_complete(&self, state: u64) -> Result<bool, Misuse> {
        match self.phase.checked_sub(state >> 20) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(Misuse::Phase),
        }
    }

    /// Whether the phase of a parity is complete: the present one is not, the last one is.
    pub(crate) fn is_parity_complete(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
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
        assert_eq!((object.is_complete(state), object.is_parity_complete(1)), (Err(Misuse::Phase), true));
    }

    #[test]
    fn wrong_counts_are_told() {
        let mut table = MbarrierTable::default();
        assert_eq!(table.start(0, 0), Some(Misuse::Count(0)));
        assert_eq!(table.start(0, 1), Some(Misuse::Present));
        let object = table.at(0).unwrap();
        assert_eq!(object.arrive(MbarrierArrival { completes: false, ..ONE }), Some(Misuse::Completes));
        assert_eq!(object.arrive(ONE), Some(Misuse::TooMany { arrivals: 1, pending: 0 }));
        assert_eq!((table.end(0), table.end(0)), (None, Some(Misuse::Absent)));
    }
}
