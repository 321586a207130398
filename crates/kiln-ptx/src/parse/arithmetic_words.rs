//! The modifiers that arithmetic, comparisons, logic and moves take, and those they cannot go without.

use super::form_rules::{Dialect, any_of};
use crate::instruction_form::Form;
use crate::modifier::{Compare, Flag, Modifier, Operation, Part, Rounding};
use crate::opcode::Opcode;
use crate::scalar::{ScalarKind, ScalarType};

/// What is wrong with the modifiers of an arithmetic instruction.
pub(super) fn broken_arithmetic(form: &Form, dialect: Dialect) -> Option<String> {
    if !is_arithmetic(form.opcode()) {
        return None;
    }
    broken_comparison(form).or_else(|| broken_word(form)).or_else(|| missing_word(form, dialect))
}

/// Whether the rules of this file hold for an instruction.
fn is_arithmetic(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Add | Sub
            | Mul
            | Mad
            | Fma
            | Div
            | Rem
            | Abs
            | Neg
            | Min
            | Max
            | Addc
            | Subc
            | Madc
            | Mul24
            | Mad24
            | Sad
            | Rcp
            | Sqrt
            | Rsqrt
            | Sin
            | Cos
            | Lg2
            | Ex2
            | Tanh
            | Copysign
            | And
            | Or
            | Xor
            | Not
            | Cnot
            | Shl
            | Shr
            | Selp
            | Mov
            | Popc
            | Clz
            | Bfe
            | Bfi
            | Brev
            | Setp
    )
}

/// What is wrong with the comparison of `setp`.
fn broken_comparison(form: &Form) -> Option<String> {
    let (compare, ty) = (form.compare()?, form.source_type()?);
    let comparisons = form.modifiers().iter().filter(|word| matches!(word, Modifier::Compare(_)));
    if comparisons.count() > 1 {
        return Some("has more than one comparison".to_owned());
    }
    use Compare::*;
    let is_right = match compare {
        Eq | Ne => true,
        Lt | Le | Gt | Ge => ty.kind() != ScalarKind::Bits,
        Lo | Ls | Hi | Hs => ty.kind() == ScalarKind::Unsigned,
        Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => ty.kind() == ScalarKind::Float,
    };
    let wanted = match ty.kind() {
        ScalarKind::Bits => "`.eq` or `.ne`",
        ScalarKind::Unsigned => "`.lt`, `.le`, `.gt`, `.ge` or the others of unsigned integers",
        ScalarKind::Signed => "`.eq`, `.ne`, `.lt`, `.le`, `.gt` or `.ge`",
        _ => "`.lt`, `.ltu` or the others of floats",
    };
    (!is_right).then(|| format!("compares with `.{compare}`, which `.{ty}` does not have; use {wanted}"))
}

/// A word that the instruction does not take, or takes once.
fn broken_word(form: &Form) -> Option<String> {
    let mut types = form.types();
    let (Some(ty), None) = (types.next(), types.next()) else { return None };
    let foreign = form.modifiers().iter().find(|word| !takes(form, ty, word));
    if let Some(word) = foreign {
        let word = word.keyword();
        return Some(match words_instead(form, ty, word) {
            Some(instead) => format!("has `.{word}`, which it does not take; use {instead}"),
            None => format!("has `.{word}`, which it does not take with `.{ty}`; leave it out"),
        });
    }
    let count = |is: fn(&Modifier) -> bool| form.modifiers().iter().filter(|word| is(word)).count();
    let is_twice = [
        (count(|word| matches!(word, Modifier::Rounding(_))), "roundings"),
        (count(|word| matches!(word, Modifier::Part(_))), "parts of the product"),
        (count(|word| matches!(word, Modifier::Flag(Flag::Ftz))), "words `.ftz`"),
    ];
    is_twice
        .into_iter()
        .find(|(count, _)| *count > 1)
        .map(|(_, what)| format!("has several {what}; keep one"))
}

/// The roundings to choose from, where a word is one of others.
fn words_instead(form: &Form, ty: ScalarType, word: &str) -> Option<String> {
    Rounding::from_keyword(word)?;
    let roundings = Rounding::ALL.iter().filter(|rounding| takes(form, ty, &Modifier::Rounding(**rounding)));
    let roundings = any_of(roundings.map(|rounding| rounding.keyword()));
    (!roundings.is_empty()).then_some(roundings)
}

/// Whether an instruction on values of `ty` takes a word.
fn takes(form: &Form, ty: ScalarType, word: &Modifier) -> bool {
    let opcode = form.opcode();
    match word {
        Modifier::Type(_) => true,
        Modifier::Compare(_) => opcode == Opcode::Setp,
        Modifier::Operation(operation) => {
            let combines = matches!(operation, Operation::And | Operation::Or | Operation::Xor);
            opcode == Opcode::Setp && combines
        }
        Modifier::Part(part) => match opcode {
            Opcode::Mul | Opcode::Mad => ty.kind() != ScalarKind::Float,
            Opcode::Madc | Opcode::Mul24 | Opcode::Mad24 => *part != Part::Wide,
            _ => false,
        },
        Modifier::Rounding(rounding) => takes_rounding(opcode, ty, *rounding),
        Modifier::Flag(flag) => takes_flag(form, ty, *flag),
        // Out-of-bounds products, and words of later versions.
        Modifier::Other(_) => matches!(opcode, Opcode::Fma),
        // Vectors of registers are not a form that the assembler documents, and it takes some.
        Modifier::Vector(_) => opcode == Opcode::Mov,
        Modifier::Cache(_)
        | Modifier::Order(_)
        | Modifier::Scope(_)
        | Modifier::Space(_)
        | Modifier::Shuffle(_)
        | Modifier::Vote(_)
        | Modifier::Permute(_)
        | Modifier::Test(_) => false,
    }
}

/// Whether an instruction rounds in this way.
fn takes_rounding(opcode: Opcode, ty: ScalarType, rounding: Rounding) -> bool {
    use ScalarType::*;
    if !matches!(rounding, Rounding::Rn | Rounding::Rz | Rounding::Rm | Rounding::Rp) {
        return false;
    }
    match opcode {
        Opcode::Add | Opcode::Sub | Opcode::Mul => match ty {
            F32 | F32x2 | F64 => true,
            F16 | F16x2 | Bf16 | Bf16x2 => rounding == Rounding::Rn,
            _ => false,
        },
        Opcode::Fma => match ty {
            F16 | F16x2 => rounding == Rounding::Rn,
            _ => ty.kind() == ScalarKind::Float,
        },
        Opcode::Mad | Opcode::Div | Opcode::Rcp | Opcode::Sqrt => matches!(ty, F32 | F64),
        _ => false,
    }
}

/// Whether an instruction takes a word that switches something on.
fn takes_flag(form: &Form, ty: ScalarType, flag: Flag) -> bool {
    use Opcode::*;
    use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64, S16x2, S32, S64, U32, U64};
    let opcode = form.opcode();
    let is_half = matches!(ty, F16 | F16x2);
    match flag {
        Flag::Ftz => match opcode {
            Add | Sub | Mul | Fma => is_half || matches!(ty, F32 | F32x2),
            Mad | Div | Sqrt | Sin | Cos | Lg2 => ty == F32,
            Rcp | Rsqrt => matches!(ty, F32 | F64),
            Ex2 => matches!(ty, F32 | Bf16 | Bf16x2),
            Abs | Neg | Min | Max | Setp => is_half || ty == F32,
            _ => false,
        },
        Flag::Sat => match opcode {
            Add | Sub => is_half || matches!(ty, F32 | S32),
            Addc | Subc => ty == S32,
            Mul | Fma => is_half || ty == F32,
            Mad => ty == F32 || (ty == S32 && form.part() == Some(Part::Hi)),
            Madc | Mad24 => ty == S32 && form.part() == Some(Part::Hi),
            _ => false,
        },
        Flag::Approx => match opcode {
            Div | Sqrt => ty == F32,
            Rcp => matches!(ty, F32 | F64),
            Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh => true,
            _ => false,
        },
        Flag::Full => opcode == Div && ty == F32,
        Flag::Cc => match opcode {
            Add | Sub | Addc | Subc => matches!(ty, U32 | U64 | S32 | S64),
            Mad | Madc => matches!(ty, U32 | U64 | S32 | S64) && form.part() != Some(Part::Wide),
            _ => false,
        },
        Flag::Nan | Flag::XorSign | Flag::Abs => {
            matches!(opcode, Min | Max) && (is_half || matches!(ty, Bf16 | Bf16x2 | F32))
        }
        Flag::Relu => match opcode {
            Fma => is_half || matches!(ty, Bf16 | Bf16x2),
            Min | Max => matches!(ty, S32 | S16x2),
            _ => false,
        },
        _ => false,
    }
}

/// A word that the instruction cannot go without.
fn missing_word(form: &Form, dialect: Dialect) -> Option<String> {
    use Opcode::*;
    let is_approximate = form.has(Flag::Approx);
    match form.opcode() {
        Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh if !is_approximate => Some("needs `.approx`".to_owned()),
        Rcp if is_approximate && form.ty() == Some(ScalarType::F64) && !form.has(Flag::Ftz) => {
            Some("needs `.ftz`: `.approx.ftz.f64` is the only approximate form of doubles".to_owned())
        }
        Ex2 if matches!(form.ty(), Some(ScalarType::Bf16 | ScalarType::Bf16x2)) && !form.has(Flag::Ftz) => {
            Some("needs `.ftz`".to_owned())
        }
        Mul24 | Mad24 if form.part().is_none() => Some("needs `.lo` or `.hi`".to_owned()),
        Mad if form.ty()?.kind() == ScalarKind::Float && form.rounding().is_none() && dialect.is_from(30) => {
            Some("needs a rounding such as `.rn`".to_owned())
        }
        _ => None,
    }
}
