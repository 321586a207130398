//! Recordings of the ranks of one job, compared: which rank came late to which collective.
//!
//! [`RankLog`] takes the events of one recording and keeps its collectives, a limited number. [`JobExplanation`] puts the logs on one time
//! axis and finds the calls that belong together: the n-th call of an operation on a communicator is the same on all its ranks.

mod collective_order;
mod job_explanation;
mod job_text;
mod rank_log;
mod recorded_run;
mod time_axis;

pub use job_explanation::{ClockAlignment, JobCollective, JobExplanation, JobPart, RankLateness};
pub use rank_log::{RankCall, RankLog};
pub use recorded_run::RecordedRun;
