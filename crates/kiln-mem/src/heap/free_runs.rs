//! Runs of pages, or of numbers, that can be used again.

use super::physical_pages::PageRun;

/// Page runs in order, none touching the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeRuns {
    runs: Vec<PageRun>,
}

impl FreeRuns {
    /// The lowest `pages` contiguous pages; none if no run is as long.
    pub(crate) fn take(&mut self, pages: u32) -> Option<PageRun> {
        let at = self.runs.iter().position(|run| run.pages >= pages)?;
        let PageRun { first_page, pages: gap } = self.runs[at];
        if gap == pages {
            self.runs.remove(at);
        } else {
            self.runs[at] = PageRun { first_page: first_page + pages, pages: gap - pages };
        }
        Some(PageRun { first_page, pages })
    }

    /// Adds pages that are free again.
    pub(crate) fn add(&mut self, run: PageRun) {
        let at = self.runs.partition_point(|other| other.first_page < run.first_page);
        self.runs.insert(at, run);
        self.runs.dedup_by(|next, run| {
            let joined = run.first_page + run.pages == next.first_page;
            if joined {
                run.pages += next.pages;
            }
            joined
        });
    }

    /// The last run, if it ends at a page.
    pub(crate) fn take_last_before(&mut self, page: u32) -> Option<PageRun> {
        self.runs.pop_if(|run| run.first_page + run.pages == page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_the_lowest_fit_is_taken() {
        let mut free_runs = FreeRuns::default();
        for (first_page, pages) in [(10, 2), (20, 5), (12, 3), (8, 2)] {
            free_runs.add(PageRun { first_page, pages });
        }
        assert_eq!(free_runs.take(8), None);
        assert_eq!(free_runs.take(7), Some(PageRun { first_page: 8, pages: 7 }));
        assert_eq!(free_runs.take(2), Some(PageRun { first_page: 20, pages: 2 }));
        assert_eq!(free_runs.take_last_before(30), None);
        assert_eq!(free_runs.take_last_before(25), Some(PageRun { first_page: 22, pages: 3 }));
    }
}
