//! An isolated device: the proxy that programs use.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use kiln_driver::{DeviceInfo, DeviceKind, WallClock};

use crate::addresses::Addresses;
use crate::cause::Cause;
use crate::config::Config;
use crate::inventory::Inventory;
use crate::patience::Patience;
use crate::preparation::Preparation;
use crate::restarts::Restarts;
use crate::shared::Shared;
use crate::start_error::StartError;
use crate::streams::StreamTable;
use crate::supervisor::Supervisor;

/// A device whose driver lives in a worker process.
///
/// It is a [`Driver`](kiln_driver::Driver), which is how it is used. When its worker is gone every call says so;
/// [`take_over`](Self::take_over) puts another one in its place.
///
/// ```no_run
/// use kiln_driver::Driver;
/// use kiln_isolate::{Backend, Config, IsolatedDevice};
///
/// kiln_isolate::worker_entry();
/// let device = IsolatedDevice::open(Config::new(Backend::simulated(1)))?;
/// println!("{}", device.info().name);
/// # Ok::<(), kiln_isolate::StartError>(())
/// ```
pub struct IsolatedDevice {
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: Arc<Config>,
    pub(crate) info: DeviceInfo,
    /// What the worker said of its device, before this side changed what differs for a proxy.
    pub(crate) worker_info: DeviceInfo,
    pub(crate) clock: WallClock,
    pub(crate) objects: Arc<Inventory>,
    pub(crate) generation: AtomicU64,
    pub(crate) restarts: Mutex<Restarts>,
    pub(crate) patience: Arc<Patience>,
    /// Where reservations without a wish are placed on hardware.
    pub(crate) addresses: Option<Addresses>,
    pub(crate) supervisor: Supervisor,
    preparing: Option<JoinHandle<()>>,
}

impl IsolatedDevice {
    /// Starts a worker and has it open the device.
    ///
    /// # Errors
    /// [`StartError`] says why there is none; nothing is left of it then.
    pub fn open(config: Config) -> Result<Arc<Self>, StartError> {
        let config = Arc::new(config);
        let streams = Arc::new(StreamTable::default());
        let preparation = Arc::new(Preparation::default());
        let patience = Arc::new(Patience::default());
        let (supervisor, first) =
            Supervisor::start(config.clone(), streams.clone(), preparation.clone(), patience.clone())?;
        let mut info = first.info.clone();
        // A handle of another process is no use here, and memory of this process cannot be reached from there.
        info.features.native_handles = false;
        info.features.host_registration = false;
        let objects = Arc::new(Inventory::new(info.key));
        let wanted = config.standby.then(|| preparation.start(objects.clone(), config.clone()));
        let preparing = wanted.transpose().map_err(StartError::Thread)?;
        supervisor.settle();
        Ok(Arc::new(Self {
            shared: Shared::new(first.worker.link, streams, preparation),
            config,
            addresses: (info.kind == DeviceKind::Cuda).then(Addresses::default),
            info,
            worker_info: first.info,
            clock: WallClock::new(),
            objects,
            generation: AtomicU64::new(1),
            restarts: Mutex::default(),
            patience,
            supervisor,
            preparing,
        }))
    }

    /// Which worker this is: 1 for the first, and one more for each that took over.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Why the worker in use is no longer there, if it is not.
    pub fn cause(&self) -> Option<Cause> {
        self.shared.link().lost().map(|lost| lost.cause.clone())
    }

    /// Ends the worker at once, whatever it does. Every call and every wait ends with that, until another takes over.
    pub fn kill_worker(&self) {
        self.supervisor.kill(Cause::Killed);
    }

    /// Has no worker take over any more: a takeover that pauses, or waits for a worker to start, ends, and none begins. For whoever is about to let go of the device while another
    /// thread brings it back.
    pub fn abandon(&self) {
        self.patience.end();
    }
}

impl Drop for IsolatedDevice {
    fn drop(&mut self) {
        // What the thread that prepares a standby looks at ends after that look. Without a standby it waits for nothing.
        self.supervisor.dismiss();
        self.shared.preparation.close();
        if let Some(thread) = self.preparing.take() {
            let _ = thread.join();
        }
        self.shared.close();
        self.supervisor.close();
    }
}

impl fmt::Debug for IsolatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in a worker, generation {}", self.info.name, self.generation())
    }
}
