//! Lowered code: what the executor runs.
//!
//! A PTX instruction becomes one or a few steps in which everything is resolved: operands are numbers of columns,
//! branch targets are numbers of steps, arithmetic is a pointer to the loop that does it. An entry and all functions
//! it can reach are lowered into one list, so a place in the code is one number.

mod access;
mod carry;
mod cluster;
mod flow;
mod matrix_step;
mod mbarrier;
mod mbarrier_spins;
mod operands;
mod quick_step;
mod special;
mod synchronisation;
mod tensor;
mod texture;
mod waits;
mod warpgroup;

use std::ops::Range;
use std::sync::Arc;

use super::alu::{Alu, Mode, Test};
use super::lower::BarrierDecisions;
use super::matrix::SparseMultiply;
use super::memory::SharedMap;
use super::memory::generic_address::Place;
use super::requirement::Requirement;
use crate::{Operation, PtxModule, ScalarType, Shuffle, Vote};

pub(crate) use access::{Address, Atomic, Base, BulkCopy, CopyAsync, Fence, Load, Store, Strength, Update};
pub(crate) use carry::{Carry, CarryKind};
pub(crate) use cluster::{ClusterAddress, ClusterBarrier, ClusterMapping};
pub(crate) use matrix_step::{MatrixStep, TileAddresses};
pub(crate) use mbarrier::{Mbarrier, MbarrierAction};
pub(crate) use operands::OperandUse;
pub(crate) use quick_step::{QuickKind, QuickStep};
pub(crate) use special::Special;
pub(crate) use tensor::{MapEdit, TensorCopy, TensorMapEdit};
pub(crate) use texture::{Geometry, Outside, SurfaceAccess, TextureAction, TextureQuery, TextureStep};
pub(crate) use warpgroup::{Warpgroup, WarpgroupFactor, WarpgroupStep};

/// A column of a frame that is written. Column 0 is a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Reg(pub(crate) u32);

/// A column that is read: of the frame, or a constant when the top bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Source(pub(crate) u32);

impl Source {
    const CONSTANT: u32 = 1 << 31;

    pub(crate) fn constant(index: u32) -> Self {
        Self(index | Self::CONSTANT)
    }

    /// The index of a constant, or of a column of the frame.
    #[inline(always)]
    pub(crate) fn split(self) -> Result<u32, u32> {
        if self.0 & Self::CONSTANT != 0 { Ok(self.0 & !Self::CONSTANT) } else { Err(self.0) }
    }
}

impl From<Reg> for Source {
    fn from(reg: Reg) -> Self {
        Self(reg.0)
    }
}

/// A predicate of a frame that is written. Predicate 0 is a sink, predicate 1 is always true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pred(pub(crate) u32);

impl Pred {
    pub(crate) const SINK: Self = Self(0);
    pub(crate) const TRUE: Self = Self(1);
    /// The first predicate the code itself uses.
    pub(crate) const FIRST: u32 = 2;
}

/// A predicate that is read, possibly negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredSource {
    pub(crate) pred: Pred,
    pub(crate) negated: bool,
}

impl PredSource {
    pub(crate) const ALWAYS: Self = Self { pred: Pred::TRUE, negated: false };
}

/// Everything an entry needs to run.
pub(crate) struct Code {
    pub(crate) module: Arc<PtxModule>,
    pub(crate) steps: Vec<Step>,
    /// The same steps for the loop over straight code.
    pub(crate) quick: Vec<QuickStep>,
    /// For each step its rank in an order in which every block stands before all it leads to, loops kept together.
    pub(crate) ranks: Vec<u32>,
    /// For each step the function and instruction it was made from.
    pub(crate) origins: Vec<Origin>,
    /// The entry first.
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) constants: Vec<Constant>,
    /// Bytes of shared memory the code declares; dynamic shared memory starts at the next multiple of 16.
    pub(crate) shared_bytes: u64,
    /// Bytes of its shared variables alone.
    pub(crate) static_shared_bytes: u64,
    /// Where its shared variables lie here: with gaps, which those sizes do not count.
    pub(crate) shared: SharedMap,
    /// The branches that decide whether a barrier of the whole block is reached; none without such a barrier.
    pub(crate) barrier_decisions: Option<Box<BarrierDecisions>>,
    /// Waits at `mbarrier` objects that only the end of the phase ends, by rising number.
    pub(crate) mbarrier_spins: Vec<u32>,
    /// Exchanges and compare-and-swaps that are tried again until they hold, by rising number.
    pub(crate) lock_spins: Vec<u32>,
}

impl Code {
    /// The place in `functions` of a function of the module.
    pub(crate) fn function_of(&self, module_function: u32) -> Option<u32> {
        self.functions.iter().position(|f| f.id == module_function).map(|at| at as u32)
    }
}

/// Where a step comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The function's number in the module.
    pub(crate) function: u32,
    pub(crate) instruction: u32,
}

/// A constant column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bits(u64),
    /// The address of a variable of the module, by its place among those that are placed, plus an offset.
    Variable(u32, i64),
}

/// A lowered function.
pub(crate) struct FunctionCode {
    /// Its number in the module.
    pub(crate) id: u32,
    pub(crate) start: u32,
    pub(crate) columns: u32,
    pub(crate) predicates: u32,
    /// Bytes of the frame on the stack of each thread: parameters and local variables.
    pub(crate) frame_bytes: u64,
    /// The parts of the frame around local variables that belong to nothing.
    pub(crate) gaps: Vec<Range<u64>>,
    pub(crate) parameters: Vec<Slot>,
    pub(crate) returns: Vec<Slot>,
    /// Bits of each column; 64 for those past the end.
    pub(crate) widths: Vec<u8>,
    /// Columns that may be read before they are assigned, each with its register.
    pub(crate) unassigned: Vec<(Reg, u32)>,
    /// The same of predicates.
    pub(crate) unassigned_predicates: Vec<(Pred, u32)>,
}

impl FunctionCode {
    /// Bytes of the frame that hold something.
    pub(crate) fn used_frame_bytes(&self) -> u64 {
        self.frame_bytes - self.gaps.iter().map(|gap| gap.end - gap.start).sum::<u64>().min(self.frame_bytes)
    }
}

/// Where a function finds a parameter or leaves a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// Bytes of its frame.
    Memory {
        offset: u64,
        bytes: u64,
    },
    Register(Reg),
    Predicate(Pred),
}

/// What a call passes or receives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Actual {
    /// Bytes of the caller's frame.
    Memory {
        offset: u64,
        bytes: u64,
    },
    Value(Source),
    Predicate(PredSource),
    Nothing,
}

/// One step, run in the lanes whose guard holds.
pub(crate) struct Step {
    pub(crate) guard: PredSource,
    /// Whether it is the first step of its instruction: instructions are counted, not steps.
    pub(crate) first: bool,
    /// Whether the ways of threads keep it, see [`BarrierDecisions`]: of a branch the first bit if it is taken and the second if not; of other steps one bit.
    pub(crate) decides: u8,
    /// Whether it reads or writes registers of products that are done later.
    pub(crate) watched: bool,
    pub(crate) op: Op,
}

/// What a step does.
pub(crate) enum Op {
    Alu {
        run: Alu,
        mode: Mode,
        to: Reg,
        from: [Source; 4],
    },
    Compare(Box<Compare>),
    /// `pick ? a : b`.
    Select {
        to: Reg,
        a: Source,
        b: Source,
        pick: PredSource,
    },
    /// Any function of two predicates: bit `2a + b` of the table.
    Logic {
        to: Pred,
        a: PredSource,
        b: PredSource,
        table: u8,
    },
    Copy {
        to: Reg,
        from: Source,
    },
    /// `add.cc` and its kind.
    Carry(Box<Carry>),
    /// Parts of `from`, `bits` wide each, lowest first.
    Split {
        to: Box<[Reg]>,
        from: Source,
        bits: u8,
    },
    /// Parts put together, `bits` wide each, lowest first.
    Join {
        to: Reg,
        from: Box<[Source]>,
        bits: u8,
    },
    Special {
        to: Reg,
        which: Special,
    },
    /// The address of a place in the frame, in local memory.
    FrameAddress {
        to: Reg,
        offset: i64,
    },
    Allocate {
        to: Reg,
        bytes: Source,
        align: u32,
    },
    StackSave {
        to: Reg,
    },
    StackRestore {
        from: Source,
    },
    IsSpace {
        to: Pred,
        address: Source,
        place: Place,
        constant: bool,
    },
    /// An address of a cluster, or the rank that one means.
    ClusterAddress(Box<ClusterAddress>),
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    CopyAsync(Box<CopyAsync>),
    BulkCopy(Box<BulkCopy>),
    TensorCopy(Box<TensorCopy>),
    TensorMapEdit(Box<TensorMapEdit>),
    Mbarrier(Box<Mbarrier>),
    Texture(Box<TextureStep>),
    /// A look at the metadata of a sparse matrix.
    CheckMetadata {
        sparse: SparseMultiply,
        metadata: Source,
    },
    /// `wgmma`.
    Warpgroup(Box<Warpgroup>),
    /// Where lanes find their pieces of a matrix.
    TileAddresses(Box<TileAddresses>),
    Collective(Box<Collective>),
    Barrier(Box<Barrier>),
    ClusterBarrier(ClusterBarrier),
    ActiveMask {
        to: Reg,
    },
    /// Goes to the target in the lanes where `when` holds.
    Branch {
        target: u32,
        when: PredSource,
    },
    Jump {
        target: u32,
    },
    Table {
        index: Source,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Builtin(Box<BuiltinCall>),
    Return,
    Exit,
    Trap,
    /// Orders what came before against what follows.
    Fence(Fence),
    /// Puts the copies a thread has started into a group.
    CommitCopies,
    /// Waits until at most so many groups of copies are pending, or for all copies.
    WaitForCopies {
        open: Option<Source>,
    },
    /// Puts the bulk copies a thread has started into a group.
    CommitBulkCopies,
    /// Waits until at most so many groups of bulk copies are pending.
    WaitForBulkCopies {
        open: Source,
    },
    /// Lets other threads go first.
    Yield,
    Nothing,
    Unsupported(Why),
}

/// Why an instruction is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The executor does not know it.
    Instruction,
    /// It is known, but not with these operands or types.
    Operands,
    /// The module has an older version or architecture than it requires.
    Requires(Requirement),
    /// One of its fragments is loaded as another one, in this line of the PTX.
    Fragment(u32),
    /// Its sparsity selector is above this.
    Selector(u32),
    /// It calls a function the module only declares.
    Undefined(u32),
}

/// `setp` and `set`: a comparison, combined with a predicate, into one or two predicates.
#[derive(Clone, Copy)]
pub(crate) struct Compare {
    pub(crate) test: Test,
    pub(crate) mode: Mode,
    pub(crate) a: Source,
    pub(crate) b: Source,
    pub(crate) combine: Option<(Combine, PredSource)>,
    pub(crate) to: Pred,
    /// Where the opposite goes; combined as well.
    pub(crate) opposite: Pred,
}

/// How a comparison is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    pub(crate) fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::And => Some(Self::And),
            Operation::Or => Some(Self::Or),
            Operation::Xor => Some(Self::Xor),
            _ => None,
        }
    }

    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// An operation of several lanes together.
pub(crate) struct Collective {
    pub(crate) kind: CollectiveKind,
    pub(crate) to: Reg,
    pub(crate) to_pred: Pred,
    pub(crate) from: [Source; 3],
    pub(crate) pred: PredSource,
    /// The lanes that take part; `None` for those that arrive together, as before Volta.
    pub(crate) members: Option<Source>,
    /// The registers of matrices that are read, and those that are written.
    pub(crate) fragments_from: Box<[Source]>,
    pub(crate) fragments_to: Box<[Reg]>,
}

/// What lanes do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    Sync,
    Shuffle(Shuffle),
    Vote(Vote),
    MatchAny { wide: bool },
    MatchAll { wide: bool },
    Reduce(Operation, ScalarType),
    Elect,
    Matrix(MatrixStep),
}

/// `bar` and `barrier`.
pub(crate) struct Barrier {
    pub(crate) kind: BarrierKind,
    /// Whether all threads of the warp must arrive together.
    pub(crate) aligned: bool,
    pub(crate) number: Source,
    pub(crate) count: Option<Source>,
    pub(crate) pred: PredSource,
    pub(crate) to: Reg,
    pub(crate) to_pred: Pred,
}

/// What happens at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    CountTrue,
    AllTrue,
    AnyTrue,
}

/// A call of a function of the module.
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Box<[Actual]>,
    pub(crate) returns: Box<[Actual]>,
}

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    /// By its place in [`Code::functions`].
    Function(u32),
    /// By its address.
    Address(Source),
}

/// A call of something the device provides.
pub(crate) struct BuiltinCall {
    pub(crate) which: Builtin,
    pub(crate) arguments: Box<[Actual]>,
    pub(crate) returns: Box<[Actual]>,
}

/// What the device provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Printf,
    AssertFail,
    Malloc,
    Free,
}

impl Builtin {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "vprintf" => Self::Printf,
            "__assertfail" => Self::AssertFail,
            "malloc" => Self::Malloc,
            "free" => Self::Free,
            _ => return None,
        })
    }
}
