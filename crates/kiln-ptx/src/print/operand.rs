//! Prints operands of instructions.

use std::fmt::{self, Formatter};

use super::separated;
use crate::body::Body;
use crate::call::{Call, Callee, Indirect};
use crate::function::PtxFunction;
use crate::module::PtxModule;
use crate::operand::{Address, AddressBase, Immediate, PtxOperand};
use crate::register::RegisterId;
use crate::variable::VariableId;

/// Operands with commas between them.
pub(super) fn print_operands(
    module: &PtxModule,
    function: &PtxFunction,
    body: &Body,
    operands: &[PtxOperand],
    f: &mut Formatter<'_>,
) -> fmt::Result {
    separated(f, operands, |operand, f| print_operand(module, function, body, operand, f))
}

fn print_operand(
    module: &PtxModule,
    function: &PtxFunction,
    body: &Body,
    operand: &PtxOperand,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match *operand {
        PtxOperand::Register(id) => print_register(function, id, f),
        PtxOperand::Not(id) => {
            f.write_str("!")?;
            print_register(function, id, f)
        }
        PtxOperand::Element(id, axis) => {
            print_register(function, id, f)?;
            write!(f, ".{}", axis.letter())
        }
        PtxOperand::Selected(selected) => {
            f.write_str(if selected.negated { "-" } else { "" })?;
            print_register(function, selected.register, f)?;
            selected.selector.map_or(Ok(()), |selector| write!(f, ".{selector}"))
        }
        PtxOperand::Pair(first, second) => {
            print_register_or_sink(function, first, f)?;
            f.write_str("|")?;
            print_register_or_sink(function, second, f)
        }
        PtxOperand::Special(special) => write!(f, "{special}"),
        PtxOperand::Immediate(value) => write!(f, "{value}"),
        PtxOperand::Variable(id, offset) => print_variable_offset(module, id, offset, f),
        PtxOperand::Function(id) => f.write_str(module.function(id).map_or("?", |function| &function.name)),
        PtxOperand::Address(address) => print_address(module, function, address, f),
        PtxOperand::Vector(elements) => {
            f.write_str("{")?;
            print_operands(module, function, body, body.elements(elements), f)?;
            f.write_str("}")
        }
        PtxOperand::Bracket(elements) => {
            f.write_str("[")?;
            print_operands(module, function, body, body.elements(elements), f)?;
            f.write_str("]")
        }
        PtxOperand::Label(id) => f.write_str(body.labels.get(id.0 as usize).map_or("?", |label| &label.name)),
        PtxOperand::Table(id) => f.write_str(body.table(id).map_or("?", |table| &table.name)),
        PtxOperand::Call(id) => match body.call(id) {
            Some(call) => print_call(module, function, body, call, f),
            None => Ok(()),
        },
        PtxOperand::Sink => f.write_str("_"),
        PtxOperand::Word(id) => f.write_str(body.word(id)),
    }
}

pub(super) fn print_register(function: &PtxFunction, id: RegisterId, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(group) = function.registers.group(id) else { return f.write_str("?") };
    f.write_str(&group.name)?;
    if group.range.is_some() { write!(f, "{}", id.0 - group.first.0) } else { Ok(()) }
}

fn print_register_or_sink(
    function: &PtxFunction,
    id: Option<RegisterId>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match id {
        Some(id) => print_register(function, id, f),
        None => f.write_str("_"),
    }
}

fn print_variable_offset(
    module: &PtxModule,
    id: VariableId,
    offset: i64,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    f.write_str(module.variable(id).map_or("?", |variable| &variable.name))?;
    if offset != 0 { write!(f, "+{offset}") } else { Ok(()) }
}

fn print_address(
    module: &PtxModule,
    function: &PtxFunction,
    address: Address,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    f.write_str("[")?;
    match address.base {
        AddressBase::Register(id) => {
            print_register(function, id, f)?;
            if address.offset != 0 {
                write!(f, "+{}", address.offset)?;
            }
        }
        AddressBase::Variable(id) => print_variable_offset(module, id, address.offset, f)?,
        AddressBase::Absolute => write!(f, "{}", address.offset)?,
    }
    f.write_str("]")
}

fn print_call(
    module: &PtxModule,
    function: &PtxFunction,
    body: &Body,
    call: &Call,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if !call.returns.is_empty() {
        f.write_str("(")?;
        print_operands(module, function, body, &call.returns, f)?;
        f.write_str("), ")?;
    }
    match call.callee {
        Callee::Function(id) => f.write_str(module.function(id).map_or("?", |function| &function.name))?,
        Callee::Register(id) => print_register(function, id, f)?,
    }
    if !call.arguments.is_empty() || call.indirect.is_some() {
        f.write_str(", (")?;
        print_operands(module, function, body, &call.arguments, f)?;
        f.write_str(")")?;
    }
    match call.indirect {
        Some(Indirect::Prototype(id)) => write!(f, ", {}", body.prototype(id).map_or("?", |p| &p.name)),
        Some(Indirect::Targets(id)) => write!(f, ", {}", body.call_targets(id).map_or("?", |t| &t.name)),
        None => Ok(()),
    }
}

impl fmt::Display for Immediate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(x) => write!(f, "{x}"),
            Self::Unsigned(x) => write!(f, "{x}U"),
            Self::F32(bits) => write!(f, "0f{bits:08X}"),
            Self::F64(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}
