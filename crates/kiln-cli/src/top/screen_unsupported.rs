//! A system whose terminals are not drawn on.

use std::time::Duration;

use super::Seen;
use super::gpu_figures::Gpus;
use crate::failure::Failure;

/// Refuses.
///
/// # Errors
/// Always.
pub(super) fn run(
    _: Duration,
    _: impl FnOnce() -> Gpus,
    _: impl Fn(&Gpus) -> Result<Seen, Failure>,
) -> Result<(), Failure> {
    Err(Failure::refused("kiln draws on no terminal of this system").next("use `kiln top --once`"))
}
