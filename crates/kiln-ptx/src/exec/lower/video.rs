//! Video instructions: parts of registers are picked, combined, and put into a part of the result.
//!
//! Each becomes several steps (pick, compute, second operation or merge), so that what is undefined is known for each part apart.

use super::super::alu::packed::{self, Small, SmallOp};
use super::super::alu::video::{self, Product, VideoOp};
use super::super::alu::{Alu, Mode, bits, integer};
use super::super::lowered_code::{Op, Reg, Source};
use super::super::undefined::DataFlow;
use super::function::Lowering;
use crate::{Compare, Flag, Form, Opcode, Operation, PtxOperand, ScalarType, SelectedRegister, Selector};

const WORD: ScalarType = ScalarType::U32;

impl Lowering<'_> {
    /// `vadd` and its kind: one operation on a byte, a half word or a word of each operand.
    pub(super) fn lower_video(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let (to, a, b) = (operands.first()?, operands.get(1)?, operands.get(2)?);
        let small = self.video_types(form)?;
        let merge = self.selector_of(to)?;
        let second = form.operation();
        // A second operation and a merge exclude each other, and both need a third operand.
        if operands.len() != if merge.is_some() || second.is_some() { 4 } else { 3 }
            || merge.is_some() && second.is_some()
        {
            return None;
        }
        let (a, b) = (self.picked(a, small.a_signed)?, self.picked(b, small.b_signed)?);
        let run = video::scalar(scalar_op(form)?)?;
        let (sat, width) = (form.has(Flag::Sat), merge.map_or(32, |(bits, _)| bits));
        let width = self.constant(u64::from(width));
        let result = self.compute(run, Mode { small, sat, ..Mode::default() }, [a, b, width, width]);
        let to = self.video_destination(to)?;
        match (merge, second) {
            (None, None) => self.emit(Op::Copy { to, from: result.into() }),
            (Some((bits, place)), _) => {
                let c = self.source(operands.get(3)?, WORD)?;
                let (shift, length) =
                    (self.constant(u64::from(place * bits)), self.constant(u64::from(bits)));
                let (run, mode) = (bits::insert(WORD)?, moves(0b11));
                self.emit(Op::Alu { run, mode, to, from: [result.into(), c, shift, length] });
            }
            (None, Some(second)) => {
                let c = self.source(operands.get(3)?, WORD)?;
                let ty = if small.to_signed { ScalarType::S32 } else { WORD };
                let run = match second {
                    Operation::Add => integer::add(ty)?,
                    Operation::Min => integer::minimum(ty)?,
                    Operation::Max => integer::maximum(ty)?,
                    _ => return None,
                };
                self.emit(Op::Alu { run, mode: Mode::default(), to, from: [result.into(), c, c, c] });
            }
        }
        Some(())
    }

    /// `vmad`.
    pub(super) fn lower_video_product(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, a, b, c] = operands else { return None };
        let small = self.video_types(form)?;
        let is_negated =
            |operand: &PtxOperand| matches!(operand, PtxOperand::Selected(selected) if selected.negated);
        let plus_one = form.has_word("po");
        let product = Product {
            negates_product: is_negated(a) != is_negated(b),
            negates_sum: is_negated(c),
            plus_one,
            shift: if form.has_word("shr7") {
                7
            } else if form.has_word("shr15") {
                15
            } else {
                0
            },
        };
        let signs = [a, b, c].iter().filter(|operand| is_negated(operand)).count();
        if self.selector_of(to)?.is_some() || signs > 1 && is_negated(c) || plus_one && signs > 0 {
            return None;
        }
        let (a, b) = (self.picked(a, small.a_signed)?, self.picked(b, small.b_signed)?);
        let c = match self.selector_of(c)? {
            None => self.picked(c, false)?,
            Some(_) => return None,
        };
        let how = self.constant(product.bits());
        let mode = Mode { small, sat: form.has(Flag::Sat), ..Mode::default() };
        let to = self.video_destination(to)?;
        self.emit(Op::Alu { run: video::product(), mode, to, from: [a, b, c, how] });
        Some(())
    }

    /// `vadd2`, `vadd4` and their kind: one operation on two half words or four bytes at once.
    pub(super) fn lower_packed_video(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, a, b, c] = operands else { return None };
        let (op, bits) = packed_op(form)?;
        let sum = form.operation() == Some(Operation::Add);
        let small = Small { sum, ..self.video_types(form)? };
        let count = 32 / bits;
        let mask = match to {
            PtxOperand::Selected(SelectedRegister { selector: Some(selector), .. }) => {
                mask_of(*selector, bits)?
            }
            _ => u32::MAX,
        };
        let whole = [self.picked_pair(a)?, self.picked_pair(b)?];
        let (mut a, mut b) = (self.arranged(a, whole, bits, 0)?, self.arranged(b, whole, bits, count)?);
        let c = self.source(c, WORD)?;
        let kept = self.constant(u64::from(mask));
        let and = |this: &mut Self, from: Source| {
            let mode = Mode { flow: DataFlow::AND, ..Mode::default() };
            Source::from(this.compute(bits::and(), mode, [from, kept, kept, kept]))
        };
        let compares = form.compare().is_some();
        if sum && compares {
            // What comparisons give is counted in a second step.
            let (run, zero) = (packed::small(op, bits == 8), self.constant(0));
            let mode = Mode { small: Small { sum: false, ..small }, ..Mode::default() };
            let result = self.compute(run, mode, [a, b, zero, zero]).into();
            (a, b) = (and(self, result), zero);
        } else if sum && mask != u32::MAX {
            // What is masked out adds nothing: every other operation on zeros gives zero.
            (a, b) = (and(self, a), and(self, b));
        }
        let op = if sum && compares { SmallOp::Add } else { op };
        let small = if sum && compares { Small { sum, ..Small::default() } } else { small };
        let flow = match sum {
            true => DataFlow::Computes,
            false => DataFlow::Parts { from: bits as u8, to: bits as u8 },
        };
        let mode = Mode { small, sat: form.has(Flag::Sat), flow, ..Mode::default() };
        let (run, zero) = (packed::small(op, bits == 8), self.constant(0));
        let third = if sum { c } else { zero };
        let to = self.video_destination(to)?;
        if sum || mask == u32::MAX {
            self.emit(Op::Alu { run, mode, to, from: [a, b, third, zero] });
            return Some(());
        }
        let result = self.compute(run, mode, [a, b, third, zero]);
        // The mask picks the result where it is set, the third operand elsewhere.
        let table = self.constant(0xca);
        let mode = Mode { flow: DataFlow::Lookup, ..Mode::default() };
        self.emit(Op::Alu { run: bits::lookup(), mode, to, from: [kept, result.into(), c, table] });
        Some(())
    }

    /// The types of a video instruction; comparisons have none for the result.
    fn video_types(&self, form: &Form) -> Option<Small> {
        let types: Vec<ScalarType> = form.types().collect();
        if !types.iter().all(|ty| matches!(ty, ScalarType::U32 | ScalarType::S32)) {
            return None;
        }
        let signed = |at: usize| types.get(at).map(|ty| *ty == ScalarType::S32);
        let compares = matches!(form.opcode(), Opcode::Vset | Opcode::Vset2 | Opcode::Vset4);
        let (to_signed, first) = if compares { (false, 0) } else { (signed(0)?, 1) };
        if types.len() != first + 2 {
            return None;
        }
        Some(Small { a_signed: signed(first)?, b_signed: signed(first + 1)?, to_signed, sum: false })
    }

    /// The bits and the number of the one part that an operand selects; `None` inside for all of it.
    fn selector_of(&self, operand: &PtxOperand) -> Option<Option<(u32, u32)>> {
        let PtxOperand::Selected(SelectedRegister { selector: Some(selector), .. }) = operand else {
            return Some(None);
        };
        let mut places = selector.places();
        let (place, bits) = (places.next()?, selector.bits());
        (places.next().is_none() && place * bits < 32).then_some(Some((bits, place)))
    }

    /// The part of an operand that counts, extended to a word.
    fn picked(&mut self, operand: &PtxOperand, signed: bool) -> Option<Source> {
        let from = self.picked_pair(operand)?;
        let Some((bits, place)) = self.selector_of(operand)? else { return Some(from) };
        let (shift, length) = (self.constant(u64::from(place * bits)), self.constant(u64::from(bits)));
        let run = bits::extract(if signed { ScalarType::S32 } else { WORD })?;
        Some(self.compute(run, moves(1), [from, shift, length, length]).into())
    }

    /// The register of an operand, without its selector.
    fn picked_pair(&mut self, operand: &PtxOperand) -> Option<Source> {
        match operand {
            PtxOperand::Selected(selected) => self.column(selected.register).map(Source::from),
            other => self.source(other, WORD),
        }
    }

    fn video_destination(&mut self, operand: &PtxOperand) -> Option<Reg> {
        match operand {
            PtxOperand::Selected(selected) if !selected.negated => self.column(selected.register),
            other => self.destination(other),
        }
    }

    /// The parts of both registers that an operand lists, from the lowest; those from `first` on without a list.
    fn arranged(
        &mut self,
        operand: &PtxOperand,
        whole: [Source; 2],
        bits: u32,
        first: u32,
    ) -> Option<Source> {
        let PtxOperand::Selected(SelectedRegister { selector: Some(selector), .. }) = operand else {
            return Some(whole[usize::from(first != 0)]);
        };
        if selector.bits() != bits || selector.places().len() != (32 / bits) as usize {
            return None;
        }
        let bytes = bits / 8;
        let pick = selector.places().flat_map(|place| (0..bytes).map(move |byte| place * bytes + byte));
        let pick = pick.zip(0u32..).fold(0, |pick, (byte, at)| pick | byte << (4 * at));
        let pick = self.constant(u64::from(pick));
        Some(self.compute(bits::permute(None), moves(0b11), [whole[0], whole[1], pick, pick]).into())
    }

    fn compute(&mut self, run: Alu, mode: Mode, from: [Source; 4]) -> Reg {
        let to = self.scratch();
        self.emit(Op::Alu { run, mode, to, from });
        to
    }
}

fn moves(set: u8) -> Mode {
    Mode { flow: DataFlow::Moves(set), ..Mode::default() }
}

fn scalar_op(form: &Form) -> Option<VideoOp> {
    let wrap = form.has(Flag::Wrap);
    let is_shift = matches!(form.opcode(), Opcode::Vshl | Opcode::Vshr);
    if is_shift && wrap == form.has(Flag::Clamp) {
        return None;
    }
    Some(match form.opcode() {
        Opcode::Vadd => VideoOp::Small(SmallOp::Add),
        Opcode::Vsub => VideoOp::Small(SmallOp::Subtract),
        Opcode::Vabsdiff => VideoOp::Small(SmallOp::Difference),
        Opcode::Vmin => VideoOp::Small(SmallOp::Minimum),
        Opcode::Vmax => VideoOp::Small(SmallOp::Maximum),
        Opcode::Vshl => VideoOp::ShiftLeft { wrap },
        Opcode::Vshr => VideoOp::ShiftRight { wrap },
        _ => VideoOp::Small(comparison(form)?),
    })
}

/// The operation of an instruction on several parts, and the bits of each.
fn packed_op(form: &Form) -> Option<(SmallOp, u32)> {
    Some(match form.opcode() {
        Opcode::Vadd4 => (SmallOp::Add, 8),
        Opcode::Vsub4 => (SmallOp::Subtract, 8),
        Opcode::Vavrg4 => (SmallOp::Average, 8),
        Opcode::Vabsdiff4 => (SmallOp::Difference, 8),
        Opcode::Vmin4 => (SmallOp::Minimum, 8),
        Opcode::Vmax4 => (SmallOp::Maximum, 8),
        Opcode::Vset4 => (comparison(form)?, 8),
        Opcode::Vadd2 => (SmallOp::Add, 16),
        Opcode::Vsub2 => (SmallOp::Subtract, 16),
        Opcode::Vavrg2 => (SmallOp::Average, 16),
        Opcode::Vabsdiff2 => (SmallOp::Difference, 16),
        Opcode::Vmin2 => (SmallOp::Minimum, 16),
        Opcode::Vmax2 => (SmallOp::Maximum, 16),
        Opcode::Vset2 => (comparison(form)?, 16),
        _ => return None,
    })
}

fn comparison(form: &Form) -> Option<SmallOp> {
    Some(match form.compare()? {
        Compare::Eq => SmallOp::Equal,
        Compare::Ne => SmallOp::NotEqual,
        Compare::Lt => SmallOp::Less,
        Compare::Le => SmallOp::LessOrEqual,
        Compare::Gt => SmallOp::Greater,
        Compare::Ge => SmallOp::GreaterOrEqual,
        _ => return None,
    })
}

/// The bits of the parts that a mask names, each once.
fn mask_of(selector: Selector, bits: u32) -> Option<u32> {
    let part = |place: u32| (u32::MAX >> (32 - bits)).checked_shl(place * bits).filter(|mask| *mask != 0);
    if selector.bits() != bits {
        return None;
    }
    selector.places().try_fold(0, |mask, place| {
        let part = part(place)?;
        (mask & part == 0).then_some(mask | part)
    })
}
