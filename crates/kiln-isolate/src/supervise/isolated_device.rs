//! An isolated device: the proxy that programs use, and what keeps a worker behind it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use kiln_driver::{DeviceInfo, Progress, Protection, ReservationId, StreamId};

use super::cancellation::Cancellation;
use super::config::IsolationConfig;
use super::restart_policy::Restarts;
use super::standby::StandbySync;
use super::start_error::WorkerStartError;
use super::supervisor_handle::SupervisorHandle;
use super::worker_process::WorkerProcess;
use crate::client::client_state::Shared;
use crate::client::loss_cause::LossCause;
use crate::client::object_tables::ObjectTables;
use crate::client::proxy::DeviceProxy;
use crate::client::stream_table::StreamTable;
use crate::client::work_times::{TimesFlush, WorkerTime};

/// A device whose driver runs in a worker process.
///
/// Use it as a [`Driver`](kiln_driver::Driver). When its worker is lost, every call returns the cause;
/// [`take_over`](Self::take_over) replaces the worker.
///
/// ```no_run
/// use kiln_driver::Driver;
/// use kiln_isolate::{IsolatedDevice, IsolationConfig, DeviceSpec};
///
/// kiln_isolate::worker_entry();
/// let device = IsolatedDevice::open(IsolationConfig::new(DeviceSpec::simulated(1)))?;
/// println!("{}", device.info().name);
/// # Ok::<(), kiln_isolate::WorkerStartError>(())
/// ```
pub struct IsolatedDevice {
    pub(super) proxy: DeviceProxy,
    pub(super) config: Arc<IsolationConfig>,
    /// What the worker said of its device, before this side changed what differs for a proxy.
    pub(super) worker_info: DeviceInfo,
    pub(super) generation: AtomicU64,
    pub(super) process: WorkerProcess,
    pub(super) restarts: Mutex<Restarts>,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) supervisor: SupervisorHandle,
    standby: Arc<StandbySync>,
    standby_thread: Option<JoinHandle<()>>,
}

impl IsolatedDevice {
    /// Starts a worker, which opens the device.
    ///
    /// # Errors
    /// [`WorkerStartError`] says why there is no worker. No process, thread or descriptor is left then.
    pub fn open(config: IsolationConfig) -> Result<Arc<Self>, WorkerStartError> {
        let config = Arc::new(config);
        let streams = Arc::new(StreamTable::default());
        let standby = Arc::new(StandbySync::default());
        let cancellation = Arc::new(Cancellation::default());
        let (supervisor, first) =
            SupervisorHandle::start(config.clone(), streams.clone(), standby.clone(), cancellation.clone())?;
        let mut info = first.info.clone();
        // Native handles are valid in the worker only, and the worker cannot reach memory of this process.
        info.features.native_handles = false;
        info.features.host_registration = false;
        let objects = Arc::new(ObjectTables::new(info.key));
        let wanted = config.standby.then(|| standby.start(objects.clone(), config.clone()));
        let standby_thread = wanted.transpose().map_err(WorkerStartError::Thread)?;
        supervisor.takeover_finished();
        let process = WorkerProcess::new(&config, first.worker.process);
        let shared = Shared::new(first.worker.link, streams, standby.clone());
        Ok(Arc::new(Self {
            proxy: DeviceProxy::new(shared, objects, info, config.standby),
            config,
            worker_info: first.info,
            generation: AtomicU64::new(1),
            process,
            restarts: Mutex::default(),
            cancellation,
            supervisor,
            standby,
            standby_thread,
        }))
    }

    /// The number of the worker in use: 1 for the first, and one more after each takeover.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The process of the worker in use; what is returned tells of later ones, too.
    pub fn worker_process(&self) -> WorkerProcess {
        self.process.clone()
    }

    /// Why the worker in use is lost, if it is.
    pub fn cause(&self) -> Option<LossCause> {
        self.proxy.shared.link().lost().map(|lost| lost.cause.clone())
    }

    /// Kills the worker at once. Every call and every wait returns [`LossCause::Killed`] until another worker takes over.
    pub fn kill_worker(&self) {
        self.supervisor.kill(LossCause::Killed);
    }

    /// Forbids takeovers from now on. One that pauses, or waits for a worker to start, ends with
    /// [`TakeoverError::Abandoned`](crate::TakeoverError). Call it before dropping a device that another thread may be recovering.
    pub fn abandon(&self) {
        self.cancellation.cancel();
    }

    /// How far a stream is, as far as the client knows: reads shared memory, asks no worker and reports no failure. `None` if there is no
    /// such stream.
    pub fn known_progress(&self, stream: StreamId) -> Option<Progress> {
        self.proxy.known_progress(stream)
    }

    /// Has the worker query every stream with work, so that [`known_progress`](Self::known_progress) moves without a wait. Returns
    /// whether the worker is lost.
    pub fn poll_streams(&self) -> bool {
        self.proxy.poll_streams()
    }

    /// Changes what kernels may do to the pages behind whole mappings, and at every other place of the same reservation where these
    /// pages are mapped. Either all of it is done or nothing is.
    ///
    /// The next worker maps them with the same protection. On a lost device, [`Protection::ReadWrite`] is recorded and holds from the next
    /// worker on, so that memory can be freed at any time; [`Protection::Read`] is refused.
    ///
    /// No queued work may write to pages that become read-only.
    ///
    /// # Errors
    /// Refused for a range that does not consist of whole mappings; unsupported by devices without memory protection; the cause, if
    /// the device is lost.
    pub fn protect_pages(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> kiln_driver::Result<()> {
        self.proxy.protect_pages(reservation, offset, bytes, protection)
    }

    /// Has the worker watch when [numbered](Self::number_work) work runs, by NVIDIA's profiling interface (CUPTI) in its process. A later worker
    /// begins with the first number it is told.
    ///
    /// # Errors
    /// Unsupported, with the reason: no CUDA device, no libcupti, another tool that has it; the cause, if the device is lost.
    pub fn start_times(&self) -> kiln_driver::Result<()> {
        self.proxy.start_times()
    }

    /// Has it watch no more.
    ///
    /// # Errors
    /// The cause, if the device is lost.
    pub fn stop_times(&self) -> kiln_driver::Result<()> {
        self.proxy.stop_times()
    }

    /// What is submitted to a stream from here on has a number of at most 56 bits, or none. It is sent in the order of submissions, and nothing waits
    /// for it.
    ///
    /// # Errors
    /// Refused for a stale stream; the cause, if the device is lost.
    pub fn number_work(&self, stream: StreamId, number: Option<u64>) -> kiln_driver::Result<()> {
        self.proxy.number_work(stream, number)
    }

    /// Gives the times of numbered work that came since the last call; how many found no room since the worker began to watch.
    ///
    /// # Errors
    /// The cause, if the device is lost.
    pub fn take_times(&self, flush: TimesFlush, each: impl FnMut(WorkerTime)) -> kiln_driver::Result<u64> {
        self.proxy.take_times(flush, each)
    }
}

impl Drop for IsolatedDevice {
    fn drop(&mut self) {
        // The thread that prepares a standby reads the tables; without a standby it waits for no answer.
        self.supervisor.dismiss_standby();
        self.standby.close();
        if let Some(thread) = self.standby_thread.take() {
            let _ = thread.join();
        }
        self.proxy.shared.close();
        self.supervisor.close();
    }
}

impl fmt::Debug for IsolatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in a worker, generation {}", self.proxy.info.name, self.generation())
    }
}
