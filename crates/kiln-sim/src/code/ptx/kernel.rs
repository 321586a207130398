//! One entry of a module as a kernel of the machine.

use std::sync::{Arc, OnceLock};

use kiln_driver::{Access, Code, Dim3};
use kiln_ptx::EntryFacts;
use kiln_ptx::exec::{
    AccessKind, BadAccess, Checks, Coverage, DeviceHeap, Entry, ExecFindingKind, ExecOutcome, LaunchShape,
    LaunchStatistics, Options, OtherWriters,
};

use super::engine::PtxEngine;
use super::executor_memory::AddressSpace;
use crate::code::kernel::{KernelFault, KernelShape, LaunchContext, SimKernel, SimParameter, SimSignature};
use crate::memory::memory_view::{AccessCause, AccessFault};

/// Registers every kernel is said to use; PTX has as many as it likes, and only a compiler for a real device knows.
const ASSUMED_REGISTERS: u32 = 32;

pub(super) struct PtxKernel {
    entry: Entry,
    signature: SimSignature,
    names: Vec<String>,
    engine: PtxEngine,
    heap: Arc<DeviceHeap>,
    /// Why it cannot be run; its code is looked through at its first launch.
    unsupported: OnceLock<Option<String>>,
    coverage: Option<Arc<Coverage>>,
    statistics: Option<Arc<LaunchStatistics>>,
}

impl PtxKernel {
    pub(super) fn new(
        entry: Entry,
        facts: &EntryFacts,
        (max_threads, constant_bytes): (u32, u64),
        engine: PtxEngine,
        heap: Arc<DeviceHeap>,
    ) -> Self {
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let parameters = facts.signature.parameters.iter().map(|parameter| SimParameter::Value {
            bytes: narrow(parameter.size_bytes),
            alignment: parameter.align_bytes.max(1),
        });
        let bound = facts.bounds.max_threads_per_block().and_then(|threads| u32::try_from(threads).ok());
        let signature = SimSignature {
            parameters: parameters.collect(),
            declares_accesses: false,
            max_threads_per_block: bound.unwrap_or(max_threads).min(max_threads),
            registers: ASSUMED_REGISTERS,
            static_shared_bytes: narrow(entry.shared_bytes()),
            local_bytes: narrow(entry.local_bytes()),
            constant_bytes: narrow(constant_bytes),
            workspace_bytes: 0,
        };
        let coverage = engine.log.as_ref().map(|log| log.add(&entry));
        let statistics = engine.log.as_ref().and_then(|log| log.count(&entry));
        let names = facts.signature.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
        Self { entry, signature, names, engine, heap, unsupported: OnceLock::new(), coverage, statistics }
    }

    /// The first instruction that the executor does not run, and how many there are.
    fn find_unsupported(&self) -> Option<String> {
        let found = self.entry.unsupported();
        let first = found.first()?;
        let more = match found.len() - 1 {
            0 => String::new(),
            1 => ", and 1 more like it".to_owned(),
            more => format!(", and {more} more like it"),
        };
        Some(format!("the simulated device does not execute {first}{more}; {}", first.remedy))
    }

    /// What came of the launch: text and findings are handed on, and a fault ends it.
    fn settle(&self, launch: &LaunchContext<'_>, outcome: ExecOutcome) -> Result<(), KernelFault> {
        launch.print(&outcome.printed);
        launch.leave_out(outcome.findings_left_out, outcome.printed_left_out_bytes);
        launch.spend_instructions(outcome.counters.warp_instructions);
        if let Some(log) = &self.engine.log {
            log.note(&outcome.notes);
        }
        for finding in &outcome.findings {
            launch.find_in_code(finding.clone());
        }
        let Some(fault) = outcome.fault else { return Ok(()) };
        let access = outcome.findings.iter().rev().find_map(|finding| illegal_access(&finding.kind));
        let code = Code(fault.code() as i32);
        match access {
            Some(access) if code == Code::ILLEGAL_ADDRESS => Err(KernelFault::Access(access)),
            _ if code == Code::LAUNCH_TIMEOUT => Err(KernelFault::Hang),
            _ => {
                let detail = outcome.findings.last().map_or_else(|| fault.to_string(), ToString::to_string);
                Err(KernelFault::Stopped { code, detail })
            }
        }
    }
}

impl SimKernel for PtxKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn unsupported(&self) -> Option<&str> {
        if self.engine.run_unsupported {
            return None;
        }
        self.unsupported.get_or_init(|| self.find_unsupported()).as_deref()
    }

    fn check_shape(&self, shape: &KernelShape) -> Result<(), String> {
        let KernelShape { grid, block, dynamic_shared_bytes, cooperative, cluster } = *shape;
        let shape = LaunchShape {
            grid: extents(grid),
            block: extents(block),
            dynamic_shared_bytes,
            cooperative,
            cluster: cluster.map(extents),
            non_portable_cluster: false,
        };
        self.entry.check_launch(&shape).map_err(|refused| refused.to_string())
    }

    fn parameter_name(&self, index: usize) -> Option<&str> {
        self.names.get(index).map(String::as_str)
    }

    fn run(&self, launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
        let shape = LaunchShape {
            grid: extents(launch.grid()),
            block: extents(launch.block()),
            dynamic_shared_bytes: launch.dynamic_shared_bytes(),
            cooperative: launch.is_cooperative(),
            cluster: launch.cluster().map(extents),
            non_portable_cluster: false,
        };
        let defaults = Options::default();
        // Only the executor can tell a copy of undefined bytes from a use of them.
        let uninitialised = self.engine.checks.uninitialised || launch.memory().checks_undefined().is_some();
        #[allow(clippy::needless_update, reason = "with the feature `mutations` there are more fields")]
        let options = Options {
            checks: Checks { uninitialised, ..self.engine.checks },
            // A seed parts lanes that a GPU would leave together, which would be counted.
            seed: if self.statistics.is_some() { 0 } else { launch.seed() },
            threads: launch.parallelism(),
            step_limit: self.engine.step_limit.unwrap_or(defaults.step_limit),
            stall_limit: self.engine.stall_limit.unwrap_or(defaults.stall_limit),
            sole_writer: self.engine.sole_writer,
            other_writers: Some(OtherWriters(&|| launch.let_others_write())),
            heap: Some(&self.heap),
            coverage: self.coverage.as_deref(),
            statistics: self.statistics.as_deref(),
            max_findings: self.engine.max_findings.unwrap_or(defaults.max_findings),
            max_printed_bytes: self.engine.max_printed_bytes.unwrap_or(defaults.max_printed_bytes),
            progress: self.engine.progress.as_deref(),
            ..defaults
        };
        let globals: Vec<u64> = launch.globals().iter().map(|address| address.0).collect();
        if options.checks.uninitialised {
            launch.memory().check_undefined_in_code();
        }
        let space = AddressSpace::new(launch.memory());
        let outcome = self.entry.launch(&shape, launch.arguments(), &globals, &space, &options);
        match outcome {
            Ok(outcome) => self.settle(launch, outcome),
            Err(refused) => {
                Err(KernelFault::Stopped { code: Code::LAUNCH_FAILED, detail: refused.to_string() })
            }
        }
    }
}

fn extents(dim: Dim3) -> [u32; 3] {
    [dim.x, dim.y, dim.z]
}

/// An access where no memory is, as the machine describes it: it knows whose memory lay there before.
fn illegal_access(kind: &ExecFindingKind) -> Option<AccessFault> {
    let (access, cause) = match kind {
        ExecFindingKind::OutOfBounds(access) | ExecFindingKind::UseAfterFree(access) => {
            (access, AccessCause::Unmapped)
        }
        ExecFindingKind::ReadOnly(access) => (access, AccessCause::ReadOnly),
        _ => return None,
    };
    let BadAccess { access, memory, address, bytes, .. } = access;
    if *memory != "global" {
        return None;
    }
    let access = match access {
        AccessKind::Read => Access::Read,
        AccessKind::Write => Access::Write,
        AccessKind::Atomic => Access::ReadWrite,
    };
    Some(AccessFault { address: *address, bytes: u64::from(*bytes), access, cause })
}
