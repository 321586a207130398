//! What a device that checks accesses found, and who is told.
//!
//! A finding belongs to a submission. It fails the ticket of that submission, for ever, and everything that was submitted after it in the
//! order and before the first caller was told. Work submitted later is not concerned: its caller knew. A device that checks nothing has
//! no log, and no call asks for it.

pub(crate) mod finding_file;
mod finding_log;
mod finding_policy;
pub(crate) mod named_call;
mod submission_stamps;

pub(crate) use finding_log::{FindingLayer, FindingLog, KeptFinding, LeftOut};
pub use finding_policy::Findings;
