//! Bodies: instructions with what stands between them.

use std::fmt::{self, Formatter};

use super::declaration::{print_formal_shape, print_group, print_variable};
use super::operand::{print_operands, print_register};
use super::{print_other, print_pragma, separated};
use crate::body::{Body, Directive};
use crate::call::Prototype;
use crate::function::PtxFunction;
use crate::instruction::Instruction;
use crate::module::PtxModule;
use crate::source_line::SourceLine;

/// Everything between the braces of a definition.
pub(super) fn print_body(module: &PtxModule, function: &PtxFunction, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(body) = &function.body else { return Ok(()) };
    let mut marks = body.marks().iter().peekable();
    let mut is_inline_assembly = false;
    for (index, instruction) in body.instructions().iter().enumerate() {
        while let Some(mark) = marks.next_if(|mark| mark.before as usize <= index) {
            print_directive(module, function, body, &mark.directive, f)?;
        }
        if std::mem::replace(&mut is_inline_assembly, instruction.is_inline_assembly) != is_inline_assembly {
            print_assembly_edge(is_inline_assembly, f)?;
        }
        print_instruction(module, function, body, instruction, f)?;
    }
    if is_inline_assembly {
        print_assembly_edge(false, f)?;
    }
    marks.try_for_each(|mark| print_directive(module, function, body, &mark.directive, f))
}

/// The comment where inline assembly begins or ends.
fn print_assembly_edge(begins: bool, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\t// {} inline asm", if begins { "begin" } else { "end" })
}

fn print_instruction(
    module: &PtxModule,
    function: &PtxFunction,
    body: &Body,
    instruction: &Instruction,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    f.write_str("\t")?;
    if let Some(guard) = instruction.guard {
        f.write_str(if guard.negated { "@!" } else { "@" })?;
        print_register(function, guard.register, f)?;
        f.write_str(" ")?;
    }
    f.write_str(module.form(instruction.form).map_or("?", |form| form.text()))?;
    let operands = body.operands(instruction);
    if !operands.is_empty() {
        f.write_str(" ")?;
        print_operands(module, function, body, operands, f)?;
    }
    writeln!(f, ";")
}

fn print_directive(
    module: &PtxModule,
    function: &PtxFunction,
    body: &Body,
    directive: &Directive,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match directive {
        Directive::Open => writeln!(f, "\t{{"),
        Directive::Close => writeln!(f, "\t}}"),
        Directive::Label(id) => match body.labels.get(id.0 as usize) {
            Some(label) => writeln!(f, "{}:", label.name),
            None => Ok(()),
        },
        Directive::Registers(group) => match function.registers.groups().get(*group as usize) {
            Some(group) => {
                f.write_str("\t")?;
                print_group(group, f)?;
                writeln!(f, ";")
            }
            None => Ok(()),
        },
        Directive::Variable(id) => {
            f.write_str("\t")?;
            print_variable(module, *id, f)
        }
        Directive::Line(index) => match body.lines.get(*index as usize) {
            Some(start) => print_line(&start.line, f),
            None => Ok(()),
        },
        Directive::Table(id) => match body.table(*id) {
            Some(table) => {
                write!(f, "{}: .branchtargets ", table.name)?;
                separated(f, &table.targets, |label, f| {
                    f.write_str(body.labels.get(label.0 as usize).map_or("?", |label| &label.name))
                })?;
                writeln!(f, ";")
            }
            None => Ok(()),
        },
        Directive::Prototype(id) => body.prototype(*id).map_or(Ok(()), |p| print_prototype(p, f)),
        Directive::Targets(id) => match body.call_targets(*id) {
            Some(targets) => {
                write!(f, "{}: .calltargets ", targets.name)?;
                separated(f, &targets.functions, |id, f| {
                    f.write_str(module.function(*id).map_or("?", |function| &function.name))
                })?;
                writeln!(f, ";")
            }
            None => Ok(()),
        },
        Directive::Pragma(texts) => print_pragma(texts, f),
    }
}

fn print_line(line: &SourceLine, f: &mut Formatter<'_>) -> fmt::Result {
    let place = line.place;
    write!(f, "\t.loc {} {} {}", place.file, place.line, place.column)?;
    if let Some(inlined) = &line.inlined {
        write!(f, ", function_name {}", inlined.function)?;
        if inlined.function_offset != 0 {
            write!(f, "+{}", inlined.function_offset)?;
        }
        write!(f, ", inlined_at {} {} {}", inlined.at.file, inlined.at.line, inlined.at.column)?;
    }
    writeln!(f)
}

fn print_prototype(prototype: &Prototype, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}: .callprototype ", prototype.name)?;
    if !prototype.returns.is_empty() {
        f.write_str("(")?;
        separated(f, &prototype.returns, print_formal_shape)?;
        f.write_str(") ")?;
    }
    f.write_str("_ (")?;
    separated(f, &prototype.parameters, print_formal_shape)?;
    f.write_str(if prototype.noreturn { ") .noreturn" } else { ")" })?;
    for directive in &prototype.other {
        f.write_str(" ")?;
        print_other(directive, f)?;
    }
    writeln!(f, ";")
}
