//! Bit operations and logic.

use super::super::alu::{Alu, Mode, SimpleOp, bits, test};
use super::super::lowered_code::{Combine, Compare, Op, Pred, PredSource};
use super::super::undefined::DataFlow;
use super::function::Lowering;
use crate::{Flag, Form, Opcode, PtxOperand, ScalarKind, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_bits(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        let moves = |set: u8| Mode { flow: DataFlow::Moves(set), ..Mode::default() };
        match form.opcode() {
            Opcode::Lop3 => self.lower_lookup(form, operands),
            Opcode::Shl => {
                let mode = Mode { simple: simple_op(Opcode::Shl, ty), ..moves(1) };
                self.emit_alu_typed(bits::shift_left(ty)?, mode, operands, [ty, ScalarType::B32, ty, ty])
            }
            Opcode::Shr => {
                let mode = Mode { simple: simple_op(Opcode::Shr, ty), ..moves(1) };
                self.emit_alu_typed(bits::shift_right(ty)?, mode, operands, [ty, ScalarType::B32, ty, ty])
            }
            Opcode::Bfe => {
                let types = [ty, ScalarType::B32, ScalarType::B32, ty];
                self.emit_alu_typed(bits::extract(ty)?, moves(1), operands, types)
            }
            Opcode::Bfi => {
                let types = [ty, ty, ScalarType::B32, ScalarType::B32];
                self.emit_alu_typed(bits::insert(ty)?, moves(0b11), operands, types)
            }
            _ => {
                let run = simple(form, ty)?;
                let mode = match form.opcode() {
                    Opcode::Brev | Opcode::Szext => moves(1),
                    Opcode::Shf | Opcode::Prmt => moves(0b11),
                    Opcode::Clz | Opcode::Bfind => {
                        let (bits, signed) = ((8 * ty.size_bytes()) as u8, ty.kind() == ScalarKind::Signed);
                        Mode { flow: DataFlow::TopBit { bits, signed }, ..Mode::default() }
                    }
                    _ => Mode::default(),
                };
                self.emit_alu(run, mode, operands, ty)
            }
        }
    }

    /// `lop3`, also with a predicate that is true where the result is not zero.
    fn lower_lookup(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [first, a, b, c, table, rest @ ..] = operands else { return None };
        let from = [a, b, c, table].map(|operand| self.source(operand, ScalarType::B32));
        let [Some(a), Some(b), Some(c), Some(table)] = from else { return None };
        let to = self.destination(first)?;
        let mode = Mode { flow: DataFlow::Lookup, ..Mode::default() };
        self.emit(Op::Alu { run: bits::lookup(), mode, to, from: [a, b, c, table] });
        let Some(combine) = form.operation().and_then(Combine::of) else {
            return rest.is_empty().then_some(());
        };
        let with = self.predicate_source(rest.first()?)?;
        let pred = self.second_result(first)?;
        let zero = self.constant(0);
        self.emit(Op::Compare(Box::new(Compare {
            test: test!(|a, b| a != b),
            mode: Mode { flow: DataFlow::Equality(32), ..Mode::default() },
            a: to.into(),
            b: zero,
            combine: Some((combine, with)),
            to: pred,
            opposite: Pred::SINK,
        })));
        Some(())
    }

    /// `and`, `or`, `xor`, `not` of bits or predicates.
    pub(super) fn lower_logic(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let ty = form.ty()?;
        if ty != ScalarType::Pred {
            let (run, flow) = match form.opcode() {
                Opcode::And => (bits::and(), DataFlow::AND),
                Opcode::Or => (bits::or(), DataFlow::OR),
                Opcode::Xor => (bits::xor(), DataFlow::XOR),
                _ => (bits::not(ty)?, DataFlow::NOT),
            };
            let simple = simple_op(form.opcode(), ty);
            return self.emit_alu(run, Mode { flow, simple, ..Mode::default() }, operands, ty);
        }
        let (first, rest) = operands.split_first()?;
        let to = self.predicate_destination(first)?;
        let a = self.predicate_source(rest.first()?)?;
        let b = match rest.get(1) {
            Some(operand) => self.predicate_source(operand)?,
            None => PredSource::ALWAYS,
        };
        let table = match form.opcode() {
            Opcode::And => 0b1000,
            Opcode::Or => 0b1110,
            Opcode::Xor => 0b0110,
            _ => 0b0011,
        };
        self.emit(Op::Logic { to, a, b, table });
        Some(())
    }
}

/// The name of a shift, or of logic on two operands.
fn simple_op(opcode: Opcode, ty: ScalarType) -> SimpleOp {
    match (opcode, ty.size_bytes()) {
        (Opcode::Shl, 4) => SimpleOp::ShiftLeft32,
        (Opcode::Shl, 8) => SimpleOp::ShiftLeft64,
        (Opcode::Shr, 4) if ty == ScalarType::S32 => SimpleOp::ShiftRightSigned32,
        (Opcode::Shr, 4) => SimpleOp::ShiftRightUnsigned32,
        (Opcode::And, 4) => SimpleOp::And32,
        (Opcode::Or, 4) => SimpleOp::Or32,
        (Opcode::Xor, 4) => SimpleOp::Xor32,
        _ => SimpleOp::None,
    }
}

fn simple(form: &Form, ty: ScalarType) -> Option<Alu> {
    let clamp = form.has(Flag::Clamp);
    Some(match form.opcode() {
        Opcode::Popc => bits::count_ones(),
        Opcode::Clz => bits::leading_zeros(ty)?,
        Opcode::Bfind => bits::find_top(ty, form.has(Flag::Shiftamt))?,
        Opcode::Fns => bits::find_nth(),
        Opcode::Brev => bits::reverse(ty)?,
        Opcode::Bmsk => bits::mask(clamp),
        Opcode::Szext => bits::extend(ty == ScalarType::S32, clamp),
        Opcode::Shf => bits::funnel(form.has(Flag::Left), form.has(Flag::Wrap)),
        Opcode::Prmt => bits::permute(form.permute()),
        Opcode::Cnot => bits::is_zero(ty)?,
        _ => return None,
    })
}
