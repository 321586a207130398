//! Tensor cores: `mma`, `ldmatrix`, `stmatrix` and `movmatrix`.
//!
//! `ldmatrix` is a load of 16 bytes by each lane that names a row, and an exchange between the lanes; `stmatrix` is the same the other way
//! round. So their accesses are checked like those of any load or store.

use super::super::alu::{Mode, compare};
use super::super::lowered_code::{
    Collective, CollectiveKind, Compare, Load, MatrixStep, Op, Pred, PredSource, Reg, Source, Special, Store,
    Strength, Why,
};
use super::super::matrix::{Multiply, SparseMultiply, TRANSPOSE, Tiles};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use crate::{Form, Opcode, PtxOperand, ScalarType};

/// Words of a row of eight 16-bit elements.
const ROW_WORDS: usize = 4;

impl Lowering<'_> {
    pub(super) fn lower_matrix(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        match form.opcode() {
            Opcode::Mma if form.has_word("sp") || form.has_word("sp::ordered_metadata") => {
                let sparse = SparseMultiply::named(form.text()).ok_or(Why::Instruction)?;
                self.lower_sparse(sparse, operands)
            }
            Opcode::Mma => {
                let multiply = Multiply::named(form.text()).ok_or(Why::Instruction)?;
                self.lower_multiply(multiply, operands).ok_or(Why::Operands)
            }
            Opcode::Movmatrix if form.text() == TRANSPOSE => {
                self.lower_transpose(operands).ok_or(Why::Operands)
            }
            Opcode::Ldmatrix | Opcode::Stmatrix => {
                let tiles = Tiles::of(form).ok_or(Why::Instruction)?;
                self.lower_tiles(form, tiles, operands).ok_or(Why::Operands)
            }
            _ => Err(Why::Instruction),
        }
    }

    fn lower_multiply(&mut self, multiply: Multiply, operands: &[PtxOperand]) -> Option<()> {
        let [d, a, b, c] = operands else { return None };
        let to = self.registers(d)?;
        let [a_count, b_count, c_count] = multiply.registers();
        let mut from = Vec::new();
        for (operand, count) in [(a, a_count), (b, b_count), (c, c_count)] {
            let columns = self.registers(operand)?;
            if columns.len() != count {
                return None;
            }
            from.extend(columns.into_iter().map(Source::from));
        }
        if to.len() != c_count {
            return None;
        }
        self.emit_around();
        self.emit_matrix(MatrixStep::Multiply(multiply), from, to);
        Some(())
    }

    fn lower_sparse(&mut self, sparse: SparseMultiply, operands: &[PtxOperand]) -> Result<(), Why> {
        let [d, a, b, c, metadata, PtxOperand::Immediate(selector)] = operands else {
            return Err(Why::Operands);
        };
        let sparse = sparse.with_selector(selector.bits()).map_err(Why::Selector)?;
        let metadata = self.source(metadata, ScalarType::U32).ok_or(Why::Operands)?;
        let [a_count, b_count, c_count] = sparse.registers();
        let mut from = Vec::new();
        for (operand, count) in [(a, a_count), (b, b_count), (c, c_count)] {
            let columns = self.registers(operand).filter(|columns| columns.len() == count);
            from.extend(columns.ok_or(Why::Operands)?.into_iter().map(Source::from));
        }
        let to = self.registers(d).filter(|to| to.len() == c_count).ok_or(Why::Operands)?;
        from.push(metadata);
        self.emit_around();
        self.emit_always(Op::CheckMetadata { sparse, metadata });
        self.emit_matrix(MatrixStep::SparseMultiply(sparse), from, to);
        Ok(())
    }

    fn lower_transpose(&mut self, operands: &[PtxOperand]) -> Option<()> {
        let [d, a] = operands else { return None };
        let (to, from) = (self.registers(d)?, self.registers(a)?);
        if (to.len(), from.len()) != (1, 1) {
            return None;
        }
        self.emit_around();
        self.emit_matrix(MatrixStep::Transpose, from.into_iter().map(Source::from).collect(), to);
        Some(())
    }

    fn lower_tiles(&mut self, form: &Form, tiles: Tiles, operands: &[PtxOperand]) -> Option<()> {
        let [first, second] = operands else { return None };
        let is_load = form.opcode() == Opcode::Ldmatrix;
        let (registers, address) = if is_load { (first, second) } else { (second, first) };
        let registers = self.registers(registers)?;
        if registers.len() != tiles.count {
            return None;
        }
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        let words: Vec<Reg> = (0..ROW_WORDS).map(|_| self.scratch()).collect();
        self.emit_around();
        let guard = self.lanes_below(8 * tiles.count as u64)?;
        let (bytes, strength) = (4, Strength::default());
        if is_load {
            let to = words.clone().into();
            let used_where = PredSource::ALWAYS;
            let load =
                Load { place, bytes, extend_to: 0, strength, constant: false, address, to, used_where };
            self.emit_guarded(guard, Op::Load(Box::new(load)));
            let step = MatrixStep::Distribute { matrices: tiles.count, transposed: tiles.transposed };
            self.emit_matrix(step, words.into_iter().map(Source::from).collect(), registers);
        } else {
            let from = registers.into_iter().map(Source::from).collect();
            self.emit_matrix(MatrixStep::GatherRows { transposed: tiles.transposed }, from, words.clone());
            let from = words.into_iter().map(Source::from).collect();
            self.emit_guarded(guard, Op::Store(Box::new(Store { place, bytes, strength, address, from })));
        }
        Some(())
    }

    /// The registers of a fragment.
    pub(super) fn registers(&mut self, operand: &PtxOperand) -> Option<Vec<Reg>> {
        let parts = self.parts(operand);
        parts.iter().map(|part| self.destination(part)).collect()
    }

    /// A predicate that holds in the first lanes of a warp.
    fn lanes_below(&mut self, count: u64) -> Option<PredSource> {
        let (lane, pred) = (self.scratch(), self.scratch_predicate());
        self.emit_always(Op::Special { to: lane, which: Special::Lane });
        let test = compare::comparison(crate::Compare::Lt, ScalarType::U32)?;
        let (a, b) = (lane.into(), self.constant(count));
        let compare =
            Compare { test, mode: Mode::default(), a, b, combine: None, to: pred, opposite: Pred::SINK };
        self.emit_always(Op::Compare(Box::new(compare)));
        Some(PredSource { pred, negated: false })
    }

    pub(super) fn emit_matrix(&mut self, step: MatrixStep, from: Vec<Source>, to: Vec<Reg>) {
        let zero = self.constant(0);
        let all = self.constant(u32::MAX.into());
        self.emit_always(Op::Collective(Box::new(Collective {
            kind: CollectiveKind::Matrix(step),
            to: Reg(0),
            to_pred: Pred::SINK,
            from: [zero; 3],
            pred: PredSource::ALWAYS,
            members: Some(all),
            fragments_from: from.into(),
            fragments_to: to.into(),
        })));
    }
}
