//! Why the host had not submitted a work yet: the waits that a thread of the program was in, and what it did between them.

use std::collections::BTreeMap;

use kiln_trace::{HostWaitCause, IdleReason, IdleWhy, TimeSpan, TraceEvent};

use crate::page_table::Page;
use crate::timeline_row::RowKind;
use crate::watch_error::WatchError;
use crate::watched_recording::{Shared, WatchedRecording};
use crate::work_details::{FoundWork, idle};

/// Pages that are looked through for waits of the program's threads.
const MAX_THREAD_PAGES: usize = 16;
/// Lines that waited and are named, those first that waited longest.
const MAX_LINES: usize = 3;

/// The waits of a line: how long, how often, and the longest.
#[derive(Clone, Copy, Default)]
struct LineWaits {
    ns: u64,
    times: u64,
    longest_ns: u64,
}

/// The waits of a thread within a time, by what it had asked for and where.
type ThreadWaits = BTreeMap<(&'static str, Option<String>), (HostWaitCause, LineWaits)>;

impl WatchedRecording {
    /// Why the host had not submitted a work, in sentences with their times.
    pub(crate) fn starved(
        &self,
        shared: &Shared,
        work: &FoundWork,
        begin: u64,
        ready: u64,
    ) -> Result<Vec<(u64, String)>, WatchError> {
        let gap = TimeSpan::new(begin, ready);
        let mut waits: Vec<_> =
            self.host_waits_during(shared, work.work_name().device, gap)?.into_iter().collect();
        waits.sort_by_key(|(_, (_, waits))| std::cmp::Reverse(waits.ns));
        let waited: u64 = waits.iter().map(|(_, (_, waits))| waits.ns).sum();
        let mut parts = Vec::new();
        for ((_, line), (cause, LineWaits { ns, times, longest_ns })) in waits.into_iter().take(MAX_LINES) {
            let why = IdleWhy::HostWait { cause, line };
            let reason = IdleReason { why, before: work.work_name(), ns, times, longest_ns };
            parts.push((ns, reason.to_string()));
        }
        let busy = gap.ns().saturating_sub(waited);
        if busy > 0 {
            parts.push((busy, idle(IdleWhy::HostBusy, work, busy)));
        }
        Ok(parts)
    }

    /// The waits within a time of a device's clock of the thread that was in waits for most of it.
    fn host_waits_during(
        &self,
        shared: &Shared,
        device: u32,
        gap: TimeSpan,
    ) -> Result<ThreadWaits, WatchError> {
        let own_clock = shared.index.clock_of(device);
        let (from, to) = (gap.begin_ns, gap.end_ns);
        let is_own = |kind: RowKind| matches!(kind, RowKind::Thread { clock, .. } if clock == own_clock);
        let is_thread = |row: u32| shared.index.rows.get(row as usize).is_some_and(|row| is_own(row.kind));
        let touches = |page: &&Page| page.rows.iter().any(|row| is_thread(row.row) && row.touches(from, to));
        let mut threads: BTreeMap<u32, ThreadWaits> = BTreeMap::new();
        for page in shared.index.pages.pages().iter().filter(touches).take(MAX_THREAD_PAGES) {
            self.events(shared, page, |event| {
                let TraceEvent::HostWait(wait) = event else { return };
                let ns = wait.span.within(from, to);
                if ns == 0 || shared.index.clock_of(wait.device) != own_clock {
                    return;
                }
                let line = wait.line.map(|line| line.to_string());
                let known = threads.entry(wait.thread).or_default().entry((wait.cause.words(), line));
                let (_, waits) = known.or_insert((wait.cause, LineWaits::default()));
                waits.ns = waits.ns.saturating_add(ns);
                waits.times += 1;
                waits.longest_ns = waits.longest_ns.max(ns);
            })?;
        }
        let all = |waits: &ThreadWaits| waits.values().map(|(_, waits)| waits.ns).sum::<u64>();
        // The first of several that waited for the same time, as `kiln explain` has it.
        Ok(threads.into_values().rev().max_by_key(all).unwrap_or_default())
    }
}
