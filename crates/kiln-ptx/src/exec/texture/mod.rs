//! Sampling: which texels a coordinate reads, and with which weights.
//!
//! The formulas are those of the chapter "Texture Fetching" of the CUDA programming guide. Weights of linear filtering have 8 bits of fraction; the coordinate is
//! rounded to the nearest one.

mod cube;
mod footprint;
mod texel;

use crate::exec::lowered_code::{Geometry, TextureQuery};
use crate::{Form, Modifier, Opcode, ScalarType};

pub(crate) use cube::face_of;
pub(crate) use footprint::{Axis, Tap, axis_of_index, gather_axis, linear_axis, nearest_axis};
pub(crate) use texel::Texel;

/// The geometry that an instruction names.
pub(crate) fn geometry_of(form: &Form) -> Option<Geometry> {
    form.modifiers().iter().find_map(|word| match word {
        Modifier::Other(word) => Geometry::named(word),
        _ => None,
    })
}

/// What `txq` or `suq` asks.
pub(crate) fn query_of(form: &Form) -> Option<TextureQuery> {
    form.modifiers().iter().find_map(|word| TextureQuery::named(word.keyword()))
}

/// Whether an instruction on a texture or surface is executed, as far as its form tells.
pub(crate) fn is_run(form: &Form) -> bool {
    let is_word = |ty: ScalarType| matches!(ty, ScalarType::F32 | ScalarType::U32 | ScalarType::S32);
    match form.opcode() {
        Opcode::Tex | Opcode::Tld4 => {
            geometry_of(form).is_some() && form.vector() == 4 && form.ty().is_some_and(is_word)
        }
        Opcode::Txq | Opcode::Suq => query_of(form).is_some(),
        Opcode::Suld => geometry_of(form).is_some() && form.has_word("b"),
        Opcode::Sust | Opcode::Sured => geometry_of(form).is_some(),
        _ => false,
    }
}
