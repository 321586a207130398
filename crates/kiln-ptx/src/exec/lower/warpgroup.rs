//! `wgmma`.
//!
//! The lanes of a warp meet first; then the warp does its part of the step. A product is done when it is issued; fences and groups concern the checks.

use std::collections::HashSet;

use super::super::lowered_code::{
    MatrixStep, Op, OperandUse, Step, Warpgroup, WarpgroupFactor, WarpgroupStep, Why,
};
use super::super::matrix::{COMMIT_GROUP, WAIT_GROUP, WARPGROUP_FENCE, WarpgroupMultiply};
use super::function::Lowering;
use crate::{Form, PtxOperand, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_warpgroup(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        let step = match (form.text(), operands) {
            (WARPGROUP_FENCE, []) => Warpgroup::Fence,
            (COMMIT_GROUP, []) => Warpgroup::Commit,
            (WAIT_GROUP, [PtxOperand::Immediate(open)]) => Warpgroup::Wait(open.bits() as u32),
            (WARPGROUP_FENCE | COMMIT_GROUP | WAIT_GROUP, _) => return Err(Why::Operands),
            (text, _) => {
                let multiply = WarpgroupMultiply::named(text).ok_or(Why::Instruction)?;
                Warpgroup::Multiply(self.warpgroup_step(multiply, operands).ok_or(Why::Operands)?)
            }
        };
        self.emit_around();
        self.emit_matrix(MatrixStep::Meet, Vec::new(), Vec::new());
        self.emit_always(Op::Warpgroup(Box::new(step)));
        Ok(())
    }

    fn warpgroup_step(
        &mut self,
        multiply: WarpgroupMultiply,
        operands: &[PtxOperand],
    ) -> Option<WarpgroupStep> {
        let [d, a, b, adds, numbers @ ..] = operands else { return None };
        let [a_count, d_count] = multiply.registers();
        let d = self.registers(d).filter(|d| d.len() == d_count)?;
        let a = match a {
            PtxOperand::Vector(_) => {
                let registers = self.registers(a).filter(|a| a.len() == a_count)?;
                WarpgroupFactor::Registers(registers.into())
            }
            descriptor => WarpgroupFactor::Descriptor(self.source(descriptor, ScalarType::B64)?),
        };
        let b = self.source(b, ScalarType::B64)?;
        let adds = self.predicate_source(adds)?;
        let mut numbers = numbers.iter().map(|number| match number {
            PtxOperand::Immediate(number) => Some(number.bits() as u32 as i32),
            _ => None,
        });
        let mut scale = |is_there: bool| match is_there.then(|| numbers.next()) {
            None | Some(Some(Some(1))) => Some(false),
            Some(Some(Some(-1))) => Some(true),
            _ => None,
        };
        let (negates_a, negates_b) = (scale(multiply.is_float())?, scale(multiply.is_float())?);
        let mut transpose = |is_there: bool| match is_there.then(|| numbers.next()) {
            None | Some(Some(Some(0))) => Some(false),
            Some(Some(Some(1))) => Some(true),
            _ => None,
        };
        let is_shared = matches!(a, WarpgroupFactor::Descriptor(_));
        let transposes_a = transpose(multiply.may_transpose() && is_shared)?;
        let transposes_b = transpose(multiply.may_transpose())?;
        let d = d.into();
        let step =
            WarpgroupStep { multiply, d, a, b, adds, negates_a, negates_b, transposes_a, transposes_b };
        numbers.next().is_none().then_some(step)
    }
}

/// Marks the steps of a function that read or write registers of products.
pub(super) fn mark_registers(steps: &mut [Step]) {
    let mut named: HashSet<u32> = HashSet::new();
    for step in &*steps {
        if let Op::Warpgroup(warpgroup) = &step.op
            && let Warpgroup::Multiply(multiply) = &**warpgroup
        {
            named.extend(multiply.d.iter().chain(multiply.a_registers()).map(|register| register.0));
        }
    }
    if named.is_empty() {
        return;
    }
    for step in steps {
        let mut is_watched = false;
        step.op.operands(&mut |operand| {
            is_watched |= match operand {
                OperandUse::Uses(source) | OperandUse::Carries(source) => {
                    source.split().is_err_and(|column| named.contains(&column))
                }
                OperandUse::Writes(register) => named.contains(&register.0),
                _ => false,
            };
        });
        step.watched = is_watched;
    }
}
