//! What a runtime holds of the survival of its device.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kiln_driver::Driver;
use kiln_driver::layer::Layered;
use kiln_isolate::{DeviceSpec, IsolatedDevice, WorkerEvent};
use kiln_mem::DeviceBlock;
use kiln_order::{DependencyTracker, Rules};

use super::alarm::Alarm;
use super::census::Census;
use super::guardian::Guardian;
use super::ledger::Ledger;
use super::post_mortem::PostMortem;
use super::read_only::OwnPages;
use super::seal::Sealer;
use crate::error::{Error, Misuse, Result};
use crate::ids::BlockId;
use crate::isolation::Process;
use crate::replay::{Log, Marks, Replay};
use crate::runtime::{Block, DeviceRuntime, Inner, RecoveryHook};
use crate::state::{Keep, StateCell};

/// Reports that are kept.
const REPORTS: usize = 16;

/// A device in a worker process, and what is written down to survive the loss of that.
pub(crate) struct Survival {
    device: Arc<IsolatedDevice>,
    ledger: Arc<Layered<Ledger>>,
    alarm: Arc<Alarm>,
    census: Arc<Census>,
    sealer: Arc<Sealer>,
    reports: Arc<Reports>,
    log: Option<Arc<Log>>,
    rules: Rules,
    on_loss: Keep,
    guardian: Mutex<Option<JoinHandle<()>>>,
}

/// The last takeovers.
#[derive(Default)]
pub(super) struct Reports(Mutex<VecDeque<Arc<PostMortem>>>);

impl Survival {
    /// The recovery of a runtime's device; none for a device in this process.
    pub(super) fn of(runtime: &Inner) -> Option<&Self> {
        let hook: &dyn Any = runtime.recovery()?;
        hook.downcast_ref()
    }

    /// Starts a worker and has it open the device.
    pub(crate) fn open(backend: DeviceSpec, process: &Process, rules: Rules) -> Result<Self> {
        let alarm = Arc::new(Alarm::default());
        let bell = alarm.clone();
        let config = process.config(backend).observe(move |news| match news {
            WorkerEvent::Lost { cause } => bell.raise(cause),
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
            Replay::NotStarted => Some(Arc::new(Log::new(Marks::make(&*device)?))),
        };
        Ok(Self {
            ledger: Arc::new(Layered::new(device.clone(), Ledger::new(log.clone()))),
            log,
            rules,
            device,
            alarm,
            census: Arc::default(),
            sealer: Arc::default(),
            reports: Arc::default(),
            on_loss: process.on_loss,
            guardian: Mutex::default(),
        })
    }

    /// The device, for a runtime to be built over.
    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        self.ledger.clone()
    }

    pub(crate) fn device(&self) -> &Arc<IsolatedDevice> {
        &self.device
    }

    pub(crate) fn census(&self) -> &Census {
        &self.census
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    fn guardian(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.guardian.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecoveryHook for Survival {
    fn connect(&self, tracker: &Arc<DependencyTracker>, state: &Arc<StateCell>) {
        if self.log.is_some() {
            state.defer();
        }
        self.ledger.layer().knows(tracker);
        self.alarm.connect(state, tracker);
    }

    fn check_worker(&self) {
        if let Some(cause) = self.device.cause() {
            self.alarm.raise(&cause);
        }
    }

    fn start(&self, runtime: &DeviceRuntime) -> Result<()> {
        let guardian = Guardian {
            device: self.device.clone(),
            ledger: self.ledger.clone(),
            alarm: self.alarm.clone(),
            census: self.census.clone(),
            sealer: self.sealer.clone(),
            reports: self.reports.clone(),
            log: self.log.clone(),
            rules: self.rules,
            on_loss: self.on_loss,
            state: runtime.inner().state().clone(),
            tracker: runtime.inner().tracker_handle().clone(),
            supervisor: runtime.supervise()?,
        };
        let thread = std::thread::Builder::new().name("kiln guardian".into());
        let thread = thread.spawn(move || guardian.run()).map_err(Error::other)?;
        *self.guardian() = Some(thread);
        Ok(())
    }

    fn abandon(&self) {
        self.device.abandon();
    }

    fn end(&self) {
        let thread = self.guardian().take();
        // The last block may be dropped by the guardian itself, and with it the runtime.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
        self.sealer.end(&*self.device);
        if let Some(log) = &self.log {
            log.marks().end(&*self.device);
        }
    }

    fn replay_log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    fn block_allocated(&self, block: &Arc<Block>) {
        self.census.register(block);
    }

    fn block_dropped(&self, block: BlockId) {
        self.census.strike(block);
    }

    fn find_block(&self, block: BlockId) -> Option<Arc<Block>> {
        self.census.find(block)
    }

    fn make_writable(&self, runtime: &Inner, memory: &DeviceBlock) -> bool {
        OwnPages::reopen(runtime, self, memory)
    }
}

impl Reports {
    pub(super) fn push(&self, report: PostMortem) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() == REPORTS {
            reports.pop_front();
        }
        reports.push_back(Arc::new(report));
    }
}

impl DeviceRuntime {
    /// What the last takeovers of its device found, kept and lost, the oldest first. Empty for a device in this process.
    pub fn post_mortems(&self) -> Vec<Arc<PostMortem>> {
        let Some(survival) = Survival::of(self.inner()) else { return Vec::new() };
        survival.reports.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The isolated device below, to be asked about or to have its worker killed; none for a device in this process.
    pub fn isolated_device(&self) -> Option<&Arc<IsolatedDevice>> {
        Survival::of(self.inner()).map(Survival::device)
    }
}
