//! What PTX says of a kernel, as launches check it.

use kiln_ptx::{Access, EntryFacts, ScalarType};

use crate::signature::{Effect, Number, Parameter, ParameterKind, Signature};

/// The signature of a kernel, from its PTX.
pub(crate) fn signature(facts: &EntryFacts) -> Signature {
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let parameter = |parameter: &kiln_ptx::Parameter| Parameter {
        name: Some(parameter.name.to_string()),
        offset: narrow(parameter.offset),
        bytes: narrow(parameter.size_bytes),
        kind: match parameter.kind {
            kiln_ptx::ParameterKind::Pointer => {
                let effect = parameter.pointers.first().map_or(Effect::Unknown, |field| effect(field.effect));
                ParameterKind::Pointer(effect)
            }
            kiln_ptx::ParameterKind::Word => ParameterKind::Unknown,
            kiln_ptx::ParameterKind::Value | kiln_ptx::ParameterKind::Bytes => ParameterKind::Value,
        },
        number: number(parameter),
    };
    Signature::new(facts.signature.parameters.iter().map(parameter).collect())
}

/// What the bits of a parameter mean. Packed types and bits may be given as anything of their size.
fn number(parameter: &kiln_ptx::Parameter) -> Number {
    use ScalarType::{F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    match (parameter.kind, parameter.ty) {
        (kiln_ptx::ParameterKind::Pointer | kiln_ptx::ParameterKind::Bytes, _) => Number::Unknown,
        (_, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64) => Number::Whole,
        (_, F32 | F64) => Number::Float,
        _ => Number::Unknown,
    }
}

fn effect(effect: kiln_ptx::Effect) -> Effect {
    match effect.access() {
        Access::Neither => Effect::None,
        Access::Reads => Effect::Reads,
        Access::Writes => Effect::Writes,
        Access::Both => Effect::ReadsAndWrites,
        Access::Unknown => Effect::Unknown,
    }
}
