//! What a runtime holds of the recovery of its device.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kiln_driver::Driver;
use kiln_driver::layer::Layered;
use kiln_isolate::{DeviceSpec, IsolatedDevice, WorkerEvent, WorkerProcess};
use kiln_mem::DeviceBlock;
use kiln_order::{DependencyTracker, Rules};

use super::recovery_thread::RecoveryThread;
use super::worker_activity::WorkerActivity;
use crate::device_state::{Keep, StateCell};
use crate::error::{Error, Misuse, Result};
use crate::ids::BlockId;
use crate::isolation::Process;
use crate::recovery::block_repair::{BlockRegistry, OwnPages, Sealer};
use crate::recovery::loss_detection::{LossNotifier, SubmissionMap};
use crate::recovery::report::{PostMortem, Reports};
use crate::resubmission::{Replay, StartMarks, SubmissionLog};
use crate::runtime::{ActivitySource, Block, DeviceRuntime, Inner, RecoveryHook, WorkerIdentity};

/// A device in a worker process, and what is written down to survive the loss of that.
pub(crate) struct WorkerRecovery {
    device: Arc<IsolatedDevice>,
    submissions: Arc<Layered<SubmissionMap>>,
    notifier: Arc<LossNotifier>,
    registry: Arc<BlockRegistry>,
    sealer: Arc<Sealer>,
    reports: Arc<Reports>,
    log: Option<Arc<SubmissionLog>>,
    rules: Rules,
    on_loss: Keep,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WorkerRecovery {
    /// The recovery of a runtime's device; none for a device in this process.
    pub(crate) fn of(runtime: &Inner) -> Option<&Self> {
        let hook: &dyn Any = runtime.recovery()?;
        hook.downcast_ref()
    }

    /// Starts a worker and has it open the device.
    pub(crate) fn open(backend: DeviceSpec, process: &Process, rules: Rules) -> Result<Self> {
        let notifier = Arc::new(LossNotifier::default());
        let signal = notifier.clone();
        let config = process.config(backend).observe(move |news| match news {
            WorkerEvent::Lost { cause } => signal.worker_lost(cause),
            WorkerEvent::Unprepared { process, what, error } => {
                tracing::warn!(process, what, %error, "a standby lacks something it would need");
            }
            _ => {}
        });
        let device = IsolatedDevice::open(config)?;
        if !device.info().features.page_export {
            return Err(Misuse::NotIsolatable { device: device.info().name.clone() }.into());
        }
        let log = match process.replay {
            Replay::Never => None,
            Replay::NotStarted => Some(Arc::new(SubmissionLog::new(StartMarks::make(&*device)?))),
        };
        Ok(Self {
            submissions: Arc::new(Layered::new(device.clone(), SubmissionMap::new(log.clone()))),
            log,
            rules,
            device,
            notifier,
            registry: Arc::default(),
            sealer: Arc::default(),
            reports: Arc::default(),
            on_loss: process.on_loss,
            thread: Mutex::default(),
        })
    }

    /// The device, for a runtime to be built over.
    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        self.submissions.clone()
    }

    pub(crate) fn device(&self) -> &Arc<IsolatedDevice> {
        &self.device
    }

    pub(crate) fn registry(&self) -> &BlockRegistry {
        &self.registry
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerIdentity for WorkerProcess {
    fn process(&self) -> u32 {
        self.id()
    }

    fn name(&self) -> &str {
        WorkerProcess::name(self)
    }
}

impl RecoveryHook for WorkerRecovery {
    fn connect(&self, tracker: &Arc<DependencyTracker>, state: &Arc<StateCell>) {
        if self.log.is_some() {
            state.defer();
        }
        self.submissions.layer().knows(tracker);
        self.notifier.connect(state, tracker);
    }

    fn check_worker(&self) {
        if let Some(cause) = self.device.cause() {
            self.notifier.worker_lost(&cause);
        }
    }

    fn start(&self, runtime: &DeviceRuntime) -> Result<()> {
        let recovery = RecoveryThread {
            device: self.device.clone(),
            submissions: self.submissions.clone(),
            notifier: self.notifier.clone(),
            registry: self.registry.clone(),
            sealer: self.sealer.clone(),
            reports: self.reports.clone(),
            log: self.log.clone(),
            rules: self.rules,
            on_loss: self.on_loss,
            state: runtime.inner().state().clone(),
            tracker: runtime.inner().tracker_handle().clone(),
            control: runtime.control_recovery()?,
        };
        let thread = std::thread::Builder::new().name("kiln recovery".into());
        let thread = thread.spawn(move || recovery.run()).map_err(Error::other)?;
        *self.thread() = Some(thread);
        Ok(())
    }

    fn abandon(&self) {
        self.device.abandon();
    }

    fn end(&self) {
        let thread = self.thread().take();
        // The last block may be dropped by the recovery thread itself, and with it the runtime.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
        self.sealer.end(&*self.device);
        if let Some(log) = &self.log {
            log.marks().end(&*self.device);
        }
    }

    fn activity(&self) -> std::result::Result<Box<dyn ActivitySource>, String> {
        Ok(Box::new(WorkerActivity::start(&self.device)?))
    }

    fn worker(&self) -> Box<dyn WorkerIdentity> {
        Box::new(self.device.worker_process())
    }

    fn replay_log(&self) -> Option<&SubmissionLog> {
        self.log.as_deref()
    }

    fn block_allocated(&self, block: &Arc<Block>) {
        self.registry.register(block);
    }

    fn block_dropped(&self, block: BlockId) {
        self.registry.strike(block);
    }

    fn find_block(&self, block: BlockId) -> Option<Arc<Block>> {
        self.registry.find(block)
    }

    fn make_writable(&self, runtime: &Inner, memory: &DeviceBlock) -> bool {
        OwnPages::reopen(runtime, self, memory)
    }
}

impl DeviceRuntime {
    /// What the last takeovers of its device found, kept and lost, the oldest first. Empty for a device in this process.
    pub fn post_mortems(&self) -> Vec<Arc<PostMortem>> {
        let Some(recovery) = WorkerRecovery::of(self.inner()) else { return Vec::new() };
        recovery.reports.all()
    }

    /// The isolated device below, to be asked about or to have its worker killed; none for a device in this process.
    pub fn isolated_device(&self) -> Option<&Arc<IsolatedDevice>> {
        WorkerRecovery::of(self.inner()).map(WorkerRecovery::device)
    }
}
