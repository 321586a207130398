//! Tiles of a recording.

use std::collections::BTreeMap;

use crate::gap_state::DrawnWork;
use crate::page_table::Page;
use crate::timeline_tile::{TILE_BUCKETS, TileContent, TileRequest, TileRow, TileSums, TimelineTile};
use crate::watch_error::WatchError;
use crate::watched_recording::{Shared, WatchedRecording};

/// Rows of one answer.
const MAX_ROWS: u32 = 256;
/// Pages that are read again where sums would do, for exact works.
const FEW_PAGES: usize = 6;
/// Pages that are read again where the sums are too wide.
const MANY_PAGES: usize = 48;

/// The pages that have something of a row in a tile.
#[derive(Default)]
struct RowPages<'p> {
    count: usize,
    first: Vec<&'p Page>,
}

impl WatchedRecording {
    /// What some rows did in a part of the time.
    ///
    /// # Errors
    /// A tile that there cannot be; a file that cannot be read any more.
    pub fn tile(&self, request: TileRequest) -> Result<TimelineTile, WatchError> {
        let (begin_ns, end_ns) = request.span().ok_or(WatchError::Unknown("there is no such tile"))?;
        let shared = self.read();
        let wanted = request.first_row..request.first_row.saturating_add(request.rows.min(MAX_ROWS));
        let mut of_row: BTreeMap<u32, RowPages<'_>> = BTreeMap::new();
        for page in shared.index.pages.pages() {
            let inside =
                page.rows.iter().filter(|row| wanted.contains(&row.row) && row.touches(begin_ns, end_ns));
            for row in inside {
                let pages = of_row.entry(row.row).or_default();
                pages.count += 1;
                if pages.first.len() <= MANY_PAGES {
                    pages.first.push(page);
                }
            }
        }
        let mut rows = Vec::with_capacity(of_row.len());
        for (row, pages) in of_row {
            if let Some(content) = self.row_content(&shared, request, row, &pages, (begin_ns, end_ns))? {
                rows.push(TileRow { row, content });
            }
        }
        Ok(TimelineTile { level: request.level, index: request.index, begin_ns, rows })
    }

    /// What a row did; none if that is nothing.
    fn row_content(
        &self,
        shared: &Shared,
        request: TileRequest,
        row: u32,
        pages: &RowPages<'_>,
        (begin_ns, end_ns): (u64, u64),
    ) -> Result<Option<TileContent>, WatchError> {
        let store = &shared.index.buckets;
        let is_wide = request.level >= store.level();
        if pages.count <= FEW_PAGES || (!is_wide && pages.count <= MANY_PAGES) {
            let mut works: Vec<DrawnWork> = Vec::new();
            for page in &pages.first {
                let decoded = self.page(shared, page)?;
                works.extend(decoded.row(row).iter().filter(|work| touches(work, begin_ns, end_ns)));
            }
            works.sort_by_key(|work| (work.begin_ns, work.number));
            let content = TileContent::of(&works, request.level, begin_ns);
            return Ok((!works.is_empty()).then_some(content));
        }
        let level = request.level.max(store.level());
        let first = begin_ns >> level;
        let count = (TILE_BUCKETS >> (level - request.level)).max(1) as usize;
        Ok(Some(TileContent::Sums(TileSums::of(&store.sums(row, level, first, count), level))))
    }
}

/// Whether work, or the gap before it, is between two times.
fn touches(work: &DrawnWork, begin_ns: u64, end_ns: u64) -> bool {
    work.gap_ns.min(work.begin_ns) < end_ns && work.end_ns.max(work.begin_ns + 1) > begin_ns
}
