//! Several devices, and each request to the one that is likely to be done with it first.

use std::fmt;
use std::time::Duration;

use kiln_runtime::state::Phase;

use crate::device_service::DeviceService;
use crate::load::Load;
use crate::queue::{Envelope, Job};
use crate::refused::Why;
use crate::reply::Reply;
use crate::request::Request;

/// Several services, of which the least loaded is asked.
///
/// For requests that bring everything along. A request on buffers that are on a device already goes to that device's own
/// [`service`](Self::service).
#[derive(Clone)]
pub struct DeviceFleet {
    services: Vec<DeviceService>,
}

impl DeviceFleet {
    /// Those services.
    pub fn new(services: Vec<DeviceService>) -> Self {
        Self { services }
    }

    /// The services, in the order they were given.
    pub fn services(&self) -> &[DeviceService] {
        &self.services
    }

    /// One of them.
    pub fn service(&self, index: usize) -> Option<&DeviceService> {
        self.services.get(index)
    }

    /// How busy each of them is.
    pub fn loads(&self) -> Vec<Load> {
        self.services.iter().map(DeviceService::load).collect()
    }

    /// The one that is likely to be done first with a new request; none if all have failed or are shut down.
    pub fn least_loaded(&self) -> Option<usize> {
        self.ranking().first().copied()
    }

    /// Sends a request to the least loaded service that takes it. It is refused only if all of them refuse, for the reason of the last.
    pub fn submit<R: Request>(&self, request: R) -> Reply<R> {
        let (mut envelope, reply) = Envelope::new(request);
        let mut reason = Why::Closed;
        for index in self.ranking() {
            let Some(service) = self.services.get(index) else { continue };
            match service.put(envelope) {
                Ok(()) => return reply,
                Err((back, why)) => (envelope, reason) = (back, why),
            }
        }
        // If no device takes requests any more, the first says why.
        match self.services.first() {
            Some(first) if matches!(reason, Why::Closed) => match first.put(envelope) {
                Ok(()) => {}
                Err((back, why)) => back.refuse(why),
            },
            _ => envelope.refuse(reason),
        }
        reply
    }

    /// Shuts all of them down at once; true if each dealt with everything.
    pub fn shutdown(&self, limit: Duration) -> bool {
        std::thread::scope(|scope| {
            let ends: Vec<_> =
                self.services.iter().map(|service| scope.spawn(move || service.shutdown(limit))).collect();
            ends.into_iter().all(|end| end.join().unwrap_or(false))
        })
    }

    /// Those that may answer, the least loaded first; those that are being rebuilt last.
    fn ranking(&self) -> Vec<usize> {
        let mut ranked: Vec<(bool, Duration, usize)> = Vec::with_capacity(self.services.len());
        for (index, service) in self.services.iter().enumerate() {
            let phase = service.status().phase();
            if !phase.is_over() {
                let absent = matches!(phase, Phase::Lost | Phase::Rebuilding);
                ranked.push((absent, service.load().expected_wait(), index));
            }
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, index)| index).collect()
    }
}

impl fmt::Debug for DeviceFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.services).finish()
    }
}
