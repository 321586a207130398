//! Steps of a warpgroup: products of matrices that are done later, and their groups.

use super::*;
use crate::exec::matrix::WarpgroupMultiply;

/// What a warp does as part of a warpgroup.
pub(crate) enum Warpgroup {
    Multiply(WarpgroupStep),
    /// Orders registers of products and those of other instructions.
    Fence,
    /// Puts products into a group.
    Commit,
    /// Waits until at most so many groups are pending.
    Wait(u32),
}

/// `wgmma.mma_async`.
pub(crate) struct WarpgroupStep {
    pub(crate) multiply: WarpgroupMultiply,
    pub(crate) d: Box<[Reg]>,
    pub(crate) a: WarpgroupFactor,
    /// The descriptor of B.
    pub(crate) b: Source,
    /// Whether D is added to.
    pub(crate) adds: PredSource,
    pub(crate) negates_a: bool,
    pub(crate) negates_b: bool,
    /// Whether k is the slower dimension in shared memory.
    pub(crate) transposes_a: bool,
    pub(crate) transposes_b: bool,
}

/// Where A is.
pub(crate) enum WarpgroupFactor {
    Registers(Box<[Reg]>),
    /// In shared memory, as a descriptor says.
    Descriptor(Source),
}

impl WarpgroupStep {
    /// The registers of A.
    pub(crate) fn a_registers(&self) -> &[Reg] {
        match &self.a {
            WarpgroupFactor::Registers(registers) => registers,
            WarpgroupFactor::Descriptor(_) => &[],
        }
    }

    /// Whether D may be added to.
    fn may_add(&self) -> bool {
        self.adds != PredSource { pred: Pred::TRUE, negated: true }
    }

    pub(super) fn operands(&self, visit: &mut dyn FnMut(OperandUse)) {
        match &self.a {
            WarpgroupFactor::Registers(a) => {
                a.iter().for_each(|a| visit(OperandUse::Carries((*a).into())));
            }
            WarpgroupFactor::Descriptor(a) => visit(OperandUse::Uses(*a)),
        }
        visit(OperandUse::Uses(self.b));
        visit(OperandUse::UsesPredicate(self.adds));
        if self.may_add() {
            self.d.iter().for_each(|d| visit(OperandUse::Carries((*d).into())));
        }
        self.d.iter().for_each(|d| visit(OperandUse::Writes(*d)));
    }
}
