//! Moves, address conversions and the stack.

use super::super::alu::{Mode, SimpleOp, lanes};
use super::super::lowered_code::{Op, PredSource, Reg, Source, Special};
use super::super::memory::generic_address::Place;
use super::super::undefined::DataFlow;
use super::function::Lowering;
use crate::{Flag, Form, Opcode, PtxOperand, ScalarType, Space};

impl Lowering<'_> {
    /// `mov`: of values, predicates, addresses; `{a, b}` packs and unpacks.
    pub(super) fn lower_move(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, from] = operands else { return None };
        let ty = form.ty()?;
        if ty == ScalarType::Pred {
            if let PtxOperand::Special(special) = from {
                return self.move_special_predicate(to, *special);
            }
            let to = self.predicate_destination(to)?;
            let a = self.predicate_source(from)?;
            self.emit(Op::Logic { to, a, b: PredSource::ALWAYS, table: 0b1100 });
            return Some(());
        }
        match (to, from) {
            (PtxOperand::Vector(to), PtxOperand::Vector(from)) => {
                let (to, from) = (self.body.elements(*to).to_vec(), self.body.elements(*from).to_vec());
                if to.len() != from.len() {
                    return None;
                }
                to.iter().zip(&from).try_for_each(|(to, from)| self.move_one(to, from, ty))
            }
            (PtxOperand::Vector(elements), _) => {
                let parts = self.body.elements(*elements).to_vec();
                self.unpack(&parts, from, ty)
            }
            (_, PtxOperand::Vector(elements)) => {
                let parts = self.body.elements(*elements).to_vec();
                self.pack(to, &parts, ty)
            }
            _ if ty == ScalarType::B128 => {
                let (to, from) = (self.destination(to)?, self.destination(from)?);
                self.emit(Op::Copy { to, from: from.into() });
                self.emit(Op::Copy { to: Reg(to.0 + 1), from: Source(from.0 + 1) });
                Some(())
            }
            _ => self.move_one(to, from, ty),
        }
    }

    fn move_one(&mut self, to: &PtxOperand, from: &PtxOperand, ty: ScalarType) -> Option<()> {
        if let PtxOperand::Special(special) = from {
            let which = self.special(*special)?;
            let to = self.destination(to)?;
            self.emit(Op::Special { to, which });
            return Some(());
        }
        let from = self.source(from, ty)?;
        let to = self.destination(to)?;
        self.emit(Op::Copy { to, from });
        Some(())
    }

    fn unpack(&mut self, parts: &[PtxOperand], from: &PtxOperand, ty: ScalarType) -> Option<()> {
        let bits = part_bits(ty, parts.len())?;
        let to: Option<Vec<Reg>> = parts.iter().map(|part| self.destination(part)).collect();
        let to = to?;
        if ty == ScalarType::B128 {
            let from = self.destination(from)?;
            let half = to.len() / 2;
            let (low, high) = (to.get(..half)?, to.get(half..)?);
            self.emit(Op::Split { to: low.into(), from: from.into(), bits });
            self.emit(Op::Split { to: high.into(), from: Source(from.0 + 1), bits });
            return Some(());
        }
        let from = self.source(from, ty)?;
        self.emit(Op::Split { to: to.into(), from, bits });
        Some(())
    }

    fn pack(&mut self, to: &PtxOperand, parts: &[PtxOperand], ty: ScalarType) -> Option<()> {
        let bits = part_bits(ty, parts.len())?;
        let part_type = match bits {
            8 => ScalarType::B8,
            16 => ScalarType::B16,
            32 => ScalarType::B32,
            _ => ScalarType::B64,
        };
        let from: Option<Vec<Source>> = parts.iter().map(|part| self.source(part, part_type)).collect();
        let from = from?;
        let to = self.destination(to)?;
        if ty == ScalarType::B128 {
            let half = from.len() / 2;
            // Both halves are put together before either is written: the register may be among the parts.
            let (low, high) = (self.scratch(), self.scratch());
            self.emit(Op::Join { to: low, from: from.get(..half)?.into(), bits });
            self.emit(Op::Join { to: high, from: from.get(half..)?.into(), bits });
            self.emit(Op::Copy { to, from: low.into() });
            self.emit(Op::Copy { to: Reg(to.0 + 1), from: high.into() });
            return Some(());
        }
        self.emit(Op::Join { to, from: from.into(), bits });
        Some(())
    }

    /// `cvta`, `isspacep` and the stack instructions.
    pub(super) fn lower_address(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let (first, rest) = operands.split_first()?;
        match form.opcode() {
            Opcode::Cvta => {
                let place = self.resolved_place(form.space())?;
                if place == Place::Cluster {
                    return self.lower_cluster_conversion(form, operands);
                }
                let base = match place {
                    Place::Shared => self.window(Special::SharedWindow),
                    Place::Local => self.window(Special::LocalWindow),
                    place => self.constant(place.base()),
                };
                let from = self.source(rest.first()?, ScalarType::B64)?;
                let (run, flow, simple) = match form.has(Flag::To) {
                    true => (lanes!(|a, b| a.wrapping_sub(b)), DataFlow::Difference, SimpleOp::Subtract64),
                    false => (lanes!(|a, b| a.wrapping_add(b)), DataFlow::Sum, SimpleOp::Add64),
                };
                let mode = Mode { flow, simple, ..Mode::default() };
                self.emit_columns(run, mode, first, &[from, base])
            }
            Opcode::Isspacep => {
                let space = form.space()?;
                let place = self.resolved_place(Some(space))?;
                let to = self.predicate_destination(first)?;
                let address = self.source(rest.first()?, ScalarType::B64)?;
                self.emit(Op::IsSpace { to, address, place, constant: space == Space::Const });
                Some(())
            }
            Opcode::Alloca => {
                let to = self.destination(first)?;
                let bytes = self.source(rest.first()?, ScalarType::U64)?;
                let align = match rest.get(1) {
                    Some(PtxOperand::Immediate(number)) => number.bits().clamp(8, 16) as u32,
                    _ => 8,
                };
                self.emit(Op::Allocate { to, bytes, align });
                Some(())
            }
            Opcode::Stacksave => {
                let to = self.destination(first)?;
                self.emit(Op::StackSave { to });
                Some(())
            }
            Opcode::Stackrestore => {
                let from = self.source(first, ScalarType::U64)?;
                self.emit(Op::StackRestore { from });
                Some(())
            }
            _ => None,
        }
    }

    /// Where the memory of the block or thread appears among generic addresses.
    fn window(&mut self, which: Special) -> Source {
        let to = self.scratch();
        self.emit_always(Op::Special { to, which });
        to.into()
    }

    /// The memory of a space; the parameters of a device function are on its stack.
    fn resolved_place(&self, space: Option<Space>) -> Option<Place> {
        let place = Place::of(space)?;
        Some(if place == Place::Param && !self.function.is_entry() { Place::Local } else { place })
    }

    /// Extends the sign of a narrow result to the register it was written to.
    pub(super) fn extend_result(&mut self, to: &PtxOperand, ty: ScalarType) -> Option<()> {
        let column = self.destination(to)?;
        let run = match (ty, self.register_bytes(to)) {
            (ScalarType::S8, 2) => lanes!(|a| u64::from(a as i8 as u16)),
            (ScalarType::S8, 4) => lanes!(|a| u64::from(a as i8 as u32)),
            (ScalarType::S16, 4) => lanes!(|a| u64::from(a as i16 as u32)),
            (ScalarType::S8, 8) => lanes!(|a| a as i8 as u64),
            (ScalarType::S16, 8) => lanes!(|a| a as i16 as u64),
            (ScalarType::S32, 8) => lanes!(|a| a as i32 as u64),
            _ => return Some(()),
        };
        let zero = self.constant(0);
        let from = [column.into(), zero, zero, zero];
        let mode = Mode { flow: DataFlow::Moves(1), ..Mode::default() };
        self.emit(Op::Alu { run, mode, to: column, from });
        Some(())
    }
}

/// Bits of each of `count` parts of a value.
fn part_bits(ty: ScalarType, count: usize) -> Option<u8> {
    let bits = ty.size_bytes() as usize * 8;
    let part = bits.checked_div(count)?;
    (matches!(part, 8 | 16 | 32 | 64) && part * count == bits).then_some(part as u8)
}
