//! Several devices; each request goes to the one that is likely to finish it first.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::device_service::DeviceService;
use crate::fleet_members::Members;
use crate::queue::{Elsewhere, QueuedRequest};
use crate::refused::RefusalReason;
use crate::reply::Reply;
use crate::request::Request;
use crate::service_load::Load;

/// Several services; each request goes to the one with the shortest [expected wait](Load::expected_wait) whose device works. Cheap to clone.
///
/// - A device that **fails requests** is avoided while another one takes them. From time to time it gets one request, and
///   once that succeeds it takes its share again. How long a request took counts only if it succeeded.
/// - A device that is **not ready**, because its runtime is being built or its context is lost, comes after all others.
/// - A request that a device **refuses before its work is queued**, or that waits when its device fails, goes to the next
///   service, to each at most once. Work that was queued and then lost is told to the caller: only the caller knows
///   whether it may run twice.
///
/// Send only requests that bring all their data. A request that uses buffers of one device belongs to that device's
/// [`service`](Self::service).
#[derive(Clone)]
pub struct DeviceFleet {
    members: Arc<Members>,
}

impl DeviceFleet {
    /// A fleet of these services.
    pub fn new(services: Vec<DeviceService>) -> Self {
        Self { members: Members::new(services) }
    }

    /// The services, in the order they were given.
    pub fn services(&self) -> &[DeviceService] {
        &self.members.services
    }

    /// One of them.
    pub fn service(&self, index: usize) -> Option<&DeviceService> {
        self.services().get(index)
    }

    /// How busy each of them is.
    pub fn loads(&self) -> Vec<Load> {
        self.services().iter().map(DeviceService::load).collect()
    }

    /// The service with the shortest expected wait for a new request; none if all have failed or are shut down.
    pub fn least_loaded(&self) -> Option<usize> {
        self.members.ranking(None).first().copied()
    }

    /// Sends a request to the service with the shortest expected wait that takes it. It is refused only if every service refuses it, for the
    /// reason of the last.
    pub fn submit<R: Request>(&self, request: R) -> Reply<R> {
        let (queued_request, reply) = QueuedRequest::new(request);
        let members: Arc<dyn Elsewhere> = self.members.clone();
        self.members.send(queued_request.routed(Arc::downgrade(&members)), RefusalReason::Closed);
        reply
    }

    /// Shuts all services down at the same time; true if each one answered everything it had.
    pub fn shutdown(&self, limit: Duration) -> bool {
        std::thread::scope(|scope| {
            let ends: Vec<_> =
                self.services().iter().map(|service| scope.spawn(move || service.shutdown(limit))).collect();
            ends.into_iter().all(|end| end.join().unwrap_or(false))
        })
    }
}

impl fmt::Debug for DeviceFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.services()).finish()
    }
}
