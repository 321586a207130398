//! `cvt`.

use super::super::alu::convert::{Number, conversion, convert_pair, pack_saturated, pack_two};
use super::super::alu::{Mode, Round, SimpleOp};
use super::super::undefined::DataFlow;
use super::dispatch::mode_of;
use super::float::layout;
use super::function::Lowering;
use crate::{Flag, Form, PtxOperand, Rounding, ScalarKind, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_convert(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let mut types = form.types();
        let (to, from) = (types.next()?, types.next()?);
        if form.has(Flag::Pack) {
            let flow = DataFlow::Packs((8 * to.size_bytes()) as u8);
            let mode = Mode { flow, ..Mode::default() };
            return self.emit_alu(pack_saturated(to)?, mode, operands, ScalarType::B32);
        }
        // Random bits and scales are further operands. How the bits are shared out between the parts is not written down for all forms.
        if form.rounding() == Some(Rounding::Rs) || operands.len() > 3 || form.has(Flag::Scaled) {
            return None;
        }
        let mut mode = self.conversion_mode(form, from, to)?;
        let packed_to = is_packed(to);
        let part_bits = |ty: ScalarType| (4 * ty.size_bytes()) as u8;
        let run = match (packed_to, is_packed(from), operands.len()) {
            (true, false, 3) => {
                mode.flow = DataFlow::Packs(part_bits(to));
                pack_two(mode)?
            }
            (true, true, 2) => {
                mode.flow = DataFlow::Parts { from: part_bits(from), to: part_bits(to) };
                convert_pair(mode)?
            }
            (false, false, 2) => conversion(mode),
            _ => return None,
        };
        self.emit_alu(run, mode, operands, from)?;
        self.extend_result(operands.first()?, to)
    }

    fn conversion_mode(&self, form: &Form, from: ScalarType, to: ScalarType) -> Option<Mode> {
        let mut mode = Mode { from: Number::of(from)?, to: Number::of(to)?, ..mode_of(form) };
        let floats = (from.kind() == ScalarKind::Float, to.kind() == ScalarKind::Float);
        if floats == (true, false) && !mode.integral {
            mode.round = Round::Zero;
        }
        // Rounding to a whole number concerns floats that stay floats; integers are whole anyway.
        mode.integral &= floats == (true, true);
        if floats == (false, false) && !mode.sat {
            mode.flow = DataFlow::Moves(1);
            mode.simple = simple_op(from, to);
        }
        if floats.0 != floats.1 {
            mode.simple = simple_single(from, to, mode);
        }
        Some(mode)
    }
}

/// The name of a conversion between integers.
fn simple_op(from: ScalarType, to: ScalarType) -> SimpleOp {
    use ScalarType::{S32, S64, U32, U64};
    match (from, to) {
        (U32, U64 | S64 | U32 | S32) => SimpleOp::WidenUnsigned,
        (S32, U64 | S64) => SimpleOp::WidenSigned,
        (U64 | S64 | S32, U32 | S32) => SimpleOp::Cut32,
        _ => SimpleOp::None,
    }
}

/// The name of a conversion between an integer and an `f32`.
fn simple_single(from: ScalarType, to: ScalarType, mode: Mode) -> SimpleOp {
    use ScalarType::{F32, S32, U32};
    match (from, to, mode.round) {
        _ if mode.sat || mode.relu || mode.satfinite => SimpleOp::None,
        // No whole number is subnormal, and what is becomes zero anyway.
        (S32, F32, Round::Nearest) => SimpleOp::ConvertSigned,
        (U32, F32, Round::Nearest) => SimpleOp::ConvertUnsigned,
        (F32, S32, Round::Zero) => SimpleOp::TruncateSigned,
        (F32, U32, Round::Zero) => SimpleOp::TruncateUnsigned,
        _ => SimpleOp::None,
    }
}

/// Whether a type is two floats of 4 to 8 bits.
fn is_small_pair(ty: ScalarType) -> bool {
    use ScalarType::{E2m1x2, E2m3x2, E3m2x2, E4m3x2, E5m2x2, Ue8m0x2};
    matches!(ty, E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x2 | Ue8m0x2)
}

fn is_packed(ty: ScalarType) -> bool {
    layout(ty).is_some_and(|layout| layout.is_packed()) || is_small_pair(ty)
}
