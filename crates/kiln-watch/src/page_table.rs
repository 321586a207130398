//! Where in the file the events of a time, a stream or a name are.
//!
//! A page is a run of the file's blocks. The table says of each which rows it has, from when to when and from which number to which,
//! so that a part of the recording can be read again without the rest. Its size is bounded: when there are too many pages, neighbours
//! are joined.

use crate::gap_state::{DrawnWork, GapState};
use crate::name_table::NameId;

/// A page is closed when it has so many bytes.
const FIRST_PAGE_BYTES: u64 = 256 << 10;
const MAX_PAGES: usize = 1 << 14;

/// A run of the file's blocks.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Where its first block begins.
    pub(crate) begin: u64,
    /// Where its last block ends.
    pub(crate) end: u64,
    pub(crate) rows: Vec<PageRow>,
    /// A bit for each of the names in it; several names share one.
    names: [u64; 4],
}

/// What a page has of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRow {
    pub(crate) row: u32,
    /// What was known of the row before the page.
    pub(crate) before: GapState,
    /// The first and the last number; the last is smaller if there is none.
    pub(crate) numbers: (u64, u64),
    /// From when to when, gaps included.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// When the last of its works begins.
    pub(crate) last_begin_ns: u64,
}

/// All pages, in the order of the file.
pub(crate) struct PageTable {
    pages: Vec<Page>,
    page_bytes: u64,
    /// Where each row is in the last page.
    places: Vec<Option<u32>>,
}

impl Default for PageTable {
    fn default() -> Self {
        Self { pages: Vec::new(), page_bytes: FIRST_PAGE_BYTES, places: Vec::new() }
    }
}

impl PageTable {
    /// Begins a new page if the last one has enough; the next event is in the block that begins here.
    pub(crate) fn begin_block(&mut self, offset: u64) {
        let is_full = match self.pages.last_mut() {
            None => true,
            Some(page) => {
                page.end = page.end.max(offset);
                offset >= page.begin.saturating_add(self.page_bytes)
            }
        };
        if !is_full {
            return;
        }
        if self.pages.len() >= MAX_PAGES {
            self.join_neighbours();
        }
        self.pages.push(Page { begin: offset, end: offset, rows: Vec::new(), names: [0; 4] });
        self.places.fill(None);
    }

    /// What was read ends here.
    pub(crate) fn end_block(&mut self, offset: u64) {
        if let Some(page) = self.pages.last_mut() {
            page.end = page.end.max(offset);
        }
    }

    /// The row has an event in the last page; `before` is what was known of it before that.
    pub(crate) fn touch(&mut self, row: u32, before: GapState) -> Option<&mut PageRow> {
        let page = self.pages.last_mut()?;
        if self.places.len() <= row as usize {
            self.places.resize(row as usize + 1, None);
        }
        let place = self.places.get_mut(row as usize)?;
        let at = *place.get_or_insert(page.rows.len() as u32);
        if at as usize == page.rows.len() {
            page.rows.push(PageRow {
                row,
                before,
                numbers: (u64::MAX, 0),
                begin_ns: u64::MAX,
                end_ns: 0,
                last_begin_ns: 0,
            });
        }
        page.rows.get_mut(at as usize)
    }

    /// The row has this work in the last page.
    pub(crate) fn add(&mut self, work: &DrawnWork, before: GapState) {
        let Some(row) = self.touch(work.row, before) else { return };
        row.numbers = (row.numbers.0.min(work.number), row.numbers.1.max(work.number));
        row.begin_ns = row.begin_ns.min(work.gap_ns.min(work.begin_ns));
        row.end_ns = row.end_ns.max(work.end_ns);
        row.last_begin_ns = row.last_begin_ns.max(work.begin_ns);
        if let Some(page) = self.pages.last_mut() {
            page.note_name(work.name);
        }
    }

    pub(crate) fn pages(&self) -> &[Page] {
        &self.pages
    }

    fn join_neighbours(&mut self) {
        let mut joined: Vec<Page> = Vec::with_capacity(self.pages.len() / 2 + 1);
        let mut pages = std::mem::take(&mut self.pages).into_iter();
        while let Some(mut page) = pages.next() {
            if let Some(next) = pages.next() {
                page.join(&next);
            }
            joined.push(page);
        }
        self.pages = joined;
        self.page_bytes = self.page_bytes.saturating_mul(2);
    }
}

impl Page {
    /// Whether work of one of these names may be in it.
    pub(crate) fn may_have(&self, name: NameId) -> bool {
        let (word, bit) = name_bit(name);
        self.names.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(crate) fn row(&self, row: u32) -> Option<&PageRow> {
        self.rows.iter().find(|known| known.row == row)
    }

    fn note_name(&mut self, name: NameId) {
        let (word, bit) = name_bit(name);
        if let Some(bits) = self.names.get_mut(word) {
            *bits |= bit;
        }
    }

    /// Adds the page behind it.
    fn join(&mut self, next: &Self) {
        self.end = next.end;
        for row in &next.rows {
            match self.rows.iter_mut().find(|known| known.row == row.row) {
                None => self.rows.push(*row),
                Some(known) => {
                    known.numbers = (known.numbers.0.min(row.numbers.0), known.numbers.1.max(row.numbers.1));
                    known.begin_ns = known.begin_ns.min(row.begin_ns);
                    known.end_ns = known.end_ns.max(row.end_ns);
                    known.last_begin_ns = known.last_begin_ns.max(row.last_begin_ns);
                }
            }
        }
        self.names.iter_mut().zip(next.names).for_each(|(bits, more)| *bits |= more);
    }
}

impl PageRow {
    /// Whether something of it is between two times.
    pub(crate) fn touches(&self, begin_ns: u64, end_ns: u64) -> bool {
        self.begin_ns < end_ns && self.end_ns >= begin_ns
    }
}

fn name_bit(name: NameId) -> (usize, u64) {
    let bit = name.wrapping_mul(0x9e37_79b1) >> 24;
    ((bit >> 6) as usize, 1 << (bit & 63))
}
