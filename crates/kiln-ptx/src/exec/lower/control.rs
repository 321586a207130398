//! Branches, calls and the end of threads.

use super::super::lowered_code::{Actual, Builtin, BuiltinCall, Call, Callee, Op, PredSource, Why};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use crate::{Flag, Form, Opcode, PtxOperand, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_control(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        match form.opcode() {
            Opcode::Bra => self.lower_branch(operands).ok_or(Why::Operands),
            Opcode::Brx => self.lower_table(form, operands).ok_or(Why::Operands),
            Opcode::Call => self.lower_call(operands),
            Opcode::Ret => {
                self.emit_return();
                Ok(())
            }
            Opcode::Exit => {
                self.emit_alone(Op::Exit);
                Ok(())
            }
            Opcode::Nanosleep => {
                self.emit(Op::Yield);
                Ok(())
            }
            // A breakpoint without a debugger ends the kernel as a trap does.
            _ => {
                self.emit_alone(Op::Trap);
                Ok(())
            }
        }
    }

    fn lower_branch(&mut self, operands: &[PtxOperand]) -> Option<()> {
        let PtxOperand::Label(label) = operands.first()? else { return None };
        let target = self.body.target(*label) as u32;
        let when = self.guard;
        self.emit_branch(match when {
            PredSource::ALWAYS => Op::Jump { target },
            when => Op::Branch { target, when },
        });
        Some(())
    }

    fn lower_table(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let (index, PtxOperand::Table(table)) = (operands.first()?, operands.get(1)?) else { return None };
        if !form.has(Flag::Idx) {
            return None;
        }
        let index = self.source(index, ScalarType::U32)?;
        let labels = &self.body.table(*table)?.targets;
        let targets: Box<[u32]> = labels.iter().map(|label| self.body.target(*label) as u32).collect();
        if self.guard != PredSource::ALWAYS {
            let when = PredSource { negated: !self.guard.negated, ..self.guard };
            let next = self.at + 1;
            self.emit_branch(Op::Branch { target: next, when });
        }
        self.emit_branch(Op::Table { index, targets });
        Some(())
    }

    fn lower_call(&mut self, operands: &[PtxOperand]) -> Result<(), Why> {
        let Some(PtxOperand::Call(id)) = operands.first() else { return Err(Why::Operands) };
        let call = self.body.call(*id).ok_or(Why::Operands)?;
        let actuals = |lowering: &mut Self, operands: &[PtxOperand]| -> Option<Box<[Actual]>> {
            operands.iter().map(|operand| lowering.actual(operand)).collect()
        };
        let arguments = actuals(self, &call.arguments).ok_or(Why::Operands)?;
        let returns = actuals(self, &call.returns).ok_or(Why::Operands)?;
        let is_number = |actual: &Actual| matches!(actual, Actual::Value(source) if source.split().is_ok());
        if returns.iter().any(is_number) {
            return Err(Why::Operands);
        }
        let callee = match call.callee {
            crate::Callee::Register(id) => Callee::Address(self.column(id).ok_or(Why::Operands)?.into()),
            crate::Callee::Function(id) => {
                let id = self.context.module.resolve_alias(id);
                let function = self.context.module.function(id).ok_or(Why::Operands)?;
                match (self.context.places.get(&id.0), Builtin::named(&function.name)) {
                    (Some(place), _) if function.body.is_some() => Callee::Function(*place),
                    (_, Some(which)) => {
                        self.emit_alone(Op::Builtin(Box::new(BuiltinCall { which, arguments, returns })));
                        return Ok(());
                    }
                    _ => return Err(Why::Undefined(id.0)),
                }
            }
        };
        self.emit_alone(Op::Call(Box::new(Call { callee, arguments, returns })));
        Ok(())
    }

    /// What is passed or received at one place of a call.
    fn actual(&mut self, operand: &PtxOperand) -> Option<Actual> {
        match operand {
            PtxOperand::Variable(id, 0) => match self.frame_place(*id)? {
                (Place::Local, offset) => {
                    let bytes = self.context.module.variable(*id)?.shape.size_bytes();
                    Some(Actual::Memory { offset, bytes })
                }
                // A kernel parameter handed on as it is lies among the arguments, not on the stack.
                _ => None,
            },
            PtxOperand::Register(id) if self.is_predicate(*id) => {
                Some(Actual::Predicate(self.predicate_source(operand)?))
            }
            PtxOperand::Sink => Some(Actual::Nothing),
            other => Some(Actual::Value(self.source(other, ScalarType::B64)?)),
        }
    }
}
