//! Findings of the checks.

use std::fmt;

use super::address_base::AddressBase;
use super::check::RaceCause;
use super::code_location::CodeSite;
use super::deadlock_report::DeadlockPlace;
use super::fault::ExecFault;
use super::finding_text::{
    Thread, write_leak, write_no_proxy_fence, write_non_coherent, write_pending_copy, write_unfinished_copy,
    write_uninitialised,
};
use super::memory::{Miss, MissKind, SharedMap};
use super::race_remedy::RaceRemedy;

/// Something a kernel did that it must not do, or that ended it.
///
/// Its `Display` is prose for a person: what happened, where, in which thread, and what was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecFinding {
    /// What happened.
    pub kind: ExecFindingKind,
    /// Where, and in which thread it was seen first.
    pub site: CodeSite,
    /// How often it happened at this instruction; the first time is described.
    pub times: u64,
}

/// What an access did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It read.
    Read,
    /// It wrote.
    Write,
    /// It read and wrote in one step.
    Atomic,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecFindingKind {
    /// An access outside of every block it could mean.
    OutOfBounds(BadAccess),
    /// An access to a block that was freed.
    UseAfterFree(BadAccess),
    /// A write to memory that may only be read.
    ReadOnly(BadAccess),
    /// An access to memory that the launch did not declare, or a write to memory it declared as read only. The access is made.
    Undeclared(BadAccess),
    /// An address that is no multiple of the size of the access.
    Misaligned(BadAccess),
    /// A use of a value that was read from bytes that were never written.
    Uninitialised {
        /// The read.
        access: BadAccess,
        /// Where it was, and in which thread.
        read_site: Box<CodeSite>,
    },
    /// A use of a register that was never assigned.
    Unassigned {
        /// Its name in the PTX.
        register: String,
    },
    /// Two threads used the same bytes, one of them writing, and nothing orders them.
    Race {
        /// The later access.
        access: BadAccess,
        /// The earlier one.
        earlier: AccessKind,
        /// Where it was, and in which thread.
        earlier_site: Box<CodeSite>,
        /// Why they race.
        cause: RaceCause,
        /// What would order them.
        remedy: RaceRemedy,
    },
    /// Two threads wrote the same value to the same bytes, and nothing orders them. A note unless the checks are strict.
    SameValue {
        /// The later write.
        access: BadAccess,
        /// Where the earlier one was, and in which thread.
        earlier_site: Box<CodeSite>,
    },
    /// An access to where an asynchronous copy goes that no thread has waited for.
    PendingCopy {
        /// The access.
        access: BadAccess,
        /// The copy, and its thread.
        copy_site: Box<CodeSite>,
    },
    /// A bulk or tensor copy reads shared memory of a block that ends, and its thread has not waited for it.
    UnfinishedCopy {
        /// The read.
        access: BadAccess,
        /// Whether the thread committed it to a group.
        is_committed: bool,
    },
    /// A read as a constant (`ld.global.nc`, `ldu`) of memory that the launch also writes.
    NonCoherent {
        /// The later access.
        access: BadAccess,
        /// The earlier one.
        earlier: AccessKind,
        /// Where it was, and in which thread.
        earlier_site: Box<CodeSite>,
    },
    /// A bulk copy, tensor copy or product of a warpgroup read shared memory that a thread wrote, with no `fence.proxy.async` between the two.
    NoProxyFence {
        /// The read.
        access: BadAccess,
        /// The write, and its thread.
        write_site: Box<CodeSite>,
    },
    /// A lane took a value from a lane that does not take part: it is undefined.
    InactiveLane {
        /// Which lane, and by which shuffle.
        text: String,
        /// Whether the other lane has exited.
        has_exited: bool,
    },
    /// A barrier that not all threads reach, or not in one way.
    Barrier(String),
    /// Threads wait for each other and none can go on.
    Deadlock {
        /// Which threads wait where.
        text: String,
        /// What they wait at.
        place: DeadlockPlace,
    },
    /// A collective that names lanes wrongly.
    Mask(String),
    /// A thread is back in a state it had before: it does the same again for ever.
    Endless,
    /// A thread waits in a loop for memory that no thread will change.
    EndlessWait,
    /// A warp ran more instructions than the limit.
    StepLimit(u64),
    /// All warps together ran more instructions than the limit, and no thread ended.
    Stalled(u64),
    /// `assert` failed.
    Assertion {
        /// The condition as written.
        message: String,
        /// File of the assertion.
        file: String,
        /// Its line.
        line: u32,
        /// The function it stands in.
        function: String,
    },
    /// The kernel executed `trap`.
    Trap,
    /// An instruction the executor does not run.
    Unsupported(String),
    /// Functions are nested too deep, or their frames are too large.
    StackOverflow(String),
    /// A call through a pointer that is no function.
    BadCall(u64),
    /// `free` of something `malloc` did not give.
    BadFree(u64),
    /// An operand with a value that the instruction does not allow.
    BadOperand(String),
    /// Registers, shared memory or threads of a warpgroup's product (`wgmma`) that are used wrongly; the text says what to do.
    Warpgroup(String),
    /// An `mbarrier` object that is used wrongly; the text says what to do.
    Mbarrier(String),
    /// Blocks of `malloc` in kernels that were not freed. A note: a later launch may free them.
    HeapLeak {
        /// How many.
        blocks: u64,
        /// Bytes of all of them.
        bytes: u64,
    },
}

/// An access that should not have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// What it did.
    pub access: AccessKind,
    /// The memory: `global`, `shared`, `local` or `parameter`.
    pub memory: &'static str,
    /// Its first address.
    pub address: u64,
    /// Its size.
    pub bytes: u32,
    /// What it missed or should have had, in words; may be empty.
    pub near: String,
    /// The shared variable that it reached, and where in it, in words; empty if none is known.
    pub within: String,
    /// What the address was computed from, if it missed and the code tells.
    pub base: Option<AddressBase>,
    /// What the mistake is, if more is known than that the address is wrong.
    pub mistake: Option<AddressMistake>,
    /// The block whose shared memory it is, if it is not that of the thread.
    pub block: Option<[u32; 3]>,
}

/// Why an address is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressMistake {
    /// Rows of a matrix lie so many bytes apart, which is not what the instruction needs.
    RowDistance(u64),
    /// It points to a local variable of a function that has returned.
    ReturnedFunction,
}

impl ExecFindingKind {
    pub(crate) fn missed(miss: Miss, mut bad: BadAccess) -> Self {
        bad.near = miss.near;
        match miss.kind {
            MissKind::OutOfBounds => Self::OutOfBounds(bad),
            MissKind::Freed => Self::UseAfterFree(bad),
        }
    }

    /// The access that it is about.
    pub(crate) fn access_mut(&mut self) -> Option<&mut BadAccess> {
        match self {
            Self::OutOfBounds(access)
            | Self::UseAfterFree(access)
            | Self::ReadOnly(access)
            | Self::Undeclared(access)
            | Self::Misaligned(access)
            | Self::Uninitialised { access, .. }
            | Self::Race { access, .. }
            | Self::SameValue { access, .. }
            | Self::PendingCopy { access, .. }
            | Self::UnfinishedCopy { access, .. }
            | Self::NonCoherent { access, .. }
            | Self::NoProxyFence { access, .. } => Some(access),
            _ => None,
        }
    }

    /// Names the shared variable that the access reached.
    pub(crate) fn name_variable(&mut self, shared: &SharedMap) {
        // What lies past the end may be behind dynamic shared memory, or there is none.
        let is_inside = !matches!(self, Self::OutOfBounds(_));
        if let Some(access) = self.access_mut().filter(|access| access.memory == "shared") {
            let place = shared.variable_place(access.address);
            let place = place.or_else(|| shared.dynamic_place(access.address).filter(|_| is_inside));
            access.within = match (place, access.block) {
                (Some(place), Some([x, y, z])) => format!("{place} of block ({x},{y},{z})"),
                (place, _) => place.unwrap_or_default(),
            };
        }
    }

    /// The fault that ends a launch when this happens; `None` if it goes on.
    pub fn fault(&self) -> Option<ExecFault> {
        Some(match self {
            Self::OutOfBounds(_) | Self::UseAfterFree(_) | Self::ReadOnly(_) => ExecFault::IllegalAddress,
            Self::Misaligned(_) => ExecFault::MisalignedAddress,
            Self::Deadlock { .. }
            | Self::Endless
            | Self::EndlessWait
            | Self::StepLimit(_)
            | Self::Stalled(_) => ExecFault::LaunchTimeout,
            Self::Assertion { .. } => ExecFault::Assert,
            Self::Trap
            | Self::Unsupported(_)
            | Self::BadFree(_)
            | Self::BadOperand(_)
            | Self::Mbarrier(_) => ExecFault::LaunchFailed,
            Self::StackOverflow(_) => ExecFault::HardwareStackError,
            Self::BadCall(_) => ExecFault::InvalidPc,
            Self::Undeclared(_)
            | Self::Uninitialised { .. }
            | Self::Unassigned { .. }
            | Self::Race { .. }
            | Self::SameValue { .. }
            | Self::PendingCopy { .. }
            | Self::UnfinishedCopy { .. }
            | Self::NonCoherent { .. }
            | Self::NoProxyFence { .. }
            | Self::InactiveLane { .. }
            | Self::Barrier(_)
            | Self::Mask(_)
            | Self::Warpgroup(_)
            | Self::HeapLeak { .. } => return None,
        })
    }

    /// The [`word`](Self::word) for an access outside of every block.
    pub const OUT_OF_BOUNDS: &'static str = "out-of-bounds";
    /// The word for an instruction the executor does not run.
    pub const UNSUPPORTED: &'static str = "unsupported";
    /// The word for a loop that does not end.
    pub const ENDLESS: &'static str = "endless";
    /// The word for a launch that ran into a limit.
    pub const STEP_LIMIT: &'static str = "step-limit";

    /// A word for it that stays the same in every version: `out-of-bounds`, `race`, ...
    pub fn word(&self) -> &'static str {
        match self {
            Self::OutOfBounds(_) => Self::OUT_OF_BOUNDS,
            Self::UseAfterFree(_) => "use-after-free",
            Self::ReadOnly(_) => "read-only",
            Self::Undeclared(_) => "undeclared",
            Self::Misaligned(_) => "misaligned",
            Self::Uninitialised { .. } => "uninitialised",
            Self::Unassigned { .. } => "unassigned",
            Self::Race { .. } => "race",
            Self::SameValue { .. } => "same-value",
            Self::PendingCopy { .. } | Self::UnfinishedCopy { .. } => "pending-copy",
            Self::NonCoherent { .. } => "non-coherent",
            Self::NoProxyFence { .. } => "proxy-fence",
            Self::InactiveLane { .. } => "inactive-lane",
            Self::Barrier(_) => "barrier",
            Self::Deadlock { .. } => "deadlock",
            Self::Mask(_) => "mask",
            Self::Endless | Self::EndlessWait => Self::ENDLESS,
            Self::StepLimit(_) | Self::Stalled(_) => Self::STEP_LIMIT,
            Self::Assertion { .. } => "assertion",
            Self::Trap => "trap",
            Self::Unsupported(_) => Self::UNSUPPORTED,
            Self::StackOverflow(_) => "stack-overflow",
            Self::BadCall(_) => "bad-call",
            Self::BadFree(_) => "bad-free",
            Self::BadOperand(_) => "bad-operand",
            Self::Mbarrier(_) => "mbarrier",
            Self::Warpgroup(_) => "warpgroup",
            Self::HeapLeak { .. } => "leak",
        }
    }

    /// Whether two findings say the same about one instruction.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl ExecFinding {
    /// Whether an access went outside of its block.
    pub fn is_out_of_bounds(&self) -> bool {
        matches!(self.kind, ExecFindingKind::OutOfBounds(_))
    }

    /// Whether freed memory was used.
    pub fn is_use_after_free(&self) -> bool {
        matches!(self.kind, ExecFindingKind::UseAfterFree(_))
    }

    /// Whether threads raced, also by writing the same value.
    pub fn is_race(&self) -> bool {
        matches!(self.kind, ExecFindingKind::Race { .. } | ExecFindingKind::SameValue { .. })
    }

    /// Whether it is about a barrier, also one that no thread passes.
    pub fn is_barrier(&self) -> bool {
        matches!(self.kind, ExecFindingKind::Barrier(_) | ExecFindingKind::Deadlock { .. })
    }

    /// Whether the kernel asked for something the executor does not do.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.kind, ExecFindingKind::Unsupported(_))
    }
}

impl AccessKind {
    /// It in words: `read`, `write`, `atomic update`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic update",
        }
    }
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun())
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, memory, address, bytes, within, .. } = self;
        let plural = if *bytes == 1 { "" } else { "s" };
        write!(f, "{access} of {bytes} byte{plural} at {memory} address {address:#x}")?;
        if within.is_empty() { Ok(()) } else { write!(f, " ({within})") }
    }
}

impl fmt::Display for ExecFindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds(bad) => write!(f, "out of bounds: {bad}, which is {}", bad.near),
            Self::UseAfterFree(bad) => write!(f, "use after free: {bad}, which is {}", bad.near),
            Self::ReadOnly(bad) => write!(f, "{bad}, which may only be read"),
            Self::Undeclared(bad) => write!(f, "undeclared access: {bad}, which is {}", bad.near),
            Self::Misaligned(bad) => write!(f, "misaligned: {bad}, which is {}", bad.near),
            Self::Uninitialised { access, read_site } => write_uninitialised(f, access, read_site),
            Self::Unassigned { register } => {
                write!(f, "unassigned: a variable that was never assigned (register {register})")
            }
            Self::Race { access, earlier, earlier_site, cause, .. } => {
                write!(f, "race: {access} and the {earlier} by {}, {cause}", Thread(earlier_site))
            }
            Self::SameValue { access, earlier_site } => write!(
                f,
                "same value: {access} and the write by {}, with nothing to order them",
                Thread(earlier_site)
            ),
            Self::NonCoherent { access, earlier, earlier_site } => {
                write_non_coherent(f, access, *earlier, earlier_site)
            }
            Self::PendingCopy { access, copy_site } => write_pending_copy(f, access, copy_site),
            Self::UnfinishedCopy { access, is_committed } => write_unfinished_copy(f, access, *is_committed),
            Self::NoProxyFence { access, write_site } => write_no_proxy_fence(f, access, write_site),
            Self::Barrier(text)
            | Self::Deadlock { text, .. }
            | Self::Mask(text)
            | Self::InactiveLane { text, .. }
            | Self::Mbarrier(text)
            | Self::Warpgroup(text)
            | Self::BadOperand(text) => f.write_str(text),
            Self::Endless => f.write_str(
                "no end: the thread comes back to this instruction with the same registers and loops for ever",
            ),
            Self::EndlessWait => f.write_str(
                "no end: the thread waits here in a loop for memory that no thread of the launch will change",
            ),
            Self::StepLimit(limit) => write!(
                f,
                "no end: the warp ran {limit} instructions, the limit; raise it if the kernel is that long"
            ),
            Self::Stalled(limit) => write!(
                f,
                "no end: {limit} instructions ran, the limit, and no thread ended; raise it if the kernel is that long"
            ),
            Self::Assertion { message, file, line, function } => {
                write!(f, "assertion `{message}` failed in {function} at {file}:{line}")
            }
            Self::Trap => f.write_str("the kernel executed a trap"),
            Self::Unsupported(what) => write!(f, "{what} is not executed without a GPU"),
            Self::StackOverflow(text) => f.write_str(text),
            Self::BadCall(address) => {
                write!(f, "call through {address:#x}, which is no function of the module")
            }
            Self::BadFree(address) => {
                write!(f, "free of {address:#x}, which malloc did not give or was freed before")
            }
            Self::HeapLeak { blocks, bytes } => write_leak(f, *blocks, *bytes),
        }
    }
}

impl fmt::Display for ExecFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {}", self.kind, self.site)?;
        match self.times {
            0 | 1 => Ok(()),
            times => write!(f, " (and {} more)", times - 1),
        }
    }
}
