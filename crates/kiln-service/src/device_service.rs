//! A device behind a queue.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use kiln_runtime::device_state::Phase;
use kiln_runtime::{DeviceRuntime, Error, Result, StateWatch, Status};

use crate::queue::{Job, QueuedRequest, RequestQueue};
use crate::rebuild_limit::{Restart, Restarts};
use crate::refused::RefusalReason;
use crate::reply::Reply;
use crate::request::Request;
use crate::service_load::Load;
use crate::service_thread::Worker;

/// How long a service that is dropped deals with what it has.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// What a service is built with.
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    /// Requests that may wait, also while the device is rebuilt.
    pub max_queued: usize,
    /// Requests whose work may be on the device at once.
    pub max_in_flight: usize,
    /// What happens when the device fails.
    pub restart: Restart,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self { max_queued: 1024, max_in_flight: 64, restart: Restart::never() }
    }
}

/// A device behind a queue: an address that stays while the device comes and goes.
///
/// Cheap to clone. The service ends when the last clone is dropped, or by [`shutdown`](Self::shutdown).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kiln::DeviceRuntime;
/// use kiln::service::{DeviceService, Readback, ServiceConfig, Upload};
///
/// let service = DeviceService::start(ServiceConfig::default(), || DeviceRuntime::simulated(1))?;
/// let buffer = service.submit(Upload::new(vec![1.0f32, 2.0])).wait()?;
/// assert_eq!(service.submit(Readback::new(buffer)).wait()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceService {
    handle: Arc<Handle>,
}

struct Handle {
    queue: Arc<RequestQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Which it is, also when another thread waits for its end.
    thread_id: ThreadId,
}

impl DeviceService {
    /// A service over a runtime that `make` makes, on the service's own thread, and makes again if the configuration allows restarts.
    /// Requests are taken from the first moment on.
    ///
    /// # Errors
    /// If no thread can be started. What `make` says is told to those who send requests.
    pub fn start(
        config: ServiceConfig,
        make: impl Fn() -> Result<DeviceRuntime> + Send + 'static,
    ) -> Result<Self> {
        let queue = Arc::new(RequestQueue::new(config.max_queued, config.max_in_flight));
        let worker = Worker::new(queue.clone(), Box::new(make), Restarts::new(config.restart));
        let thread = std::thread::Builder::new().name("kiln service".into()).spawn(|| worker.run());
        let thread = thread.map_err(Error::other)?;
        let thread_id = thread.thread().id();
        Ok(Self { handle: Arc::new(Handle { queue, thread: Mutex::new(Some(thread)), thread_id }) })
    }

    /// A service over a runtime that is there already. It cannot be made again.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn over(runtime: DeviceRuntime, config: ServiceConfig) -> Result<Self> {
        let config = ServiceConfig { restart: Restart::never(), ..config };
        Self::start(config, move || Ok(runtime.clone()))
    }

    /// Sends a request. There is always one reply, which may be there already.
    pub fn submit<R: Request>(&self, request: R) -> Reply<R> {
        let (queued_request, reply) = QueuedRequest::new(request);
        if let Err((queued_request, why)) = self.put(queued_request) {
            queued_request.refuse(why);
        }
        reply
    }

    /// Puts a request in line; it comes back if it would be refused.
    pub(crate) fn put(&self, job: Box<dyn Job>) -> std::result::Result<(), (Box<dyn Job>, RefusalReason)> {
        self.queue().put(job)
    }

    /// How busy it is.
    pub fn load(&self) -> Load {
        self.queue().load()
    }

    /// What the service's device is doing. The generation grows by one each time it is rebuilt or restarted.
    pub fn status(&self) -> Status {
        self.queue().device_state.status()
    }

    /// A watch over the state.
    pub fn watch(&self) -> StateWatch {
        self.queue().device_state.watch()
    }

    /// Takes no more requests, deals with those it has for so long, and sends the rest back. Returns when the service has stopped; true if
    /// everything was dealt with. A request that calls this on the service's own thread does not wait.
    pub fn shutdown(&self, limit: Duration) -> bool {
        self.handle.stop(limit);
        self.queue().dealt_with_everything()
    }

    fn queue(&self) -> &Arc<RequestQueue> {
        &self.handle.queue
    }
}

impl Handle {
    fn stop(&self, limit: Duration) {
        self.queue.close(limit);
        if self.thread_id == std::thread::current().id() {
            // A request may end its own service, or hold the last clone of it; it cannot wait for its own end.
            return;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread {
            Some(thread) => {
                let _ = thread.join();
            }
            None => {
                self.queue.device_state.wait_until(|status| status.phase() == Phase::Stopped, None);
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop(DRAIN_LIMIT);
    }
}

impl fmt::Debug for DeviceService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device service: {}, {:?}", self.status(), self.load())
    }
}
