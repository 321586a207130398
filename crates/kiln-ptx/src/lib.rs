//! A parser, analyser and executor of PTX.
//!
//! A kernel from outside is text. This crate turns that text into a [`PtxModule`] in which every name is resolved, so
//! that everything behind it works on numbers: launches are checked against it, a simulator executes it, a command
//! lists what is in it. It knows no device and contains no unsafe code.
//!
//! # The contract
//!
//! - [`PtxModule::parse`] accepts PTX as NVRTC and nvcc 12 and 13 emit it, versions 7 to 9, and inline assembly in it. It
//!   never panics, takes time linear in the text, and a [`ParseError`] says where, what was expected, what was found.
//! - An instruction that PTX up to [`Opcode::KNOWN_VERSION`] does not have is an error, with the nearest one that it has. In a module of
//!   a newer version it is parsed: its form keeps its text and says [`Opcode::Unknown`].
//! - A module is a value: two modules are equal when they say the same, wherever the parts stood in the text. Its
//!   [`Display`](std::fmt::Display) is PTX again, which parses to an equal module and which `ptxas` accepts.
//! - [`PtxModule::facts`] says what a launch must know about an entry: parameters with offset, size, alignment and whether
//!   they are pointers, shared memory, barriers, launch bounds, requirements, instructions beyond the ordinary.
//! - [`PtxModule::effects`] says for each pointer whether the kernel reads or writes the memory behind it, and with which element types.
//!   "No" is a promise; where it cannot be made the answer is "unknown" with the instruction that is the reason.
//!
//! # The model
//!
//! ```text
//! Module ─┬─ forms:     "ld.global.nc.f32" taken apart once      (Form: Opcode + Modifiers)
//!         ├─ variables: globals, constants, shared, local, parameters   (Variable, Initializer)
//!         └─ functions: entries and device functions             (Function)
//!              ├─ parameters, returns                             (Formal)
//!              ├─ registers: numbered densely, typed by group     (Registers)
//!              └─ body: flat list of instructions                 (Body)
//!                   ├─ Instruction: form, guard, operands, origin
//!                   ├─ Operand: registers, numbers, addresses, vectors, labels, calls
//!                   └─ labels, branch tables, calls, source lines
//! ```
//!
//! Types in reading order: [`PtxModule`], [`PtxFunction`], [`Body`], [`Instruction`], [`Form`], [`PtxOperand`], [`Registers`],
//! [`PtxVariable`]; then what is derived: [`EntryFacts`], [`PtxSignature`], [`Effects`].
//!
//! # How an executor reads it
//!
//! - Registers of a function are `0..registers.count()`, inner blocks included; [`Registers::groups`] gives the types
//!   by ranges of numbers. Names are gone: shadowing is settled.
//! - [`Body::instructions`] is the code. Index `i` falls through to `i + 1`; past the last index the function returns.
//!   A branch has the operand [`PtxOperand::Label`], and [`Body::target`] is the index it goes to. `brx.idx` has
//!   [`PtxOperand::Table`] second, and [`Body::table`] lists its labels.
//! - [`PtxModule::form`] gives opcode and modifiers: choose a handler once per form, not once per instruction.
//!   [`Body::operands`] gives the operands, destination first; vectors are looked up with [`Body::elements`].
//! - A `call` has the single operand [`PtxOperand::Call`]; [`Body::call`] lists results, target and arguments. Arguments
//!   are mostly [`PtxOperand::Variable`]s of `.param` space that the code around the call stores into and loads from;
//!   they pair up with [`PtxFunction::parameters`] and [`PtxFunction::returns`] by position. Every inner `.param`, `.local` and
//!   `.shared` variable has its own [`VariableId`]; [`PtxVariable::owner`] tells whose it is.
//! - An address operand on a variable (`[buffer+8]`) and the bare operand (`mov.u64 %rd1, buffer`) both mean the
//!   variable's address in its own space.
//! - For findings: [`Body::source_line`] with [`PtxModule::source_path`] is the line of CUDA source where the module has
//!   debug lines, [`Instruction::origin`] the place in the PTX text.
//!
//! # What it does not do
//!
//! It does not check that operands fit an instruction's types as `ptxas` would; the executor does.
//! It does not read cubin.

#![forbid(unsafe_code)]

mod body;
mod call;
mod effects;
mod entry_facts;
mod error;
pub mod exec;
mod function;
mod initializer;
mod instruction;
mod instruction_family;
mod instruction_form;
mod keyword;
mod launch_bounds;
mod linkage;
mod modifier;
mod module;
mod module_index;
mod name;
mod opcode;
mod operand;
mod parse;
mod position;
mod print;
mod reachable_functions;
mod register;
mod scalar;
mod scalar_set;
mod selected_register;
mod shared_memory;
mod signature;
mod source_line;
mod special_register;
mod state_space;
mod text_scan;
mod variable;

pub use body::{Body, BranchTable, Directive, Label, LabelId, LineStart, Mark, TableId};
pub use call::{
    Call, CallId, CallTargets, Callee, Formal, FormalShape, Indirect, Prototype, PrototypeId, TargetsId,
};
pub use effects::{Doubt, EffectAnswer, Effects, PointerAccess, PointerEffect, PointerUse};
pub use entry_facts::{BarrierUse, EntryFacts, Feature, Requirements, Unsupported};
pub use error::ParseError;
pub use function::{FunctionKind, PtxFunction, PtxFunctionId};
pub use initializer::{Initializer, Relocation, RelocationTarget};
pub use instruction::{Guard, Instruction};
pub use instruction_family::Family;
pub use instruction_form::{Form, FormId};
pub use launch_bounds::{LaunchBounds, OtherDirective};
pub use linkage::Linkage;
pub use modifier::{
    Cache, Compare, Flag, Modifier, Operation, Order, Part, Permute, Rounding, Scope, Shuffle, Test, Vote,
};
pub use module::{Declaration, Item, PtxModule, PtxVersion, Section, Target};
pub use name::Name;
pub use opcode::Opcode;
pub use operand::{Address, AddressBase, Elements, Immediate, PtxOperand, WordId};
pub use position::{Origin, Position};
pub use register::{RegisterGroup, RegisterId, Registers};
pub use scalar::{ScalarKind, ScalarType};
pub use scalar_set::ScalarSet;
pub use selected_register::{SelectedRegister, Selector};
pub use shared_memory::SharedMemory;
pub use signature::{PointerField, PtxParameter, PtxParameterKind, PtxSignature};
pub use source_line::{Inlined, SourceFile, SourceLine, SourcePlace};
pub use special_register::{Axis, SpecialName, SpecialRegister};
pub use state_space::Space;
pub use text_scan::declares_variables;
pub use variable::{PointerMark, PtxVariable, VariableId, VariableShape};
