//! The part of a step that needs no lock: moving bytes, running a kernel.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Code, DeviceInfo, Pattern, SharedBytes};

use crate::code::kernel::{KernelFault, LaunchContext, Notes, Others};
use crate::collective::collective_kernel::Exchange;
use crate::collective::communicator::Contribution;
use crate::memory::memory_view::MemoryView;
use crate::schedule::task::LaunchTask;

thread_local! {
    static IN_KERNEL: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread is running a kernel. A kernel that waited for its own device would wait for itself.
pub(crate) fn in_kernel() -> bool {
    kernels_of_thread() > 0
}

/// How many kernels this thread is running: while one waits for memory, work of other streams runs on its thread.
pub(crate) fn kernels_of_thread() -> usize {
    IN_KERNEL.get()
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    /// Nothing but to say that it is done.
    Pass,
    Copy(Vec<Move>),
    Fill {
        to: Vec<Slice>,
        pattern: Pattern,
    },
    Launch {
        task: Arc<LaunchTask>,
        view: Box<MemoryView>,
        seed: u64,
        parallelism: usize,
        exchange: Option<Exchange>,
    },
}

/// Bytes that go from one place to another.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) from: Slice,
    pub(crate) to: Slice,
}

/// A range of bytes.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) bytes: Arc<SharedBytes>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    Launched {
        task: Arc<LaunchTask>,
        view: Box<MemoryView>,
        result: Result<(), KernelFault>,
        spent_ns: u64,
        notes: Notes,
        /// What a rank brings to its collectives.
        brought: Vec<Contribution>,
    },
}

impl Job {
    /// Whether a thread of the host runs it.
    pub(crate) fn is_host_function(&self) -> bool {
        matches!(self, Self::Launch { task, .. } if task.is_host_function())
    }

    pub(crate) fn run(self, device: &DeviceInfo, others: Others<'_>) -> Outcome {
        match self {
            Self::Pass => Outcome::Passed,
            Self::Copy(moves) => {
                moves.iter().for_each(Move::run);
                Outcome::Passed
            }
            Self::Fill { to, pattern } => {
                to.iter().for_each(|slice| slice.fill(pattern));
                Outcome::Passed
            }
            Self::Launch { task, view, seed, parallelism, exchange } => {
                launch(device, task, view, (seed, parallelism, exchange), others)
            }
        }
    }
}

impl Move {
    fn run(&self) {
        let (to, from) = (&self.to, &self.from);
        let moved =
            to.bytes.copy_from(to.offset as usize, &from.bytes, from.offset as usize, to.len as usize);
        debug_assert!(moved, "both ends were checked when the step began");
    }
}

impl Slice {
    fn fill(&self, pattern: Pattern) {
        const STEP: usize = 4096;
        let (start, len) = (self.offset as usize, self.len as usize);
        let filled = match pattern {
            Pattern::U8(byte) => self.bytes.fill(start, len, byte),
            Pattern::U16(_) | Pattern::U32(_) => {
                let element = match pattern {
                    Pattern::U8(byte) => vec![byte],
                    Pattern::U16(value) => value.to_le_bytes().to_vec(),
                    Pattern::U32(value) => value.to_le_bytes().to_vec(),
                };
                let page = element.repeat(STEP / element.len());
                (0..len).step_by(STEP).all(|at| {
                    let part = page.get(..STEP.min(len - at));
                    part.is_some_and(|part| self.bytes.write(start + at, part))
                })
            }
        };
        debug_assert!(filled, "the range was checked when the step began");
    }
}

fn launch(
    device: &DeviceInfo,
    task: Arc<LaunchTask>,
    view: Box<MemoryView>,
    (seed, parallelism, exchange): (u64, usize, Option<Exchange>),
    others: Others<'_>,
) -> Outcome {
    let context = LaunchContext {
        device,
        grid: task.grid,
        block: task.block,
        cluster: task.cluster,
        dynamic_shared_bytes: task.dynamic_shared_bytes,
        arguments: &task.arguments,
        spans: &task.function.loaded.spans,
        memory: &view,
        globals: &task.function.globals,
        parallelism,
        seed,
        cooperative: task.cooperative,
        spent_ns: AtomicU64::new(0),
        notes: Mutex::default(),
        exchange,
        brought: Mutex::default(),
        others,
    };
    // A kernel that panics is a kernel that failed; what it holds is thrown away with it.
    let outer = IN_KERNEL.get();
    IN_KERNEL.set(outer + 1);
    let run = catch_unwind(AssertUnwindSafe(|| task.function.loaded.kernel.run(&context)));
    IN_KERNEL.set(outer);
    let spent_ns = context.spent_ns.into_inner();
    let notes = context.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let brought = context.brought.into_inner().unwrap_or_else(PoisonError::into_inner);
    let result = match (view.fault(), run) {
        (Some(fault), _) => Err(KernelFault::Access(fault)),
        (None, Ok(result)) => result,
        (None, Err(panic)) => {
            Err(KernelFault::Stopped { code: Code::LAUNCH_FAILED, detail: panic_text(&*panic) })
        }
    };
    Outcome::Launched { task, view, result, spent_ns, notes, brought }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("the kernel panicked: {}", text.unwrap_or("with no text"))
}
