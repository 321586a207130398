//! The types that each instruction takes.

use super::form_rules::any_of;
use crate::instruction_form::Form;
use crate::modifier::{Flag, Operation, Part};
use crate::opcode::Opcode;
use crate::scalar::ScalarType::{self, *};

const INTEGERS: [ScalarType; 6] = [U16, U32, U64, S16, S32, S64];
const WIDENED: [ScalarType; 4] = [U16, U32, S16, S32];
const WORDS: [ScalarType; 4] = [U32, U64, S32, S64];
const BITS: [ScalarType; 3] = [B16, B32, B64];
const LOGIC: [ScalarType; 4] = [B16, B32, B64, Pred];
const FLOATS: [ScalarType; 7] = [F16, F16x2, Bf16, Bf16x2, F32, F32x2, F64];
const ADDED: [ScalarType; 15] =
    [U16, U32, U64, S16, S32, S64, U16x2, S16x2, F16, F16x2, Bf16, Bf16x2, F32, F32x2, F64];
const SUBTRACTED: [ScalarType; 13] =
    [U16, U32, U64, S16, S32, S64, F16, F16x2, Bf16, Bf16x2, F32, F32x2, F64];
const ORDERED: [ScalarType; 14] =
    [U16, U32, U64, S16, S32, S64, U16x2, S16x2, F16, F16x2, Bf16, Bf16x2, F32, F64];
const SIGNED: [ScalarType; 9] = [S16, S32, S64, F16, F16x2, Bf16, Bf16x2, F32, F64];
const DIVIDED: [ScalarType; 8] = [U16, U32, U64, S16, S32, S64, F32, F64];
const WHOLE_FLOATS: [ScalarType; 2] = [F32, F64];
const APPROXIMATED: [ScalarType; 5] = [F16, F16x2, Bf16, Bf16x2, F32];
const SHIFTED: [ScalarType; 9] = [B16, B32, B64, U16, U32, U64, S16, S32, S64];
const SELECTED: [ScalarType; 11] = [B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64];
const MOVED: [ScalarType; 13] = [B16, B32, B64, B128, U16, U32, U64, S16, S32, S64, F32, F64, Pred];
const COMPARED: [ScalarType; 15] =
    [B16, B32, B64, U16, U32, U64, S16, S32, S64, F16, F16x2, Bf16, Bf16x2, F32, F64];
const STORED: [ScalarType; 15] = [B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];
const ATOMIC_SUMS: [ScalarType; 9] = [U32, U64, S32, F16, F16x2, Bf16, Bf16x2, F32, F64];
const ATOMIC_ORDERED: [ScalarType; 4] = [U32, U64, S32, S64];

/// What is wrong with the types of an instruction.
pub(super) fn broken_types(form: &Form) -> Option<String> {
    if matches!(form.opcode(), Opcode::Set | Opcode::Slct) {
        return broken_pair(form);
    }
    let taken = types_taken(form)?;
    let mut types = form.types();
    match (types.next(), types.next()) {
        (None, _) => {
            let first = taken.first().map_or("b32", |ty| ty.keyword());
            Some(format!("needs a type such as `.{first}`"))
        }
        // Mixed precision has more than one.
        (Some(ty), None) if !taken.contains(&ty) => {
            let words = any_of(taken.iter().map(|ty| ty.keyword()));
            Some(format!("has the type `.{ty}`; it takes {words}"))
        }
        (Some(_), Some(_)) if takes_one(form.opcode()) => {
            Some("has more than one type; it takes one".to_owned())
        }
        _ => None,
    }
}

/// What is wrong with the types of an instruction that has one for its result and one for what it looks at.
fn broken_pair(form: &Form) -> Option<String> {
    let mut types = form.types();
    let (Some(to), Some(from), None) = (types.next(), types.next(), types.next()) else {
        return Some("needs two types: the result's and the one that is looked at".to_owned());
    };
    let is_half = matches!(from, F16 | Bf16);
    let fits = match (form.opcode(), to) {
        (Opcode::Slct, _) => SELECTED.contains(&to) && matches!(from, S32 | F32),
        (_, _) if !COMPARED.contains(&from) => false,
        (_, U16 | S16) => is_half,
        (_, F16x2 | Bf16x2) => to == from,
        (_, F32) => from != F16,
        _ => matches!(to, U32 | S32 | F16 | Bf16),
    };
    (!fits)
        .then(|| format!("does not take the types `.{to}` and `.{from}` together; convert one of them first"))
}

/// The types that an instruction with one type takes; `None` where no rule is known.
fn types_taken(form: &Form) -> Option<&'static [ScalarType]> {
    use Opcode::*;
    Some(match form.opcode() {
        Add => &ADDED,
        Sub => &SUBTRACTED,
        Mul if form.part() == Some(Part::Wide) => &WIDENED,
        Mul if form.part().is_some() => &INTEGERS,
        // Without a part it is a product of floats, or an integer one whose part is missing, which another rule tells.
        Mul if form.ty().is_some_and(|ty| INTEGERS.contains(&ty)) => &INTEGERS,
        Mul | Fma => &FLOATS,
        Mad if form.part() == Some(Part::Wide) => &WIDENED,
        Mad if form.part().is_some() => &INTEGERS,
        Mad if form.ty().is_some_and(|ty| INTEGERS.contains(&ty)) => &INTEGERS,
        Mad => &WHOLE_FLOATS,
        Addc | Subc | Madc | Sad | Rem => &INTEGERS,
        Mul24 | Mad24 | Szext => &[U32, S32],
        Div => &DIVIDED,
        Abs | Neg => &SIGNED,
        Min | Max => &ORDERED,
        Popc | Clz | Brev | Bfi => &[B32, B64],
        Bfind | Bfe => &WORDS,
        Fns | Bmsk | Lop3 | Shf | Prmt | Activemask => &[B32],
        Nanosleep => &[U32],
        Rcp | Sqrt | Rsqrt | Testp | Copysign => &WHOLE_FLOATS,
        Sin | Cos | Lg2 => &[F32],
        Ex2 | Tanh => &APPROXIMATED,
        Setp => &COMPARED,
        Selp => &SELECTED,
        And | Or | Xor | Not => &LOGIC,
        Cnot | Shl => &BITS,
        Shr => &SHIFTED,
        Mov => &MOVED,
        Ld | Ldu => &STORED,
        St if !form.has(Flag::Async) && !form.has(Flag::Bulk) => &STORED,
        Shfl => &[B32],
        Match => &[B32, B64],
        Cvta => &[U32, U64],
        Atom | Red if form.vector() > 1 => return None,
        Atom | Red if !form.has(Flag::Async) => return atomic_types(form.operation()?),
        _ => return None,
    })
}

/// The types of an atomic operation.
fn atomic_types(operation: Operation) -> Option<&'static [ScalarType]> {
    use Operation::*;
    Some(match operation {
        Add => &ATOMIC_SUMS,
        Inc | Dec => &[U32],
        Min | Max => &ATOMIC_ORDERED,
        And | Or | Xor => &[B32, B64],
        Exch => &[B32, B64, B128],
        Cas => &[B16, B32, B64, B128],
        Popc => return None,
    })
}

/// Whether an instruction never has a second type.
fn takes_one(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Mov | Ld | St | Ldu | And | Or | Xor | Not | Shl | Shr | Selp | Setp | Popc | Clz | Brev)
}
