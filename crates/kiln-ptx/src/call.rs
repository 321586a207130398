//! Calls, their prototypes and their possible targets.

use crate::function::PtxFunctionId;
use crate::launch_bounds::OtherDirective;
use crate::name::Name;
use crate::operand::PtxOperand;
use crate::position::Origin;
use crate::register::RegisterId;
use crate::variable::{VariableId, VariableShape};

/// The number of a call within its function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u32);

/// The number of a prototype within its function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrototypeId(pub u32);

/// The number of a list of call targets within its function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetsId(pub u32);

/// The operands of a `call`.
///
/// Compilers pass values in `.param` variables that a block around the call declares: the caller stores arguments
/// into them before and loads results from them after. Registers and numbers may also be passed directly.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Where results go.
    pub returns: Vec<PtxOperand>,
    /// What is called.
    pub callee: Callee,
    /// What is passed.
    pub arguments: Vec<PtxOperand>,
    /// For an indirect call: what is known about the target.
    pub indirect: Option<Indirect>,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module, or one it only declares.
    Function(PtxFunctionId),
    /// A function whose address is in a register.
    Register(RegisterId),
}

/// The third part of an indirect call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indirect {
    /// Any function of this shape.
    Prototype(PrototypeId),
    /// One of these functions.
    Targets(TargetsId),
}

/// `name: .callprototype (returns) _ (parameters);`
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// Its label.
    pub name: Name,
    /// Shapes of the results.
    pub returns: Vec<FormalShape>,
    /// Shapes of the parameters.
    pub parameters: Vec<FormalShape>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// Directives this crate has no field for.
    pub other: Vec<OtherDirective>,
    /// Where it stood.
    pub origin: Origin,
}

/// The shape of one formal in a prototype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormalShape {
    /// Whether it is a register (`.reg`) and not a `.param` variable.
    pub register: bool,
    /// Type, length and alignment.
    pub shape: VariableShape,
}

/// `name: .calltargets f, g;`
#[derive(Clone, Debug, PartialEq)]
pub struct CallTargets {
    /// Its label.
    pub name: Name,
    /// The functions listed.
    pub functions: Vec<PtxFunctionId>,
    /// Where it stood.
    pub origin: Origin,
}

/// One parameter or result in the header of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formal {
    /// A `.param` variable.
    Param(VariableId),
    /// A `.reg` register of the function.
    Register(RegisterId),
}
