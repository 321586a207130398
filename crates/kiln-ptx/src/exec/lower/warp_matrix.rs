//! `wmma`: matrices in memory become fragments and are multiplied.
//!
//! A load is made of the plain loads of each lane, behind a step at which the warp meets and one that computes where the lanes read. So its
//! accesses are checked like those of any load; the same goes for a store.

use super::super::lowered_code::{
    Address, Base, Load, MatrixStep, Op, PredSource, Reg, Source, Store, Strength, TileAddresses, Why,
};
use super::super::matrix::{Piece, TileForm, WarpMatrix, WarpMultiply};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use crate::{Form, Opcode, PtxOperand, RegisterId, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_warp_matrix(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        match WarpMatrix::named(form.text()).ok_or(Why::Instruction)? {
            WarpMatrix::Load(tile) => self.lower_tile_access(form, tile, operands, true),
            WarpMatrix::Store(tile) => self.lower_tile_access(form, tile, operands, false),
            WarpMatrix::Multiply(multiply) => {
                self.check_fragments(multiply, operands)?;
                self.lower_warp_multiply(multiply, operands)
            }
        }
        .ok_or(Why::Operands)
    }

    fn lower_warp_multiply(&mut self, multiply: WarpMultiply, operands: &[PtxOperand]) -> Option<()> {
        let [d, a, b, c] = operands else { return None };
        let mut from = Vec::new();
        let [a_tile, b_tile, c_tile, d_tile] = multiply.tiles();
        for (operand, tile) in [(a, a_tile), (b, b_tile), (c, c_tile)] {
            let registers = self.registers(operand)?;
            if registers.len() != tile.registers() {
                return None;
            }
            from.extend(registers.into_iter().map(Source::from));
        }
        let to = self.registers(d)?;
        if to.len() != d_tile.registers() {
            return None;
        }
        self.emit_around();
        self.emit_matrix(MatrixStep::WarpMultiply(multiply), from, to);
        Some(())
    }

    fn lower_tile_access(
        &mut self,
        form: &Form,
        tile: TileForm,
        operands: &[PtxOperand],
        loads: bool,
    ) -> Option<()> {
        let [first, second, stride @ ..] = operands else { return None };
        let (registers, address) = if loads { (first, second) } else { (second, first) };
        let registers = self.registers(registers)?;
        if registers.len() != tile.tile.registers() || stride.len() > 1 {
            return None;
        }
        let stride = match stride.first() {
            Some(operand) => self.source(operand, ScalarType::U32)?,
            None => self.constant(tile.tile.default_stride(tile.row_major) as u64),
        };
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        let pointer = match address.base {
            Base::Value(source) => source,
            Base::Zero => self.constant(0),
            Base::Frame => return None,
        };
        let pieces = tile.tile.pieces(tile.row_major);
        let to: Box<[Reg]> = pieces.iter().map(|_| self.scratch()).collect();
        self.emit_around();
        self.emit_matrix(MatrixStep::SameTile, vec![pointer, stride], Vec::new());
        let offset = address.offset;
        let addresses = TileAddresses { tile, place, pointer, offset, stride, loads, to: to.clone() };
        self.emit_always(Op::TileAddresses(Box::new(addresses)));
        for (register, reg) in registers.iter().enumerate().take(tile.tile.distinct()) {
            let own = pieces.iter().zip(&to).filter(|(piece, _)| piece.register == register);
            let (own, at): (Vec<Piece>, Vec<Reg>) = own.map(|(piece, at)| (*piece, *at)).unzip();
            if let Some(piece) = own.first() {
                self.emit_pieces(*reg, place, piece.bytes, &at, loads);
            }
        }
        for (at, reg) in registers.iter().enumerate().skip(tile.tile.distinct()).filter(|_| loads) {
            let from = registers[at % tile.tile.distinct()].into();
            self.emit_always(Op::Copy { to: *reg, from });
        }
        Some(())
    }

    /// Loads or stores a register in pieces of `bytes` each, at the addresses in `at`.
    fn emit_pieces(&mut self, reg: Reg, place: Place, bytes: u32, at: &[Reg], loads: bool) {
        let (strength, bits) = (Strength::default(), 8 * bytes as u8);
        let is_whole = at.len() == 1;
        let parts: Vec<Reg> = at.iter().map(|_| if is_whole { reg } else { self.scratch() }).collect();
        if !loads && !is_whole {
            self.emit_always(Op::Split { to: parts.clone().into(), from: reg.into(), bits });
        }
        for (at, part) in at.iter().zip(&parts) {
            let address = Address { base: Base::Value((*at).into()), offset: 0 };
            self.emit_always(if loads {
                let to = Box::new([*part]);
                Op::Load(Box::new(Load {
                    place,
                    bytes,
                    extend_to: 0,
                    strength,
                    constant: false,
                    address,
                    to,
                    used_where: PredSource::ALWAYS,
                }))
            } else {
                let from = Box::new([(*part).into()]);
                Op::Store(Box::new(Store { place, bytes, strength, address, from }))
            });
        }
        if loads && !is_whole {
            let from = parts.into_iter().map(Source::from).collect();
            self.emit_always(Op::Join { to: reg, from, bits });
        }
    }

    /// Refuses a product whose fragments were all loaded as something else: another matrix, shape, type or layout.
    fn check_fragments(&self, multiply: WarpMultiply, operands: &[PtxOperand]) -> Result<(), Why> {
        let [_, a, b, _] = operands else { return Ok(()) };
        for (operand, wanted) in [a, b].into_iter().zip(multiply.factors()) {
            for part in self.parts(operand) {
                let PtxOperand::Register(id) = part else { continue };
                if let Some(line) = self.line_of_other_load(id, wanted) {
                    return Err(Why::Fragment(line));
                }
            }
        }
        Ok(())
    }

    /// The line of a load that gives a register another fragment, if that is the only instruction that writes the register.
    fn line_of_other_load(&self, id: RegisterId, wanted: TileForm) -> Option<u32> {
        let mut line = None;
        for instruction in self.body.instructions() {
            let operands = self.body.operands(instruction);
            let Some(first) = operands.first() else { continue };
            if !self.parts(first).contains(&PtxOperand::Register(id)) {
                continue;
            }
            let form = self.context.module.form(instruction.form)?;
            let is_load = form.opcode() == Opcode::Wmma && form.has_word("load");
            let Some(WarpMatrix::Load(loaded)) = WarpMatrix::named(form.text()).filter(|_| is_load) else {
                return None;
            };
            if loaded == wanted || line.is_some() {
                return None;
            }
            line = Some(instruction.origin.position().line);
        }
        line
    }
}
