//! The remembered accesses of one stretch of memory: sixteen bytes for each four that were touched.
//!
//! A word holds up to two marks. Where more must be remembered, or where bytes of the word are accessed one by one, it is a number in a
//! list beside the words.
//!
//! Words are atomics: those of a page that threads share may be read while another thread changes them, see [`SharedPage`](super::shared_page::SharedPage). One
//! thread at a time changes a page: that of the block it belongs to, or the one that holds it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Word {
    a: Mark,
    b: Mark,
}

/// A word stands for four bytes of memory and takes four times as many.
const _: () = assert!(size_of::<Word>() == 16);

/// Where a word is kept.
#[derive(Default)]
pub(super) struct Cell {
    a: AtomicU64,
    b: AtomicU64,
}

impl Cell {
    const fn new() -> Self {
        Self { a: AtomicU64::new(0), b: AtomicU64::new(0) }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Word {
        Word { a: Mark(self.a.load(Ordering::Relaxed)), b: Mark(self.b.load(Ordering::Relaxed)) }
    }

    #[inline(always)]
    pub(super) fn set(&self, word: Word) {
        self.a.store(word.a.0, Ordering::Relaxed);
        self.b.store(word.b.0, Ordering::Relaxed);
    }
}

/// All words of a page.
type Words = [Cell; PAGE_WORDS as usize];

/// What does not fit into a word.
enum Beside {
    /// All four bytes together.
    Whole(Vec<Mark>),
    /// Each byte.
    Bytes(Box<[Vec<Mark>; 4]>),
}

/// The lists beside the words, and the numbers of those that are not used.
#[derive(Default)]
struct Lists {
    all: Vec<Beside>,
    free: Vec<u32>,
}

/// What takes accesses of half a warp in.
pub(super) trait TouchHalf {
    /// Takes an access to a row in, each lane to its word; `new` is that of the first lane, and for `order` all lanes are alike. False, and
    /// nothing is taken, if it may race or must be remembered word by word.
    fn touch_row<O: Order>(&self, row: usize, new: Mark, order: &O) -> bool;

    /// Takes reads of one word by two lanes in, which stand for all lanes of half a warp. False, and nothing is taken, if one may race or the word holds more
    /// than two marks.
    fn touch_place<O: Order>(&self, word: usize, new: [Mark; 2], orders: [O; 2]) -> bool;
}

/// The marks of 1024 bytes. Where the lanes of half a warp touched neighbouring words, and nothing else did, a row of words is remembered as one: the
/// marks of its first word, of which those of the others differ in the lane alone.
#[derive(Default)]
pub(crate) struct Page {
    rows: [Cell; ROWS],
    /// The rows that are remembered word by word, as bits.
    split: AtomicU32,
    /// All words, once a row is split.
    words: OnceLock<Box<Words>>,
    lists: Mutex<Option<Box<Lists>>>,
}

impl Page {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        // Words are written again when their row is split.
        self.rows = Default::default();
        *self.split.get_mut() = 0;
        *self.lists.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes an access to some bytes of a word in; the first earlier one it races with.
    #[inline]
    pub(crate) fn touch<O: Order>(&self, word: usize, bytes: u8, new: Mark, order: &O, exact: bool) -> Raced {
        let cell = self.split_cell(word)?;
        let mut next = cell.get();
        let Word { a, b } = next;
        if bytes == 15 && a.0 & LINK != LINK {
            let is_same = a.is_like(new) && (!exact || new.kind() != Touching::StrongWrite);
            if a.is_none() || is_same && b.is_none() {
                cell.set(Word { a: new, b });
                return None;
            }
            if !exact && next.says_as_much(new, order) {
                return None;
            }
            if let Some(raced) = next.take(new, order, exact) {
                cell.set(next);
                return raced;
            }
        }
        self.touch_beside(cell, bytes, new, order, exact)
    }

    /// Whether all that is remembered of a row happened before everything that can still come to this memory.
    #[inline]
    fn is_row_settled<O: Order>(&self, row: usize, order: &O) -> bool {
        let words = self.words.get().and_then(|words| words.get(row * ROW_WORDS..(row + 1) * ROW_WORDS));
        let is_over = |mark: Mark| mark.is_none() || mark.0 & LINK != LINK && order.is_settled(mark);
        words.unwrap_or(&[]).iter().map(Cell::get).all(|word| is_over(word.a) && is_over(word.b))
    }

    /// Remembers a row as one, after the lanes of half a warp have written its words: `new` is the access of the first lane.
    pub(crate) fn join_row(&self, row: usize, new: Mark) {
        if let Some(cell) = self.rows.get(row) {
            cell.set(Word { a: new, b: Mark::NONE });
            self.set_split(self.split() & !(1 << row));
        }
    }

    /// Where a row is remembered, if that is as one.
    #[inline(always)]
    pub(super) fn row_cell(&self, row: usize) -> Option<&Cell> {
        self.rows.get(row).filter(|_| self.split() >> row & 1 == 0)
    }

    /// Where a word of a row is remembered that is remembered word by word.
    #[inline(always)]
    pub(super) fn word_cell(&self, word: usize) -> Option<&Cell> {
        let words = self.words.get().filter(|_| self.split() >> (word / ROW_WORDS) & 1 != 0)?;
        words.get(word)
    }

    /// The same; the row is remembered word by word from now on.
    #[inline(always)]
    fn split_cell(&self, word: usize) -> Option<&Cell> {
        if self.split() >> (word / ROW_WORDS) & 1 == 0 {
            self.split_row(word / ROW_WORDS);
        }
        self.words.get()?.get(word)
    }

    /// Remembers a row word by word.
    fn split_row(&self, row: usize) {
        let words = self.words.get_or_init(|| Box::new([const { Cell::new() }; PAGE_WORDS as usize]));
        let Some(first) = self.rows.get(row).map(Cell::get) else { return };
        let words = words.iter().skip(row * ROW_WORDS).take(ROW_WORDS);
        words.enumerate().for_each(|(lane, word)| word.set(first.behind(lane)));
        self.set_split(self.split() | 1 << row);
    }

    #[inline(always)]
    fn split(&self) -> u32 {
        self.split.load(Ordering::Relaxed)
    }

    fn set_split(&self, split: u32) {
        self.split.store(split, Ordering::Relaxed);
    }

    fn lists(&self) -> MutexGuard<'_, Option<Box<Lists>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn word(&self, word: usize) -> Option<Word> {
        match self.word_cell(word) {
            Some(cell) => Some(cell.get()),
            None => self.rows.get(word / ROW_WORDS).map(|first| first.get().behind(word % ROW_WORDS)),
        }
    }

    /// The strong write that a strong read of some bytes of a word observes, if it was told of with no fence.
    #[cold]
    pub(crate) fn read_without_fence<O: Order>(&self, word: usize, bytes: u8, order: &O) -> Raced {
        let Word { a, b } = self.word(word)?;
        if a.0 & LINK != LINK {
            return shadow_cell::read_without_fence(&[a, b], order);
        }
        match self.lists().as_ref()?.all.get(a.0 as u32 as usize)? {
            Beside::Whole(marks) => shadow_cell::read_without_fence(marks, order),
            Beside::Bytes(cells) => {
                let mut touched = cells.iter().enumerate().filter(|(at, _)| bytes >> at & 1 != 0);
                touched.find_map(|(_, marks)| shadow_cell::read_without_fence(marks, order))
            }
        }
    }

    /// Forgets a word.
    pub(crate) fn forget(&self, word: usize) {
        let Some(cell) = self.split_cell(word) else { return };
        let Word { a, .. } = cell.get();
        if a.0 & LINK == LINK
            && let Some(lists) = self.lists().as_mut()
        {
            lists.free.push(a.0 as u32);
        }
        cell.set(Word::default());
    }

    #[cold]
    fn touch_beside<O: Order>(&self, cell: &Cell, bytes: u8, new: Mark, order: &O, exact: bool) -> Raced {
        let bytes = if order.rules().has(RaceRule::Bytes) { bytes } else { 15 };
        let mut lists = self.lists();
        let lists = lists.get_or_insert_default();
        let link = lists.link(cell, bytes != 15);
        let beside = lists.all.get_mut(link as usize)?;
        let raced = match beside {
            Beside::Whole(marks) => shadow_cell::take(marks, new, order, exact),
            Beside::Bytes(cells) => {
                let touched = cells.iter_mut().enumerate().filter(|(at, _)| bytes >> at & 1 != 0);
                touched.fold(None, |raced, (_, marks)| raced.or(shadow_cell::take(marks, new, order, exact)))
            }
        };
        // A plain write of the whole word is all there is to remember.
        if bytes == 15 && new.kind() == Touching::Write {
            lists.free.push(link);
            cell.set(Word { a: new, b: Mark::NONE });
        }
        raced
    }
}

impl TouchHalf for Page {
    #[inline]
    fn touch_row<O: Order>(&self, row: usize, new: Mark, order: &O) -> bool {
        let Some(cell) = self.row_cell(row) else {
            let is_settled = row < ROWS && self.is_row_settled(row, order);
            if is_settled {
                self.join_row(row, new);
            }
            return is_settled;
        };
        let next = cell.get().after_row(new, order);
        if let Some(next) = next {
            cell.set(next);
        }
        next.is_some()
    }

    #[inline]
    fn touch_place<O: Order>(&self, word: usize, new: [Mark; 2], orders: [O; 2]) -> bool {
        let Some(cell) = self.split_cell(word) else { return false };
        let next = cell.get().after_place(new, &orders);
        if let Some(next) = next {
            cell.set(next);
        }
        next.is_some()
    }
}

impl Lists {
    /// The number of what is remembered of a word; it is put into the list if need be.
    fn link(&mut self, cell: &Cell, split: bool) -> u32 {
        let Word { a, b } = cell.get();
        let marks = || [a, b].into_iter().filter(|mark| !mark.is_none()).collect::<Vec<Mark>>();
        if a.0 & LINK == LINK {
            let link = a.0 as u32;
            if let (true, Some(beside)) = (split, self.all.get_mut(link as usize))
                && let Beside::Whole(marks) = beside
            {
                let cells = Box::new([marks.clone(), marks.clone(), marks.clone(), marks.clone()]);
                *beside = Beside::Bytes(cells);
            }
            return link;
        }
        let beside = match split {
            true => Beside::Bytes(Box::new([marks(), marks(), marks(), marks()])),
            false => Beside::Whole(marks()),
        };
        let link = match self.free.pop() {
            Some(link) => {
                self.all[link as usize] = beside;
                link
            }
            None => {
                self.all.push(beside);
                self.all.len() as u32 - 1
            }
        };
        cell.set(Word { a: Mark(LINK | u64::from(link)), b: Mark::NONE });
        link
    }
}

impl Word {
    /// The word of a row after an access of half a warp to it, each lane to its word. `None` if it may race or must be remembered word by word.
    #[inline(always)]
    pub(super) fn after_row<O: Order>(self, new: Mark, order: &O) -> Option<Self> {
        let Self { a, b } = self;
        if a.is_none() || a.is_like(new) && b.is_none() {
            return Some(Self { a: new, b });
        }
        if self.says_as_much(new, order) {
            return Some(self);
        }
        let mut next = self;
        matches!(next.take(new, order, false), Some(None)).then_some(next)
    }

    /// The word after reads by two lanes. `None` if one may race or the word holds more than two marks.
    #[inline(always)]
    pub(super) fn after_place<O: Order>(self, new: [Mark; 2], orders: &[O; 2]) -> Option<Self> {
        let Self { a, b } = self;
        if a.0 & LINK == LINK {
            return None;
        }
        let is_over = |mark: Mark| mark.is_none() || orders[0].is_settled(mark);
        if is_over(a) && is_over(b) && orders[0].rules().has(RaceRule::Readers) {
            return Some(Self { a: new[0], b: new[1] });
        }
        let mut next = self;
        for (new, order) in new.into_iter().zip(orders) {
            if next.a.is_none() || next.a.is_like(new) && next.b.is_none() {
                next.a = new;
            } else if !next.says_as_much(new, order) && !matches!(next.take(new, order, false), Some(None)) {
                return None;
            }
        }
        Some(next)
    }

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
