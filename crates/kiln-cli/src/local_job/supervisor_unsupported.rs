//! Jobs on systems without the signals and process groups that supervision needs.

use super::Arguments;
use super::rank_variables::JobVariables;
use crate::exit_code::Exit;
use crate::failure::Failure;

/// Refuses.
pub(super) fn run(_: &Arguments, job: &JobVariables) -> Result<Exit, Failure> {
    let names: Vec<_> = job.of_rank(0, 0).into_iter().map(|(name, _)| name).collect();
    let message = "this system has no process groups as Linux has them, with which ranks are supervised";
    Err(Failure::refused(message).next(format!("start every rank by hand, with {}", names.join(", "))))
}
