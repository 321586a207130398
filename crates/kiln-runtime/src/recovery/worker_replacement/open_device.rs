//! Opening a device where its configuration wants it: in this process or in a worker.

use std::sync::Arc;

use kiln_driver::Driver;
use kiln_isolate::DeviceSpec;
use kiln_mem::resource_stack::StackBase;
use kiln_probe::{CudaPlatform, Platform};

use super::worker_recovery::WorkerRecovery;
use crate::error::{Misuse, Result};
use crate::isolation::Isolation;
use crate::runtime::{DeviceRuntime, RecoveryHook, RuntimeConfig};

impl DeviceRuntime {
    /// A new runtime over a device that is opened for it, in this process or in a worker, as the configuration says.
    ///
    /// ```no_run
    /// use kiln::recovery::{DeviceSpec, Isolation, Process};
    /// use kiln::{DeviceRuntime, RuntimeConfig};
    ///
    /// kiln::worker_entry();
    /// let isolation = Isolation::Process(Process { standby: true, ..Process::default() });
    /// let gpu = DeviceRuntime::open(&DeviceSpec::cuda(0), RuntimeConfig { isolation, ..RuntimeConfig::default() })?;
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such device or it does not work; no worker can be started; its memory could not outlive the worker, because the device
    /// cannot hand pages to another process or the memory stack is not based on pages.
    pub fn open(backend: &DeviceSpec, config: RuntimeConfig) -> Result<Self> {
        config.check()?;
        match config.isolation.clone() {
            Isolation::InProcess => Self::from_driver(open_here(backend)?, config),
            Isolation::Process(process) => {
                let base = config.memory.stack.base();
                if !matches!(base, StackBase::Heap | StackBase::Pages) {
                    return Err(Misuse::MemoryOfWorker { base: base.to_string() }.into());
                }
                let recovery = WorkerRecovery::open(backend.clone(), &process, config.rules())?;
                let driver = recovery.driver();
                let memory = config.memory.clone().in_worker();
                let recovery: Option<Box<dyn RecoveryHook>> = Some(Box::new(recovery));
                Self::build(driver, config, recovery, &|driver, order| Ok(memory.build(driver, order)?))
            }
        }
    }
}

fn open_here(backend: &DeviceSpec) -> Result<Arc<dyn Driver>> {
    let unknown = || Misuse::UnknownBackend { name: backend.name().into() };
    match backend.name() {
        "cuda" => {
            let ordinal = backend.argument().try_into().map(u32::from_le_bytes).map_err(|_| unknown())?;
            Ok(CudaPlatform.open(ordinal)?)
        }
        "sim" => {
            let seed = backend.argument().try_into().map(u64::from_le_bytes).map_err(|_| unknown())?;
            Ok(kiln_probe::simulated_device(seed)?)
        }
        _ => Err(unknown().into()),
    }
}
