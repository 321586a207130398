//! The remembered accesses of one stretch of memory: sixteen bytes for each four that were touched.
//!
//! A word holds up to two marks. Where more must be remembered, or where bytes of the word are accessed one by one, it is a number in a
//! list beside the words.

use super::access_mark::{Mark, Touching};
use super::access_order::{Order, race};
use super::race_rule::RaceRule;
use super::shadow_cell::{self, Raced, further, is_observed, is_over};
use crate::exec::address_halves::HALF;

/// Words of a page.
pub(super) const PAGE_WORDS: u64 = 256;
/// Bytes of memory a page stands for.
pub(crate) const PAGE_BYTES: u64 = PAGE_WORDS * 4;

/// Words of a row, one for each lane of half a warp, and rows of a page.
const ROW_WORDS: usize = HALF;
const ROWS: usize = PAGE_WORDS as usize / ROW_WORDS;
/// Bytes of memory a row stands for.
pub(crate) const ROW_BYTES: u64 = ROW_WORDS as u64 * 4;

/// Set in the first half of a word that is a number in the list. No mark has it.
const LINK: u64 = 7 << 57;

/// Two accesses, the older one first.
#[derive(Clone, Copy, Default)]
struct Word {
    a: Mark,
    b: Mark,
}

/// A word stands for four bytes of memory and takes four times as many.
const _: () = assert!(size_of::<Word>() == 16);

/// What does not fit into a word.
enum Beside {
    /// All four bytes together.
    Whole(Vec<Mark>),
    /// Each byte.
    Bytes(Box<[Vec<Mark>; 4]>),
}

/// The marks of 1024 bytes. Where the lanes of half a warp touched neighbouring words, and nothing else did, a row of words is remembered as one: the
/// marks of its first word, of which those of the others differ in the lane alone.
pub(crate) struct Page {
    rows: [Word; ROWS],
    /// The rows that are remembered word by word, as bits.
    split: u32,
    /// All words, once a row is split.
    words: Vec<Word>,
    beside: Vec<Beside>,
    free: Vec<u32>,
}

impl Default for Page {
    fn default() -> Self {
        let rows = [Word::default(); ROWS];
        Self { rows, split: 0, words: Vec::new(), beside: Vec::new(), free: Vec::new() }
    }
}

impl Page {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        // Words are written again when their row is split.
        (self.rows, self.split) = ([Word::default(); ROWS], 0);
        self.beside.clear();
        self.free.clear();
    }

    /// Takes an access to some bytes of a word in; the first earlier one it races with.
    #[inline]
    pub(crate) fn touch<O: Order>(
        &mut self,
        word: usize,
        bytes: u8,
        new: Mark,
        order: &O,
        exact: bool,
    ) -> Raced {
        if self.split >> (word / ROW_WORDS) & 1 == 0 {
            self.split_row(word / ROW_WORDS);
        }
        let slot = self.words.get_mut(word)?;
        let Word { a, b } = *slot;
        if bytes == 15 && a.0 & LINK != LINK {
            let is_same = a.is_like(new) && (!exact || new.kind() != Touching::StrongWrite);
            if a.is_none() || is_same && b.is_none() {
                slot.a = new;
                return None;
            }
            if !exact && slot.says_as_much(new, order) {
                return None;
            }
            if let Some(raced) = slot.take(new, order, exact) {
                return raced;
            }
        }
        self.touch_beside(word, bytes, new, order, exact)
    }

    /// Takes an access of half a warp to a row in, each lane to its word; `new` is that of the first lane, and for `order` all lanes are alike. False, and
    /// nothing is taken, if it may race or must be remembered word by word.
    #[inline]
    pub(crate) fn touch_row<O: Order>(&mut self, row: usize, new: Mark, order: &O) -> bool {
        if self.split >> row & 1 != 0 {
            if self.is_row_settled(row, order) {
                self.join_row(row, new);
                return true;
            }
            return false;
        }
        let Some(slot) = self.rows.get_mut(row) else { return false };
        let Word { a, b } = *slot;
        if a.is_none() || a.is_like(new) && b.is_none() {
            slot.a = new;
            return true;
        }
        if slot.says_as_much(new, order) {
            return true;
        }
        let mut next = *slot;
        let is_taken = matches!(next.take(new, order, false), Some(None));
        if is_taken {
            *slot = next;
        }
        is_taken
    }

    /// Takes reads of one word by two lanes in, which stand for all lanes of half a warp. False, and nothing is taken, if one may race or the word holds more
    /// than two marks.
    #[inline]
    pub(crate) fn touch_place<O: Order>(&mut self, word: usize, new: [Mark; 2], orders: [O; 2]) -> bool {
        if self.split >> (word / ROW_WORDS) & 1 == 0 {
            self.split_row(word / ROW_WORDS);
        }
        let Some(slot) = self.words.get_mut(word) else { return false };
        let Word { a, b } = *slot;
        if a.0 & LINK == LINK {
            return false;
        }
        let is_over = |mark: Mark| mark.is_none() || orders[0].is_settled(mark);
        if is_over(a) && is_over(b) && orders[0].rules().has(RaceRule::Readers) {
            *slot = Word { a: new[0], b: new[1] };
            return true;
        }
        let mut next = *slot;
        for (new, order) in new.into_iter().zip(&orders) {
            if next.a.is_none() || next.a.is_like(new) && next.b.is_none() {
                next.a = new;
            } else if !next.says_as_much(new, order) && !matches!(next.take(new, order, false), Some(None)) {
                return false;
            }
        }
        *slot = next;
        true
    }

    /// Whether all that is remembered of a row happened before everything that can still come to this memory.
    #[inline]
    fn is_row_settled<O: Order>(&self, row: usize, order: &O) -> bool {
        let words = self.words.get(row * ROW_WORDS..(row + 1) * ROW_WORDS).unwrap_or(&[]);
        let is_over = |mark: Mark| mark.is_none() || mark.0 & LINK != LINK && order.is_settled(mark);
        words.iter().all(|word| is_over(word.a) && is_over(word.b))
    }

    /// Remembers a row as one, after the lanes of half a warp have written its words: `new` is the access of the first lane.
    pub(crate) fn join_row(&mut self, row: usize, new: Mark) {
        if let Some(slot) = self.rows.get_mut(row) {
            *slot = Word { a: new, b: Mark::NONE };
            self.split &= !(1 << row);
        }
    }

    /// Remembers a row word by word.
    fn split_row(&mut self, row: usize) {
        if self.words.is_empty() {
            self.words.resize(PAGE_WORDS as usize, Word::default());
        }
        let Some(first) = self.rows.get(row).copied() else { return };
        let words = self.words.iter_mut().skip(row * ROW_WORDS).take(ROW_WORDS);
        words.enumerate().for_each(|(lane, word)| *word = first.behind(lane));
        self.split |= 1 << row;
    }

    fn word(&self, word: usize) -> Option<Word> {
        match self.split >> (word / ROW_WORDS) & 1 {
            0 => self.rows.get(word / ROW_WORDS).map(|first| first.behind(word % ROW_WORDS)),
            _ => self.words.get(word).copied(),
        }
    }

    /// The strong write that a strong read of some bytes of a word observes, if it was told of with no fence.
    #[cold]
    pub(crate) fn read_without_fence<O: Order>(&self, word: usize, bytes: u8, order: &O) -> Raced {
        let Word { a, b } = self.word(word)?;
        if a.0 & LINK != LINK {
            return shadow_cell::read_without_fence(&[a, b], order);
        }
        match self.beside.get(a.0 as u32 as usize)? {
            Beside::Whole(marks) => shadow_cell::read_without_fence(marks, order),
            Beside::Bytes(cells) => {
                let mut touched = cells.iter().enumerate().filter(|(at, _)| bytes >> at & 1 != 0);
                touched.find_map(|(_, marks)| shadow_cell::read_without_fence(marks, order))
            }
        }
    }

    /// Forgets a word.
    pub(crate) fn forget(&mut self, word: usize) {
        if self.split >> (word / ROW_WORDS) & 1 == 0 {
            self.split_row(word / ROW_WORDS);
        }
        let Some(slot) = self.words.get_mut(word) else { return };
        if slot.a.0 & LINK == LINK {
            self.free.push(slot.a.0 as u32);
        }
        *slot = Word::default();
    }

    #[cold]
    fn touch_beside<O: Order>(&mut self, word: usize, bytes: u8, new: Mark, order: &O, exact: bool) -> Raced {
        let bytes = if order.rules().has(RaceRule::Bytes) { bytes } else { 15 };
        let link = self.link(word, bytes != 15);
        let beside = self.beside.get_mut(link as usize)?;
        let raced = match beside {
            Beside::Whole(marks) => shadow_cell::take(marks, new, order, exact),
            Beside::Bytes(cells) => {
                let touched = cells.iter_mut().enumerate().filter(|(at, _)| bytes >> at & 1 != 0);
                touched.fold(None, |raced, (_, marks)| raced.or(shadow_cell::take(marks, new, order, exact)))
            }
        };
        // A plain write of the whole word is all there is to remember.
        if bytes == 15 && new.kind() == Touching::Write {
            self.free.push(link);
            self.words[word] = Word { a: new, b: Mark::NONE };
        }
        raced
    }

    /// The number of a word in the list; it is put there if need be.
    fn link(&mut self, word: usize, split: bool) -> u32 {
        let Word { a, b } = self.words[word];
        let marks = || [a, b].into_iter().filter(|mark| !mark.is_none()).collect::<Vec<Mark>>();
        if a.0 & LINK == LINK {
            let link = a.0 as u32;
            if let (true, Some(Beside::Whole(marks))) = (split, self.beside.get(link as usize)) {
                let cells = Box::new([marks.clone(), marks.clone(), marks.clone(), marks.clone()]);
                self.beside[link as usize] = Beside::Bytes(cells);
            }
            return link;
        }
        let beside = match split {
            true => Beside::Bytes(Box::new([marks(), marks(), marks(), marks()])),
            false => Beside::Whole(marks()),
        };
        let link = match self.free.pop() {
            Some(link) => {
                self.beside[link as usize] = beside;
                link
            }
            None => {
                self.beside.push(beside);
                self.beside.len() as u32 - 1
            }
        };
        self.words[word] = Word { a: Mark(LINK | u64::from(link)), b: Mark::NONE };
        link
    }
}

impl Word {
    /// What a row says of a word, so many words behind its first.
    #[inline(always)]
    fn behind(self, words: usize) -> Self {
        let later = |mark: Mark| if mark.is_none() { mark } else { mark.lanes_later(words) };
        Self { a: later(self.a), b: later(self.b) }
    }

    /// Whether a read adds nothing: both marks are reads, one of them is of its warp and epoch, and the other one still counts. Words
    /// that many lanes read come here most.
    #[inline(always)]
    fn says_as_much<O: Order>(&self, new: Mark, order: &O) -> bool {
        let Self { a, b } = *self;
        if new.kind() != Touching::Read || !a.is_of_kind(new) || !b.is_of_kind(new) {
            return false;
        }
        let epoch = new.epoch();
        match (a.epoch() == epoch, b.epoch() == epoch) {
            (true, true) => true,
            (true, false) => !is_over(b, new, order),
            (false, true) => !is_over(a, new, order),
            (false, false) => false,
        }
    }

    /// Takes an access in, if that can be said with two marks.
    #[inline]
    fn take<O: Order>(&mut self, new: Mark, order: &O, exact: bool) -> Option<Raced> {
        let Self { a, b } = *self;
        let is_observed = !b.is_none() && is_observed(a, b, order);
        let mut raced = if is_observed { None } else { race(a, new, order).map(|cause| (a, cause)) };
        if !b.is_none() && raced.is_none() {
            raced = race(b, new, order).map(|cause| (b, cause));
        }
        if new.kind() == Touching::Write {
            *self = Self { a: new, b: Mark::NONE };
            return Some(raced);
        }
        match (is_over(a, new, order), b.is_none() || is_over(b, new, order)) {
            (true, true) => *self = Self { a: new, b: Mark::NONE },
            (true, false) => *self = Self { a: b, b: new },
            (false, true) => self.b = new,
            (false, false) => {
                let alike = a.is_of_kind(b) && b.is_of_kind(new) && new.kind() != Touching::Write;
                if !alike || exact {
                    return None;
                }
                if new.kind().is_strong() {
                    // The newest one is kept: it observed the others.
                    let kept = if order.distance(a, new) >= order.distance(b, new) { a } else { b };
                    *self = Self { a: kept, b: new };
                    return Some(raced);
                }
                match further([a, b], new, order) {
                    Some(0) => *self = Self { a: b, b: new },
                    Some(_) => self.b = new,
                    None => {}
                }
            }
        }
        if !order.rules().has(RaceRule::Readers) {
            self.b = Mark::NONE;
        }
        Some(raced)
    }
}
