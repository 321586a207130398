//! Which rank failed first.
//!
//! A process that is killed closes its connections some time before it has ended, and with a GPU that time is long: a rank that fails because of it may have ended before it. The
//! kernel marks a process that has begun to end, and a thread looks for that mark.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::rank_end::RankEnd;
use super::rank_process::spawn;

/// Between two looks at few ranks.
const PERIOD: Duration = Duration::from_millis(10);
/// Ranks that are looked at so often; with more there is more time between two looks.
const FEW: u32 = 16;
/// The mark in the flags of a process.
const PF_EXITING: u64 = 4;

/// When ranks began to end.
pub(super) struct FailureOrder {
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    /// The processes of ranks that run.
    running: BTreeMap<u32, u32>,
    /// The number of the look at which a rank was seen to end first.
    begun: BTreeMap<u32, u64>,
    looks: u64,
}

impl FailureOrder {
    /// Begins to look.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn watch(ranks: u32) -> io::Result<Self> {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let looked_at: Weak<Mutex<Watched>> = Arc::downgrade(&watched);
        let period = PERIOD * ranks.div_ceil(FEW).max(1);
        spawn(move || {
            while let Some(watched) = looked_at.upgrade() {
                lock(&watched).look(is_ending);
                drop(watched);
                std::thread::sleep(period);
            }
        })?;
        Ok(Self { watched })
    }

    /// A rank runs as this process.
    pub(super) fn started(&self, rank: u32, process: u32) {
        let mut watched = lock(&self.watched);
        watched.running.insert(rank, process);
        watched.begun.remove(&rank);
    }

    /// A rank has ended.
    pub(super) fn ended(&self, rank: u32) {
        let mut watched = lock(&self.watched);
        // Others that have begun to end were seen in this look or before.
        watched.look(is_ending);
        watched.running.remove(&rank);
        let looks = watched.looks;
        watched.begun.entry(rank).or_insert(looks);
    }

    /// Whether ranks that run have begun to end.
    pub(super) fn are_ending(&self) -> bool {
        let watched = lock(&self.watched);
        watched.running.keys().any(|rank| watched.begun.contains_key(rank))
    }

    /// Puts failures into the order in which they began. One comes after those that its rank saw, which `seen` counts: a rank that sees another one end has seen all that this one had
    /// seen. Of several that began within one look those by a signal come first: it comes from outside.
    pub(super) fn sort(&self, failures: &mut [(u32, RankEnd)], seen: impl Fn(u32) -> usize) {
        let watched = lock(&self.watched);
        failures.sort_by_cached_key(|(rank, end)| {
            let begun = watched.begun.get(rank).copied().unwrap_or(u64::MAX);
            (seen(*rank), begun, !matches!(end, RankEnd::Signal(_)))
        });
    }
}

impl Watched {
    fn look(&mut self, is_ending: impl Fn(u32) -> bool) {
        self.looks += 1;
        for (rank, process) in &self.running {
            if !self.begun.contains_key(rank) && is_ending(*process) {
                self.begun.insert(*rank, self.looks);
            }
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a process has begun to end, as far as the kernel says.
fn is_ending(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    flags(&stat).is_some_and(|flags| flags & PF_EXITING != 0)
}

/// The flags behind the name, which may contain anything, the state and five numbers.
fn flags(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_a_process_are_read() {
        assert_eq!(flags("7 (a) b) S 1 7 7 0 -1 4194560 105 0"), Some(4_194_560));
        assert_eq!(flags(""), None);
        assert!(!is_ending(std::process::id()));
    }

    #[test]
    fn ranks_that_began_to_end_earlier_failed_earlier() {
        let order = FailureOrder { watched: Arc::default() };
        lock(&order.watched).running.extend([(0, 10), (1, 11), (2, 12), (3, 13)]);
        lock(&order.watched).look(|process| process == 12);
        lock(&order.watched).look(|process| process != 10);
        let mut failures = vec![
            (0, RankEnd::Exit(1)),
            (1, RankEnd::Exit(1)),
            (2, RankEnd::Exit(3)),
            (3, RankEnd::Signal(9)),
        ];
        let sorted = |failures: &[(u32, RankEnd)]| failures.iter().map(|(rank, _)| *rank).collect::<Vec<_>>();
        order.sort(&mut failures, |_| 0);
        assert_eq!(sorted(&failures), [2, 3, 1, 0]);
        order.sort(&mut failures, |rank| if rank == 1 { 0 } else { 1 });
        assert_eq!(sorted(&failures), [1, 2, 3, 0]);
    }
}
