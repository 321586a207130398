//! Compares the arguments of a launch with the parameters of its kernel.
//!
//! Everything that can be checked without a device is checked here: the number of arguments, values or arrays, sizes, element types,
//! and whether the kernel does with an array what was declared. The runtime checks most of it again when the launch is made.

use std::sync::Arc;

use kiln_ptx::{EntryFacts, PointerAccess, PointerField, PtxParameter, PtxParameterKind, ScalarKind};

use super::element_check::{Expected, Fit};
use super::loaded_arguments::{Argument, ArgumentSheet, ArrayArgument, Plan};
use crate::argument_spec::{Spec, Start};
use crate::demangled_name::readable;
use crate::element_type::ElementType;
use crate::failure::Failure;
use crate::plural::{counted, was};

/// Arguments that fit a kernel.
pub(super) struct Fitted {
    /// With arrays converted where that was asked for.
    pub(super) plan: Plan,
    pub(super) sheets: Vec<ArgumentSheet>,
    /// What may be wrong and may be meant.
    pub(super) warnings: Vec<String>,
}

/// What is wrong with an argument, and what to do.
struct Misfit {
    why: String,
    next: Option<String>,
}

impl Misfit {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), next: None }
    }

    fn next(mut self, step: impl Into<String>) -> Self {
        self.next = Some(step.into());
        self
    }
}

impl Plan {
    /// Compares the arguments with what is known of the kernel; with `cast`, arrays of another element type are converted.
    /// `types` are those of the parameters, where they are known.
    pub(super) fn fit(
        &self,
        specs: &[Spec],
        facts: &EntryFacts,
        types: &[Option<String>],
        cast: bool,
    ) -> Result<Fitted, Failure> {
        let kernel = readable(&facts.name);
        let parameters = &facts.signature.parameters;
        if parameters.len() != specs.len() {
            let wanted = counted(parameters.len() as u64, "argument");
            let given = specs.len() as u64;
            let message = format!("kernel `{kernel}` takes {wanted}, and {given} {} given", was(given));
            return Err(Failure::refused(message).next("`kiln inspect` lists its parameters"));
        }
        let mut fitted = Fitted { plan: self.clone(), sheets: Vec::new(), warnings: Vec::new() };
        for (index, parameter) in parameters.iter().enumerate() {
            let (Some(spec), Some(argument)) = (specs.get(index), fitted.plan.arguments.get_mut(index))
            else {
                continue;
            };
            let ty = types.get(index).and_then(Option::as_deref);
            let place = format!("argument {index}, {spec}");
            match fit(spec, argument, parameter, ty, cast) {
                Ok(warnings) => {
                    fitted.warnings.extend(warnings.iter().map(|warning| format!("{place}: {warning}")))
                }
                Err(Misfit { why, next }) => {
                    let failure = Failure::refused(format!("kernel `{kernel}`, {place}: {why}"));
                    return Err(match next {
                        Some(step) => failure.next(step),
                        None => failure,
                    });
                }
            }
            let access =
                parameter.pointers.first().map_or(PointerAccess::Unknown, |field| field.effect.access());
            fitted.sheets.push(ArgumentSheet::of(index, None, spec, argument, Some(access.word())));
        }
        Ok(fitted)
    }
}

/// Compares an argument with its parameter; converts arrays in it. Answers warnings.
fn fit(
    spec: &Spec,
    argument: &mut Argument,
    parameter: &PtxParameter,
    ty: Option<&str>,
    cast: bool,
) -> Result<Vec<String>, Misfit> {
    let bytes = parameter.size_bytes;
    let is_struct = parameter.kind == PtxParameterKind::Bytes;
    match argument {
        Argument::Array(_) if matches!(parameter.kind, PtxParameterKind::Value) => {
            Err(Misfit::new(format!("the parameter is a value of {}", counted(bytes, "byte")))
                .next("give a value such as f32:2.5"))
        }
        Argument::Array(_) if is_struct => Err(not_a_struct(bytes)),
        Argument::Array(array) => fit_array(array, parameter.pointers.first(), ty, cast),
        Argument::Texture { .. } if bytes != 8 || is_struct => {
            let bytes = counted(bytes, "byte");
            Err(Misfit::new(format!(
                "the handle of a texture or surface has 8 bytes, and the parameter {bytes}"
            )))
        }
        Argument::Texture { .. } => Ok(Vec::new()),
        Argument::Null if matches!(parameter.kind, PtxParameterKind::Pointer | PtxParameterKind::Word) => {
            Ok(Vec::new())
        }
        Argument::Null => Err(Misfit::new("the parameter is not a pointer").next("give a value")),
        Argument::Value(_) if parameter.kind == PtxParameterKind::Pointer => {
            Err(Misfit::new("the parameter is a pointer")
                .next("give an array with in:, inout:, out:, zeros:, uninit: or scratch:, or null"))
        }
        Argument::Value(value) if value.len() as u64 != bytes => Err(match is_struct {
            true => not_a_struct(bytes),
            false => {
                let bytes = counted(bytes, "byte");
                Misfit::new(format!("the parameter has {bytes}, and the value {}", value.len()))
            }
        }),
        Argument::Value(_) => misread(spec, parameter).map_or(Ok(Vec::new()), Err),
        Argument::Struct { bytes: given, .. } if given.len() as u64 != bytes => {
            let (given, what) =
                (given.len() as u64, if is_struct { "a struct of" } else { "not a struct and has" });
            let (bytes, was) = (counted(bytes, "byte"), was(given));
            let given = counted(given, "byte");
            Err(Misfit::new(format!("the parameter is {what} {bytes}, and {given} {was} given"))
                .next("fields are aligned as in C; use bytes: for padding that the struct declares itself"))
        }
        Argument::Struct { arrays, .. } => fit_struct(spec, arrays, parameter, cast),
    }
}

fn not_a_struct(bytes: u64) -> Misfit {
    Misfit::new(format!("the parameter is a struct of {}", counted(bytes, "byte")))
        .next("give its fields, such as 'struct:{f32:1.5,u32:2}', or its bytes with bytes:HEX")
}

/// Compares the arrays in a struct with the pointers that the kernel finds there.
fn fit_struct(
    spec: &Spec,
    arrays: &mut [(u64, ArrayArgument)],
    parameter: &PtxParameter,
    cast: bool,
) -> Result<Vec<String>, Misfit> {
    let mut warnings = Vec::new();
    for (offset, array) in &mut *arrays {
        let field = parameter.pointers.iter().find(|field| u64::from(field.offset) == *offset);
        let told = fit_array(array, field, None, cast).map_err(|misfit| Misfit {
            why: format!("the array at byte {offset} of the struct: {}", misfit.why),
            next: misfit.next,
        })?;
        warnings.extend(
            told.iter().map(|warning| format!("the array at byte {offset} of the struct: {warning}")),
        );
    }
    let nulls = nulls(spec, 0);
    for field in &parameter.pointers {
        let offset = u64::from(field.offset);
        if !nulls.contains(&offset) && !arrays.iter().any(|(at, _)| *at == offset) {
            return Err(Misfit::new(format!(
                "the kernel uses bytes {offset} to {} of the struct as a pointer",
                offset + 7
            ))
            .next(
                "give an array with in:, inout:, out:, zeros:, uninit: or scratch:, or null, as that field",
            ));
        }
    }
    Ok(warnings)
}

/// Where a struct has null pointers, or bytes that are written out and may be anything.
fn nulls(spec: &Spec, base: u64) -> Vec<u64> {
    match spec {
        Spec::Null => vec![base],
        Spec::Bytes(bytes) => (base..base + bytes.len() as u64).collect(),
        Spec::Struct(fields) => {
            let (offsets, _) = crate::argument_spec::struct_layout(fields);
            fields.iter().zip(offsets).flat_map(|(field, offset)| nulls(field, base + offset)).collect()
        }
        _ => Vec::new(),
    }
}

/// Compares an array with what the kernel does with it and takes its elements for.
fn fit_array(
    argument: &mut ArrayArgument,
    field: Option<&PointerField>,
    ty: Option<&str>,
    cast: bool,
) -> Result<Vec<String>, Misfit> {
    let access = field.map_or(PointerAccess::Unknown, |field| field.effect.access());
    // An array that is made for the launch may be one that the kernel only reads: zeros, or memory that was never written. Scratch memory may be
    // one that it does not need for these sizes.
    let is_output =
        argument.is_written() && !matches!(argument.start, Some(Start::Zeros | Start::Uninitialised));
    match (access, is_output) {
        (PointerAccess::Writes | PointerAccess::Both, false) if !argument.is_written() => {
            return Err(Misfit::new("the kernel writes it").next("declare it with inout: or out:"));
        }
        (PointerAccess::Reads, true) => {
            return Err(
                Misfit::new("the kernel only reads it").next("declare it with in:, zeros: or uninit:")
            );
        }
        (PointerAccess::Neither, true) if argument.start != Some(Start::Scratch) => {
            return Err(Misfit::new("the kernel neither reads nor writes it").next("declare it with in:"));
        }
        _ => {}
    }
    let accessed = field.and_then(|field| field.elements);
    argument.widest_access =
        accessed.map(|types| types.iter().map(|ty| u64::from(ty.size_bytes())).max().unwrap_or(1));
    let given = argument.array.element;
    match Expected::new(ty, field).compare(given) {
        Fit::Fits => Ok(Vec::new()),
        Fit::Doubtful(why) => Ok(vec![format!("the element type {} is not checked: {why}", given.numpy())]),
        Fit::Differs { cast_to: Some(to), .. } if cast => {
            let converted = argument.array.cast(to).map_err(|error| Misfit::new(error.to_string()))?;
            argument.array = Arc::new(converted);
            Ok(Vec::new())
        }
        Fit::Differs { expected, cast_to, is_certain } => {
            let misfit = Misfit::new(format!("its elements are {}, and {expected}", given.numpy()));
            Err(misfit.next(element_advice(argument, cast_to, is_certain)))
        }
    }
}

/// What to do about an array of another element type. Conversion changes its bytes, so it is the only advice where the type is declared; instructions
/// alone do not tell a `float*` from another pointer that the kernel reinterprets.
fn element_advice(argument: &ArrayArgument, cast_to: Option<ElementType>, is_certain: bool) -> String {
    let array = &argument.array;
    let (given, bytes) = (array.element.numpy(), array.bytes.len());
    let convert = match (cast_to, argument.start) {
        (Some(to), Some(start)) => format!("write {}:{to}:...", start.word()),
        (Some(to), None) => format!("convert it with a.astype(numpy.{}), or give --cast", to.numpy()),
        (None, _) => "convert it to the type of the kernel".to_owned(),
    };
    let as_bytes = match argument.start {
        Some(start) => format!("write {}:u8:{bytes}", start.word()),
        None => "save a.view(numpy.uint8)".to_owned(),
    };
    match (cast_to, is_certain) {
        (Some(_), true) => convert,
        (Some(to), false) => format!(
            "if the parameter is a pointer to {to}, {convert}; if it is one to {} whose bits the kernel takes for others, {as_bytes}",
            array.element
        ),
        (None, _) => format!("{convert}; to give the bytes of {given} as they are, {as_bytes}"),
    }
}

/// Whether the kernel takes the bits of the value for something else.
fn misread(spec: &Spec, parameter: &PtxParameter) -> Option<Misfit> {
    let Spec::Value { element, .. } = spec else { return None };
    let ty = parameter.ty;
    match ty.kind() {
        _ if parameter.kind != PtxParameterKind::Value => None,
        ScalarKind::Float if !element.is_float() => {
            Some(Misfit::new(format!("the parameter is a floating-point number (.{})", ty.keyword())))
        }
        ScalarKind::Signed | ScalarKind::Unsigned if element.is_float() => {
            Some(Misfit::new(format!("the parameter is an integer (.{})", ty.keyword())))
        }
        _ => None,
    }
}
