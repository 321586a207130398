//! What the clones of a runtime share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kiln_cuda::nvtx;
use kiln_driver::layer::Layered;
use kiln_driver::{
    Base, DeviceMemory, Driver, ForeignMemory, MemoryId, MemoryRequest, Object, StreamRequest, Timeout,
};
use kiln_mem::layer::Annotated;
use kiln_mem::{AllocationRequest, MemoryResource, MemoryResourceExt, Order};
use kiln_order::{DependencyTracker, Stamp};

use super::block_id_table::NamedBlocks;
use super::config::RuntimeConfig;
use super::extensions::Extensions;
use super::recording::DeviceRecording;
use super::recovery_hook::RecoveryHook;
use super::runtime_table::{EndedRuntime, RuntimeKey};
use super::staging_pool::Staging;
use super::stream::{Home, Stream};
use super::stream_pool::StreamPool;
use super::telemetry_source::{Meters, TRIAL_BYTES};
use super::timing::Timers;
use super::user_held_objects::LentObjects;
use crate::code_cache::{DiskCache, Surroundings};
use crate::completion::Reactor;
use crate::counters::{Baseline, Count, Counters};
use crate::device_state::{FaultDetector, Phase, StateCell};
use crate::error::{Error, Misuse, Result, Stale};
use crate::findings::{FindingLayer, FindingLog, Findings};
use crate::ids::BlockId;
use crate::wake::WakeSignal;

/// How long the end of a runtime waits for work that is still running, before it releases the device anyway.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Makes the memory of a runtime, which asks the runtime's own order.
pub(crate) type MakeMemory<'a> =
    &'a dyn Fn(&Arc<dyn Driver>, Arc<dyn Order>) -> Result<Arc<dyn MemoryResource>>;

/// The shared part of a runtime.
// In this order and place: what every submission looks at stands first, in one cache line.
#[repr(C, align(64))]
pub(crate) struct Inner {
    driver: Arc<dyn Driver>,
    state: Arc<StateCell>,
    tracker: Arc<DependencyTracker>,
    key: RuntimeKey,
    /// Set if the device lives in a worker process.
    recovery: Option<Box<dyn RecoveryHook>>,
    /// Whether `recording` is set or a tool listens to ranges: what every submission looks at.
    is_recorded: AtomicBool,
    reactor: Reactor,
    pool: Arc<StreamPool>,
    main: Stream,
    memory: Arc<dyn MemoryResource>,
    staging: Arc<Staging>,
    disk_cache: Arc<DiskCache>,
    extensions: Arc<Extensions>,
    config: RuntimeConfig,
    lent: Arc<LentObjects>,
    /// Names of other libraries' memory that buffers still hold; they go with the runtime.
    adopted: Mutex<HashSet<MemoryId>>,
    /// The number of the next block.
    blocks: AtomicU64,
    named_blocks: NamedBlocks,
    /// What belongs to no stream, in numbers.
    counters: Arc<Counters>,
    baseline: Baseline,
    timers: Timers,
    /// What the device found; none if it checks nothing, or findings are ignored.
    findings: Option<Arc<FindingLog>>,
    /// Set once what it does is recorded.
    recording: OnceLock<DeviceRecording>,
    /// Set once the times of submissions and waits are asked for.
    #[cfg(feature = "metrics")]
    metered: OnceLock<super::metered::Metered>,
}

impl Inner {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        config: RuntimeConfig,
        recovery: Option<Box<dyn RecoveryHook>>,
        make: MakeMemory<'_>,
    ) -> Result<Arc<Self>> {
        config.check()?;
        let setting = if config.findings_variable { config.findings.or_variable()? } else { config.findings };
        let is_checked = driver.info().features.access_checks && setting != Findings::Ignore;
        let findings = is_checked.then(|| Arc::new(FindingLog::new(setting)));
        let driver: Arc<dyn Driver> = match &findings {
            Some(log) => Arc::new(Layered::new(driver, FindingLayer(log.clone()))),
            None => driver,
        };
        let signal = Arc::new(WakeSignal::default());
        let state = Arc::new(StateCell::new(signal.clone()));
        let watched = Arc::new(Layered::new(driver, FaultDetector::new(state.clone())));
        let driver: Arc<dyn Driver> = watched.clone();
        let tracker =
            Arc::new(DependencyTracker::new(driver.clone(), config.recording).with_rules(config.rules()));
        watched.layer().knows(&tracker);
        if let Some(findings) = &findings {
            findings.knows(&tracker);
        }
        if let Some(recovery) = &recovery {
            recovery.connect(&tracker, &state);
        }
        let reactor = Reactor::new(signal, tracker.clone(), state.clone());
        let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
        let lane = tracker.add_lasting(stream)?;
        let memory = Annotated::around(&driver, make(&driver, tracker.clone())?);
        let key = RuntimeKey::fresh();
        let inner = Arc::new_cyclic(|weak: &Weak<Self>| Self {
            key,
            pool: Arc::new(StreamPool::new(config.max_streams, weak.clone())),
            main: Stream::new(lane, weak.clone(), 0, Home::Runtime),
            memory,
            staging: Arc::new(Staging::new(config.max_staging_bytes)),
            disk_cache: Arc::new(DiskCache::new(&config.cache, &Surroundings::of_process())),
            extensions: Arc::default(),
            driver,
            state,
            reactor,
            tracker,
            recovery,
            config,
            lent: Arc::default(),
            adopted: Mutex::default(),
            blocks: AtomicU64::new(BlockId::first_of(key.number())),
            named_blocks: NamedBlocks::default(),
            counters: Arc::default(),
            baseline: Baseline::default(),
            timers: Timers::default(),
            findings,
            is_recorded: AtomicBool::new(hears_submissions()),
            recording: OnceLock::new(),
            #[cfg(feature = "metrics")]
            metered: OnceLock::new(),
        });
        key.enter(Arc::downgrade(&inner), inner.meters());
        inner.list_findings();
        Ok(inner)
    }

    /// Its name.
    #[inline]
    pub(crate) fn key(&self) -> RuntimeKey {
        self.key
    }

    #[inline]
    pub(crate) fn state(&self) -> &Arc<StateCell> {
        &self.state
    }

    /// What the device found; none if it checks nothing, or findings are ignored.
    pub(crate) fn findings(&self) -> Option<&Arc<FindingLog>> {
        self.findings.as_ref()
    }

    /// Whether what it does is recorded, or told to a tool.
    #[inline(always)]
    pub(super) fn is_recorded(&self) -> bool {
        #[cfg(feature = "mutations")]
        super::recording::switch_reads::note();
        self.is_recorded.load(Ordering::Relaxed)
    }

    /// Its recording; none if nothing is recorded.
    #[inline]
    pub(super) fn recording(&self) -> Option<&DeviceRecording> {
        if self.is_recorded() { self.recording.get() } else { None }
    }

    /// Has the times of submissions and waits taken from here on.
    #[cfg(feature = "metrics")]
    pub(crate) fn meter(&self, make: impl FnOnce() -> super::metered::Metered) {
        self.metered.get_or_init(make);
        self.is_recorded.store(true, Ordering::Release);
    }

    /// Where the times of submissions and waits go.
    #[cfg(feature = "metrics")]
    pub(super) fn metered(&self) -> Option<&super::metered::Metered> {
        self.metered.get()
    }

    /// Records what it does from here on; false if it is recorded already.
    pub(super) fn set_recording(&self, recording: DeviceRecording) -> bool {
        let is_first = self.recording.set(recording).is_ok();
        self.is_recorded.store(true, Ordering::Release);
        is_first
    }

    /// The finding that fails work that is done, if one does.
    #[inline]
    pub(crate) fn settle(&self, stamp: Stamp) -> Result<()> {
        match &self.findings {
            None => Ok(()),
            Some(findings) => {
                let settled = findings.settle(stamp);
                // A program that is killed next has it in its recording.
                if let Some(recording) = self.recording() {
                    recording.note_findings(self, false);
                }
                settled
            }
        }
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Refuses work that the device does not take, and says why.
    #[inline]
    pub(crate) fn check_ready(&self) -> Result<()> {
        if let Some(recovery) = &self.recovery {
            recovery.check_worker();
        }
        if self.state.is_ready() { Ok(()) } else { self.refuse() }
    }

    /// The fault, if the device failed, also where nothing is left to ask it about.
    pub(crate) fn check_not_failed(&self) -> Result<()> {
        if self.state.phase() == Phase::Failed { self.refuse() } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    #[inline]
    pub(crate) fn tracker(&self) -> &DependencyTracker {
        &self.tracker
    }

    pub(crate) fn tracker_handle(&self) -> &Arc<DependencyTracker> {
        &self.tracker
    }

    /// What brings the device back when its worker is lost; none if it lives in this process.
    #[inline]
    pub(crate) fn recovery(&self) -> Option<&dyn RecoveryHook> {
        self.recovery.as_deref()
    }

    pub(crate) fn pool(&self) -> &StreamPool {
        &self.pool
    }

    pub(crate) fn main_stream(&self) -> &Stream {
        &self.main
    }

    pub(crate) fn memory(&self) -> &Arc<dyn MemoryResource> {
        &self.memory
    }

    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    pub(crate) fn disk_cache(&self) -> &Arc<DiskCache> {
        &self.disk_cache
    }

    /// What the layers above keep with this runtime.
    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    pub(crate) fn config(&self) -> &RuntimeConfig {
        &self.config
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn baseline(&self) -> &Baseline {
        &self.baseline
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Refuses a memory stack that belongs to another device.
    pub(crate) fn check_memory(&self) -> Result<()> {
        let block =
            self.memory.allocate(&AllocationRequest::new(TRIAL_BYTES, self.main.lane().stream_ref()))?;
        let key = block.device_place().map(|place| match place.base {
            Base::Memory(id) => id.device(),
            Base::Reservation(id) => id.device(),
        });
        let here = self.driver.info().key;
        self.memory.free(block).map_err(|failure| failure.error)?;
        if key == Some(here) { Ok(()) } else { Err(Misuse::ForeignMemory.into()) }
    }

    pub(crate) fn reap(&self) -> Result<u64> {
        self.destroy_retired();
        Ok(self.memory.reap_pending()?.freed_bytes)
    }

    /// Whether a module or a graph was dropped that work may still use.
    pub(super) fn has_retired(&self) -> bool {
        self.lent.has_retired()
    }

    /// A use of blocks was prepared and then dropped.
    pub(crate) fn note_unfinished_use(&self) {
        self.counters.add(Count::UnfinishedUses, 1);
    }

    pub(super) fn named_blocks(&self) -> &NamedBlocks {
        &self.named_blocks
    }

    /// The number of a block that no block had before.
    pub(crate) fn next_block(&self) -> u64 {
        self.blocks.fetch_add(1, Ordering::Relaxed)
    }

    /// The parts that count.
    pub(crate) fn meters(&self) -> Meters {
        Meters {
            driver: self.driver.clone(),
            tracker: self.tracker.clone(),
            counters: self.counters.clone(),
            extensions: self.extensions.clone(),
            lent: self.lent.clone(),
            pool: self.pool.clone(),
            staging: self.staging.clone(),
            memory: self.memory.clone(),
            state: self.state.clone(),
            limit_bytes: self.config().memory.limit_bytes,
        }
    }

    /// Remembers an object that a handle outside holds, so that it is destroyed with the runtime if the handle outlives it.
    pub(crate) fn lend(&self, object: impl Into<Object>) {
        self.lent.lend(object.into());
    }

    /// The handle gives it back.
    pub(crate) fn take_back(&self, object: impl Into<Object>) {
        self.lent.take_back(object.into());
    }

    /// Gives a module or a graph back once everything submitted so far is done; it may be used by that.
    pub(crate) fn retire(&self, object: impl Into<Object>) {
        self.lent.retire(object.into(), &self.tracker);
        self.destroy_retired();
    }

    /// Names memory of another library.
    pub(crate) fn adopt(&self, memory: ForeignMemory) -> Result<DeviceMemory> {
        let memory = self.driver.allocate(MemoryRequest::Foreign(memory))?;
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).insert(memory.id);
        Ok(memory)
    }

    /// Gives the name up; the memory is left alone.
    pub(crate) fn disown(&self, memory: MemoryId) {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).remove(&memory);
        // Only the name is given back, and a lost device has no names.
        let _ = self.driver.free(memory, None);
    }

    fn destroy_retired(&self) {
        self.lent.destroy_retired(&self.tracker, &*self.driver);
    }

    /// Waits until everything submitted so far is done, and says so only if it was.
    pub(crate) fn synchronize_all(&self, limit: Option<Duration>) -> Result<bool> {
        let latest = self.tracker.latest_stamps();
        let done = self.synchronize(limit)?;
        self.check_not_failed()?;
        if done {
            self.check_latest(&latest)?;
            self.findings.as_ref().map_or(Ok(()), |findings| findings.settle_all())?;
        }
        Ok(done)
    }

    /// Waits until everything submitted so far is over; false if time ran out.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Result<bool> {
        let clock = self.driver.clock();
        // A limit that no clock reaches is none.
        let end = limit.and_then(|limit| clock.now().checked_add(limit));
        let generation = self.state.generation();
        let latest = self.tracker.latest_stamps();
        for stamp in &latest {
            let timeout = end.map_or(Timeout::Never, |end| Timeout::After(end.saturating_sub(clock.now())));
            // Work that is ended from here on is told at once, and not when the device is through with it.
            let ended = || self.state.ended_since(generation, &latest);
            if !self.wait_out_while(*stamp, timeout, &|| ended().is_none())? {
                return ended().map_or(Ok(false), |cause| Err(Error::of_cause(&cause)));
            }
        }
        // The device may have been lost meanwhile, and have another worker that knows nothing of the work; a part of it may have been done again.
        for stamp in &latest {
            self.check_stream(generation, stamp.stream)?;
        }
        Ok(true)
    }
}

impl Drop for Inner {
    /// Releases the device in an order that cannot crash it: work first, then memory, then events and streams. A lost device
    /// answers every call with its fault, which no longer matters.
    fn drop(&mut self) {
        let drained = self.shut_down(DRAIN_LIMIT);
        if let Some(recovery) = &self.recovery {
            recovery.end();
        }
        self.end_recording();
        self.print_unread();
        self.print_leaks();
        // Waiters that are still there need no device, and nothing else asks it.
        self.reactor.stop();
        self.destroy_retired();
        for memory in std::mem::take(self.adopted.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            let _ = self.driver.free(memory, None);
        }
        self.lent.destroy_all(&*self.driver);
        self.staging.destroy_all(&*self.driver);
        self.tracker.destroy_events();
        self.timers.destroy_all(&*self.driver);
        for stream in self.tracker.streams() {
            let _ = self.driver.destroy(stream.into());
        }
        let reason = match drained {
            Ok(true) => None,
            Ok(false) => Some(Stale::DeviceDropped.into()),
            Err(error) => Some(error),
        };
        let cut_short = reason.map(|reason| (self.tracker.host().snapshot(), reason));
        let findings = self.findings.as_ref().map(|log| log.take_failures()).unwrap_or_default();
        self.key.leave(EndedRuntime { losses: self.state.losses(), cut_short, findings });
        super::published::runtime_ended();
    }
}

/// Whether a tool listens to ranges around submissions. One that wanted to and cannot is told of.
fn hears_submissions() -> bool {
    if let nvtx::Attachment::Failed(why) = nvtx::attachment() {
        tracing::warn!(target: "kiln", "{why}");
    }
    nvtx::is_attached()
}
