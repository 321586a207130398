//! What the operands of arithmetic, comparisons, moves, loads and stores must be: how many there are, and how wide their registers.
//!
//! The PTX assembler refuses a text that breaks these rules, so that no GPU ever runs it. Instructions that are not named here have other rules where they
//! are executed.

use super::memory_operands::{broken_copy_operands, broken_memory_operands};
use super::syntax::broken_syntax_operands;
use crate::instruction_form::Form;
use crate::modifier::{Flag, Modifier, Operation, Part, Rounding};
use crate::opcode::Opcode;
use crate::operand::{Immediate, PtxOperand};
use crate::register::{RegisterId, Registers};
use crate::scalar::{ScalarKind, ScalarType};
use crate::variable::PtxVariable;

/// What operands refer to.
pub(super) struct Code<'r> {
    pub(super) registers: &'r Registers,
    /// The variables of the module that are declared so far.
    pub(super) variables: &'r [PtxVariable],
    /// The elements of operands in braces and brackets.
    pub(super) elements: &'r [PtxOperand],
}

/// What an operand must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// A register of the instruction's first type, or a constant.
    First,
    /// A register of its last type, or a constant.
    Last,
    /// A register of twice the width, for the `wide` products.
    Wide,
    /// A register of 32 bits, or a constant.
    Word,
    /// A register that holds the first type, or a wider one.
    WiderFirst,
    /// The same for the last type.
    WiderLast,
    /// A predicate.
    Predicate,
    /// Something that other code looks at.
    Any,
}

/// Why the assembler would refuse an instruction, if it would.
pub(super) fn broken_rule(form: &Form, operands: &[PtxOperand], code: &Code<'_>) -> Option<String> {
    broken_operand(form, operands, code.registers)
        .or_else(|| broken_memory_operands(form, operands, code))
        .or_else(|| broken_copy_operands(form, operands, code))
        .or_else(|| broken_syntax_operands(form, operands, code))
}

fn broken_operand(form: &Form, operands: &[PtxOperand], registers: &Registers) -> Option<String> {
    let rules = Rules::of(form)?;
    let name = form.text();
    let (least, most) = (rules.least, rules.slots.len());
    if !(least..=most).contains(&operands.len()) {
        let wanted = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        return Some(format!("`{name}` takes {wanted} operands, not {}", operands.len()));
    }
    if let Some(broken) = broken_modifier(form) {
        return Some(format!("`{name}` {broken}"));
    }
    if form.opcode() == Opcode::Setp && form.operation().is_some() != (operands.len() == most) {
        return Some(format!(
            "`{name}` takes a fourth operand with `.and`, `.or` or `.xor`, and with none of them three"
        ));
    }
    if let Some(broken) = broken_braces(form, operands).or_else(|| broken_second_result(form, operands)) {
        return Some(format!("`{name}` {broken}"));
    }
    for (number, (slot, operand)) in (1..).zip(rules.slots.iter().zip(operands)) {
        let Some(ty) = rules.ty(*slot, form) else { continue };
        if let Some(broken) = broken_place(form, operand, number == 1 && rules.has_result) {
            return Some(format!("operand {number} of `{name}` {broken}"));
        }
        if let PtxOperand::Immediate(value) = operand {
            if number == 1 && rules.has_result {
                return Some(format!("operand 1 of `{name}` is a number, where a register takes the result"));
            }
            if !is_number_of(ty, *value) {
                return Some(format!("operand {number} of `{name}` is a number of another kind than .{ty}"));
            }
        }
        let Some(register) = register_type(operand, registers) else { continue };
        let is_wider = matches!(slot, Slot::WiderFirst | Slot::WiderLast);
        let does_fit = fits(register, ty) || (is_wider && fits_wider(register, ty));
        if !does_fit {
            return Some(format!(
                "operand {number} of `{name}` is a register of type .{register}, where .{ty} is wanted"
            ));
        }
    }
    None
}

/// What is wrong with a special register or an address where a register is wanted.
fn broken_place(form: &Form, operand: &PtxOperand, is_result: bool) -> Option<&'static str> {
    let takes_special = matches!(form.opcode(), Opcode::Mov | Opcode::Cvt);
    let takes_address = matches!(form.opcode(), Opcode::Mov | Opcode::Cvta);
    match operand {
        PtxOperand::Special(_) if is_result => Some("is a special register, which is only read"),
        PtxOperand::Special(_) if !takes_special => {
            Some("is a special register; move it to a register first")
        }
        PtxOperand::Variable(..) | PtxOperand::Function(_) if !takes_address => {
            Some("is an address; move it to a register first")
        }
        _ => None,
    }
}

/// What is wrong with values in braces that are moved into one register or out of it.
fn broken_braces(form: &Form, operands: &[PtxOperand]) -> Option<String> {
    let moves = form.opcode() == Opcode::Mov && form.vector() == 1;
    let has_braces = operands.iter().any(|operand| matches!(operand, PtxOperand::Vector(_)));
    let ty = form.ty().filter(|ty| moves && has_braces && ty.kind() != ScalarKind::Bits)?;
    Some(format!("has values in braces, which `.{ty}` does not take; use `.b{}`", ty.size_bytes() * 8))
}

/// What is wrong with a second result behind `|`, or with the table of `lop3`.
fn broken_second_result(form: &Form, operands: &[PtxOperand]) -> Option<String> {
    let has_pair = matches!(operands.first(), Some(PtxOperand::Pair(..)));
    let is_single_half = matches!(form.source_type(), Some(ScalarType::F16 | ScalarType::Bf16));
    match form.opcode() {
        Opcode::Lop3 if has_pair && form.operation().is_none() => {
            Some("has a predicate beside its result; write `.or` or `.and`".to_owned())
        }
        Opcode::Lop3 if !matches!(operands.get(4), Some(PtxOperand::Immediate(_))) => {
            Some("needs a number as its table of bits".to_owned())
        }
        Opcode::Setp if has_pair && is_single_half => {
            Some("compares one half and has two results; keep one".to_owned())
        }
        _ => None,
    }
}

/// The type of the register that an operand is, unless it is a vector.
pub(super) fn register_type(operand: &PtxOperand, registers: &Registers) -> Option<ScalarType> {
    let group = registers.group(register_of(operand)?)?;
    (group.vector == 1).then_some(group.ty)
}

/// Whether a number may stand for a value of a type. Numbers are converted between the integers and between the
/// floats, and hexadecimal floats give the bits of their width.
pub(super) fn is_number_of(ty: ScalarType, number: Immediate) -> bool {
    let is_integer = matches!(number, Immediate::Signed(_) | Immediate::Unsigned(_));
    match ty {
        ScalarType::F32 | ScalarType::F64 => !is_integer,
        // Halves have no numbers: they are moved as `.b16`.
        _ if is_packed(ty) => false,
        ScalarType::B32 => !matches!(number, Immediate::F64(_)),
        ScalarType::B64 => !matches!(number, Immediate::F32(_)),
        _ => is_integer,
    }
}

/// The operands of an instruction.
struct Rules {
    slots: &'static [Slot],
    /// The last ones may be left out.
    least: usize,
    /// Whether the first is the result.
    has_result: bool,
}

impl Rules {
    /// `None` for instructions without rules here.
    fn of(form: &Form) -> Option<Self> {
        use Opcode::*;
        use Slot::*;
        let some = |least: usize, slots: &'static [Slot]| Some(Self { slots, least, has_result: true });
        let all = |slots: &'static [Slot]| some(slots.len(), slots);
        let is_wide = form.part() == Some(Part::Wide);
        // Mixed precision has a type for each of several operands.
        let is_mixed = form.types().count() > 1;
        match form.opcode() {
            Add | Sub | Fma if is_mixed => None,
            Add | Sub | Addc | Subc | Div | Rem | And | Or | Xor | Mul24 | Copysign => {
                all(&[First, First, First])
            }
            Mul if is_wide => all(&[Wide, First, First]),
            Mul => all(&[First, First, First]),
            Mad if is_wide => all(&[Wide, First, First, Wide]),
            Mad | Madc | Mad24 | Sad | Fma => all(&[First, First, First, First]),
            Min | Max => some(3, &[First, First, First, First]),
            Abs | Neg | Not | Cnot | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Brev => {
                all(&[First, First])
            }
            Shl | Shr => all(&[First, First, Word]),
            Popc | Clz | Bfind => all(&[Word, First]),
            Bfe => all(&[First, First, Word, Word]),
            Bfi => all(&[First, First, First, Word, Word]),
            Setp => some(3, &[Predicate, Last, Last, Predicate]),
            Set => some(3, &[First, Last, Last, Predicate]),
            Selp => all(&[First, First, First, Predicate]),
            Slct => all(&[First, First, First, Last]),
            Mov => all(&[First, First]),
            Ld | Ldu | St => some(2, &[Any, Any, Any]),
            // A byte is in a register of 8 bits there.
            Cvt if is_plain_conversion(form) && is_of_byte_and_bf16(form) => all(&[First, Last]),
            Cvt if is_plain_conversion(form) => all(&[WiderFirst, WiderLast]),
            Cvt if form.has(Flag::Pack) => match form.types().count() {
                3 => all(&[Any, Any, Any, Any]),
                _ => all(&[Any, Any, Any]),
            },
            Cvt if form.types().count() == 2 && !has_more_operands(form) => packed_conversion(form),
            Atom if form.vector() > 1 => None,
            Atom if form.operation() == Some(Operation::Cas) => some(4, &[First, Any, First, First, Any]),
            Atom => some(3, &[First, Any, First, Any]),
            Red if form.vector() > 1 || form.has(Flag::Async) => None,
            Red => some(2, &[Any, First, Any]),
            Shfl if form.has(Flag::Sync) => all(&[First, Word, Word, Word, Word]),
            Shfl => all(&[First, Word, Word, Word]),
            Vote if form.has(Flag::Sync) => all(&[First, Predicate, Word]),
            Vote => all(&[First, Predicate]),
            Match => all(&[Word, First, Word]),
            Redux => all(&[First, First, Word]),
            Activemask | Nanosleep => {
                all(&[First]).map(|rules| Self { has_result: form.opcode() == Activemask, ..rules })
            }
            Cvta => all(&[First, First]),
            Isspacep => all(&[Predicate, Any]),
            Testp => all(&[Predicate, First]),
            Prmt => all(&[First, First, First, First]),
            Lop3 if form.operation().is_none() => all(&[First, First, First, First, Word]),
            Shf => all(&[First, First, First, Word]),
            Trap | Exit | Brkpt => Some(Self { slots: &[], least: 0, has_result: false }),
            Dp4a | Dp2a => all(&[Word, Word, Word, Word]),
            _ => None,
        }
    }

    fn ty(&self, slot: Slot, form: &Form) -> Option<ScalarType> {
        match slot {
            Slot::First | Slot::WiderFirst => form.ty(),
            Slot::Last | Slot::WiderLast => form.source_type(),
            Slot::Word => Some(ScalarType::B32),
            Slot::Predicate => Some(ScalarType::Pred),
            Slot::Wide => match form.ty()? {
                ScalarType::U16 | ScalarType::S16 => Some(ScalarType::B32),
                ScalarType::U32 | ScalarType::S32 => Some(ScalarType::B64),
                _ => None,
            },
            Slot::Any => None,
        }
    }
}

/// What is wrong with the modifiers of an instruction.
fn broken_modifier(form: &Form) -> Option<&'static str> {
    let kind = form.ty()?.kind();
    let is_integer = matches!(kind, ScalarKind::Signed | ScalarKind::Unsigned);
    let is_float = kind == ScalarKind::Float;
    let is_rounded = form.rounding().is_some() || form.has(Flag::Approx) || form.has(Flag::Full);
    let has_memory_words =
        form.modifiers().iter().any(|modifier| matches!(modifier, Modifier::Order(_) | Modifier::Space(_)));
    match form.opcode() {
        Opcode::Mul | Opcode::Mad | Opcode::Madc if is_integer && form.part().is_none() => {
            Some("needs `.lo`, `.hi` or `.wide`")
        }
        Opcode::Div | Opcode::Rcp | Opcode::Sqrt if is_float && !is_rounded => {
            Some("needs a rounding such as `.rn`, or `.approx`")
        }
        Opcode::Fma if is_float && !is_rounded => Some("needs a rounding such as `.rn`"),
        Opcode::Setp | Opcode::Set if form.compare().is_none() => Some("needs a comparison such as `.lt`"),
        Opcode::Add | Opcode::Sub if is_integer && is_rounded => {
            Some("has a rounding, which integers do not take")
        }
        Opcode::Add | Opcode::Sub if has_memory_words => {
            Some("has a word about memory, which arithmetic does not take")
        }
        _ => None,
    }
}

/// The register of an operand that is one alone.
fn register_of(operand: &PtxOperand) -> Option<RegisterId> {
    match operand {
        PtxOperand::Register(register) | PtxOperand::Not(register) => Some(*register),
        PtxOperand::Pair(register, _) => *register,
        _ => None,
    }
}

/// Whether a register may be an operand of a type: the width is the same, and floats are not used as integers.
fn fits(register: ScalarType, wanted: ScalarType) -> bool {
    use ScalarKind::*;
    let is_predicate = |ty: ScalarType| ty.kind() == Predicate;
    if is_predicate(register) || is_predicate(wanted) {
        return is_predicate(register) == is_predicate(wanted);
    }
    if register.size_bytes() != wanted.size_bytes() {
        return false;
    }
    !matches!((register.kind(), wanted.kind()), (Float, Signed | Unsigned) | (Signed | Unsigned, Float))
}

/// Whether a register may hold an operand of a conversion: it may be wider.
fn fits_wider(register: ScalarType, wanted: ScalarType) -> bool {
    use ScalarKind::*;
    let is_wider = register.size_bytes() > wanted.size_bytes();
    match (wanted.kind(), register.kind()) {
        (Float, Bits) => is_wider && wanted != ScalarType::Bf16,
        (Signed | Unsigned, Bits | Signed | Unsigned) => is_wider,
        _ => false,
    }
}

/// Whether a conversion has one source, and no packed types.
fn is_plain_conversion(form: &Form) -> bool {
    use ScalarType::*;
    let is_plain = |ty| matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | Bf16 | F32 | F64);
    form.types().count() == 2 && form.types().all(is_plain) && !form.has(Flag::Pack)
}

fn is_of_byte_and_bf16(form: &Form) -> bool {
    let has = |wanted: &[ScalarType]| form.types().any(|ty| wanted.contains(&ty));
    has(&[ScalarType::U8, ScalarType::S8]) && has(&[ScalarType::Bf16])
}

/// Whether a conversion takes random bits or a scale as well.
fn has_more_operands(form: &Form) -> bool {
    let is_scale = |word: &Modifier| matches!(word, Modifier::Other(_) | Modifier::Flag(Flag::Scaled));
    form.rounding() == Some(Rounding::Rs) || form.modifiers().iter().any(is_scale)
}

/// The operands of a conversion between singles, pairs of halves and pairs of bytes.
fn packed_conversion(form: &Form) -> Option<Rules> {
    use ScalarType::{Bf16x2, E4m3x2, E5m2x2, F16x2, F32, Tf32};
    use Slot::{First, Last, WiderFirst};
    let slots: &'static [Slot] = match (form.ty()?, form.source_type()?) {
        (F16x2, F32) => &[WiderFirst, Last, Last],
        (Bf16x2 | E4m3x2 | E5m2x2, F32) => &[First, Last, Last],
        (Tf32, F32) | (E4m3x2 | E5m2x2, F16x2 | Bf16x2) | (F16x2 | Bf16x2, E4m3x2 | E5m2x2) => &[First, Last],
        _ => return None,
    };
    Some(Rules { slots, least: slots.len(), has_result: true })
}

/// Whether a type has its values in registers of bits: halves and packed values.
fn is_packed(ty: ScalarType) -> bool {
    !matches!(ty, ScalarType::F32 | ScalarType::F64) && ty.kind() == ScalarKind::Float
}
