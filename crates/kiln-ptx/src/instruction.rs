//! One instruction.

use crate::instruction_form::FormId;
use crate::position::Origin;
use crate::register::RegisterId;

/// One instruction: its form, its guard and where its operands are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// Opcode and modifiers, in [`Module::form`](crate::PtxModule::form).
    pub form: FormId,
    /// The predicate before it, if any.
    pub guard: Option<Guard>,
    /// Whether it comes from inline assembly: compilers put that between the comments `begin inline asm` and `end inline asm`.
    pub is_inline_assembly: bool,
    /// Where it stood in the PTX text.
    pub origin: Origin,
    pub(crate) first_operand: u32,
    pub(crate) operand_count: u32,
}

/// `@%p1` or `@!%p1`: the instruction runs in threads whose predicate is true, or false when negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate.
    pub register: RegisterId,
    /// Whether `!` is written.
    pub negated: bool,
}
