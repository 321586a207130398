//! Races in shared memory.
//!
//! Every small piece of shared memory remembers its last write and up to two reads since, with the thread, the place
//! in the code and the time. A new access that meets one of them from another thread, where one of the two writes and
//! nothing orders them, is a race. Strong accesses (atomic, volatile) do not race with each other, and two writes of
//! the same value do no harm.

use super::clocks::{Clocks, Time};
use crate::exec::column::{Column, LANES};
use crate::exec::finding::AccessKind;

/// One remembered access; a time of zero is none.
#[derive(Clone, Copy, Default)]
struct Mark {
    time: Time,
    pc: u32,
    thread: u16,
    strong: bool,
    atomic: bool,
}

/// What is remembered of one piece.
#[derive(Clone, Copy, Default)]
struct Cell {
    write: Mark,
    reads: [Mark; 2],
}

/// An access of some lanes of a warp to shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub(crate) warp: usize,
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) bytes: u32,
    pub(crate) kind: AccessKind,
    pub(crate) strong: bool,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) lane: usize,
    /// The number of the thread of the earlier access in its block, and where it was.
    pub(crate) thread: usize,
    pub(crate) pc: u32,
    pub(crate) earlier: AccessKind,
}

/// Watches the shared memory of one block.
pub(crate) struct RaceCheck {
    pub(crate) clocks: Clocks,
    cells: Vec<Cell>,
    /// Bytes of a piece, as a shift.
    shift: u32,
}

impl RaceCheck {
    /// For `bytes` of memory that is accessed in pieces of at least `granule` bytes.
    pub(crate) fn new(bytes: u64, granule: u32, lanes: &[u32]) -> Self {
        let shift = granule.clamp(1, 4).ilog2();
        let cells = vec![Cell::default(); (bytes as usize).div_ceil(1 << shift)];
        Self { clocks: Clocks::new(lanes), cells, shift }
    }

    /// Records an access at checked addresses; the first conflict, if there is one. `same` says for a write which lanes
    /// leave the memory as it was.
    pub(crate) fn touch(&mut self, touch: &Touch, addresses: &Column, same: u32) -> Option<Conflict> {
        let mut found = None;
        let mark = Mark {
            time: self.clocks.now(touch.warp),
            pc: touch.pc,
            thread: 0,
            strong: touch.strong,
            atomic: touch.kind == AccessKind::Atomic,
        };
        let mut rest = touch.mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize & (LANES - 1);
            rest &= rest - 1;
            let mark = Mark { thread: (touch.warp * LANES + lane) as u16, ..mark };
            let first = (addresses[lane] >> self.shift) as usize;
            let last = ((addresses[lane] + u64::from(touch.bytes) - 1) >> self.shift) as usize;
            let harmless = same >> lane & 1 != 0;
            for at in first..=last {
                let Some(cell) = self.cells.get_mut(at) else { break };
                let conflict = if touch.kind == AccessKind::Read {
                    cell.read(mark, &self.clocks, touch.warp, lane)
                } else {
                    cell.write(mark, &self.clocks, touch.warp, lane, harmless)
                };
                found = found.or(conflict);
            }
        }
        found
    }
}

impl Cell {
    fn read(&mut self, mark: Mark, clocks: &Clocks, warp: usize, lane: usize) -> Option<Conflict> {
        let found = conflict(&self.write, &mark, clocks, warp, lane).then(|| {
            self.write.conflict(lane, if self.write.atomic { AccessKind::Atomic } else { AccessKind::Write })
        });
        let settled = |old: &Mark| {
            old.time == 0
                || old.thread == mark.thread
                || clocks.is_before(old.thread.into(), old.time, warp, lane)
        };
        let place = self.reads.iter().position(settled).unwrap_or(1);
        self.reads[place] = mark;
        found
    }

    fn write(
        &mut self,
        mark: Mark,
        clocks: &Clocks,
        warp: usize,
        lane: usize,
        harmless: bool,
    ) -> Option<Conflict> {
        let mut found = None;
        if !harmless && conflict(&self.write, &mark, clocks, warp, lane) {
            let earlier = if self.write.atomic { AccessKind::Atomic } else { AccessKind::Write };
            found = Some(self.write.conflict(lane, earlier));
        }
        for read in self.reads {
            if found.is_none() && conflict(&read, &mark, clocks, warp, lane) {
                found = Some(read.conflict(lane, AccessKind::Read));
            }
        }
        *self = Self { write: mark, reads: [Mark::default(); 2] };
        found
    }
}

impl Mark {
    fn conflict(&self, lane: usize, earlier: AccessKind) -> Conflict {
        Conflict { lane, thread: self.thread.into(), pc: self.pc, earlier }
    }
}

/// Whether an old access and a new one of a lane race, given that one of them writes.
#[inline(always)]
fn conflict(old: &Mark, new: &Mark, clocks: &Clocks, warp: usize, lane: usize) -> bool {
    old.time != 0
        && old.thread != new.thread
        && !(old.strong && new.strong)
        && !clocks.is_before(old.thread.into(), old.time, warp, lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::column::FULL;

    fn check() -> RaceCheck {
        RaceCheck::new(256, 4, &[FULL, FULL])
    }

    fn touch(warp: usize, mask: u32, kind: AccessKind) -> Touch {
        Touch { warp, mask, pc: warp as u32, bytes: 4, kind, strong: kind == AccessKind::Atomic }
    }

    fn at(address: u64) -> Column {
        [address; LANES]
    }

    #[test]
    fn a_read_behind_a_foreign_write_needs_a_barrier() {
        let mut check = check();
        assert!(check.touch(&touch(0, 1, AccessKind::Write), &at(8), 0).is_none());
        let found = check.touch(&touch(1, 1, AccessKind::Read), &at(8), 0).unwrap();
        assert_eq!((found.thread, found.earlier), (0, AccessKind::Write));
        assert!(check.touch(&touch(1, 1, AccessKind::Read), &at(12), 0).is_none());
        check.clocks.meet(&[FULL; 2], &[FULL; 2]);
        assert!(check.touch(&touch(1, 1, AccessKind::Read), &at(8), 0).is_none());
    }

    #[test]
    fn a_write_behind_foreign_reads_needs_a_barrier() {
        let mut check = check();
        assert!(check.touch(&touch(0, 0b111, AccessKind::Read), &at(0), 0).is_none());
        let found = check.touch(&touch(0, 0b100, AccessKind::Write), &at(0), 0).unwrap();
        assert_eq!(found.earlier, AccessKind::Read);
    }

    #[test]
    fn atomics_and_equal_writes_do_no_harm() {
        let mut check = check();
        assert!(check.touch(&touch(0, FULL, AccessKind::Atomic), &at(0), 0).is_none());
        assert!(check.touch(&touch(1, FULL, AccessKind::Atomic), &at(0), 0).is_none());
        assert!(check.touch(&touch(0, FULL, AccessKind::Write), &at(64), FULL).is_none());
        assert!(check.touch(&touch(0, 0b11, AccessKind::Write), &at(128), 0).is_some());
        assert!(check.touch(&touch(0, 1, AccessKind::Read), &at(0), 0).is_some());
    }
}
