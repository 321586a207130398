//! The parameters of an entry as a launch must lay them out.

use crate::call::Formal;
use crate::effects::{Effects, PointerEffect};
use crate::function::PtxFunction;
use crate::module::PtxModule;
use crate::name::Name;
use crate::scalar::{ScalarKind, ScalarType};
use crate::scalar_set::ScalarSet;

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PtxParameterKind {
    /// A pointer: something shows it, see [`PointerUse::is_pointer`](crate::PointerUse::is_pointer).
    Pointer,
    /// A number.
    Value,
    /// Eight bytes the kernel never uses as an address: a number, or a pointer that is never followed. Both may be passed.
    Word,
    /// A structure or array by value; pointers inside it are in [`PtxParameter::pointers`].
    Bytes,
}

/// One parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxParameter {
    /// Its name in the PTX text.
    pub name: Name,
    /// Bytes from the start of the parameter buffer.
    pub offset: u64,
    /// Its size.
    pub size_bytes: u64,
    /// Its alignment.
    pub align_bytes: u32,
    /// Element type; `b8` for structures.
    pub ty: ScalarType,
    /// What it holds.
    pub kind: PtxParameterKind,
    /// The pointers in it: one at offset 0 for a pointer, any number for a structure.
    pub pointers: Vec<PointerField>,
}

/// A pointer inside a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerField {
    /// Bytes from the start of the parameter.
    pub offset: u32,
    /// What the kernel does with the memory behind it.
    pub effect: PointerEffect,
    /// The types of the elements it reads and writes there, see [`PointerUse::elements`](crate::PointerUse::elements).
    pub elements: Option<ScalarSet>,
}

/// All parameters of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxSignature {
    /// In order.
    pub parameters: Vec<PtxParameter>,
    /// Bytes of the parameter buffer.
    pub size_bytes: u64,
}

impl PtxSignature {
    /// Lays out the parameters of `function`: each at the next offset its alignment allows.
    pub(crate) fn of(module: &PtxModule, function: &PtxFunction, effects: Option<&Effects>) -> Self {
        let mut parameters = Vec::new();
        let mut end = 0u64;
        for (index, formal) in function.parameters.iter().enumerate() {
            let Formal::Param(id) = *formal else { continue };
            let Some(variable) = module.variable(id) else { continue };
            let shape = &variable.shape;
            let align_bytes = shape.align_bytes();
            let offset = end.checked_next_multiple_of(u64::from(align_bytes.max(1))).unwrap_or(u64::MAX);
            end = offset.saturating_add(shape.size_bytes());
            let uses = effects.map_or(&[][..], |effects| &effects.pointers).iter();
            let pointers: Vec<_> = uses
                .filter(|used| used.parameter == index && used.is_pointer)
                .map(|used| PointerField {
                    offset: used.offset,
                    effect: used.effect,
                    elements: used.elements,
                })
                .collect();
            let scalar = shape.dimensions.is_empty() && shape.vector == 1;
            let kind = match shape.ty.kind() {
                _ if !scalar => PtxParameterKind::Bytes,
                _ if !pointers.is_empty() => PtxParameterKind::Pointer,
                ScalarKind::Float => PtxParameterKind::Value,
                _ if shape.size_bytes() == 8 => PtxParameterKind::Word,
                _ => PtxParameterKind::Value,
            };
            let (name, size_bytes, ty) = (variable.name.clone(), shape.size_bytes(), shape.ty);
            parameters.push(PtxParameter { name, offset, size_bytes, align_bytes, ty, kind, pointers });
        }
        Self { parameters, size_bytes: end }
    }
}
