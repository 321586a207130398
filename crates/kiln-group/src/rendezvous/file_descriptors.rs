//! File descriptors: a rank needs one for its connection, and rank 0 one for each rank. A process may have only so many.

use std::io;

use super::error::RendezvousError;

/// What rank 0 opens besides a connection for each rank: the socket that listens, its own connection to the store, and one for a connection that has not shown the token yet.
const BESIDE_RANKS: u64 = 3;
/// What the system says when the process, or the host, has no descriptor left.
#[cfg(unix)]
const NONE_LEFT: [i32; 2] = [24, 23];

/// Whether an error says that there are no more descriptors.
#[cfg(unix)]
pub(super) fn are_used_up(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| NONE_LEFT.contains(&code))
}

#[cfg(not(unix))]
pub(super) fn are_used_up(_error: &io::Error) -> bool {
    false
}

/// How many descriptors a rank opens.
fn needed(rank: u32, size: u32) -> u64 {
    if rank == 0 { u64::from(size) + BESIDE_RANKS } else { 1 }
}

/// Refuses to join where the process may not open as many descriptors as the rank needs: otherwise some ranks would not be answered, and it would look as if they had not come.
#[cfg(target_os = "linux")]
pub(super) fn check(rank: u32, size: u32) -> Result<(), RendezvousError> {
    use rustix::process::{Resource, getrlimit};

    let limits = getrlimit(Resource::Nofile);
    let Some(limit) = limits.current else { return Ok(()) };
    // The folder itself is open while it is read. If it cannot be opened, there is none left; if there is no such folder, it is not known.
    let open = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => (entries.count() as u64).saturating_sub(1),
        Err(error) if are_used_up(&error) => limit,
        Err(_) => return Ok(()),
    };
    let needed = needed(rank, size);
    match limit.saturating_sub(open) >= needed {
        true => Ok(()),
        false => {
            let most = limits.maximum;
            Err(RendezvousError::FewDescriptors { rank, size, needed, open, limit, most })
        }
    }
}

/// Where the limit cannot be asked for, it shows when the rank connects.
#[cfg(not(target_os = "linux"))]
pub(super) fn check(_rank: u32, _size: u32) -> Result<(), RendezvousError> {
    Ok(())
}
