//! What the system says of a process.

use crate::live_process::is_alive;

/// What the system says of a process.
pub(super) struct ProcessState {
    is_gone: bool,
    /// When it began, as the system counts it; none where that cannot be found out.
    started: Option<u64>,
    owner: Option<u32>,
}

impl ProcessState {
    pub(super) fn of(process: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name stands in brackets and may have any letters.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let mut words = behind.split_whitespace();
        // One that has ended stays until its parent asks for its exit code.
        let has_ended = matches!(words.next(), Some("Z" | "X" | "x"));
        let started = words.nth(18).and_then(|ticks| ticks.parse().ok());
        Self { is_gone: has_ended || !is_alive(process), started, owner: owner(process) }
    }

    /// Whether there is no such process, or it has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether it began at this time, as far as that is known. 0 is not known.
    pub(super) fn began(&self, started: u64) -> bool {
        started == 0 || self.started.is_none_or(|known| known == started)
    }

    /// Whether it is of another user.
    #[cfg(unix)]
    pub(super) fn is_of_another_user(&self) -> bool {
        self.owner.is_some_and(|owner| owner != rustix::process::geteuid().as_raw())
    }

    /// Not known there.
    #[cfg(not(unix))]
    pub(super) fn is_of_another_user(&self) -> bool {
        self.owner.is_some()
    }
}

#[cfg(unix)]
fn owner(process: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/{process}")).ok().map(|known| known.uid())
}

#[cfg(not(unix))]
fn owner(_: u32) -> Option<u32> {
    None
}
