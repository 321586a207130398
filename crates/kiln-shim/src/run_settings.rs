//! What `kiln exec` tells a process, in variables of its environment.

use std::path::PathBuf;

/// The folder of the run, for what is found.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("KILN_EXEC_FOLDER").map(PathBuf::from)
}

/// The seed of the run.
pub(crate) fn seed() -> u64 {
    number("KILN_EXEC_SEED").unwrap_or(0)
}

/// How many devices there are.
pub(crate) fn devices() -> Option<u64> {
    number("KILN_EXEC_DEVICES")
}

/// The memory of each device.
pub(crate) fn memory_bytes() -> Option<u64> {
    number("KILN_EXEC_MEMORY")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
