//! Findings about the program that used the machine.

use std::fmt;
use std::ops::Range;

use kiln_driver::{Access, DeviceAddress, DeviceFinding, Error, ErrorKind, FindingLine, FindingRule};
use kiln_ptx::exec::{AddressMistake, DeadlockPlace, ExecFindingKind as InCode, RaceCause, RaceRemedy};

use crate::check::access_origin::{Action, Actor};
use crate::machine_config::Mode;
use crate::schedule::machine_state::site;

/// One broken rule: what, where, by whom, and how to see it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which rule.
    pub kind: FindingKind,
    /// The ordinal of the device it happened on.
    pub device: u32,
    /// The block or object, by its handle.
    pub subject: String,
    /// Which bytes of it.
    pub bytes: Option<Range<u64>>,
    /// The device address of the first of them.
    pub address: Option<DeviceAddress>,
    /// Who was asked first.
    pub first: Option<Actor>,
    /// Who was asked later.
    pub second: Option<Actor>,
    /// What the executor of PTX saw, with the line and the thread, where it is its finding.
    pub code: Option<Box<kiln_ptx::exec::ExecFinding>>,
    /// How to see it again.
    pub repeat: Mode,
}

/// Which rule was broken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// A read that nothing orders after an earlier write of the same bytes.
    ReadAfterWrite,
    /// A write that nothing orders after an earlier read of the same bytes.
    WriteAfterRead,
    /// A write that nothing orders after an earlier write of the same bytes.
    WriteAfterWrite,
    /// Memory that was used after it was freed or unmapped.
    UseAfterFree,
    /// Memory that was freed or unmapped before it was known that its last use is done.
    FreeBeforeDone,
    /// Memory that was used by work not ordered after its allocation.
    UseBeforeAllocation,
    /// Bytes that were read and were never written.
    Uninitialised,
    /// Memory freed twice.
    DoubleFree,
    /// A handle used after its object was gone.
    StaleHandle,
    /// An access where no memory was.
    OutOfBounds,
    /// A write to memory that may only be read.
    ReadOnly,
    /// An access at an address that is no multiple of its size.
    Misaligned,
    /// A kernel touched memory in a way that its launch did not declare.
    Undeclared(Touching),
    /// A kernel did what it must not do; the engine that ran it says what.
    InKernel,
    /// An event, module or graph that was destroyed while work needed it.
    DestroyedInUse,
    /// An object that was still there at the end.
    Leak,
    /// Work that never ends while the host waits for it.
    Hang,
    /// Ranks of a communicator that call different collectives.
    CollectiveMismatch,
    /// Ranks of a communicator that wait for ranks which do not come.
    CollectiveDeadlock,
}

/// How a kernel touched a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Touching {
    /// It read.
    Reading,
    /// It wrote.
    Writing,
}

impl From<Touching> for Access {
    fn from(touching: Touching) -> Self {
        match touching {
            Touching::Reading => Self::Read,
            Touching::Writing => Self::Write,
        }
    }
}

impl FindingKind {
    /// Whether two accesses lack an order.
    pub fn is_race(&self) -> bool {
        matches!(self, Self::ReadAfterWrite | Self::WriteAfterRead | Self::WriteAfterWrite)
    }

    /// A few words, for lists.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadAfterWrite => "read after write without an order",
            Self::WriteAfterRead => "write after read without an order",
            Self::WriteAfterWrite => "write after write without an order",
            Self::UseAfterFree => "use after free",
            Self::FreeBeforeDone => "free before the last use is done",
            Self::UseBeforeAllocation => "use before allocation",
            Self::Uninitialised => "read of bytes that were never written",
            Self::DoubleFree => "double free",
            Self::StaleHandle => "stale handle",
            Self::OutOfBounds => "access out of bounds",
            Self::ReadOnly => "write to read-only memory",
            Self::Misaligned => "misaligned access",
            Self::Undeclared(_) => "undeclared access",
            Self::InKernel => "mistake in a kernel",
            Self::DestroyedInUse => "destroyed while in use",
            Self::Leak => "leak",
            Self::Hang => "hang",
            Self::CollectiveMismatch => "collectives that differ between ranks",
            Self::CollectiveDeadlock => "ranks that wait for each other",
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::ReadAfterWrite | Self::WriteAfterRead | Self::WriteAfterWrite => {
                "let the later stream wait for an event the earlier one signals after this, or wait on the host in between"
            }
            Self::UseAfterFree => "free it after the last use",
            Self::FreeBeforeDone => {
                "wait for the use on the host first, or free pool memory on a stream that is ordered after it"
            }
            Self::UseBeforeAllocation => "order the use after the allocation",
            Self::Uninitialised => "write it first",
            Self::DoubleFree => "keep one owner",
            Self::StaleHandle => "keep the object while its handle is used",
            Self::OutOfBounds => "check indices against the length of the block",
            Self::ReadOnly => "map it for writing, or write elsewhere",
            Self::Misaligned => "align the pointer",
            Self::Undeclared(_) => {
                "check indices against the length of the buffer, or declare the access (`write`, `also_read`, `also_write`)"
            }
            Self::InKernel => "mend the kernel, or launch it with what it takes",
            Self::DestroyedInUse => "wait until the work is done first",
            Self::Leak => "give it back before the end",
            Self::Hang => "give the wait a timeout",
            Self::CollectiveMismatch => "compare the calls of the two ranks up to this one",
            Self::CollectiveDeadlock => {
                "let every rank call it, use several communicators in one order on all ranks, and put sends and receives that need each other into a group"
            }
        }
    }
}

impl FindingKind {
    /// What to change in a kernel because of a finding of the executor of PTX; `None` where its text says it, or nothing particular is known.
    pub fn advice_in_kernel(kind: &InCode) -> Option<&'static str> {
        Some(match kind {
            InCode::Race { cause: RaceCause::NarrowScope, .. } => {
                "use a wider scope, device instead of block (`atomicAdd` instead of `atomicAdd_block`)"
            }
            InCode::Race { cause: RaceCause::NoFence, .. } => {
                "put `__threadfence()` between the write of the value and the write of the flag (`__threadfence_block()` inside a block)"
            }
            InCode::Race { remedy, .. } => advice_on_race(*remedy),
            InCode::SameValue { .. } => "let one thread write it, or order the writes",
            InCode::Unassigned { .. } => "give the variable a value on every path to its use",
            InCode::PendingCopy { .. } => "wait for the copy before the access",
            InCode::NoProxyFence { .. } => {
                "execute `fence.proxy.async` in the threads that write (`cde::fence_proxy_async_shared_cta()`), then let the thread wait for them that issues the copy or product"
            }
            InCode::NonCoherent { .. } => "read it with a plain load, or write it in another launch",
            InCode::Mbarrier(_) => {
                "let one thread initialise the object with the number of arrivals of a phase, and let no thread use it before that or after \
                 `mbarrier.inval`"
            }
            InCode::BadOperand(_) => "check the instruction, and the values that it is given",
            InCode::OutOfBounds(bad) if bad.mistake == Some(AddressMistake::ReturnedFunction) => {
                "return the value instead of a pointer to it, or let the caller give the memory"
            }
            InCode::OutOfBounds(_) => "check indices against the length of the buffer",
            InCode::UseAfterFree(_) => Self::UseAfterFree.advice(),
            InCode::ReadOnly(_) => Self::ReadOnly.advice(),
            InCode::Misaligned(bad) if matches!(bad.mistake, Some(AddressMistake::RowDistance(_))) => {
                "make the stride (leading dimension) of the matrix a multiple of 16 bytes, 8 halves or 4 floats: pad its rows"
            }
            InCode::Misaligned(_) => Self::Misaligned.advice(),
            InCode::Uninitialised { .. } => Self::Uninitialised.advice(),
            InCode::Assertion { .. } => {
                "find out why the condition is false for this thread, or correct the assertion"
            }
            InCode::Trap => "find out why this thread reached the trap",
            InCode::StackOverflow(_) => {
                "use less local memory in the functions, or a loop instead of deep recursion"
            }
            InCode::Deadlock { place: DeadlockPlace::Mask, .. } => {
                "let all lanes that the mask names execute the instruction, or name only those that do"
            }
            InCode::Deadlock { place: DeadlockPlace::Mbarrier, .. } => {
                "initialise the object with the number of arrivals of one phase, let that many arrive, and wait for the phase that they arrive at \
                 (with its parity)"
            }
            InCode::Deadlock { place: DeadlockPlace::Cluster, .. } => {
                "let all threads of the cluster that do not exit arrive at its barrier (`cluster.sync()`)"
            }
            InCode::Deadlock { place: DeadlockPlace::CountedBarrier, .. } => {
                "let as many threads reach the barrier as its count says, or give it the count of those that reach it"
            }
            InCode::Barrier(_) | InCode::Deadlock { .. } => {
                "let all threads of the block reach the same barrier"
            }
            InCode::InactiveLane { has_exited: true, .. } => {
                "let the other lane reach the shuffle instead of returning before it, or take values only from lanes that are left"
            }
            InCode::InactiveLane { .. } => {
                "name in the mask the lanes that execute the instruction, and no others"
            }
            // The texts about masks say it: it differs between a mask and a width.
            InCode::Endless | InCode::EndlessWait => {
                "let the loop end, or let another thread of the launch write what it waits for"
            }
            _ => return None,
        })
    }

    /// The rule as the driver interface names it.
    fn rule(&self, code: Option<&kiln_ptx::exec::ExecFinding>) -> FindingRule {
        match self {
            Self::ReadAfterWrite | Self::WriteAfterRead | Self::WriteAfterWrite => FindingRule::Race,
            Self::UseAfterFree => FindingRule::UseAfterFree,
            Self::FreeBeforeDone => FindingRule::FreeBeforeDone,
            Self::UseBeforeAllocation => FindingRule::UseBeforeAllocation,
            Self::Uninitialised => FindingRule::Uninitialised,
            Self::DoubleFree => FindingRule::DoubleFree,
            Self::StaleHandle | Self::DestroyedInUse => FindingRule::Lifetime,
            Self::OutOfBounds => FindingRule::OutOfBounds,
            Self::ReadOnly => FindingRule::ReadOnly,
            Self::Misaligned => FindingRule::Misaligned,
            Self::Undeclared(_) => FindingRule::Undeclared,
            Self::Leak => FindingRule::Leak,
            Self::Hang | Self::CollectiveDeadlock => FindingRule::Hang,
            Self::CollectiveMismatch => FindingRule::Synchronisation,
            Self::InKernel => code.map_or(FindingRule::InKernel, |code| match code.kind {
                InCode::OutOfBounds(_) => FindingRule::OutOfBounds,
                InCode::UseAfterFree(_) => FindingRule::UseAfterFree,
                InCode::ReadOnly(_) => FindingRule::ReadOnly,
                InCode::Misaligned(_) => FindingRule::Misaligned,
                InCode::Uninitialised { .. } | InCode::Unassigned { .. } => FindingRule::Uninitialised,
                InCode::Race { .. } => FindingRule::Race,
                InCode::Barrier(_) | InCode::Deadlock { .. } | InCode::Mask(_) | InCode::Mbarrier(_) => {
                    FindingRule::Synchronisation
                }
                InCode::Endless | InCode::EndlessWait | InCode::StepLimit(_) | InCode::Stalled(_) => {
                    FindingRule::Hang
                }
                _ => FindingRule::InKernel,
            }),
        }
    }
}

/// What to do about two accesses of a kernel that race.
fn advice_on_race(remedy: RaceRemedy) -> &'static str {
    macro_rules! in_one_step {
        ($function:literal) => {
            concat!(
                "update the place in one step, with `",
                $function,
                "`: another thread may write between this read and this write"
            )
        };
    }
    match remedy {
        RaceRemedy::WarpBarrier => {
            "both threads are in one warp: put `__syncwarp()` between the two accesses, or `__syncthreads()` if other warps use these bytes, too"
        }
        RaceRemedy::NamedBarrier => {
            "order them: let the warps of both threads meet at one barrier in between (`bar.sync` with one number and the count of all its threads)"
        }
        RaceRemedy::StrongLoad => {
            "the first load of this compare-and-swap loop is a plain one: read the value through a `volatile` pointer \
             (`*(volatile unsigned*)p`) or with an atomic load"
        }
        RaceRemedy::ReaderFence => {
            "the fence is missing on the side of the reader: put `__threadfence()` between the atomic or the flag that it read and this access \
             (`__threadfence_block()` inside a block)"
        }
        RaceRemedy::Atomic("atomicSub") => in_one_step!("atomicSub"),
        RaceRemedy::Atomic("atomicOr") => in_one_step!("atomicOr"),
        RaceRemedy::Atomic("atomicAnd") => in_one_step!("atomicAnd"),
        RaceRemedy::Atomic("atomicXor") => in_one_step!("atomicXor"),
        RaceRemedy::Atomic("atomicMin") => in_one_step!("atomicMin"),
        RaceRemedy::Atomic("atomicMax") => in_one_step!("atomicMax"),
        RaceRemedy::Atomic(_) => in_one_step!("atomicAdd"),
        RaceRemedy::LockFences => {
            "the lock orders nothing without fences: put `__threadfence()` after it is taken and before it is released \
             (`__threadfence_block()` if threads of one block alone take it)"
        }
        RaceRemedy::Cluster => {
            "the threads are in two blocks of one cluster: put `cluster.sync()` (`barrier.cluster.arrive` and `barrier.cluster.wait`) between the two \
             accesses, or an arrival at an mbarrier object and a wait for it"
        }
        RaceRemedy::Grid => {
            "the threads are in different blocks, which no barrier of a block orders: put a fence (`__threadfence()`) and an atomic flag between \
             the two accesses, or a barrier of the grid, or make two launches of it"
        }
        RaceRemedy::OneThread => {
            "both threads executed this instruction, with no barrier in between that could order them: let one thread access these bytes, give each \
             thread its own, or use an atomic"
        }
        _ => "order them: put `__syncthreads()` between the two accesses",
    }
}

/// Where in device memory an access lies that the executor of PTX is told of.
fn address_of(kind: &InCode) -> Option<DeviceAddress> {
    let (InCode::OutOfBounds(access)
    | InCode::Undeclared(access)
    | InCode::UseAfterFree(access)
    | InCode::ReadOnly(access)
    | InCode::Misaligned(access)
    | InCode::Uninitialised { access, .. }
    | InCode::Race { access, .. }
    | InCode::SameValue { access, .. }) = kind
    else {
        return None;
    };
    (access.memory == "global").then_some(DeviceAddress(access.address))
}

impl Finding {
    /// As the driver interface answers it, with the submission that made it.
    pub(crate) fn error(&self) -> Error {
        let sides = [self.second.as_ref(), self.first.as_ref()];
        let kernel = sides.into_iter().flatten().find_map(|actor| match &actor.action {
            Action::Launch(name) => Some(name.to_string()),
            _ => None,
        });
        let code = self.code.as_deref();
        let line = code.map(|code| match &code.site.source {
            Some((file, line)) => FindingLine { file: file.clone(), line: *line },
            None => FindingLine { file: "ptx".into(), line: code.site.ptx_line },
        });
        let kernel = kernel.or_else(|| code.map(|code| code.site.kernel.clone()));
        let rule = self.kind.rule(code);
        let error = Error::new(
            "wait",
            ErrorKind::Finding(DeviceFinding {
                rule,
                kernel,
                line,
                address: self.address.or_else(|| code.and_then(|code| address_of(&code.kind))),
                fatal: false,
                text: self.to_string(),
            }),
        );
        match sides.into_iter().flatten().find_map(site) {
            Some(site) => error.at(site),
            None => error,
        }
    }

    /// What to do about something the executor of PTX found.
    fn advice_in_code(&self, kind: &InCode) -> &'static str {
        match self.kind {
            FindingKind::InKernel => FindingKind::advice_in_kernel(kind).unwrap_or(self.kind.advice()),
            _ => self.kind.advice(),
        }
    }

    fn place(&self) -> String {
        let bytes = match &self.bytes {
            Some(range) => format!("bytes {}..{} of ", range.start, range.end),
            None => String::new(),
        };
        let address = self.address.map(|address| format!(" (at {address})")).unwrap_or_default();
        format!("{bytes}{}{address}", self.subject)
    }

    fn sentence(&self) -> String {
        let place = self.place();
        let name = |actor: &Option<Actor>| {
            actor.as_ref().map_or_else(|| "an unknown access".into(), Actor::to_string)
        };
        let (first, second) = (name(&self.first), name(&self.second));
        match &self.kind {
            FindingKind::ReadAfterWrite => {
                format!("{second} reads {place}, and nothing orders it after {first}, which writes them")
            }
            FindingKind::WriteAfterRead => {
                format!("{second} writes {place}, and nothing orders it after {first}, which reads them")
            }
            FindingKind::WriteAfterWrite => {
                format!("{second} writes {place}, and nothing orders it after {first}, which writes them too")
            }
            _ if self.code.is_some() => format!("{second}: {}", self.subject),
            FindingKind::UseAfterFree => format!("{second} uses {place} after {first}"),
            FindingKind::FreeBeforeDone => {
                format!("{second} takes {place} away, and nothing says that {first} is done with it")
            }
            FindingKind::UseBeforeAllocation => {
                format!("{second} uses {place}, and nothing orders it after {first}")
            }
            FindingKind::Uninitialised => format!("{second} reads {place}, which was never written"),
            FindingKind::DoubleFree => format!("{place} was freed before"),
            FindingKind::StaleHandle => format!("{place} was used, and it is gone"),
            FindingKind::OutOfBounds => format!("{second} reached for {place}, where no memory is"),
            FindingKind::ReadOnly => format!("{second} writes {place}, which may only be read"),
            FindingKind::Misaligned => {
                format!("{second} reached for {place} with a size that does not divide it")
            }
            FindingKind::Undeclared(touching) => {
                let access = Access::from(*touching);
                format!("{second} does a {access} of {place}, which its launch did not declare")
            }
            FindingKind::InKernel => format!("{second}: {}", self.subject.trim_end_matches('.')),
            FindingKind::DestroyedInUse => {
                format!("{second} came before {first} was known to be done with {place}")
            }
            FindingKind::Leak => format!("{place} was never given back"),
            FindingKind::CollectiveMismatch | FindingKind::CollectiveDeadlock => place,
            FindingKind::Hang => format!("{first} does not end, and the host waits for {place}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The executor of PTX says itself what it found.
        let (name, advice) = match &self.code {
            Some(code) => (String::new(), self.advice_in_code(&code.kind)),
            None => (format!("{}: ", self.kind.name()), self.kind.advice()),
        };
        write!(f, "{name}{}; {advice}. Repeat with {}.", self.sentence(), self.repeat)
    }
}
