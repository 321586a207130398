//! Declarations: variables, formals, registers.

use std::fmt::{self, Formatter};

use super::initializer::print_initializer;
use crate::call::{Formal, FormalShape};
use crate::function::PtxFunction;
use crate::module::PtxModule;
use crate::register::RegisterGroup;
use crate::scalar::ScalarType;
use crate::variable::{PointerMark, VariableId, VariableShape};

/// A variable statement.
pub(super) fn print_variable(module: &PtxModule, id: VariableId, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(variable) = module.variable(id) else { return Ok(()) };
    if let Some(linkage) = variable.linkage {
        write!(f, ".{linkage} ")?;
    }
    write!(f, ".{} ", variable.space)?;
    for attribute in &variable.attributes {
        write!(f, ".attribute({attribute}) ")?;
    }
    print_shape(&variable.shape, variable.pointer, &variable.name, f)?;
    if let Some(initializer) = &variable.initializer {
        f.write_str(" = ")?;
        print_initializer(module, &variable.shape, initializer, f)?;
    }
    writeln!(f, ";")
}

/// A parameter or result in a header.
pub(super) fn print_formal(
    module: &PtxModule,
    function: &PtxFunction,
    formal: Formal,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match formal {
        Formal::Param(id) => {
            let Some(variable) = module.variable(id) else { return Ok(()) };
            f.write_str(".param ")?;
            for attribute in &variable.attributes {
                write!(f, ".attribute({attribute}) ")?;
            }
            print_shape(&variable.shape, variable.pointer, &variable.name, f)
        }
        Formal::Register(id) => match function.registers.group(id) {
            Some(group) => print_group(group, f),
            None => Ok(()),
        },
    }
}

/// A formal of a call prototype.
pub(super) fn print_formal_shape(formal: &FormalShape, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(if formal.register { ".reg " } else { ".param " })?;
    print_shape(&formal.shape, None, "_", f)
}

/// `.reg .v2 .b32 %r<10>`, without the semicolon.
pub(super) fn print_group(group: &RegisterGroup, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(".reg ")?;
    print_type(group.ty, group.vector, f)?;
    f.write_str(&group.name)?;
    match group.range {
        Some(count) => write!(f, "<{count}>"),
        None => Ok(()),
    }
}

fn print_type(ty: ScalarType, vector: u8, f: &mut Formatter<'_>) -> fmt::Result {
    if vector > 1 {
        write!(f, ".v{vector} ")?;
    }
    write!(f, ".{ty} ")
}

fn print_shape(
    shape: &VariableShape,
    pointer: Option<PointerMark>,
    name: &str,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    if let Some(align) = shape.align {
        write!(f, ".align {align} ")?;
    }
    print_type(shape.ty, shape.vector, f)?;
    if let Some(mark) = pointer {
        f.write_str(".ptr ")?;
        if let Some(space) = mark.space {
            write!(f, ".{space} ")?;
        }
        if let Some(align) = mark.align {
            write!(f, ".align {align} ")?;
        }
    }
    f.write_str(name)?;
    for length in &shape.dimensions {
        match length {
            0 => f.write_str("[]")?,
            n => write!(f, "[{n}]")?,
        }
    }
    Ok(())
}
