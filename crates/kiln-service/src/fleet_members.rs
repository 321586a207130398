//! The services of a fleet, and which of them gets a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_runtime::device_state::Phase;

use crate::circuit_breaker::{Probation, Standing};
use crate::device_service::DeviceService;
use crate::queue::{Elsewhere, Job};
use crate::refused::RefusalReason;

/// The services of a fleet.
pub(crate) struct Members {
    pub(crate) services: Vec<DeviceService>,
    /// Requests that were sent so far.
    turns: AtomicU64,
    probations: Mutex<Vec<Probation>>,
}

/// How good a choice a service is; the smaller, the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It is due to be probed, and this request is the probe.
    Probe,
    Ready,
    /// Its runtime is being built.
    Starting,
    /// Its device failed requests.
    Failing,
    /// Its device is lost and may come back.
    Lost,
}

impl Members {
    pub(crate) fn new(services: Vec<DeviceService>) -> Arc<Self> {
        let probations = Mutex::new(vec![Probation::default(); services.len()]);
        Arc::new(Self { services, turns: AtomicU64::new(0), probations })
    }

    /// The services that may answer, the best choice first. With a turn, the first that is due gets its probe.
    pub(crate) fn ranking(&self, turn: Option<u64>) -> Vec<usize> {
        let mut probations = self.probations.lock().unwrap_or_else(PoisonError::into_inner);
        let now = turn.unwrap_or_else(|| self.turns.load(Ordering::Relaxed));
        let mut probing = turn.is_none();
        let mut ranked: Vec<(Rank, Duration, usize)> = Vec::with_capacity(self.services.len());
        for (index, (service, probation)) in self.services.iter().zip(&mut *probations).enumerate() {
            let (phase, load) = (service.status().phase(), service.load());
            let rank = match (phase, probation.standing(now, load.failing > 0)) {
                (Phase::Failed | Phase::ShuttingDown | Phase::Stopped, _) => continue,
                (Phase::Lost | Phase::Rebuilding, _) => Rank::Lost,
                (Phase::Starting, _) => Rank::Starting,
                (Phase::Ready, Standing::Trusted) => Rank::Ready,
                (Phase::Ready, Standing::ProbeDue) if !probing => {
                    probing = true;
                    probation.probe(now);
                    Rank::Probe
                }
                (Phase::Ready, Standing::ProbeDue | Standing::Avoided) => Rank::Failing,
            };
            ranked.push((rank, load.expected_wait(), index));
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, index)| index).collect()
    }
}

impl Elsewhere for Members {
    /// If no service takes the request, it is sent back for the reason of the last.
    fn send(&self, mut job: Box<dyn Job>, mut why: RefusalReason) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let mut asked = false;
        for index in self.ranking(Some(turn)) {
            let Some(service) = self.services.get(index).filter(|_| job.visit(index)) else { continue };
            asked = true;
            match service.put(job) {
                Ok(()) => return,
                Err((back, reason)) => (job, why) = (back, reason),
            }
        }
        // Where all services are over, the first one knows why.
        if let Some(first) = self.services.first().filter(|_| !asked && matches!(why, RefusalReason::Closed))
        {
            match first.put(job) {
                Ok(()) => return,
                Err((back, reason)) => (job, why) = (back, reason),
            }
        }
        job.send_back(why);
    }
}
