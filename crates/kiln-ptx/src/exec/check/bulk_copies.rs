//! Bulk and tensor copies that no thread has waited for.
//!
//! A copy to shared memory is pending until a thread has seen the phase of its `mbarrier` object complete; until then no thread may use the place it
//! goes to. A copy from shared memory is pending until its thread has waited for its group; until then no thread may write the place it comes from.

use std::collections::HashMap;
use std::ops::Range;

/// A copy that is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingBulk {
    /// The instruction and its thread: the warp by its number in the grid.
    pub(crate) pc: u32,
    pub(crate) warp: u64,
    pub(crate) lane: usize,
    /// The shared memory that it writes or reads.
    pub(crate) range: Range<u64>,
    pub(crate) end: BulkEnd,
}

/// When a copy is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkEnd {
    /// It writes shared memory, and is done with this phase of the object at an address.
    Phase { object: u64, phase: u64 },
    /// It reads shared memory, and is done with this group of its thread.
    Group(u32),
}

/// A matrix in shared memory that a product of a warpgroup (`wgmma`) reads until a warp has waited for its group. For a warp of the warpgroup it is pending
/// until that warp has waited, whichever warp was first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingMatrix {
    /// The instruction, and the warpgroup: the place of its first warp in the block.
    pub(crate) pc: u32,
    pub(crate) first_warp: usize,
    pub(crate) group: u32,
    /// The warps of the warpgroup that have waited, a bit for each.
    pub(crate) waited: u8,
    /// The addresses of its pieces of 16 bytes, by rising number.
    pub(crate) pieces: Vec<u64>,
}

/// Bytes of a piece of a matrix.
const PIECE_BYTES: u64 = 16;
/// Warps of a warpgroup, and a bit for each.
const GROUP_WARPS: usize = 4;
const ALL_WARPS: u8 = 0xf;

impl PendingMatrix {
    /// Whether it is not done for a warp that writes.
    fn is_pending_for(&self, warp: usize) -> bool {
        let rank = warp.wrapping_sub(self.first_warp);
        self.waited == 0 || rank < GROUP_WARPS && self.waited >> rank & 1 == 0
    }

    fn meets(&self, address: u64, end: u64) -> bool {
        let first = self.pieces.partition_point(|piece| piece + PIECE_BYTES <= address);
        self.pieces.get(first).is_some_and(|piece| *piece < end)
    }
}

/// The pending bulk copies of a block.
#[derive(Default)]
pub(crate) struct BulkCopies {
    pending: Vec<PendingBulk>,
    matrices: Vec<PendingMatrix>,
    /// How many groups each thread has committed.
    committed: HashMap<(u64, usize), u32>,
}

impl BulkCopies {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.matrices.is_empty()
    }

    /// A product starts to read a matrix.
    pub(crate) fn start_matrix(&mut self, matrix: PendingMatrix) {
        self.matrices.push(matrix);
    }

    /// A warp has waited for the groups of products before this one. Returns the matrices that no warp had waited for: the instruction and the pieces.
    pub(crate) fn wait_for_matrices(&mut self, warp: usize, first_open: u32) -> Vec<(u32, Vec<u64>)> {
        let rank = warp % GROUP_WARPS;
        let mut done = Vec::new();
        for matrix in &mut self.matrices {
            if matrix.first_warp != warp - rank || matrix.group >= first_open {
                continue;
            }
            // All four warps read the same B.
            if matrix.waited == 0
                && !done.iter().any(|(pc, pieces)| *pc == matrix.pc && *pieces == matrix.pieces)
            {
                done.push((matrix.pc, matrix.pieces.clone()));
            }
            matrix.waited |= 1 << rank;
        }
        self.matrices.retain(|matrix| matrix.waited != ALL_WARPS);
        done
    }

    /// A matrix that is pending for a warp that writes.
    pub(crate) fn matrix_at(&self, warp: usize, address: u64, bytes: u32) -> Option<&PendingMatrix> {
        let end = address.saturating_add(u64::from(bytes));
        self.matrices.iter().find(|matrix| matrix.is_pending_for(warp) && matrix.meets(address, end))
    }

    /// A copy starts.
    pub(crate) fn start(&mut self, copy: PendingBulk) {
        self.pending.push(copy);
    }

    /// The group that the next copy of a thread goes to.
    pub(crate) fn group(&self, warp: u64, lane: usize) -> u32 {
        self.committed.get(&(warp, lane)).copied().unwrap_or(0)
    }

    /// A thread commits what it started to a group.
    pub(crate) fn commit(&mut self, warp: u64, lane: usize) {
        *self.committed.entry((warp, lane)).or_default() += 1;
    }

    /// A thread waits until at most `open` of its groups are pending.
    pub(crate) fn wait(&mut self, warp: u64, lane: usize, open: u32) {
        let first_open = self.group(warp, lane).saturating_sub(open);
        self.pending.retain(|copy| match copy.end {
            BulkEnd::Group(group) => (copy.warp, copy.lane) != (warp, lane) || group >= first_open,
            BulkEnd::Phase { .. } => true,
        });
    }

    /// The block ends: the copies that still read its shared memory, and whether each was committed to a group.
    pub(crate) fn take_unfinished(&mut self) -> Vec<(PendingBulk, bool)> {
        let committed = |copy: &PendingBulk| match copy.end {
            BulkEnd::Group(group) => Some(group < self.group(copy.warp, copy.lane)),
            BulkEnd::Phase { .. } => None,
        };
        let unfinished =
            self.pending.iter().filter_map(|copy| Some((copy.clone(), committed(copy)?))).collect();
        self.pending.clear();
        unfinished
    }

    /// A thread has seen that all phases of an object before this one are complete.
    pub(crate) fn see(&mut self, address: u64, before: u64) {
        self.pending.retain(|copy| match copy.end {
            BulkEnd::Phase { object, phase } => object != address || phase >= before,
            BulkEnd::Group(_) => true,
        });
    }

    /// A pending copy that an access meets.
    pub(crate) fn at(&self, address: u64, bytes: u32, writes: bool) -> Option<&PendingBulk> {
        let end = address.saturating_add(u64::from(bytes));
        self.pending.iter().find(|copy| {
            let is_used = writes || matches!(copy.end, BulkEnd::Phase { .. });
            is_used && copy.range.start < end && address < copy.range.end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(range: Range<u64>, end: BulkEnd) -> PendingBulk {
        PendingBulk { pc: 1, warp: 0, lane: 0, range, end }
    }

    #[test]
    fn copies_end_with_phases_and_groups() {
        let mut copies = BulkCopies::default();
        copies.start(copy(0..128, BulkEnd::Phase { object: 512, phase: 3 }));
        copies.start(copy(128..256, BulkEnd::Group(copies.group(0, 0))));
        copies.commit(0, 0);
        copies.start(copy(256..384, BulkEnd::Group(copies.group(0, 0))));
        assert!(copies.at(124, 4, false).is_some() && copies.at(128, 4, false).is_none());
        assert!(copies.at(128, 4, true).is_some());
        copies.wait(0, 0, 1);
        assert!(copies.at(128, 4, true).is_some());
        copies.wait(0, 1, 0);
        copies.wait(0, 0, 0);
        assert!(copies.at(128, 4, true).is_none() && copies.at(256, 4, true).is_some());
        copies.see(512, 3);
        assert!(copies.at(0, 4, false).is_some());
        copies.see(512, 4);
        copies.commit(0, 0);
        copies.wait(0, 0, 0);
        assert!(copies.is_empty());
    }
}
