//! An entry: a kernel that can be launched.

use std::sync::Arc;

use super::coverage::{Coverage, CoveredLine};
use super::launch::{Launch, Parts, Workspace};
use super::launch_error::LaunchError;
use super::launch_log::Log;
use super::loaded_module::{Inner, UnsupportedInstruction, unsupported};
use super::lowered_code::{Code, FunctionCode, Slot};
use super::memory::{DeviceHeap, GlobalMemory};
use super::options::{LaunchShape, Options};
use super::outcome::ExecOutcome;
use super::statistics::{LaunchStatistics, StatisticsReport};
use crate::{PtxFunction, PtxFunctionId};

/// A kernel of a [`Program`](super::ExecProgram).
#[derive(Clone)]
pub struct Entry {
    pub(super) program: Arc<Inner>,
    at: usize,
}

impl Entry {
    pub(crate) fn new(program: &Arc<Inner>, at: usize) -> Self {
        Self { program: Arc::clone(program), at }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.function().map_or("", |function| &function.name)
    }

    /// Its number among the functions of the module.
    pub fn id(&self) -> PtxFunctionId {
        self.program.entries.get(self.at).map_or(PtxFunctionId(u32::MAX), |slot| slot.function)
    }

    /// Bytes of its parameters, laid out one after the other at their alignment.
    pub fn parameter_bytes(&self) -> u64 {
        let end = |slot: &Slot| match slot {
            Slot::Memory { offset, bytes } => offset.saturating_add(*bytes),
            _ => 0,
        };
        self.code().functions.first().and_then(|f| f.parameters.last()).map_or(0, end)
    }

    /// Bytes of shared memory it and the functions it calls declare.
    pub fn shared_bytes(&self) -> u64 {
        self.code().shared_bytes
    }

    /// Bytes of its frame in local memory.
    pub fn local_bytes(&self) -> u64 {
        self.code().functions.first().map_or(0, FunctionCode::used_frame_bytes)
    }

    /// Its instructions, and those of functions it may call, that cannot be run. A thread that reaches one ends the
    /// launch with a finding.
    pub fn unsupported(&self) -> Vec<UnsupportedInstruction> {
        unsupported(self.code())
    }

    /// An account of what launches of this entry execute, empty at first.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.code())
    }

    /// The lines of the entry and of functions it can reach, and whether launches with this account executed them.
    pub fn lines(&self, coverage: &Coverage) -> Vec<CoveredLine> {
        coverage.lines(self.code())
    }

    /// Counts of what launches of this entry execute, all zero at first.
    pub fn statistics(&self) -> LaunchStatistics {
        LaunchStatistics::new(self.code())
    }

    /// What launches with these counts executed, added up by kind of instruction and by line.
    pub fn statistics_report(&self, statistics: &LaunchStatistics) -> StatisticsReport {
        statistics.report(self.code())
    }

    /// Runs all threads of a launch.
    ///
    /// `arguments` are the parameters packed at their alignment, `globals` the addresses of the program's variables.
    ///
    /// # Errors
    /// If the launch does not fit the kernel; nothing has run then. What goes wrong while it runs is in the outcome.
    pub fn launch(
        &self,
        shape: &LaunchShape,
        arguments: &[u8],
        globals: &[u64],
        memory: &dyn GlobalMemory,
        options: &Options<'_>,
    ) -> Result<ExecOutcome, LaunchError> {
        self.check_launch(shape)?;
        let clusters = self.clusters(shape)?;
        self.check_arguments(arguments, globals)?;
        let log = Log::new(options.max_findings, options.max_printed_bytes);
        if let Some(progress) = options.progress {
            progress.begin(shape.blocks());
        }
        let empty = DeviceHeap::new(0);
        let workspace = shape.cooperative.then(Workspace::new);
        let variables = self.program.variables.list.iter().zip(globals);
        let constants =
            variables.filter(|(v, _)| v.constant).map(|(v, start)| (*start, start.saturating_add(v.bytes)));
        let parts = Parts {
            code: self.code(),
            shape: *shape,
            clusters,
            arguments,
            options: *options,
            log: &log,
            heap: options.heap.unwrap_or(&empty),
            memory,
            workspace: workspace.as_ref(),
            constant_ranges: constants.collect(),
            variables: &self.program.variables.list,
            globals,
        };
        Launch::new(parts).run();
        Ok(log.into_outcome())
    }

    pub(super) fn code(&self) -> &Code {
        self.program.code(self.at)
    }

    pub(super) fn function(&self) -> Option<&PtxFunction> {
        self.program.module.function(self.program.entries.get(self.at)?.function)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name()).finish_non_exhaustive()
    }
}
