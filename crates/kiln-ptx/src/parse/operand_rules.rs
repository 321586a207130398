//! What the operands of arithmetic, comparisons, moves, loads and stores must be: how many there are, and how wide their registers.
//!
//! The PTX assembler refuses a text that breaks these rules, so that no GPU ever runs it. Instructions that are not named here have other rules where they
//! are executed.

use crate::instruction_form::Form;
use crate::modifier::{Flag, Modifier, Part};
use crate::opcode::Opcode;
use crate::operand::PtxOperand;
use crate::register::{RegisterId, Registers};
use crate::scalar::{ScalarKind, ScalarType};

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
    /// A predicate.
    Predicate,
    /// Something that other code looks at.
    Any,
}

/// Why the assembler would refuse an instruction, if it would.
pub(super) fn broken_rule(form: &Form, operands: &[PtxOperand], registers: &Registers) -> Option<String> {
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
    for (number, (slot, operand)) in (1..).zip(rules.slots.iter().zip(operands)) {
        let Some(ty) = rules.ty(*slot, form) else { continue };
        let Some(register) = register_of(operand) else { continue };
        let Some(group) = registers.group(register).filter(|group| group.vector == 1) else { continue };
        if !fits(group.ty, ty) {
            let (is, wants) = (group.ty.keyword(), ty.keyword());
            return Some(format!(
                "operand {number} of `{name}` is a register of type .{is}, where .{wants} is wanted"
            ));
        }
    }
    None
}

/// The operands of an instruction.
struct Rules {
    slots: &'static [Slot],
    /// The last ones may be left out.
    least: usize,
}

impl Rules {
    /// `None` for instructions without rules here.
    fn of(form: &Form) -> Option<Self> {
        use Opcode::*;
        use Slot::*;
        let all = |slots: &'static [Slot]| Some(Self { slots, least: slots.len() });
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
            Min | Max => Some(Self { slots: &[First, First, First, First], least: 3 }),
            Abs | Neg | Not | Cnot | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Brev => {
                all(&[First, First])
            }
            Shl | Shr => all(&[First, First, Word]),
            Popc | Clz | Bfind => all(&[Word, First]),
            Bfe => all(&[First, First, Word, Word]),
            Bfi => all(&[First, First, First, Word, Word]),
            Setp => Some(Self { slots: &[Any, Last, Last, Predicate], least: 3 }),
            Set => Some(Self { slots: &[First, Last, Last, Predicate], least: 3 }),
            Selp => all(&[First, First, First, Predicate]),
            Slct => all(&[First, First, First, Last]),
            Mov => all(&[First, First]),
            Ld | Ldu => Some(Self { slots: &[Any, Any, Any], least: 2 }),
            St => Some(Self { slots: &[Any, Any, Any], least: 2 }),
            _ => None,
        }
    }

    fn ty(&self, slot: Slot, form: &Form) -> Option<ScalarType> {
        match slot {
            Slot::First => form.ty(),
            Slot::Last => form.source_type(),
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
    match (register.kind(), wanted.kind()) {
        (Float, Signed | Unsigned) | (Signed | Unsigned, Float) => !is_packed(register) && is_packed(wanted),
        _ => true,
    }
}

/// Whether a type has its values in registers of bits: halves and packed values.
fn is_packed(ty: ScalarType) -> bool {
    !matches!(ty, ScalarType::F32 | ScalarType::F64) && ty.kind() == ScalarKind::Float
}
