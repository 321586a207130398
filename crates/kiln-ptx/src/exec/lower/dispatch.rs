//! Which part of lowering takes which instruction.

use super::super::alu::{Alu, Mode, Round};
use super::super::lowered_code::{Op, Source, Why};
use super::super::requirement::Requirement;
use super::function::Lowering;
use crate::{Flag, Form, Modifier, Opcode, PtxOperand, Rounding, ScalarKind, ScalarType};

impl Lowering<'_> {
    /// Emits the steps of one instruction.
    pub(super) fn dispatch(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        use Opcode::*;
        let required = [Requirement::of(form), Requirement::of_operands(form, operands)];
        let mut unmet = required.into_iter().flatten().filter(|needs| !needs.is_met_by(self.context.module));
        if let Some(requirement) = unmet.next() {
            return Err(Why::Requires(requirement));
        }
        let done = match form.opcode() {
            Add | Sub | Mul | Mad | Fma | Div | Rem | Abs | Neg | Min | Max => match kind(form) {
                ScalarKind::Float => self.lower_float(form, operands),
                _ => self.lower_integer(form, operands),
            },
            Vadd4 | Vsub4 | Vavrg4 | Vabsdiff4 | Vmin4 | Vmax4 | Vset4 => {
                self.lower_packed_video(form, operands)
            }
            Vadd2 | Vsub2 | Vavrg2 | Vabsdiff2 | Vmin2 | Vmax2 | Vset2 => {
                self.lower_packed_video(form, operands)
            }
            Vadd | Vsub | Vabsdiff | Vmin | Vmax | Vshl | Vshr | Vset => self.lower_video(form, operands),
            Vmad => self.lower_video_product(form, operands),
            Mul24 | Mad24 | Sad | Addc | Subc | Madc | Dp4a | Dp2a => self.lower_integer(form, operands),
            Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Copysign | Testp => {
                self.lower_float(form, operands)
            }
            Popc | Clz | Bfind | Fns | Brev | Bfe | Bfi | Bmsk | Szext | Lop3 | Shf | Shl | Shr | Prmt
            | Cnot => self.lower_bits(form, operands),
            And | Or | Xor | Not => self.lower_logic(form, operands),
            Set | Setp => self.lower_compare(form, operands),
            Selp | Slct => self.lower_select(form, operands),
            Mov => self.lower_move(form, operands),
            Cvt => self.lower_convert(form, operands),
            Mapa | Getctarank => self.lower_cluster_address(form, operands),
            Cvta | Isspacep | Alloca | Stacksave | Stackrestore => self.lower_address(form, operands),
            Ld | Ldu => self.lower_load(form, operands),
            St => self.lower_store(form, operands),
            Atom | Red => self.lower_atomic(form, operands),
            Cp => return self.lower_copy(form, operands),
            Tensormap => return self.lower_tensor_map(form, operands),
            Shfl | Vote | Match | Redux | Elect | Activemask => self.lower_collective(form, operands),
            Mma | Ldmatrix | Stmatrix | Movmatrix => return self.lower_matrix(form, operands),
            Mbarrier => return self.lower_mbarrier(form, operands),
            Wgmma => return self.lower_warpgroup(form, operands),
            Wmma => return self.lower_warp_matrix(form, operands),
            Bar | Barrier => return self.lower_barrier(form, operands),
            Bra | Brx | Call | Ret | Exit | Trap | Brkpt | Nanosleep => {
                return self.lower_control(form, operands);
            }
            Tex | Tld4 => self.lower_texture(form, operands),
            Txq | Suq => self.lower_texture_query(form, operands),
            Suld | Sust | Sured => self.lower_surface(form, operands),
            Membar | Fence => return self.lower_fence(form),
            // They change how fast something is, never what it does.
            Prefetch | Prefetchu | Applypriority | Createpolicy | Pmevent | Setmaxnreg => {
                self.lower_hint(form, operands)
            }
            // A launch begins when what its stream waits for has ended, so the grids that it depends on are done and what they wrote is seen; a grid that depends
            // on it begins behind it. What other streams do is not ordered by it.
            Griddepcontrol => self.lower_hint(form, operands),
            // What is discarded may read as anything afterwards, so also as it was.
            Discard => self.lower_hint(form, operands),
            _ => return Err(Why::Instruction),
        };
        done.ok_or(Why::Operands)
    }

    fn lower_hint(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        if form.opcode() == Opcode::Createpolicy {
            let to = self.destination(operands.first()?)?;
            let from = self.constant(0);
            self.emit(Op::Copy { to, from });
        } else {
            self.emit(Op::Nothing);
        }
        Some(())
    }

    /// Emits arithmetic on operands that all have type `ty`, the result first.
    pub(super) fn emit_alu(
        &mut self,
        run: Alu,
        mode: Mode,
        operands: &[PtxOperand],
        ty: ScalarType,
    ) -> Option<()> {
        let types = [ty; 4];
        self.emit_alu_typed(run, mode, operands, types)
    }

    /// The same with a type for each operand.
    pub(super) fn emit_alu_typed(
        &mut self,
        run: Alu,
        mode: Mode,
        operands: &[PtxOperand],
        types: [ScalarType; 4],
    ) -> Option<()> {
        let (first, rest) = operands.split_first()?;
        let to = self.destination(first)?;
        let zero = self.constant(0);
        let mut from = [zero; 4];
        for ((slot, operand), ty) in from.iter_mut().zip(rest).zip(types) {
            *slot = self.source(operand, ty)?;
        }
        self.emit(Op::Alu { run, mode, to, from });
        Some(())
    }

    /// Emits arithmetic whose operands are columns already.
    pub(super) fn emit_columns(
        &mut self,
        run: Alu,
        mode: Mode,
        to: &PtxOperand,
        from: &[Source],
    ) -> Option<()> {
        let to = self.destination(to)?;
        let zero = self.constant(0);
        let mut all = [zero; 4];
        all.iter_mut().zip(from).for_each(|(slot, source)| *slot = *source);
        self.emit(Op::Alu { run, mode, to, from: all });
        Some(())
    }
}

/// What the first type of an instruction means; packed halves are floats, packed integers integers.
fn kind(form: &Form) -> ScalarKind {
    form.ty().map_or(ScalarKind::Bits, ScalarType::kind)
}

/// The modifiers that concern rounding and special values.
pub(super) fn mode_of(form: &Form) -> Mode {
    let integral = |r| matches!(r, Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi);
    let rounding = form.rounding();
    let round = match rounding {
        None | Some(Rounding::Rn | Rounding::Rni | Rounding::Rs) => Round::Nearest,
        Some(Rounding::Rz | Rounding::Rzi) => Round::Zero,
        Some(Rounding::Rm | Rounding::Rmi) => Round::Down,
        Some(Rounding::Rp | Rounding::Rpi) => Round::Up,
        Some(Rounding::Rna) => Round::Away,
    };
    Mode {
        round,
        ftz: form.has(Flag::Ftz),
        sat: form.has(Flag::Sat),
        relu: form.has(Flag::Relu),
        nan: form.has(Flag::Nan),
        xorsign: form.has(Flag::XorSign),
        integral: rounding.is_some_and(integral),
        satfinite: form.has(Flag::Satfinite),
        ..Mode::default()
    }
}

/// Whether a word the executor has no rule for is among the modifiers.
pub(super) fn has_other(form: &Form) -> bool {
    form.modifiers().iter().any(|m| matches!(m, Modifier::Other(_)))
}
