//! Noticing that a worker is gone, and knowing what it had been given.

mod loss_notifier;
mod submission_map;
mod unfinished_list;

pub(super) use loss_notifier::LossNotifier;
pub(super) use submission_map::SubmissionMap;
pub(super) use unfinished_list::{Entry, Work};
