//! One device, ready to be used: its streams, its memory, its order.

mod block;
mod block_id_table;
mod block_source;
mod config;
mod drain_frees;
pub(crate) mod ended_work;
mod extensions;
pub(crate) mod external_state;
mod finding_list;
mod freed_uses;
mod inner;
mod memory_config;
pub(crate) mod memory_pressure;
#[cfg(feature = "metrics")]
mod metered;
pub(crate) mod named_work;
mod process_end;
#[cfg(unix)]
pub(crate) mod published;
#[cfg(not(unix))]
#[path = "runtime/published_unsupported.rs"]
pub(crate) mod published;
pub(crate) mod recording;
mod recoverable_submit;
mod recovery_hook;
mod refused_work;
mod runtime_table;
mod shutdown;
mod staging_pool;
mod state_watch;
mod stream;
mod stream_pool;
mod submit;
mod telemetry_source;
mod ticket;
mod timing;
pub(crate) mod transfer;
mod user_held_objects;
pub(crate) mod worker_process;

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{DeviceInfo, Driver, MemoryInfo};
use kiln_mem::{Budget, MemoryResource, MemoryResourceExt, Order};
use kiln_trace::HostWaitCause;

pub use config::RuntimeConfig;
pub use drain_frees::Drained;
pub use finding_list::FindingList;
pub use memory_config::MemoryConfig;
pub use recording::{DeviceTimes, TakenTimes, UnknownTimes};
pub use state_watch::{Changed, StateWatch, Subscription};
pub use stream::Stream;
pub use stream_pool::StreamPool;
pub use ticket::Ticket;
pub use timing::{Timed, Timing};

pub(crate) use block::Block;
pub(crate) use inner::{Inner, MakeMemory};
#[cfg(feature = "metrics")]
pub(crate) use metered::Metered;
pub(crate) use recording::{ActivitySource, WorkLabel};
pub(crate) use recovery_hook::{RecoveryHook, WorkerIdentity};
pub(crate) use runtime_table::{RuntimeLookup, process_runtimes};
pub(crate) use stream::Keep;
pub(crate) use telemetry_source::Meters;

use crate::device_state::Phase;
use crate::error::Result;
use crate::isolation::Isolation;

/// The runtime of one device.
///
/// Cheap to clone; the device is given back when the last clone is dropped. Handles to its memory outlive it and then say
/// that they are stale.
///
/// ```
/// use kiln::DeviceRuntime;
///
/// let gpu = DeviceRuntime::simulated(1)?; // `auto()` takes a CUDA device where there is one
/// let numbers = gpu.upload(&[1_u32, 2, 3])?;
/// let zeros = gpu.zeros::<u32>(3)?;
/// assert_eq!((numbers.download()?, zeros.download()?), (vec![1, 2, 3], vec![0; 3]));
///
/// drop(gpu); // the last clone: the device is released
/// assert!(numbers.download().is_err());
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone)]
pub struct DeviceRuntime {
    inner: Arc<Inner>,
}

impl DeviceRuntime {
    /// A runtime over a driver that is open already, with the memory its configuration describes.
    ///
    /// # Errors
    /// What the driver answers while the runtime's own objects are made; a memory stack that the device cannot have.
    pub fn from_driver(driver: Arc<dyn Driver>, config: RuntimeConfig) -> Result<Self> {
        let memory = config.memory.clone();
        Self::with_resource(driver, config, |driver, order| Ok(memory.build(driver, order)?))
    }

    /// A new runtime over a new simulated device; the seed picks the order in which ready work runs.
    ///
    /// # Errors
    /// If simulated devices are not part of this build (feature `sim`).
    pub fn simulated(seed: u64) -> Result<Self> {
        Self::from_driver(kiln_probe::simulated_device(seed)?, RuntimeConfig::default())
    }

    /// A runtime whose memory is a stack of the caller's own. `make` gets the device and the order that the stack has to ask.
    ///
    /// # Errors
    /// What `make` answers; a stack that gives out memory of another device; a configuration that wants a worker process, since the
    /// driver is open in this one.
    pub fn with_resource(
        driver: Arc<dyn Driver>,
        config: RuntimeConfig,
        make: impl Fn(&Arc<dyn Driver>, Arc<dyn Order>) -> Result<Arc<dyn MemoryResource>>,
    ) -> Result<Self> {
        if config.isolation != Isolation::InProcess {
            return Err(Isolation::refusal());
        }
        Self::build(driver, config, None, &make)
    }

    pub(crate) fn build(
        driver: Arc<dyn Driver>,
        config: RuntimeConfig,
        recovery: Option<Box<dyn RecoveryHook>>,
        make: MakeMemory<'_>,
    ) -> Result<Self> {
        let runtime = Self { inner: Inner::new(driver, config, recovery, make)? };
        runtime.inner.check_memory()?;
        if let Some(recovery) = runtime.inner.recovery() {
            recovery.start(&runtime)?;
        }
        runtime.inner.trace_as_environment_says()?;
        published::publish_as_environment_says()?;
        // A device that was lost meanwhile stays so, and says why at the first call.
        let _ = runtime.inner.state().change(Phase::Ready);
        Ok(runtime)
    }

    /// The one budget of this device in this process: what all its runtimes take from it is charged here.
    pub fn budget(&self) -> Budget {
        Budget::of_device(self.info())
    }

    /// The memory stack; its `Display` prints it.
    pub fn memory(&self) -> &Arc<dyn MemoryResource> {
        self.inner.memory()
    }

    /// The device below.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.inner.driver()
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        self.driver().info()
    }

    /// Its number among the devices of its kind.
    pub fn ordinal(&self) -> u32 {
        self.info().ordinal
    }

    /// What is free right now.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        Ok(self.driver().memory_info()?)
    }

    /// The streams that can be leased.
    pub fn streams(&self) -> &StreamPool {
        self.inner.pool()
    }

    /// The stream work goes to when nothing else is said.
    pub fn main_stream(&self) -> &Stream {
        self.inner.main_stream()
    }

    /// A stream of the usual priority, given back when its last clone is dropped.
    ///
    /// # Errors
    /// If all streams the configuration allows are leased.
    pub fn stream(&self) -> Result<Stream> {
        self.streams().lease()
    }

    /// Waits until everything submitted so far, on every stream, is done.
    ///
    /// # Errors
    /// The fault, if the device is lost. One that comes back has not done the work: that is told until something new is submitted to any
    /// of its streams, also to those who ask only then. Where several threads submit, tickets tell for ever what became of each one's work.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.inner.waiting(HostWaitCause::Synchronize, None, || self.inner.synchronize_all(None)).map(|_| ())
    }

    /// As [`synchronize`](Self::synchronize), but no longer than this; false if time ran out.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    #[track_caller]
    pub fn synchronize_within(&self, limit: Duration) -> Result<bool> {
        self.inner.waiting(HostWaitCause::Synchronize, None, || self.inner.synchronize_all(Some(limit)))
    }

    /// Bytes of blocks that are alive or whose last use is not known to be done.
    pub fn bytes_outstanding(&self) -> u64 {
        self.memory().bytes_outstanding()
    }

    /// Makes memory available again that was freed and whose last use is done by now. Returns how many bytes that were. It
    /// does not wait; [`drain_pending`](Self::drain_pending) does.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    pub fn reap_pending(&self) -> Result<u64> {
        self.inner.reap()
    }

    /// Gives the pinned memory that is kept for transfers, and that none of them uses, back to the host. Returns how many bytes
    /// that were.
    pub fn release_pinned(&self) -> u64 {
        self.inner.staging().release_all(self.inner.tracker())
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl std::fmt::Debug for DeviceRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let info = self.info();
        write!(f, "runtime of {} device {} ({})", info.kind, info.ordinal, info.name)
    }
}
