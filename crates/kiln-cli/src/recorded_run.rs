//! What the recordings of one run are known by.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The variable with which a kiln runtime learns which run it is recorded for.
pub(crate) const RUN_VARIABLE: &str = "KILN_TRACE_RUN";

/// A new name of a run. It tells runs apart and is no secret.
pub(crate) fn fresh() -> String {
    // Each hasher has random keys.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

/// The name for a program that is recorded: that of the job it is a rank of, or a new one.
pub(crate) fn of_environment() -> String {
    let known = std::env::var(RUN_VARIABLE).ok().filter(|run| !run.is_empty());
    known.unwrap_or_else(fresh)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_runs_differ() {
        assert_ne!(super::fresh(), super::fresh());
    }
}
