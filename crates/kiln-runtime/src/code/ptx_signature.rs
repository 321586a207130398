//! What PTX says of a kernel, as launches check it.

use kiln_ptx::exec::TensorMap;
use kiln_ptx::{EntryFacts, PointerAccess, ScalarType};

use crate::signature::{Effect, Number, Parameter, ParameterKind, Signature};

/// The signature of a kernel, from its PTX.
pub(crate) fn signature(facts: &EntryFacts) -> Signature {
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let parameter = |parameter: &kiln_ptx::PtxParameter| Parameter {
        name: Some(parameter.name.to_string()),
        offset: narrow(parameter.offset),
        bytes: narrow(parameter.size_bytes),
        kind: match parameter.kind {
            kiln_ptx::PtxParameterKind::Pointer => {
                let effect = parameter.pointers.first().map_or(Effect::Unknown, |field| effect(field.effect));
                ParameterKind::Pointer(effect)
            }
            kiln_ptx::PtxParameterKind::Word => ParameterKind::Unknown,
            kiln_ptx::PtxParameterKind::Bytes => tensor_map(parameter).unwrap_or(ParameterKind::Value),
            kiln_ptx::PtxParameterKind::Value => ParameterKind::Value,
        },
        number: number(parameter),
    };
    Signature::new(facts.signature.parameters.iter().map(parameter).collect())
}

/// A tensor map: 128 bytes, aligned to 64, whose first word the kernel uses as an address.
fn tensor_map(parameter: &kiln_ptx::PtxParameter) -> Option<ParameterKind> {
    let is_map = parameter.size_bytes == TensorMap::BYTES
        && u64::from(parameter.align_bytes).is_multiple_of(TensorMap::ALIGN);
    let tensor = parameter.pointers.iter().find(|field| field.offset == 0).filter(|_| is_map)?;
    Some(ParameterKind::TensorMap(effect(tensor.effect)))
}

/// What the bits of a parameter mean. Packed types and bits may be given as anything of their size.
fn number(parameter: &kiln_ptx::PtxParameter) -> Number {
    use ScalarType::{F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    match (parameter.kind, parameter.ty) {
        (kiln_ptx::PtxParameterKind::Pointer | kiln_ptx::PtxParameterKind::Bytes, _) => Number::Unknown,
        (_, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64) => Number::Whole,
        (_, F32 | F64) => Number::Float,
        _ => Number::Unknown,
    }
}

fn effect(effect: kiln_ptx::PointerEffect) -> Effect {
    match effect.access() {
        PointerAccess::Neither => Effect::None,
        PointerAccess::Reads => Effect::Reads,
        PointerAccess::Writes => Effect::Writes,
        PointerAccess::Both => Effect::ReadsAndWrites,
        PointerAccess::Unknown => Effect::Unknown,
    }
}
