//! An entry: a kernel that can be launched.

use std::sync::Arc;

use super::code::{Code, Slot};
use super::coverage::{Coverage, CoveredLine};
use super::launch::{Launch, Parts, Workspace};
use super::log::Log;
use super::memory::{DeviceHeap, GlobalMemory};
use super::options::{LaunchShape, Options};
use super::outcome::ExecOutcome;
use super::program::{Inner, UnsupportedInstruction, unsupported};
use crate::{PtxFunction, PtxFunctionId};

/// A kernel of a [`Program`](super::ExecProgram).
#[derive(Clone)]
pub struct Entry {
    program: Arc<Inner>,
    at: usize,
}

/// Why a launch was refused; nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A dimension is zero, or there are more threads than a block may have.
    #[error(
        "a block of {threads} threads and a grid of {blocks} blocks cannot be launched; use 1 to 1024 threads and at least 1 block"
    )]
    Shape {
        /// Threads of a block.
        threads: u64,
        /// Blocks of the grid.
        blocks: u64,
    },
    /// The kernel was compiled for other blocks.
    #[error("kernel {kernel} was compiled for blocks of {bound}, not of {threads} threads")]
    Bounds {
        /// The kernel.
        kernel: String,
        /// What its header says.
        bound: String,
        /// Threads of a block.
        threads: u64,
    },
    /// More shared memory than a block may have.
    #[error("kernel {kernel} would need {bytes} bytes of shared memory; a block has at most {limit}")]
    Shared {
        /// The kernel.
        kernel: String,
        /// Declared and dynamic shared memory together.
        bytes: u64,
        /// The most a block may have.
        limit: u64,
    },
    /// More declared shared memory than a kernel may have; what a launch adds has another limit.
    #[error(
        "kernel {kernel} declares {bytes} bytes of static shared memory, and at most {limit} are allowed; declare it `extern` and give the size at the launch"
    )]
    StaticShared {
        /// The kernel.
        kernel: String,
        /// Bytes of its shared variables.
        bytes: u64,
        /// The most they may have.
        limit: u64,
    },
    /// More local memory than a thread may have.
    #[error(
        "kernel {kernel} declares {bytes} bytes of local memory for each thread, and at most {limit} are allowed; move large arrays to global memory"
    )]
    Local {
        /// The kernel.
        kernel: String,
        /// Bytes of its local variables.
        bytes: u64,
        /// The most a thread may have.
        limit: u64,
    },
    /// Fewer bytes of arguments than the kernel has.
    #[error("kernel {kernel} takes {expected} bytes of arguments, but {given} were given")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// Bytes of its parameters.
        expected: u64,
        /// Bytes given.
        given: usize,
    },
    /// Not an address for every variable of the module.
    #[error("the module of kernel {kernel} has {expected} variables, but {given} addresses were given")]
    Variables {
        /// The kernel.
        kernel: String,
        /// Variables of the module.
        expected: usize,
        /// Addresses given.
        given: usize,
    },
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
        self.code().functions.first().map_or(0, |f| f.frame_bytes)
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
        self.check(shape, arguments, globals)?;
        let log = Log::new(options.max_findings);
        let empty = DeviceHeap::new(0);
        let workspace = shape.cooperative.then(Workspace::new);
        let variables = self.program.variables.list.iter().zip(globals);
        let constants =
            variables.filter(|(v, _)| v.constant).map(|(v, start)| (*start, start.saturating_add(v.bytes)));
        let parts = Parts {
            code: self.code(),
            shape: *shape,
            arguments,
            options: *options,
            log: &log,
            heap: options.heap.unwrap_or(&empty),
            memory,
            workspace: workspace.as_ref(),
            constant_ranges: constants.collect(),
        };
        Launch::new(parts, globals).run();
        Ok(log.into_outcome())
    }

    /// Whether it declares no more shared and local memory than `ptxas` accepts.
    ///
    /// # Errors
    /// Which memory is too large.
    pub fn check_memory(&self) -> Result<(), LaunchError> {
        let kernel = || self.name().to_owned();
        let (bytes, limit) = (self.code().static_shared_bytes, LaunchShape::MAX_STATIC_SHARED_BYTES);
        if bytes > limit {
            return Err(LaunchError::StaticShared { kernel: kernel(), bytes, limit });
        }
        let (bytes, limit) = (self.local_bytes(), LaunchShape::MAX_LOCAL_BYTES);
        if bytes > limit {
            return Err(LaunchError::Local { kernel: kernel(), bytes, limit });
        }
        Ok(())
    }

    fn check(&self, shape: &LaunchShape, arguments: &[u8], globals: &[u64]) -> Result<(), LaunchError> {
        let kernel = || self.name().to_owned();
        let (threads, blocks) = (shape.threads(), shape.blocks());
        if threads == 0 || threads > LaunchShape::MAX_THREADS || blocks == 0 {
            return Err(LaunchError::Shape { threads, blocks });
        }
        if let Some(bounds) = self.function().map(|function| &function.bounds) {
            if let Some(required) = bounds.required_threads.filter(|required| *required != shape.block) {
                let bound = format!("{required:?} threads");
                return Err(LaunchError::Bounds { kernel: kernel(), bound, threads });
            }
            if let Some(most) = bounds.max_threads_per_block().filter(|most| threads > *most) {
                let bound = format!("at most {most}");
                return Err(LaunchError::Bounds { kernel: kernel(), bound, threads });
            }
        }
        self.check_memory()?;
        let (bytes, limit) =
            (self.shared_bytes() + u64::from(shape.dynamic_shared_bytes), LaunchShape::MAX_SHARED_BYTES);
        if bytes > limit {
            return Err(LaunchError::Shared { kernel: kernel(), bytes, limit });
        }
        let expected = self.parameter_bytes();
        if (arguments.len() as u64) < expected {
            return Err(LaunchError::Arguments { kernel: kernel(), expected, given: arguments.len() });
        }
        let expected = self.program.variables.list.len();
        if globals.len() < expected {
            return Err(LaunchError::Variables { kernel: kernel(), expected, given: globals.len() });
        }
        Ok(())
    }

    fn code(&self) -> &Code {
        self.program.code(self.at)
    }

    fn function(&self) -> Option<&PtxFunction> {
        self.program.module.function(self.program.entries.get(self.at)?.function)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name()).finish_non_exhaustive()
    }
}
