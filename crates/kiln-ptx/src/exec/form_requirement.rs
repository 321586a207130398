//! What each form of an instruction requires: the answers of `ptxas` 13.0 for every architecture that it knows.

use super::matrix::{Multiply, SparseMultiply, WarpMatrix};
use super::requirement::Requirement;
use crate::modifier::Cache;
use crate::{
    Flag, Form, Modifier, Opcode, Order, PtxOperand, Rounding, ScalarType, Scope, Space, SpecialName,
    SpecialRegister,
};

/// Words of tensor copies that came with sm_100.
const BLACKWELL_WORDS: [&str; 3] = ["tile::gather4", "tile::scatter4", "cta_group::1"];
/// Bytes that a load or store moves at once since sm_100.
const WIDE_ACCESS_BYTES: u32 = 32;

impl Requirement {
    /// What an instruction requires; `None` where nothing is known.
    pub(crate) fn of(form: &Form) -> Option<Self> {
        [of_instruction(form), of_scope(form), of_caches(form)].into_iter().flatten().reduce(Self::and)
    }

    /// What an instruction requires because of its operands.
    pub(crate) fn of_operands(form: &Form, operands: &[PtxOperand]) -> Option<Self> {
        let special = operands.iter().find_map(|operand| match operand {
            PtxOperand::Special(register) => of_special_register(*register),
            _ => None,
        });
        match form.opcode() {
            Opcode::Min | Opcode::Max if operands.len() == 4 => Some(Self::new(8, 8, 100)),
            Opcode::Mbarrier if is_counted_arrival(form, operands) => Some(Self::new(7, 8, 90)),
            _ => special,
        }
    }
}

/// What the instruction itself requires.
fn of_instruction(form: &Form) -> Option<Requirement> {
    match form.opcode() {
        Opcode::Wmma => WarpMatrix::named(form.text()).map(|matrix| matrix.requirement()),
        Opcode::Mma => of_product(form),
        Opcode::Wgmma => Some(Requirement::own(8, 0, 90)),
        Opcode::Cvt => of_conversion(form),
        Opcode::Mbarrier => Some(of_mbarrier(form)),
        Opcode::Ld | Opcode::St if !form.has(Flag::Async) => of_width(form),
        Opcode::Atom => of_atomic(form),
        Opcode::Red if !form.has(Flag::Async) => of_atomic(form),
        Opcode::Cp => of_copy(form),
        Opcode::Fence => of_fence(form),
        Opcode::Redux if form.ty() != Some(ScalarType::F32) => Some(Requirement::new(7, 0, 80)),
        Opcode::Match => Some(Requirement::new(6, 0, 70)),
        Opcode::Elect | Opcode::Stmatrix | Opcode::Griddepcontrol => Some(Requirement::new(7, 8, 90)),
        Opcode::Movmatrix => Some(Requirement::new(7, 8, 75)),
        Opcode::Ldmatrix => Some(Requirement::new(6, 5, 75)),
        Opcode::Mapa | Opcode::Getctarank => Some(Requirement::new(7, 8, 90)),
        Opcode::Barrier if form.scope() == Some(Scope::Cluster) => Some(Requirement::new(7, 8, 90)),
        Opcode::St | Opcode::Red if form.has(Flag::Async) => Some(Requirement::new(8, 1, 90)),
        Opcode::Tensormap if form.has_word("replace") => Some(Requirement::suffixed(8, 3, 90)),
        Opcode::Tensormap => Some(Requirement::new(8, 3, 90)),
        Opcode::Setmaxnreg => Some(Requirement::suffixed(8, 0, 90)),
        Opcode::Discard | Opcode::Applypriority | Opcode::Createpolicy => Some(Requirement::new(7, 4, 80)),
        _ => of_arithmetic(form),
    }
}

fn of_product(form: &Form) -> Option<Requirement> {
    if let Some(sparse) = SparseMultiply::named(form.text()) {
        return Some(sparse.requirement());
    }
    let of_shape = Multiply::named(form.text()).map(|multiply| multiply.requirement());
    let has_kind = form.has_word("kind::f8f6f4");
    [of_shape, has_kind.then_some(Requirement::SMALL_FLOATS)].into_iter().flatten().reduce(Requirement::and)
}

fn of_conversion(form: &Form) -> Option<Requirement> {
    use ScalarType::{Bf16, Bf16x2, E2m1x2, E2m3x2, E3m2x2, E4m3x2, E5m2x2, F16, F16x2, F32, Tf32, Ue8m0x2};
    if form.rounding() == Some(Rounding::Rs) {
        return Some(Requirement::RANDOM_ROUNDING);
    }
    let has = |is: fn(ScalarType) -> bool| form.types().any(is);
    if has(|ty| matches!(ty, E2m1x2 | E2m3x2 | E3m2x2 | Ue8m0x2)) {
        return Some(Requirement::SMALL_FLOATS);
    }
    if has(|ty| matches!(ty, E4m3x2 | E5m2x2)) {
        return Some(Requirement::new(7, 8, 89));
    }
    let stops = form.has(Flag::Satfinite);
    match (form.ty()?, form.source_type()?) {
        (Tf32, F32) => Some(match (form.rounding() == Some(Rounding::Rna), stops) {
            (true, false) => Requirement::new(7, 0, 80),
            (true, true) => Requirement::new(8, 1, 80),
            (false, false) => Requirement::new(7, 8, 90),
            (false, true) => Requirement::new(8, 6, 100),
        }),
        (F16 | F16x2 | Bf16 | Bf16x2, F32) if stops => Some(Requirement::new(8, 1, 80)),
        (F16x2 | Bf16 | Bf16x2, F32) => Some(Requirement::new(7, 0, 80)),
        (F16, F32) if form.has(Flag::Relu) => Some(Requirement::new(7, 0, 80)),
        (F32, Bf16) => Some(Requirement::new(7, 1, 80)),
        (Bf16, _) | (_, Bf16) => Some(Requirement::new(7, 8, 90)),
        _ => None,
    }
}

/// What arithmetic and comparisons require for their types.
fn of_arithmetic(form: &Form) -> Option<Requirement> {
    use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, S16x2, U16x2};
    let is_brain = form.types().any(|ty| matches!(ty, Bf16 | Bf16x2));
    let ty = form.ty()?;
    let has_pairs = matches!(ty, U16x2 | S16x2);
    let version = match form.opcode() {
        Opcode::Add if has_pairs => (8, 0, 90),
        Opcode::Min | Opcode::Max if has_pairs => (8, 0, 90),
        Opcode::Min | Opcode::Max if form.has(Flag::Relu) => (8, 0, 90),
        Opcode::Min | Opcode::Max if form.has(Flag::XorSign) => (7, 2, 86),
        Opcode::Min | Opcode::Max if matches!(ty, F16 | F16x2 | Bf16 | Bf16x2) => (7, 0, 80),
        Opcode::Min | Opcode::Max if ty == F32 && form.has(Flag::Nan) => (7, 0, 80),
        Opcode::Fma if form.has(Flag::Relu) || is_brain => (7, 0, 80),
        Opcode::Neg | Opcode::Abs if is_brain => (7, 0, 80),
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Set | Opcode::Setp if is_brain => (7, 8, 90),
        Opcode::Ex2 | Opcode::Tanh if is_brain => (7, 8, 90),
        Opcode::Ex2 | Opcode::Tanh if matches!(ty, F16 | F16x2) => (7, 0, 75),
        Opcode::Tanh => (7, 0, 75),
        _ => return None,
    };
    Some(Requirement::new(version.0, version.1, version.2))
}

/// What a load or store of many bytes requires.
fn of_width(form: &Form) -> Option<Requirement> {
    let bytes = form.ty()?.size_bytes() * u32::from(form.vector());
    (bytes == WIDE_ACCESS_BYTES).then_some(Requirement::new(8, 8, 100))
}

fn of_atomic(form: &Form) -> Option<Requirement> {
    match form.ty()? {
        _ if form.vector() > 1 => Some(Requirement::new(8, 1, 90)),
        ScalarType::B128 => Some(Requirement::new(8, 3, 90)),
        ScalarType::Bf16 | ScalarType::Bf16x2 => Some(Requirement::new(7, 8, 90)),
        _ => None,
    }
}

fn of_copy(form: &Form) -> Option<Requirement> {
    if form.has_word("tile::gather4") && is_own_block(form) {
        let has_group = form.has_word("cta_group::1");
        return Some(if has_group { Requirement::BLACKWELL } else { Requirement::new(8, 6, 100) });
    }
    if BLACKWELL_WORDS.iter().any(|word| form.has_word(word)) {
        return Some(Requirement::BLACKWELL);
    }
    if form.has(Flag::Bulk) {
        return Some(Requirement::new(8, 0, 90));
    }
    (form.has(Flag::Mbarrier) || form.has(Flag::Async)).then_some(Requirement::new(7, 0, 80))
}

fn of_fence(form: &Form) -> Option<Requirement> {
    let has_restriction = form.modifiers().iter().any(|word| word.keyword().starts_with("sync_restrict::"));
    match () {
        () if form.has_word("tensormap::generic") => Some(Requirement::new(8, 3, 90)),
        () if form.has(Flag::MbarrierInit) => Some(Requirement::new(8, 0, 90)),
        () if form.has_word("async::generic") || has_restriction => Some(Requirement::new(8, 6, 90)),
        () if form.has(Flag::Proxy) && form.has_word("alias") => Some(Requirement::new(7, 5, 70)),
        () if form.has(Flag::Proxy) && form.has(Flag::Async) => Some(Requirement::new(8, 0, 90)),
        () => None,
    }
}

fn of_mbarrier(form: &Form) -> Requirement {
    let has_bytes = form.has(Flag::ExpectTx) || form.has(Flag::CompleteTx);
    if has_bytes || form.order() == Some(Order::Relaxed) || form.scope() == Some(Scope::Cluster) {
        Requirement::new(8, 0, 90)
    } else if form.has(Flag::TryWait) {
        Requirement::new(7, 8, 90)
    } else if form.has(Flag::Parity) {
        Requirement::new(7, 1, 80)
    } else {
        Requirement::new(7, 0, 80)
    }
}

/// Whether an arrival counts for several threads without `.noComplete`.
fn is_counted_arrival(form: &Form, operands: &[PtxOperand]) -> bool {
    let arrives = form.has_word("arrive") || form.has_word("arrive_drop");
    arrives && operands.len() == 3 && !form.has_word("noComplete") && !form.has(Flag::ExpectTx)
}

/// What the threads of a cluster as the scope, or their shared memory, require.
fn of_scope(form: &Form) -> Option<Requirement> {
    let is_ordered =
        matches!(form.opcode(), Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Fence);
    let is_shared = form.spaces().any(|space| space == Space::SharedCluster);
    (is_shared || (is_ordered && form.scope() == Some(Scope::Cluster))).then_some(Requirement::new(7, 8, 90))
}

/// What words about caches require.
fn of_caches(form: &Form) -> Option<Requirement> {
    let takes =
        matches!(form.opcode(), Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Prefetch);
    let is_new = |word: &Modifier| match word {
        Modifier::Cache(Cache::L2CacheHint | Cache::L2256B) => true,
        Modifier::Cache(Cache::L2EvictNormal | Cache::L2EvictLast) => form.opcode() == Opcode::Prefetch,
        _ => false,
    };
    (takes && form.modifiers().iter().any(is_new)).then_some(Requirement::new(7, 4, 80))
}

fn of_special_register(register: SpecialRegister) -> Option<Requirement> {
    use SpecialName::*;
    let SpecialRegister::Named(name, _) = register else { return None };
    match name {
        IsExplicitCluster | Clusterid | Nclusterid | ClusterCtaid | ClusterNctaid | ClusterCtarank
        | ClusterNctarank => Some(Requirement::new(7, 8, 90)),
        AggrSmemSize => Some(Requirement::new(8, 1, 90)),
        ReservedSmemOffsetBegin
        | ReservedSmemOffsetEnd
        | ReservedSmemOffsetCap
        | ReservedSmemOffset0
        | ReservedSmemOffset1 => Some(Requirement::new(7, 6, 80)),
        _ => None,
    }
}

/// Whether a copy goes to the block's own shared memory.
fn is_own_block(form: &Form) -> bool {
    !form.has(Flag::Prefetch) && form.space().map(Space::base) == Some(Space::Shared)
}
