//! An isolated device: the proxy that programs use.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kiln_driver::{DeviceInfo, DeviceKind, Slots, WallClock, kind};

use crate::cause::Cause;
use crate::config::Config;
use crate::objects::{Block, Event, Graph, Host, Kernel, Module, Pages, Range, Stream};
use crate::restarts::Restarts;
use crate::shared::Shared;
use crate::start_error::StartError;
use crate::streams::StreamTable;
use crate::supervisor::Supervisor;

/// Where reservations without a wish are placed on hardware: far from what the driver and the system place themselves,
/// so that another process is likely to get the same addresses.
const FIRST_ADDRESS: u64 = 0x6000_0000_0000;

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
    pub(crate) graphs: Slots<kind::Graph, Graph>,
    pub(crate) functions: Slots<kind::Function, Arc<Kernel>>,
    pub(crate) modules: Slots<kind::Module, Module>,
    pub(crate) events: Slots<kind::Event, Event>,
    pub(crate) streams: Slots<kind::Stream, Stream>,
    pub(crate) memory: Slots<kind::Memory, Block>,
    pub(crate) reservations: Slots<kind::Reservation, Arc<Range>>,
    pub(crate) pages: Slots<kind::Pages, Arc<Pages>>,
    pub(crate) hosts: Slots<kind::Host, Host>,
    pub(crate) generation: AtomicU64,
    pub(crate) restarts: Mutex<Restarts>,
    pub(crate) next_address: Option<AtomicU64>,
    pub(crate) supervisor: Supervisor,
}

impl IsolatedDevice {
    /// Starts a worker and has it open the device.
    ///
    /// # Errors
    /// [`StartError`] says why there is none; nothing is left of it then.
    pub fn open(config: Config) -> Result<Arc<Self>, StartError> {
        let config = Arc::new(config);
        let streams = Arc::new(StreamTable::default());
        let (supervisor, first) = Supervisor::start(config.clone(), streams.clone())?;
        let mut info = first.info.clone();
        // A handle of another process is no use here, and memory of this process cannot be reached from there.
        info.features.native_handles = false;
        info.features.host_registration = false;
        let key = info.key;
        Ok(Arc::new(Self {
            shared: Shared::new(first.link, streams),
            config,
            next_address: (info.kind == DeviceKind::Cuda).then(|| AtomicU64::new(FIRST_ADDRESS)),
            info,
            worker_info: first.info,
            clock: WallClock::new(),
            graphs: Slots::new(key),
            functions: Slots::new(key),
            modules: Slots::new(key),
            events: Slots::new(key),
            streams: Slots::new(key),
            memory: Slots::new(key),
            reservations: Slots::new(key),
            pages: Slots::new(key),
            hosts: Slots::new(key),
            generation: AtomicU64::new(1),
            restarts: Mutex::default(),
            supervisor,
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
}

impl Drop for IsolatedDevice {
    fn drop(&mut self) {
        self.shared.close();
        self.supervisor.close();
    }
}

impl fmt::Debug for IsolatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in a worker, generation {}", self.info.name, self.generation())
    }
}
