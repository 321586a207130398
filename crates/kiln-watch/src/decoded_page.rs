//! The work of a page, read again from the file; and the few pages that were read last.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_trace::{ReadError, TraceEvent};

use crate::gap_state::{DrawnWork, GapState, THREAD_WAIT};
use crate::page_table::Page;
use crate::recording_index::RecordingIndex;
use crate::recording_source::RecordingSource;
use crate::timeline_row::RowKind;

/// Works of all pages that are kept: about 80 MB.
const MAX_KEPT_WORKS: usize = 1 << 20;

/// The work of a page, by row and beginning.
pub(crate) struct DecodedPage {
    works: Vec<DrawnWork>,
}

/// The pages that were read last.
#[derive(Default)]
pub(crate) struct PageCache {
    /// By begin and end; the last one used is the last.
    pages: Vec<((u64, u64), Arc<DecodedPage>)>,
}

impl DecodedPage {
    /// Reads a page. Blocks that are damaged are left out.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn read(
        source: &RecordingSource,
        page: &Page,
        index: &RecordingIndex,
    ) -> Result<Self, ReadError> {
        let mut rows: HashMap<u32, (GapState, u64)> =
            page.rows.iter().map(|row| (row.row, (row.before, row.numbers.0))).collect();
        let mut works = Vec::new();
        for_each_event(source, page, |event| match event {
            TraceEvent::StreamWait(wait) => {
                let row = index.row_number(RowKind::of(wait.waiter.stream));
                if let Some((gap, _)) = row.and_then(|row| rows.get_mut(&row)) {
                    gap.wait(wait);
                }
            }
            TraceEvent::Submission(work) => {
                let row = index.row_number(RowKind::of(work.stamp.stream));
                let name = index.names.known(work.name);
                if let (Some(row), Some(name)) = (row, name)
                    && let Some((gap, _)) = rows.get_mut(&row)
                {
                    works.push(gap.submission(work, row, name));
                }
            }
            TraceEvent::HostWait(wait) => {
                let row = index.row_number(index.row_of_wait(wait));
                let name = index.names.known(wait.cause.words());
                if let (Some(row), Some(name)) = (row, name)
                    && let Some((_, next)) = rows.get_mut(&row)
                {
                    let begin_ns = wait.span.begin_ns;
                    works.push(DrawnWork {
                        row,
                        name,
                        number: *next,
                        begin_ns,
                        end_ns: wait.span.end_ns,
                        gap_ns: begin_ns,
                        ready_ns: begin_ns,
                        waits: false,
                        is_timed: true,
                        kind: THREAD_WAIT,
                    });
                    *next += 1;
                }
            }
            _ => {}
        })?;
        works.sort_by_key(|work| (work.row, work.begin_ns, work.number));
        Ok(Self { works })
    }

    /// The work of a row, by beginning.
    pub(crate) fn row(&self, row: u32) -> &[DrawnWork] {
        let begin = self.works.partition_point(|work| work.row < row);
        let end = self.works.partition_point(|work| work.row <= row);
        self.works.get(begin..end).unwrap_or_default()
    }

    pub(crate) fn works(&self) -> &[DrawnWork] {
        &self.works
    }
}

impl PageCache {
    pub(crate) fn known(&mut self, page: &Page) -> Option<Arc<DecodedPage>> {
        let at = self.pages.iter().position(|(key, _)| *key == (page.begin, page.end))?;
        let entry = self.pages.remove(at);
        let found = entry.1.clone();
        self.pages.push(entry);
        Some(found)
    }

    pub(crate) fn keep(&mut self, page: &Page, decoded: Arc<DecodedPage>) {
        // An open page is read again when it has grown.
        self.pages.retain(|(key, _)| key.0 != page.begin);
        self.pages.push(((page.begin, page.end), decoded));
        let mut works: usize = self.pages.iter().map(|(_, page)| page.works.len()).sum();
        while works > MAX_KEPT_WORKS && self.pages.len() > 1 {
            works -= self.pages.remove(0).1.works.len();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}

/// Reads the events of a page. Blocks that are damaged are left out.
///
/// # Errors
/// What the operating system says.
pub(crate) fn for_each_event(
    source: &RecordingSource,
    page: &Page,
    mut take: impl FnMut(&TraceEvent<'_>),
) -> Result<(), ReadError> {
    let mut reader = source.part(page.begin, page.end)?;
    loop {
        match reader.next_event() {
            Ok(Some(event)) => take(&event),
            Ok(None) => return Ok(()),
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
}
