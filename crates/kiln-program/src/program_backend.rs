//! `Backend`: a device that compiles programs and keeps the compiled ones.

mod compiled_program;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_ir::{Program, PtxTarget};
use kiln_mem::MemoryResourceExt;
use kiln_runtime::{DeviceRuntime, Result};

use crate::error::ProgramError;

pub use compiled_program::Pipeline;

/// A device that runs programs. Clones are the same backend.
#[derive(Clone)]
pub struct Backend {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: DeviceRuntime,
    /// By the text of the program. A slot's own lock is held while its pipeline is made, so that each is made once; the map's is not.
    pipelines: Mutex<HashMap<String, Slot>>,
}

type Slot = Arc<Mutex<Weak<Pipeline>>>;

impl Backend {
    /// The best device of this process, or a simulated one where there is none.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::auto`].
    pub fn acquire() -> Result<Self> {
        Ok(Self::over(DeviceRuntime::auto()?.clone()))
    }

    /// The device with that ordinal: a CUDA device, or a simulated one under the policy `Simulate`.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::try_get`].
    pub fn acquire_ordinal(ordinal: u32) -> Result<Self> {
        Ok(Self::over(DeviceRuntime::try_get(ordinal)?.clone()))
    }

    /// A CUDA device; never a simulated one.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::cuda`].
    pub fn acquire_cuda(ordinal: u32) -> Result<Self> {
        Ok(Self::over(DeviceRuntime::cuda(ordinal)?.clone()))
    }

    /// A runtime of the caller's.
    pub fn over(runtime: DeviceRuntime) -> Self {
        Self { shared: Arc::new(Shared { runtime, pipelines: Mutex::default() }) }
    }

    /// The runtime below.
    pub fn runtime(&self) -> &DeviceRuntime {
        &self.shared.runtime
    }

    /// Gives back what is not used: device memory to the device, pinned memory to the host, pipelines without handles. Nothing that is
    /// in use is touched, so this may be called at any time. Says how many bytes went back.
    ///
    /// # Errors
    /// What the driver says.
    pub fn cleanup(&self) -> Result<u64> {
        let runtime = self.runtime();
        self.pipelines().retain(is_used);
        runtime.reap_pending()?;
        let pinned_bytes = runtime.release_pinned();
        Ok(runtime.memory().trim()?.released_bytes + pinned_bytes)
    }

    /// Makes a program ready to run. The same program is compiled once while its pipeline is held, and its machine code is kept beyond that,
    /// on disk, by the code cache of the runtime.
    ///
    /// # Errors
    /// A device that is too old; what the loader says.
    pub fn compile(&self, program: &Program) -> Result<Arc<Pipeline>> {
        let slot = {
            let mut pipelines = self.pipelines();
            pipelines.retain(is_used);
            pipelines.entry(program.to_string()).or_default().clone()
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = slot.upgrade() {
            pipeline.count_found();
            return Ok(pipeline);
        }
        let capability = self.runtime().info().capability;
        let target = PtxTarget::for_device(capability.major * 10 + capability.minor)
            .ok_or_else(|| ProgramError::DeviceTooOld { capability: capability.to_string() })?;
        let pipeline = Arc::new(Pipeline::new(self.clone(), program.clone(), target)?);
        *slot = Arc::downgrade(&pipeline);
        Ok(pipeline)
    }

    fn pipelines(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.shared.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pipeline is held, or about to be.
fn is_used(_: &String, slot: &mut Slot) -> bool {
    Arc::strong_count(slot) > 1 || slot.lock().is_ok_and(|slot| slot.strong_count() > 0)
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "backend over {:?}", self.shared.runtime)
    }
}
