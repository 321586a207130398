//! The last takeovers of a runtime.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::post_mortem::PostMortem;

/// Reports that are kept.
const REPORTS: usize = 16;

/// What the last takeovers found.
#[derive(Default)]
pub(crate) struct Reports(Mutex<VecDeque<Arc<PostMortem>>>);

impl Reports {
    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<PostMortem>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn push(&self, report: PostMortem) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() == REPORTS {
            reports.pop_front();
        }
        reports.push_back(Arc::new(report));
    }
}
