//! The interface between the machine and the kernels it runs.
//!
//! A [`Kernel`] is anything that can say what its parameters are and then run: a host function today, an executor of
//! PTX through [`CodeEngine`](crate::CodeEngine). It reaches device memory only through the view it is given.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::{Access, Code, DeviceAddress, DeviceInfo, Dim3, FunctionAttributes, ParameterSpan};
use kiln_ptx::exec::ExecFindingKind as InCode;

use crate::code::launch_readiness::LaunchReadiness;
use crate::collective::collective_kernel::Exchange;
use crate::collective::communicator::Contribution;
use crate::memory::memory_view::{AccessCause, AccessFault, MemoryView};
use crate::memory::scalar::Scalar;
use crate::memory::thread_memory_access::MemoryPort;

/// Code that a simulated device can launch.
pub trait SimKernel: Send + Sync {
    /// Its parameters and what it needs.
    fn signature(&self) -> &SimSignature;

    /// Why the machine cannot run it, with the place in its code, if it cannot. Its launches are refused then.
    fn unsupported(&self) -> Option<&str> {
        None
    }

    /// Whether a launch of that shape fits it, beyond what its signature says.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn check_shape(&self, shape: &KernelShape) -> Result<(), String> {
        let _ = shape;
        Ok(())
    }

    /// The name of a parameter, where it has one.
    fn parameter_name(&self, index: usize) -> Option<&str> {
        let _ = index;
        None
    }

    /// Whether it is a function of the host. Such a kernel runs on a separate thread, one after the other, so that it may wait for a thread
    /// of the program; no call of the device runs it. What it knows to be done the host knows, too, when it begins.
    fn runs_on_host_thread(&self) -> bool {
        false
    }

    /// Called on that thread instead of [`run`](Self::run), if the device is lost before its turn.
    fn is_lost(&self, arguments: &[u8], code: Code) {
        let _ = (arguments, code);
    }

    /// Whether launches wait until memory has some contents. Such a launch holds back its stream and no other work, and runs once
    /// [`readiness`](Self::readiness) says so. What follows it comes after the work that last wrote the bytes which it reads as atomics.
    fn waits_for_memory(&self) -> bool {
        false
    }

    /// Whether a launch with these packed arguments can run, as memory is now.
    fn readiness(&self, arguments: &[u8], memory: &MemoryView) -> LaunchReadiness {
        let _ = (arguments, memory);
        LaunchReadiness::Ready
    }

    /// Runs all threads of a launch, to the end.
    ///
    /// # Errors
    /// The fault that ended it. The device is lost then, as on hardware.
    fn run(&self, launch: &LaunchContext<'_>) -> Result<(), KernelFault>;
}

/// The shape of a launch, as a kernel checks it before it is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelShape {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Whether all blocks run at once.
    pub cooperative: bool,
    /// Blocks of a cluster, where the launch names them.
    pub cluster: Option<Dim3>,
}

/// What a kernel takes and needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimSignature {
    /// In the order of the packed arguments.
    pub parameters: Vec<SimParameter>,
    /// Whether the pointers among them are the only way to memory and say what is done through them. If so, that is
    /// checked.
    pub declares_accesses: bool,
    /// Threads a block may have; 0 for as many as the device allows.
    pub max_threads_per_block: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory it declares.
    pub static_shared_bytes: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// Constant memory it declares.
    pub constant_bytes: u32,
    /// Workspace whose address is the last parameter; 0 if there is none.
    pub workspace_bytes: u64,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimParameter {
    /// A device address, and what is done to the block it points into.
    Pointer(Access),
    /// Bytes by value, aligned to a power of two.
    Value {
        /// Its size.
        bytes: u32,
        /// Its alignment.
        alignment: u32,
    },
}

impl SimParameter {
    fn size(self) -> (u32, u32) {
        match self {
            Self::Pointer(_) => (8, 8),
            Self::Value { bytes, alignment } => (bytes, alignment.max(1)),
        }
    }
}

impl SimSignature {
    /// Where each parameter lies in the packed arguments.
    pub fn spans(&self) -> Vec<ParameterSpan> {
        let mut end = 0u32;
        let place = |parameter: &SimParameter| {
            let (bytes, alignment) = parameter.size();
            let offset = end.checked_next_multiple_of(alignment).unwrap_or(u32::MAX);
            end = offset.saturating_add(bytes);
            ParameterSpan { offset, bytes }
        };
        self.parameters.iter().map(place).collect()
    }

    /// Bytes of the packed arguments.
    pub fn argument_bytes(&self) -> u32 {
        self.spans().last().map_or(0, |span| span.offset.saturating_add(span.bytes))
    }

    pub(crate) fn attributes(&self, limit: u32) -> FunctionAttributes {
        FunctionAttributes {
            max_threads_per_block: match self.max_threads_per_block {
                0 => limit,
                threads => threads.min(limit),
            },
            registers: self.registers,
            static_shared_bytes: self.static_shared_bytes,
            local_bytes: self.local_bytes,
            constant_bytes: self.constant_bytes,
            workspace_bytes: self.workspace_bytes,
            parameters: Some(self.spans()),
        }
    }
}

/// What ends a launch before its end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KernelFault {
    /// An access the device does not allow.
    Access(AccessFault),
    /// It stopped itself or was stopped, with a code and a word why.
    Stopped {
        /// The code the device is lost with.
        code: Code,
        /// The cause.
        detail: String,
    },
    /// It would run for ever.
    Hang,
}

impl KernelFault {
    /// The code the device is lost with.
    pub fn code(&self) -> Code {
        match self {
            Self::Access(AccessFault { cause: AccessCause::Misaligned, .. }) => Code::MISALIGNED_ADDRESS,
            Self::Access(_) => Code::ILLEGAL_ADDRESS,
            Self::Stopped { code, .. } => *code,
            Self::Hang => Code::LAUNCH_TIMEOUT,
        }
    }

    /// A failed assertion in the kernel.
    pub fn assertion(detail: impl Into<String>) -> Self {
        Self::Stopped { code: Code::ASSERT, detail: detail.into() }
    }
}

impl From<AccessFault> for KernelFault {
    fn from(fault: AccessFault) -> Self {
        Self::Access(fault)
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(fault) => fault.fmt(f),
            Self::Stopped { detail, .. } => f.write_str(detail),
            Self::Hang => f.write_str("the kernel does not end"),
        }
    }
}

/// Warps a multiprocessor steps in the same nanosecond, for the cost model.
const WARPS_AT_ONCE: u64 = 4;

/// A mistake a kernel made.
#[derive(Debug)]
pub(crate) enum Mistake {
    /// In words.
    Text(String),
    /// As the executor of PTX saw it.
    Found(Box<kiln_ptx::exec::ExecFinding>),
}

/// What a kernel says while it runs.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) findings: Vec<Mistake>,
    pub(crate) printed: Vec<u8>,
    /// Findings, and bytes of text, that were not kept.
    pub(crate) left_out: (u64, u64),
}

impl Notes {
    /// Sorts what was found: what says most about the mistake comes first, and a race between two lines is told once.
    pub(crate) fn sort(&mut self) {
        let mut races = BTreeSet::new();
        self.findings.retain(|mistake| match mistake {
            Mistake::Found(finding) => racing_lines(finding).is_none_or(|lines| races.insert(lines)),
            Mistake::Text(_) => true,
        });
        self.findings.sort_by_key(|mistake| match mistake {
            Mistake::Text(_) => 0,
            Mistake::Found(finding) => match finding.kind {
                InCode::Uninitialised { .. } | InCode::Unassigned { .. } => 2,
                InCode::Race { .. }
                | InCode::SameValue { .. }
                | InCode::PendingCopy { .. }
                | InCode::NonCoherent { .. }
                | InCode::NoProxyFence { .. } => 1,
                _ => 0,
            },
        });
    }
}

/// The lines of two accesses that race, whichever came first: file and number.
fn racing_lines(finding: &kiln_ptx::exec::ExecFinding) -> Option<[(String, u32); 2]> {
    let InCode::Race { earlier_site, .. } = &finding.kind else { return None };
    let line = |site: &kiln_ptx::exec::CodeSite| match &site.source {
        Some((file, line)) => (file.clone(), *line),
        None => (String::new(), site.ptx_line),
    };
    let mut lines = [line(&finding.site), line(earlier_site)];
    lines.sort();
    Some(lines)
}

/// A launch as its kernel sees it.
#[derive(Debug)]
pub struct LaunchContext<'a> {
    pub(crate) device: &'a DeviceInfo,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) arguments: &'a [u8],
    pub(crate) spans: &'a [ParameterSpan],
    pub(crate) memory: &'a MemoryView,
    pub(crate) globals: &'a [DeviceAddress],
    pub(crate) parallelism: usize,
    pub(crate) seed: u64,
    pub(crate) cooperative: bool,
    pub(crate) spent_ns: AtomicU64,
    pub(crate) notes: Mutex<Notes>,
    pub(crate) exchange: Option<Exchange>,
    /// What the rank brings to each collective of the launch.
    pub(crate) brought: Mutex<Vec<Contribution>>,
    pub(crate) others: Others<'a>,
}

/// The rest of the machine, as a launch sees it that waits for it.
#[derive(Clone, Copy)]
pub(crate) struct Others<'a>(pub(crate) &'a (dyn Fn() -> bool + Sync));

impl fmt::Debug for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Others")
    }
}

impl LaunchContext<'_> {
    /// Lets other streams and the host work, since the kernel waits for memory that it does not change itself. False if there is nothing
    /// left that could change it.
    pub(crate) fn let_others_write(&self) -> bool {
        (self.others.0)()
    }

    /// The device it runs on.
    pub fn device(&self) -> &DeviceInfo {
        self.device
    }

    /// Blocks in the grid.
    pub fn grid(&self) -> Dim3 {
        self.grid
    }

    /// Threads in a block.
    pub fn block(&self) -> Dim3 {
        self.block
    }

    /// Blocks in a cluster, where clusters are used.
    pub fn cluster(&self) -> Option<Dim3> {
        self.cluster
    }

    /// Shared memory beyond what the kernel declares.
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.dynamic_shared_bytes
    }

    /// All threads of the launch; at most 2^64 - 1 are told.
    pub fn threads(&self) -> u64 {
        u64::try_from(self.grid.count().saturating_mul(self.block.count())).unwrap_or(u64::MAX)
    }

    /// The packed arguments.
    pub fn arguments(&self) -> &[u8] {
        self.arguments
    }

    /// An argument by value.
    ///
    /// # Errors
    /// Stops the launch if the kernel has no such parameter or it is smaller.
    pub fn value<T: Scalar>(&self, parameter: usize) -> Result<T, KernelFault> {
        let bytes =
            self.spans.get(parameter).filter(|span| span.bytes as usize >= T::BYTES).and_then(|span| {
                let start = span.offset as usize;
                self.arguments.get(start..start + span.bytes as usize)
            });
        bytes.and_then(T::from_bytes).ok_or_else(|| KernelFault::Stopped {
            code: Code::LAUNCH_FAILED,
            detail: format!("the kernel asked for parameter {parameter} as {} bytes", T::BYTES),
        })
    }

    /// An argument that is a device address.
    ///
    /// # Errors
    /// As for [`value`](Self::value).
    pub fn address(&self, parameter: usize) -> Result<u64, KernelFault> {
        self.value(parameter)
    }

    /// Device memory.
    pub fn memory(&self) -> &MemoryView {
        self.memory
    }

    /// A way into device memory for one thread.
    pub fn port(&self) -> MemoryPort<'_> {
        self.memory.port()
    }

    /// Says that the kernel reads nothing before it writes it, so that atomics on bytes that were never written are right.
    pub fn reads_nothing(&self) {
        self.memory.check_undefined_in_code();
    }

    /// Where the variables of the module lie, in the order the module lists them.
    pub fn globals(&self) -> &[DeviceAddress] {
        self.globals
    }

    /// How many threads of the host the kernel may use; 1 where the order of steps must not depend on chance.
    pub fn parallelism(&self) -> usize {
        self.parallelism
    }

    /// A number that is the same whenever this launch is repeated, to pick orders that no program may rely on.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether all blocks run at once and may wait for each other.
    pub fn is_cooperative(&self) -> bool {
        self.cooperative
    }

    /// Writes down a mistake the kernel made, in words.
    pub fn find(&self, mistake: String) {
        self.notes().findings.push(Mistake::Text(mistake));
    }

    /// Writes down a mistake with its place in the code and its thread.
    pub(crate) fn find_in_code(&self, finding: kiln_ptx::exec::ExecFinding) {
        self.notes().findings.push(Mistake::Found(Box::new(finding)));
    }

    /// Text the kernel printed.
    pub fn print(&self, text: &[u8]) {
        self.notes().printed.extend_from_slice(text);
    }

    /// Counts findings, and bytes of text, that were not kept.
    pub(crate) fn leave_out(&self, findings: u64, printed_bytes: u64) {
        let mut notes = self.notes();
        notes.left_out = (notes.left_out.0 + findings, notes.left_out.1 + printed_bytes);
    }

    /// Says how many instructions the warps of the kernel ran; the device time follows from that.
    pub fn spend_instructions(&self, warp_instructions: u64) {
        let lanes = u64::from(self.device.limits.multiprocessors) * WARPS_AT_ONCE;
        self.spend(Duration::from_nanos(1 + warp_instructions / lanes.max(1)));
    }

    /// What the rank brings to the next collective of the launch.
    pub(crate) fn bring(&self, bytes: Contribution) {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the kernel takes that much device time, instead of what the cost model assumes.
    pub fn spend(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spent_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}
