//! The types of operands and results.

use super::error::VerifyReason;
use crate::operation::{MemoryOperand, Op, Operand};
use crate::program::Draft;
use crate::scalar_type::Type;

/// Checks the operands of an operation, all of which are in scope, and answers the type of its result.
pub(super) fn result(draft: &Draft, op: &Op) -> Result<Type, VerifyReason> {
    let expect = |what: &str, operand: Operand, ty: Type| expect(draft, what, operand, ty);
    let exists = |accepts: bool, word: &str, ty: Type| match accepts {
        true => Ok(()),
        false => Err(VerifyReason::NoSuchOperation { operation: word.to_owned(), ty }),
    };
    match op {
        Op::Unary { op, ty, a } => {
            exists(op.accepts(*ty), op.word(), *ty)?;
            expect("the operand", *a, *ty)?;
            Ok(op.result(*ty))
        }
        Op::Function { function, ty, a } => {
            exists(function.accepts(*ty), function.word(), *ty)?;
            expect("the operand", *a, *ty)?;
            Ok(*ty)
        }
        Op::Binary { op, ty, a, b } => {
            exists(op.accepts(*ty), op.word(), *ty)?;
            expect("the first operand", *a, *ty)?;
            expect("the second operand", *b, op.second(*ty))?;
            Ok(*ty)
        }
        Op::Compare { op, ty, a, b } => {
            exists(op.accepts(*ty), op.word(), *ty)?;
            expect("the first operand", *a, *ty)?;
            expect("the second operand", *b, *ty)?;
            Ok(Type::Bool)
        }
        Op::Select { ty, condition, a, b } => {
            expect("the condition", *condition, Type::Bool)?;
            expect("the first choice", *a, *ty)?;
            expect("the second choice", *b, *ty)?;
            Ok(*ty)
        }
        Op::Fma { ty, a, b, c } => {
            exists(ty.is_float(), "fma", *ty)?;
            [a, b, c].into_iter().try_for_each(|operand| expect("the operand", *operand, *ty))?;
            Ok(*ty)
        }
        Op::Convert { from, to, a } => expect("the operand", *a, *from).map(|()| *to),
        Op::Bitcast { from, to, a } => {
            let fits = from.bytes() == to.bytes() && *from != Type::Bool && *to != Type::Bool;
            exists(fits, &format!("{to}.from_bits"), *from)?;
            expect("the operand", *a, *from).map(|()| *to)
        }
        _ => of_place(draft, op),
    }
}

/// The operations that have to do with memory and other threads.
fn of_place(draft: &Draft, op: &Op) -> Result<Type, VerifyReason> {
    match op {
        Op::Builtin(builtin) => Ok(builtin.ty()),
        Op::Parameter(id) => match draft.scalars.get(id.index()) {
            Some(scalar) => Ok(scalar.ty),
            None => Err(VerifyReason::Scope { what: format!("scalar {}", id.0) }),
        },
        Op::Read(id) => match draft.variables.get(id.index()) {
            Some(variable) => Ok(variable.ty),
            None => Err(VerifyReason::Scope { what: format!("variable {}", id.0) }),
        },
        Op::Length(memory) => element(draft, *memory).map(|_| Type::U64),
        Op::Load { memory, index } => {
            let ty = element(draft, *memory)?;
            integer(draft, "the index", *index)?;
            access(draft, *memory, "read", |role| role.is_readable())?;
            Ok(ty)
        }
        Op::Atomic { op, memory, index, value, expected, .. } => {
            let ty = element(draft, *memory)?;
            integer(draft, "the index", *index)?;
            if !op.accepts(ty) {
                return Err(VerifyReason::NoSuchOperation { operation: op.word().to_owned(), ty });
            }
            expect(draft, "the operand", *value, ty)?;
            if expected.is_some() != (*op == crate::AtomicOp::CompareExchange) {
                let what = format!("`{op}` has the wrong number of operands");
                return Err(VerifyReason::Declaration { what });
            }
            expected.map_or(Ok(()), |expected| expect(draft, "the expected value", expected, ty))?;
            access(draft, *memory, "changed", |role| role.is_writable() && role.is_readable())?;
            Ok(ty)
        }
        Op::Warp { op, ty, a, by } => {
            if !op.accepts(*ty) {
                return Err(VerifyReason::NoSuchOperation { operation: op.word().to_owned(), ty: *ty });
            }
            expect(draft, "the operand", *a, *ty)?;
            if by.is_some() != op.is_shuffle() {
                return Err(VerifyReason::Declaration {
                    what: format!("`{op}` has the wrong number of operands"),
                });
            }
            by.map_or(Ok(()), |by| expect(draft, "the lane", by, Type::U32))?;
            Ok(op.result(*ty))
        }
        Op::BlockVote { vote, a } => expect(draft, "the vote", *a, Type::Bool).map(|()| vote.result()),
        _ => Err(VerifyReason::Declaration { what: "an unknown operation".to_owned() }),
    }
}

/// Demands a type.
pub(super) fn expect(draft: &Draft, what: &str, operand: Operand, ty: Type) -> Result<(), VerifyReason> {
    match draft.type_of(operand) {
        Some(found) if found == ty => Ok(()),
        Some(found) => Err(VerifyReason::Type { what: what.to_owned(), expected: ty.to_string(), found }),
        None => Err(VerifyReason::Scope { what: "an operand".to_owned() }),
    }
}

/// Demands an integer of any type.
pub(super) fn integer(draft: &Draft, what: &str, operand: Operand) -> Result<Type, VerifyReason> {
    match draft.type_of(operand) {
        Some(found) if found.is_integer() => Ok(found),
        Some(found) => {
            Err(VerifyReason::Type { what: what.to_owned(), expected: "an integer".to_owned(), found })
        }
        None => Err(VerifyReason::Scope { what: "an operand".to_owned() }),
    }
}

/// The type of the elements of memory that must exist.
pub(super) fn element(draft: &Draft, memory: MemoryOperand) -> Result<Type, VerifyReason> {
    draft.element(memory).ok_or_else(|| VerifyReason::Scope { what: format!("{memory:?}") })
}

/// Demands that a buffer's role allows something. Shared memory allows everything.
pub(super) fn access(
    draft: &Draft,
    memory: MemoryOperand,
    what: &'static str,
    allows: impl Fn(crate::Role) -> bool,
) -> Result<(), VerifyReason> {
    let MemoryOperand::Buffer(id) = memory else { return Ok(()) };
    match draft.buffers.get(id.index()) {
        Some(buffer) if !allows(buffer.role) => {
            Err(VerifyReason::Access { buffer: buffer.name.clone(), role: buffer.role.word(), what })
        }
        _ => Ok(()),
    }
}
