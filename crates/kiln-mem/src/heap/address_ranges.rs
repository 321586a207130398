//! Pieces of address space, in address order, in one table.
//!
//! A piece is a range of addresses that is free or taken as a whole. It knows its neighbours, so that a freed piece
//! can be joined with what lies beside it, and, while it is free, its place in a list of pieces of about its size.
//! All of it is host memory: device memory is never touched for it. A piece is 32 bytes, two to a cache line,
//! and pieces refer to each other by index, so the table is one allocation that stops growing once a program is warm.
//!
//! The first entry is no piece. It is the neighbour of pieces without one, is always taken, and its links are written but never read, so
//! linking and unlinking need not check for a missing neighbour.

use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// No piece.
pub(crate) const NIL: u32 = 0;
const FREE: u64 = 1 << 63;
const NO_FRAME: u64 = 1 << 62;

/// A table of pieces.
#[derive(Debug)]
pub(crate) struct PieceTable {
    table: Vec<Piece>,
    /// Entries that hold no piece, linked through `after`.
    vacant: u32,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The first unit; the highest bits say that the piece is free, and that it holds no whole frame.
    start: u64,
    /// How many units.
    pub(crate) units: u32,
    /// While it is free: the low half of the number of the last submission that may still use it.
    pub(crate) stamp: u32,
    /// The piece that ends where this one starts.
    pub(crate) before: u32,
    /// The piece that starts where this one ends.
    pub(crate) after: u32,
    /// The neighbours in its list, while it is free.
    pub(crate) list_before: u32,
    pub(crate) list_after: u32,
}

impl Piece {
    /// A taken piece without neighbours.
    #[inline]
    pub(crate) fn taken(start: u64, units: u32) -> Self {
        Self { start, units, stamp: 0, before: NIL, after: NIL, list_before: NIL, list_after: NIL }
    }

    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start & !(FREE | NO_FRAME)
    }

    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start() + u64::from(self.units)
    }

    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.start & FREE != 0
    }

    /// Makes it free or taken, and clears the mark that it holds no frame.
    #[inline]
    pub(crate) fn set_free(&mut self, free: bool) {
        self.start = if free { self.start() | FREE } else { self.start() };
    }

    /// Whether it is free and was found to hold no whole frame.
    #[inline]
    pub(crate) fn has_no_frame(&self) -> bool {
        self.start & NO_FRAME != 0
    }

    /// Marks it as holding no whole frame, until it changes.
    #[inline]
    pub(crate) fn set_no_frame(&mut self) {
        self.start |= NO_FRAME;
    }
}

impl PieceTable {
    pub(crate) fn new() -> Self {
        Self { table: vec![Piece::taken(0, 0)], vacant: NIL }
    }

    /// Whether there is an entry for a new piece without asking the host for memory.
    #[inline]
    pub(crate) fn has_entry(&self) -> bool {
        self.vacant != NIL || self.table.len() < self.table.capacity()
    }

    /// Makes room for `count` new pieces.
    pub(crate) fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory> {
        self.table.try_grow(count)
    }

    /// An entry for a new piece; allocates nothing if there [is one](Self::has_entry). The table holds at most `u32::MAX` pieces, more than
    /// device memory has units to make pieces of.
    #[inline]
    pub(crate) fn reserve(&mut self) -> u32 {
        let at = self.vacant;
        if at == NIL {
            return self.grow();
        }
        self.vacant = self.table[at as usize].after;
        at
    }

    /// Adds a taken piece without neighbours.
    pub(crate) fn add(&mut self, start: u64, units: u32) -> u32 {
        let at = self.reserve();
        self.table[at as usize] = Piece::taken(start, units);
        at
    }

    /// Removes a piece that is in no list and the neighbour of no other piece.
    #[inline]
    pub(crate) fn drop(&mut self, at: u32) {
        self.table[at as usize] = Piece { after: self.vacant, ..Piece::taken(u64::MAX, 0) };
        self.vacant = at;
    }

    /// The whole table, to be indexed with what other pieces and lists name.
    #[inline]
    pub(crate) fn table(&mut self) -> &mut [Piece] {
        &mut self.table
    }

    /// The same, read-only.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.table
    }

    /// The piece, if there is one at this index and it begins there and is taken.
    #[inline]
    pub(crate) fn taken_at(&self, at: u32, start: u64) -> Option<&Piece> {
        self.table.get(at as usize).filter(|piece| piece.start == start && piece.units > 0)
    }

    /// The piece, if there is one at this index and it begins there and is free.
    #[inline]
    pub(crate) fn free_at(&self, at: u32, start: u64) -> Option<&Piece> {
        self.table.get(at as usize).filter(|piece| piece.is_free() && piece.start() == start)
    }

    pub(crate) fn clear(&mut self) {
        self.table.truncate(1);
        self.vacant = NIL;
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.table.push(Piece::taken(u64::MAX, 0));
        (self.table.len() - 1) as u32
    }
}

impl std::ops::Index<u32> for PieceTable {
    type Output = Piece;

    #[inline]
    fn index(&self, at: u32) -> &Piece {
        &self.table[at as usize]
    }
}

impl std::ops::IndexMut<u32> for PieceTable {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Piece {
        &mut self.table[at as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_fits_half_a_cache_line() {
        assert_eq!(size_of::<Piece>(), 32);
    }

    #[test]
    fn entries_are_used_again_and_old_names_find_nothing() {
        let mut pieces = PieceTable::new();
        let first = pieces.add(5, 2);
        assert!(pieces.taken_at(first, 5).is_some());
        assert!(pieces.taken_at(first, 6).is_none());
        assert!(pieces.taken_at(99, 5).is_none());
        assert!(pieces.taken_at(NIL, 0).is_none());
        pieces.drop(first);
        assert!(pieces.taken_at(first, 5).is_none() && pieces.taken_at(first, u64::MAX).is_none());
        assert_eq!(pieces.add(7, 1), first);
        pieces[first].set_free(true);
        assert!(pieces.taken_at(first, 7).is_none(), "a free piece is not taken");
        assert!(pieces.free_at(first, 7).is_some() && pieces.free_at(first, 8).is_none());
        assert_eq!(pieces[first].start(), 7);
    }
}
