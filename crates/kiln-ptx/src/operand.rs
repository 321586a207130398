//! Operands of instructions.

use crate::body::{LabelId, TableId};
use crate::call::CallId;
use crate::function::PtxFunctionId;
use crate::register::RegisterId;
use crate::selected_register::SelectedRegister;
use crate::special_register::{Axis, SpecialRegister};
use crate::variable::VariableId;

/// One operand, all names resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PtxOperand {
    /// `%r1`.
    Register(RegisterId),
    /// `!%p1`.
    Not(RegisterId),
    /// `%v1.x`: one element of a vector register.
    Element(RegisterId, Axis),
    /// `%r1.h0` or `-%r1`: a register of a video instruction.
    Selected(SelectedRegister),
    /// `%r1|%p1`: two results, as of `shfl` and `setp`; `None` is `_`.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// `%tid.x`.
    Special(SpecialRegister),
    /// A number.
    Immediate(Immediate),
    /// `name` or `name+8`: the address of a variable in its own space, not its content.
    Variable(VariableId, i64),
    /// The address of a function.
    Function(PtxFunctionId),
    /// `[base+offset]`.
    Address(Address),
    /// `{a, b, c, d}`; the elements are in [`Body::elements`](crate::Body::elements).
    Vector(Elements),
    /// `[a, {b, c}]` of textures and tensors: brackets around more than one operand.
    Bracket(Elements),
    /// The target of a branch.
    Label(LabelId),
    /// The table of `brx.idx`.
    Table(TableId),
    /// All operands of a `call`.
    Call(CallId),
    /// `_`: a result that is dropped, or a value that is not given.
    Sink,
    /// A bare word that is neither declared nor a label, in an instruction this crate does not know.
    Word(WordId),
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What the offset is added to.
    pub base: AddressBase,
    /// Bytes added.
    pub offset: i64,
}

/// The base of an [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBase {
    /// An address held in a register.
    Register(RegisterId),
    /// A variable, also a parameter.
    Variable(VariableId),
    /// A fixed address: the offset alone.
    Absolute,
}

/// A number in the text.
///
/// PTX computes constants in 64 bits; the instruction's type says how many of them count. Floats keep their exact
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Immediate {
    /// A signed integer: the usual case.
    Signed(i64),
    /// An integer written with `U`, or too large for `i64`.
    Unsigned(u64),
    /// `0f3F800000`.
    F32(u32),
    /// `0d3FF0000000000000` or a decimal float.
    F64(u64),
}

impl Immediate {
    /// The low 64 bits of an integer, or the raw bits of a float.
    pub fn bits(self) -> u64 {
        match self {
            Self::Signed(x) => x as u64,
            Self::Unsigned(x) | Self::F64(x) => x,
            Self::F32(x) => u64::from(x),
        }
    }
}

/// A run of operands within [`Body::elements`](crate::Body::elements).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elements {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Elements {
    /// How many operands.
    pub fn len(self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// The number of a bare word; [`Body::word`](crate::Body::word) is its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordId(pub u32);
