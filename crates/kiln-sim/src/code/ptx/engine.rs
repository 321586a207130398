//! Turns PTX into kernels.

use std::sync::Arc;

use kiln_driver::{Code, DeviceInfo};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, DeviceHeap, ExecProgram, LaunchProgress};

use super::kernel::PtxKernel;
use super::kernel_log::KernelLog;
use crate::code::code_engine::{CodeEngine, CompileError, CompiledModule, Relocate, SimVariable};
use crate::code::kernel::SimKernel;

/// Runs PTX, with every access checked.
///
/// ```
/// use std::sync::Arc;
/// use kiln_sim::{MachineConfig, PtxEngine};
///
/// let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default()));
/// ```
#[derive(Clone, Debug)]
pub struct PtxEngine {
    pub(super) checks: Checks,
    pub(super) step_limit: Option<u64>,
    pub(super) stall_limit: Option<u64>,
    pub(super) sole_writer: bool,
    pub(super) run_unsupported: bool,
    pub(super) refuse_alone: bool,
    pub(super) log: Option<KernelLog>,
    pub(super) max_findings: Option<usize>,
    pub(super) max_printed_bytes: Option<usize>,
    pub(super) progress: Option<Arc<LaunchProgress>>,
}

impl Default for PtxEngine {
    /// Every check that is not strict.
    fn default() -> Self {
        Self {
            checks: Checks::ALL,
            step_limit: None,
            stall_limit: None,
            sole_writer: false,
            run_unsupported: false,
            refuse_alone: false,
            log: None,
            max_findings: None,
            max_printed_bytes: None,
            progress: None,
        }
    }
}

impl PtxEngine {
    /// An engine that checks what is asked for.
    pub fn with_checks(checks: Checks) -> Self {
        Self { checks, ..Self::default() }
    }

    /// Ends a launch when one of its warps has run so many instructions.
    #[must_use]
    pub fn step_limit(self, steps: u64) -> Self {
        Self { step_limit: Some(steps), ..self }
    }

    /// Ends a launch when its warps together have run so many instructions since a thread last exited.
    #[must_use]
    pub fn stall_limit(self, steps: u64) -> Self {
        Self { stall_limit: Some(steps), ..self }
    }

    /// Promises that nothing but the launch writes its memory while it runs: no host, no other stream. A loop that waits for memory that
    /// no thread of the launch will write is then reported at once. Without the promise, other streams run while such a loop waits, and
    /// it is reported when none of them has work left and the host submits none for [`MachineLimits::idle_host`](crate::MachineLimits::idle_host).
    #[must_use]
    pub fn sole_writer(self) -> Self {
        Self { sole_writer: true, ..self }
    }

    /// Launches kernels that contain instructions the executor does not run, such as `tcgen05`. A thread that reaches one ends the launch
    /// with a finding, and the device is lost. Without this, such a launch is refused when it is submitted.
    #[must_use]
    pub fn run_unsupported(self) -> Self {
        Self { run_unsupported: true, ..self }
    }

    /// Loads a module of which some kernels would not be accepted, such as one with `bar.sync 16`: looking up such a kernel is refused with the reason, and
    /// the others run. Without this the module is refused, as by CUDA.
    #[must_use]
    pub fn refuse_kernels_alone(self) -> Self {
        Self { refuse_alone: true, ..self }
    }

    /// Keeps so many findings of a launch; the rest is counted.
    #[must_use]
    pub fn max_findings(self, findings: usize) -> Self {
        Self { max_findings: Some(findings), ..self }
    }

    /// Keeps so many bytes of what a launch prints; the rest is counted.
    #[must_use]
    pub fn max_printed_bytes(self, bytes: usize) -> Self {
        Self { max_printed_bytes: Some(bytes), ..self }
    }

    /// Keeps there how far the launch that runs is.
    #[must_use]
    pub fn progress(self, progress: Arc<LaunchProgress>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Keeps in this log which lines of its kernels are executed, and what is worth knowing and no finding.
    #[must_use]
    pub fn log(self, log: &KernelLog) -> Self {
        Self { log: Some(log.clone()), ..self }
    }
}

impl CodeEngine for PtxEngine {
    fn compile(&self, ptx: &str, device: &DeviceInfo) -> Result<CompiledModule, CompileError> {
        let refused = |code, log| CompileError { code, log };
        let module = PtxModule::parse(ptx).map_err(|error| refused(Code::INVALID_PTX, error.to_string()))?;
        let heap = Arc::new(DeviceHeap::default());
        if let Some(log) = &self.log {
            log.add_heap(&heap);
        }
        let program = ExecProgram::new(module);
        let mut kernels: Vec<(String, Arc<dyn SimKernel>)> = Vec::new();
        let mut refused_kernels = Vec::new();
        let constants = program.variables().iter().filter(|variable| variable.constant);
        let constant_bytes = constants.map(|variable| variable.bytes).sum();
        for entry in program.entries() {
            match entry.check_code().map_err(|error| refused(Code::INVALID_PTX, error.to_string())) {
                Ok(()) => {}
                Err(error) if self.refuse_alone => {
                    if let Some(log) = &self.log {
                        log.add_refused(&error.log);
                    }
                    refused_kernels.push((entry.name().to_owned(), error));
                    continue;
                }
                Err(error) => return Err(error),
            }
            let facts = program.module().facts(entry.id());
            let facts = facts.ok_or_else(|| {
                refused(Code::INVALID_PTX, format!("nothing can be said about entry {}", entry.name()))
            })?;
            let name = entry.name().to_owned();
            let limit = device.limits.max_threads_per_block;
            let kernel = PtxKernel::new(entry, &facts, (limit, constant_bytes), self.clone(), heap.clone());
            kernels.push((name, Arc::new(kernel)));
        }
        let variables = program.variables().iter().enumerate().map(|(at, variable)| SimVariable {
            name: variable.name.clone(),
            bytes: variable.bytes,
            contents: if variable.relocated { Vec::new() } else { program.contents(at, &[]) },
            writable: !variable.constant,
        });
        let variables: Vec<SimVariable> = variables.collect();
        let relocate: Relocate = Arc::new(move |at, addresses| program.contents(at, addresses));
        Ok(CompiledModule { kernels, refused: refused_kernels, variables, relocate: Some(relocate) })
    }
}
