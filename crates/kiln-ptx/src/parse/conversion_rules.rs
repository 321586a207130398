//! The roundings and other words that `cvt` needs or does not take between integers and floats.
//!
//! Conversions of packed values and of floats below 16 bits have other rules, and are taken as they are.

use crate::instruction_form::Form;
use crate::modifier::{Flag, Modifier, Rounding};
use crate::opcode::Opcode;
use crate::scalar::{ScalarKind, ScalarType};

/// Which rounding a conversion has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// None: every value fits.
    Nothing,
    /// To an integer: `.rni` and its like.
    Integer,
    /// To a float: `.rn` and its like.
    Float,
    /// To an integral float of the same type, or none.
    IntegerOrNothing,
    /// To a float, or none.
    FloatOrNothing,
}

/// What is wrong with the words of a conversion.
pub(super) fn broken_conversion(form: &Form) -> Option<String> {
    if form.opcode() != Opcode::Cvt {
        return None;
    }
    if let Some(word) = form.modifiers().iter().find(|word| !is_conversion_word(word)) {
        return Some(format!("has `.{}`, which conversions do not take; leave it out", word.keyword()));
    }
    if form.modifiers().iter().filter(|word| matches!(word, Modifier::Rounding(_))).count() > 1 {
        return Some("has several roundings; keep one".to_owned());
    }
    if let Some(broken) = broken_small_pair(form).or_else(|| broken_pack(form)).or_else(|| broken_pair(form))
    {
        return Some(broken);
    }
    if !has_known_words(form) {
        return None;
    }
    let mut types = form.types();
    let (Some(to), Some(from), None) = (types.next(), types.next(), types.next()) else {
        return (form.types().count() == 1)
            .then(|| "needs two types: the result's and the source's".to_owned());
    };
    if let Some(bits) =
        [to, from].into_iter().find(|ty| matches!(ty.kind(), ScalarKind::Bits | ScalarKind::Predicate))
    {
        return Some(format!("has the type `.{bits}`; it converts integers and floats"));
    }
    if !is_plain(to) || !is_plain(from) {
        return None;
    }
    let is_of_byte = (is_byte(to) && from == ScalarType::Bf16) || (is_byte(from) && to == ScalarType::Bf16);
    if is_of_byte && form.has(Flag::Sat) {
        return Some(
            "has `.sat`, which conversions between a byte and `.bf16` do not take; leave it out".to_owned(),
        );
    }
    broken_rounding(form, to, from).or_else(|| broken_flag(form, to, from))
}

/// What is wrong with the rounding.
fn broken_rounding(form: &Form, to: ScalarType, from: ScalarType) -> Option<String> {
    let wanted = wanted(to, from);
    let (integer, float) = ("`.rni`, `.rzi`, `.rmi` or `.rpi`", "`.rn`, `.rz`, `.rm` or `.rp`");
    let Some(rounding) = form.rounding() else {
        return match wanted {
            Wanted::Integer => Some(format!("needs a rounding to an integer: {integer}")),
            Wanted::Float => Some(format!("needs a rounding: {float}")),
            _ => None,
        };
    };
    use Rounding::{Rm, Rmi, Rn, Rni, Rp, Rpi, Rz, Rzi};
    let to_integer = matches!(rounding, Rni | Rzi | Rmi | Rpi);
    let to_float = matches!(rounding, Rn | Rz | Rm | Rp);
    let has = format!("has `.{rounding}`");
    match wanted {
        Wanted::Nothing => Some(format!("{has}; this conversion is exact and takes no rounding")),
        Wanted::Integer if !to_integer => Some(format!("{has}; to an integer it is {integer}")),
        Wanted::Float if !to_float => Some(format!("{has}; to a float it is {float}")),
        Wanted::IntegerOrNothing if !to_integer => {
            Some(format!("{has}; between equal types it is {integer}, or none"))
        }
        Wanted::FloatOrNothing if !to_float => Some(format!("{has}; to a float it is {float}, or none")),
        _ => None,
    }
}

/// Which rounding stands between two types.
fn wanted(to: ScalarType, from: ScalarType) -> Wanted {
    use ScalarType::{Bf16, F16, F32, F64};
    match (is_float(to), is_float(from)) {
        (false, false) => Wanted::Nothing,
        (false, true) => Wanted::Integer,
        (true, false) => Wanted::Float,
        (true, true) => match (to, from) {
            _ if to == from => Wanted::IntegerOrNothing,
            (Bf16, F16) | (F16 | F32 | F64, Bf16) => Wanted::FloatOrNothing,
            (F32 | F64, F16) | (F64, F32) => Wanted::Nothing,
            _ => Wanted::Float,
        },
    }
}

/// What is wrong with the other words.
fn broken_flag(form: &Form, to: ScalarType, from: ScalarType) -> Option<String> {
    use ScalarType::{Bf16, F16, F32};
    let is_half_of_single = matches!(to, F16 | Bf16) && from == F32;
    if form.has(Flag::Ftz) && to != F32 && from != F32 {
        return Some("has `.ftz`, which is for `.f32` alone; leave it out".to_owned());
    }
    if form.has(Flag::Sat) && !saturates(to, from) {
        let why = if is_float(to) || is_float(from) { "`.bf16` has no `.sat`" } else { "every value fits" };
        return Some(format!("has `.sat`, and {why}; leave it out"));
    }
    let limited = [(Flag::Relu, "relu"), (Flag::Satfinite, "satfinite")];
    let word = limited.into_iter().find(|(flag, _)| form.has(*flag)).map(|(_, word)| word)?;
    let is_nearest_or_zero = matches!(form.rounding(), Some(Rounding::Rn | Rounding::Rz));
    (!is_half_of_single || !is_nearest_or_zero).then(|| {
        format!(
            "has `.{word}`, which is for `.f16` and `.bf16` from `.f32` with `.rn` or `.rz`; leave it out"
        )
    })
}

/// What is wrong with a conversion from or to two floats of 4 or 6 bits, or two scales.
fn broken_small_pair(form: &Form) -> Option<String> {
    use ScalarType::{Bf16x2, E2m1x2, E2m3x2, E3m2x2, F16x2, F32, Ue8m0x2};
    let mut types = form.types();
    let (to, from) = (types.next()?, types.next()?);
    let is_small = |ty| matches!(ty, E2m1x2 | E2m3x2 | E3m2x2);
    if !is_small(to) && !is_small(from) && to != Ue8m0x2 && from != Ue8m0x2 {
        return None;
    }
    let has_words = form.modifiers().iter().any(|word| matches!(word, Modifier::Other(_)));
    if types.next().is_some() || has_words || form.has(Flag::Scaled) {
        return None;
    }
    let exists = matches!(
        (to, from),
        (E2m1x2 | E2m3x2 | E3m2x2, F32)
            | (F16x2, E2m1x2 | E2m3x2 | E3m2x2)
            | (E2m1x2, F16x2)
            | (Ue8m0x2, F32 | Bf16x2)
            | (Bf16x2, Ue8m0x2)
    );
    if !exists {
        return Some(format!("converts `.{from}` to `.{to}`, which PTX does not have"));
    }
    let (rounding, is_scale) = (form.rounding(), to == Ue8m0x2);
    if is_scale && !matches!(rounding, Some(Rounding::Rz | Rounding::Rp)) {
        return Some("needs `.rz` or `.rp`: to a scale there is no other rounding".to_owned());
    }
    if !is_scale && rounding != Some(Rounding::Rn) {
        return Some("needs `.rn`: between these types there is no other rounding".to_owned());
    }
    if is_small(to) && !form.has(Flag::Satfinite) {
        return Some(format!("needs `.satfinite`: `.{to}` has no infinity"));
    }
    let no_relu = is_scale || from == Ue8m0x2;
    if no_relu && form.has(Flag::Relu) {
        return Some("has `.relu`, and a scale has no sign; leave it out".to_owned());
    }
    let widens = matches!(to, F16x2 | Bf16x2);
    (widens && form.has(Flag::Satfinite))
        .then(|| "has `.satfinite`, and every value fits; leave it out".to_owned())
}

/// What is wrong with a conversion to or from two halves or two floats of 8 bits, or to a shortened single.
fn broken_pair(form: &Form) -> Option<String> {
    use ScalarType::{Bf16x2, E4m3x2, E5m2x2, F16x2, F32, Tf32};
    let (to, from) = (form.ty()?, form.source_type()?);
    let is_bytes = |ty| matches!(ty, E4m3x2 | E5m2x2);
    let is_halves = |ty| matches!(ty, F16x2 | Bf16x2);
    let is_random = form.rounding() == Some(Rounding::Rs);
    let has_scale = form.modifiers().iter().any(|word| matches!(word, Modifier::Other(_)));
    if is_random || has_scale || form.has(Flag::Scaled) || form.types().count() != 2 {
        return None;
    }
    let ours = |ty| is_bytes(ty) || is_halves(ty) || ty == Tf32;
    if !ours(to) && !ours(from) {
        return None;
    }
    // Floats of 4 and 6 bits, and scales, have separate rules.
    if !ours(to) && to != F32 || !ours(from) && from != F32 {
        let is_other = |ty: ScalarType| ty.kind() == ScalarKind::Float && !is_plain(ty) && !ours(ty);
        return (!is_other(to) && !is_other(from))
            .then(|| format!("converts `.{from}` to `.{to}`, which PTX does not have"));
    }
    let exists = match to {
        Tf32 => from == F32,
        to if is_bytes(to) => from == F32 || is_halves(from),
        to if is_halves(to) => from == F32 || is_bytes(from),
        _ => false,
    };
    if !exists {
        return Some(format!("converts `.{from}` to `.{to}`, which PTX does not have"));
    }
    if form.rounding().is_none() {
        return Some("needs a rounding, such as `.rn`".to_owned());
    }
    (is_bytes(to) && !form.has(Flag::Satfinite))
        .then(|| format!("needs `.satfinite`: too large a number has no place in `.{to}`"))
}

/// What is wrong with integers that are saturated and packed.
fn broken_pack(form: &Form) -> Option<String> {
    if !form.has(Flag::Pack) {
        return None;
    }
    if !form.has(Flag::Sat) {
        return Some("needs `.sat`".to_owned());
    }
    let mut types = form.types().skip(1);
    let fits = types.next() == Some(ScalarType::S32) && types.all(|ty| ty == ScalarType::B32);
    (!fits).then(|| "packs values of `.s32`, and `.b32` for those before them".to_owned())
}

/// Whether a word is one of those of conversions.
fn is_conversion_word(word: &Modifier) -> bool {
    match word {
        Modifier::Type(_) | Modifier::Rounding(_) => true,
        Modifier::Flag(flag) => {
            matches!(flag, Flag::Ftz | Flag::Sat | Flag::Relu | Flag::Satfinite | Flag::Pack | Flag::Scaled)
        }
        Modifier::Other(word) => word.starts_with("scaled::"),
        _ => false,
    }
}

/// Whether a conversion takes `.sat`.
fn saturates(to: ScalarType, from: ScalarType) -> bool {
    if is_float(to) || is_float(from) {
        return to != ScalarType::Bf16 && from != ScalarType::Bf16;
    }
    let is_signed = |ty: ScalarType| ty.kind() == ScalarKind::Signed;
    let holds_all = match (is_signed(to), is_signed(from)) {
        (true, false) => to.size_bytes() > from.size_bytes(),
        (false, true) => false,
        _ => to.size_bytes() >= from.size_bytes(),
    };
    !holds_all
}

/// Whether each word is one that the rules know.
fn has_known_words(form: &Form) -> bool {
    form.modifiers().iter().all(|word| match word {
        Modifier::Type(_) | Modifier::Rounding(_) => true,
        Modifier::Flag(flag) => matches!(flag, Flag::Ftz | Flag::Sat | Flag::Relu | Flag::Satfinite),
        _ => false,
    })
}

/// Whether a type is an integer of 8 to 64 bits or a float of 16 to 64.
fn is_plain(ty: ScalarType) -> bool {
    use ScalarType::*;
    is_float(ty) || matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}

fn is_float(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, F16 | Bf16 | F32 | F64)
}

fn is_byte(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::U8 | ScalarType::S8)
}
