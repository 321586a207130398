//! Work by its name.

use serde::Serialize;

use crate::name_table::{NameId, NameTotals, WorkPlace};
use crate::page_table::Page;
use crate::watch_error::WatchError;
use crate::watched_recording::WatchedRecording;

/// Names of one answer.
const MAX_FOUND: usize = 100;

/// A name that was searched for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FoundName {
    /// Its number.
    pub name: NameId,
    /// The name.
    pub text: String,
    /// What all work of it took.
    #[serde(flatten)]
    pub totals: NameTotals,
}

impl WatchedRecording {
    /// The names of work that contain a text, in any case; what took longest altogether comes first.
    pub fn find(&self, text: &str) -> Vec<FoundName> {
        let shared = self.read();
        let names = &shared.index.names;
        let found = names.matching(text).into_iter();
        let mut found: Vec<FoundName> = found
            .map(|name| FoundName { name, text: names.text(name).to_owned(), totals: names.totals(name) })
            .collect();
        found.sort_by_key(|found| (std::cmp::Reverse(found.totals.total_ns), found.name));
        found.truncate(MAX_FOUND);
        found
    }

    /// The next work whose name contains a text: the first that begins after a time, or the last that begins before it.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn next(&self, text: &str, from_ns: u64, is_back: bool) -> Result<Option<WorkPlace>, WatchError> {
        let shared = self.read();
        let names = shared.index.names.matching(text);
        let mut best: Option<WorkPlace> = None;
        let begin = |place: WorkPlace| (place.begin_ns, place.row, place.number);
        for page in pages_in_order(shared.index.pages.pages(), is_back) {
            if !can_improve(page, best, from_ns, is_back) || !names.iter().any(|name| page.may_have(*name)) {
                continue;
            }
            for work in self.page(&shared, page)?.works() {
                let is_behind = if is_back { work.begin_ns < from_ns } else { work.begin_ns > from_ns };
                if !is_behind || names.binary_search(&work.name).is_err() {
                    continue;
                }
                let place = WorkPlace {
                    row: work.row,
                    number: work.number,
                    begin_ns: work.begin_ns,
                    end_ns: work.end_ns,
                };
                let is_nearer =
                    |best| if is_back { begin(place) > begin(best) } else { begin(place) < begin(best) };
                if best.is_none_or(is_nearer) {
                    best = Some(place);
                }
            }
        }
        Ok(best)
    }
}

/// Pages as they are passed on the way.
fn pages_in_order(pages: &[Page], is_back: bool) -> Box<dyn Iterator<Item = &Page> + '_> {
    if is_back { Box::new(pages.iter().rev()) } else { Box::new(pages.iter()) }
}

/// Whether a page can have something nearer than the best so far.
fn can_improve(page: &Page, best: Option<WorkPlace>, from_ns: u64, is_back: bool) -> bool {
    page.rows.iter().any(|row| match is_back {
        false => row.last_begin_ns > from_ns && best.is_none_or(|best| row.begin_ns <= best.begin_ns),
        true => row.begin_ns < from_ns && best.is_none_or(|best| row.last_begin_ns >= best.begin_ns),
    })
}
