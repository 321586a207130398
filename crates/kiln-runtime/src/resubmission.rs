//! Work that was queued behind a fault, done again by the next worker.
//!
//! A fault ends everything that was queued, and most of it had nothing to do with the fault. A program that chooses [`Replay::NotStarted`] has
//! the runtime do it again where that is right: work that *certainly had not started*, on blocks that hold *exactly what they would have
//! held*. Both are known and not guessed:
//!
//! - **What had started.** In front of each submission a word of a page is filled with its number, on the same stream (`marks`). A
//!   stream does one thing after another, so work whose number is not there had not started, and work before the number that is there is
//!   done. The page outlives the worker as all pages do; the next worker reads it.
//! - **What blocks hold.** Every submission is kept with the accesses it declared (`log`). Bytes that work which may have started was to
//!   write are *spoilt*. In the order of submission (`decision`): work that uses spoilt bytes fails, and spoils what it was to write; all
//!   other work that had not started is done again. A fill or a copy that overwrites spoilt bytes mends them. The same holds of pinned
//!   memory: it is the client's, outlives the worker, and nothing changes it before the copies that use it are over.
//!
//! It is done by the recovery thread, on one stream, in the order of submission, before the device is ready (`replayer`): no other thread submits,
//! memory that was freed behind the work has not been given out again, and staging memory still holds its bytes.

mod byte_ranges;
mod kept_command;
mod kept_submission;
mod outcome;
mod resubmit_decision;
mod resubmit_plan;
mod resubmitter;
mod stream_start_marks;
mod submission_log;
mod uses_module_variables;

pub use outcome::{Outcome, ReplayRefusal};

pub(crate) use resubmit_plan::ReplayPlan;
pub(crate) use resubmitter::Replayer;
pub(crate) use stream_start_marks::StartMarks;
pub(crate) use submission_log::SubmissionLog;

/// What becomes of work that was queued and had not started when its worker was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Replay {
    /// It fails, as all unfinished work does.
    #[default]
    Never,
    /// It is done again before the device is ready, where it uses nothing that is lost; its tickets then say that it is done. A waiter
    /// is answered when that is known, and not when the fault is.
    ///
    /// Copies from and to [pinned buffers](crate::PinnedBuffer) are done again too: pinned memory is the client's and outlives the worker.
    ///
    /// What may have started is never done again. Neither are graphs, work whose time is taken, work that was queued past the runtime, and
    /// kernels of modules that have variables, which start over with each worker. Where [nothing is kept](crate::device_state::Keep::Nothing) nothing is done again. What is done again runs once: if
    /// that costs another worker, the rest of it fails.
    ///
    /// The price is a fill of four bytes in front of each submission, which takes the device a few microseconds, and a copy of each launch's
    /// arguments, kept until it is known to be done.
    NotStarted,
}
