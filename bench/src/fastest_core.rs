//! Finds the core on which arithmetic is fastest at the moment, and keeps the measuring thread on it.
//!
//! A core of a virtual machine is often half of one, and the other half belongs to another machine: what runs there takes up to half of
//! the speed away, for seconds at a time. The thread that measures therefore looks for the core on which a loop of arithmetic is fastest at
//! the moment, and stays on it for a measurement. It does so for every subject alike; workloads of several threads do not.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Chains of arithmetic that do not wait for each other, as many as keep a whole core busy.
const CHAINS: usize = 8;
const STEPS: usize = 4_000;
/// The least of so many tries counts.
const TRIES: usize = 6;

/// A stay on a core; the thread may go anywhere again when this is dropped.
pub(crate) struct FastestCore {
    allowed: Option<CpuSet>,
}

impl FastestCore {
    /// Goes to the calmest core. Where cores cannot be chosen the thread stays where it is.
    pub(crate) fn find() -> Self {
        let Ok(allowed) = sched_getaffinity(None) else { return Self { allowed: None } };
        let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let calmest = cores.filter_map(|core| Some((speed_on(core)?, core))).min();
        let stays = calmest.is_some_and(|(_, core)| sched_setaffinity(None, &only(core)).is_ok());
        if !stays {
            let _ = sched_setaffinity(None, &allowed);
        }
        Self { allowed: Some(allowed) }
    }
}

impl Drop for FastestCore {
    fn drop(&mut self) {
        if let Some(allowed) = &self.allowed {
            let _ = sched_setaffinity(None, allowed);
        }
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// The least time of the loop on a core; none where the thread may not go.
fn speed_on(core: usize) -> Option<Duration> {
    sched_setaffinity(None, &only(core)).ok()?;
    (0..TRIES).map(|_| time_loop()).min()
}

fn time_loop() -> Duration {
    let mut chains = black_box([1_u64; CHAINS]);
    let start = Instant::now();
    for step in 0..STEPS as u64 {
        for chain in &mut chains {
            *chain = (*chain).rotate_left(5) ^ step;
        }
    }
    let time = start.elapsed();
    black_box(chains);
    time
}
