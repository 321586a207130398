//! Work that is written down already, and may still turn out to have a finding.

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_order::Stamp;
use kiln_trace::SubmissionNote;

/// Submissions that are remembered.
const MAX_REMEMBERED: usize = 8192;

/// The latest work that is written down.
#[derive(Default)]
pub(super) struct WrittenWorks {
    list: Mutex<VecDeque<WrittenWork>>,
}

/// One submission.
struct WrittenWork {
    stamp: Stamp,
    line: Option<&'static Location<'static>>,
    end_ns: Option<u64>,
}

impl WrittenWorks {
    /// Remembers work, and forgets the oldest where there is no room for more.
    pub(super) fn add(&self, stamp: Stamp, note: &SubmissionNote) {
        let mut list = self.list();
        if list.len() >= MAX_REMEMBERED {
            list.pop_front();
        }
        list.push_back(WrittenWork { stamp, line: note.line, end_ns: note.device.map(|span| span.end_ns) });
    }

    /// Which line submitted work that is remembered, and when it ended.
    pub(super) fn find(&self, stamp: Stamp) -> Option<(Option<&'static Location<'static>>, Option<u64>)> {
        self.list().iter().rev().find(|work| work.stamp == stamp).map(|work| (work.line, work.end_ns))
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<WrittenWork>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
