//! The operands of loads, stores and atomics: addresses and the registers that hold what is moved.

use super::operand_rules::{Code, is_number_of, register_type};
use crate::instruction_form::Form;
use crate::modifier::{Cache, Flag, Modifier, Operation};
use crate::opcode::Opcode;
use crate::operand::{Address, AddressBase, PtxOperand};
use crate::scalar::{ScalarKind, ScalarType};
use crate::state_space::Space;

/// Why the assembler would refuse the operands of `cp.async`, if it would, with the instruction's text: sizes, and the cache policy.
pub(super) fn broken_copy_operands(form: &Form, operands: &[PtxOperand], code: &Code<'_>) -> Option<String> {
    let is_plain = form.opcode() == Opcode::Cp && form.has(Flag::Async) && !form.has(Flag::Bulk);
    let [_, _, size, rest @ ..] = operands else { return None };
    if !is_plain
        || !form.modifiers().iter().any(|word| matches!(word, Modifier::Cache(Cache::Ca | Cache::Cg)))
    {
        return None;
    }
    let sizes: &[u64] = if form.has_word("cg") { &[16] } else { &[4, 8, 16] };
    let PtxOperand::Immediate(number) = size else { return None };
    if !sizes.contains(&number.bits()) {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return Some(format!(
            "`{}` copies {} bytes at once, not {}",
            form.text(),
            sizes.join(" or "),
            number.bits()
        ));
    }
    let is_policy =
        |operand: &PtxOperand| register_type(operand, code.registers).is_some_and(|ty| ty.size_bytes() == 8);
    let has_hint = form.modifiers().contains(&Modifier::Cache(Cache::L2CacheHint));
    match (has_hint, rest) {
        (true, [.., last]) if is_policy(last) => None,
        (true, _) => Some(format!(
            "`{}` needs a cache policy as its last operand, in a register of 64 bits",
            form.text()
        )),
        (false, [last]) if !is_policy(last) => None,
        (false, []) => None,
        (false, _) => Some(format!("`{}` needs `.L2::cache_hint` for its cache policy", form.text())),
    }
}

/// Why the assembler would refuse the operands of a memory access, if it would: what is wrong, behind the instruction's text.
pub(super) fn broken_memory_operands(
    form: &Form,
    operands: &[PtxOperand],
    code: &Code<'_>,
) -> Option<String> {
    if form.has(Flag::Async) || form.has(Flag::Bulk) {
        return None;
    }
    let ty = form.ty()?;
    let (address, value) = match form.opcode() {
        Opcode::Ld | Opcode::Ldu => (1, 0),
        Opcode::St => (0, 1),
        Opcode::Atom => (1, 2),
        Opcode::Red => (0, 1),
        _ => return None,
    };
    let broken = broken_address(form, operands.get(address)?, code);
    if let Some(broken) = broken {
        return Some(format!("operand {} of `{}` {broken}", address + 1, form.text()));
    }
    if matches!(form.opcode(), Opcode::Atom | Opcode::Red) {
        broken_atomic_count(form, operands.len())
    } else {
        broken_hint(form, operands.len()).or_else(|| {
            let moved = operands.get(value)?;
            let broken = broken_moved(form, ty, moved, value == 0, code)?;
            Some(format!("operand {} of `{}` {broken}", value + 1, form.text()))
        })
    }
}

/// What is wrong with an address.
pub(super) fn broken_address(form: &Form, operand: &PtxOperand, code: &Code<'_>) -> Option<String> {
    let PtxOperand::Address(Address { base, .. }) = operand else {
        return match operand {
            PtxOperand::Bracket(_) | PtxOperand::Word(_) => None,
            _ => Some("is no address; write it in brackets".to_owned()),
        };
    };
    match base {
        AddressBase::Register(register) => {
            let ty = code.registers.ty(*register)?;
            let is_address =
                matches!(ty.kind(), ScalarKind::Bits | ScalarKind::Signed | ScalarKind::Unsigned);
            (!is_address || ty.size_bytes() > 8).then(|| {
                format!(
                    "is an address in a register of type .{ty}; an address is an integer of at most 64 bits"
                )
            })
        }
        AddressBase::Variable(id) => {
            let variable = code.variables.get(id.index())?;
            let is_in = variable.space.base();
            let fits = match form.space().map(Space::base) {
                None => matches!(is_in, Space::Global | Space::Shared | Space::Local),
                Some(Space::SharedCluster) => is_in == Space::Shared,
                Some(named) => named == is_in,
            };
            (!fits).then(|| {
                format!("is `{}`, which lies in the space `.{is_in}`; name that space", variable.name)
            })
        }
        AddressBase::Absolute => None,
    }
}

/// Whether the number of operands fits the word about the cache policy.
fn broken_hint(form: &Form, count: usize) -> Option<String> {
    if form.opcode() == Opcode::Ldu {
        return None;
    }
    let has_hint = form.modifiers().contains(&Modifier::Cache(Cache::L2CacheHint));
    match (has_hint, count) {
        (false, 3) => Some(format!("`{}` needs `.L2::cache_hint` for its cache policy", form.text())),
        (true, 2) => Some(format!("`{}` needs a cache policy as its last operand", form.text())),
        _ => None,
    }
}

/// Whether an atomic has as many operands as its operation takes.
fn broken_atomic_count(form: &Form, count: usize) -> Option<String> {
    let result = usize::from(form.opcode() == Opcode::Atom);
    let compared = usize::from(form.operation()? == Operation::Cas);
    let has_hint = form.modifiers().contains(&Modifier::Cache(Cache::L2CacheHint));
    let wanted = result + compared + 2 + usize::from(has_hint);
    (count != wanted).then(|| format!("`{}` takes {wanted} operands, not {count}", form.text()))
}

/// What is wrong with what is loaded or stored.
fn broken_moved(
    form: &Form,
    ty: ScalarType,
    moved: &PtxOperand,
    is_result: bool,
    code: &Code<'_>,
) -> Option<String> {
    let wanted = usize::from(form.vector());
    let PtxOperand::Vector(elements) = moved else {
        let is_vector = register_type(moved, code.registers).is_none();
        if wanted > 1 && !is_vector {
            return Some(format!("is one value; `.v{wanted}` takes {wanted} in braces"));
        }
        if matches!(moved, PtxOperand::Special(_)) {
            return Some("is a special register; move it to a register first".to_owned());
        }
        return broken_element(ty, moved, is_result, code);
    };
    if elements.len() != wanted {
        return Some(format!("has {} values in braces, not {wanted}", elements.len()));
    }
    let first = elements.first as usize;
    let values = code.elements.get(first..first + elements.len())?;
    let mut sizes = values.iter().filter_map(|value| register_type(value, code.registers));
    let broken = values.iter().find_map(|value| broken_element(ty, value, is_result, code));
    broken.or_else(|| {
        let size = sizes.next()?.size_bytes();
        let differs = sizes.any(|other| other.size_bytes() != size);
        differs.then(|| "has registers of different widths".to_owned())
    })
}

/// What is wrong with one value that is loaded or stored.
fn broken_element(ty: ScalarType, value: &PtxOperand, is_result: bool, code: &Code<'_>) -> Option<String> {
    if let PtxOperand::Immediate(number) = value {
        if is_result {
            return Some("is a number, where a register takes the result".to_owned());
        }
        let fits = is_number_of(ty, *number);
        return (!fits).then(|| format!("is a number of another kind than .{ty}"));
    }
    if matches!(value, PtxOperand::Variable(..) | PtxOperand::Function(_)) {
        return Some("is an address; move it to a register first".to_owned());
    }
    let register = register_type(value, code.registers)?;
    (!holds(register, ty)).then(|| format!("is a register of type .{register}, which does not hold a .{ty}"))
}

/// Whether a register may hold a value of memory: it may be wider.
fn holds(register: ScalarType, ty: ScalarType) -> bool {
    use ScalarKind::*;
    if register.size_bytes() < ty.size_bytes() {
        return false;
    }
    match (ty.kind(), register.kind()) {
        (_, Predicate | Opaque) => false,
        (Bits, _) | (_, Bits) => true,
        (Float, _) => register == ty,
        (_, Float) => false,
        _ => true,
    }
}
