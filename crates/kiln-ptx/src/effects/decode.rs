//! Instructions to steps: which operands a result depends on, and how.
//!
//! Every opcode is named here or falls to the last case, which assumes the worst. So a new instruction makes the
//! answer "cannot tell", never wrong.

use super::register_webs::split_registers;
use super::step::{Action, Code, Operation, Reach, Source, Target, Touch};
use crate::body::Body;
use crate::function::PtxFunction;
use crate::instruction::Instruction;
use crate::instruction_form::Form;
use crate::modifier::{Flag, Part};
use crate::module::PtxModule;
use crate::opcode::Opcode;
use crate::operand::{Elements, PtxOperand};
use crate::register::RegisterId;
use crate::scalar::{ScalarKind, ScalarType};
use crate::special_register::{SpecialName, SpecialRegister};
use crate::state_space::Space;

/// The steps of a function; none when it has no body.
pub(super) fn decode(module: &PtxModule, function: &PtxFunction) -> Code {
    let mut decoder = Decoder { code: Code::default(), body: None, instruction: 0 };
    let Some(body) = &function.body else { return decoder.code };
    decoder.body = Some(body);
    for (index, instruction) in body.instructions().iter().enumerate() {
        decoder.instruction = index as u32;
        if let Some(form) = module.form(instruction.form) {
            decoder.instruction(form, instruction, body);
        }
    }
    let mut code = decoder.code;
    split_registers(&mut code, module, function);
    code
}

/// A function while it is decoded.
pub(super) struct Decoder<'a> {
    code: Code,
    body: Option<&'a Body>,
    instruction: u32,
}

impl<'a> Decoder<'a> {
    fn instruction(&mut self, form: &Form, instruction: &Instruction, body: &'a Body) {
        let operands = body.operands(instruction);
        if self.arithmetic(form, operands) || self.memory(form, operands) {
            return;
        }
        match form.opcode() {
            Opcode::Call => self.call(operands),
            Opcode::Bra
            | Opcode::Brx
            | Opcode::Ret
            | Opcode::Exit
            | Opcode::Trap
            | Opcode::Brkpt
            | Opcode::Nanosleep
            | Opcode::Pmevent
            | Opcode::Setmaxnreg
            | Opcode::Membar
            | Opcode::Fence
            | Opcode::Griddepcontrol
            | Opcode::Stackrestore => {}
            // Results are truth values, masks and counts.
            Opcode::Set
            | Opcode::Setp
            | Opcode::Testp
            | Opcode::Isspacep
            | Opcode::Vote
            | Opcode::Match
            | Opcode::Activemask
            | Opcode::Elect
            | Opcode::Bar
            | Opcode::Barrier
            | Opcode::Getctarank
            | Opcode::Txq
            | Opcode::Suq
            | Opcode::Istypep
            | Opcode::Createpolicy
            | Opcode::Stacksave => self.first_is_plain(operands),
            _ => self.unknown(operands),
        }
    }

    /// Instructions without memory whose result depends on their operands. False when it is none of these.
    fn arithmetic(&mut self, form: &Form, operands: &[PtxOperand]) -> bool {
        if form.opcode() == Opcode::Mov {
            self.mov(form, operands);
            return true;
        }
        let Some(operation) = operation(form, operands) else { return false };
        // Behind the values there may be a predicate, a lane or a mask, which only say which value.
        let values = match form.opcode() {
            Opcode::Cvt | Opcode::Cvta | Opcode::Shfl | Opcode::Mapa => 1,
            Opcode::Selp | Opcode::Slct => 2,
            _ => operands.len(),
        };
        self.compute_all(operation, is_wide(form), operands.get(..values + 1).unwrap_or(operands));
        true
    }

    /// `mov`: a copy, or vectors taken apart and put together.
    fn mov(&mut self, form: &Form, operands: &[PtxOperand]) {
        let wide = is_wide(form);
        match operands {
            [PtxOperand::Vector(_), source] => {
                let source = self.source(source);
                for to in self.targets(operands) {
                    self.compute(Operation::Piece, false, to, &[source]);
                }
            }
            [_, PtxOperand::Vector(_)] if wide => self.compute_all(Operation::Assemble, wide, operands),
            [_, PtxOperand::Vector(_)] => self.compute_all(Operation::Number, wide, operands),
            _ => self.compute_all(Operation::Choose, wide, operands),
        }
    }

    /// One result that depends on all other operands.
    pub(super) fn compute_all(&mut self, operation: Operation, wide: bool, operands: &[PtxOperand]) {
        let sources = self.sources(operands.get(1..).unwrap_or(&[]));
        for to in self.targets(operands) {
            self.compute(operation, wide, to, &sources);
        }
    }

    fn compute(&mut self, operation: Operation, wide: bool, to: u32, from: &[Source]) {
        self.push(Action::Compute { operation, wide, to, from: from.into() });
    }

    fn call(&mut self, operands: &[PtxOperand]) {
        let Some(body) = self.body else { return };
        for operand in operands {
            let PtxOperand::Call(id) = operand else { continue };
            let Some(call) = body.call(*id) else { continue };
            let arguments = self.sources(&call.arguments);
            let returns: Vec<_> = call.returns.iter().flat_map(registers_of).collect();
            self.push(Action::Call(*id));
            for source in arguments {
                self.code.pass(source);
            }
            for register in returns {
                let slot = self.code.slot(register);
                self.code.assign(slot);
            }
        }
    }

    /// The first of several operands in brackets.
    pub(super) fn first_of(&self, elements: Elements) -> Option<PtxOperand> {
        self.body.and_then(|body| body.elements(elements).first()).copied()
    }

    /// A slot for a value that the instruction computes and no register holds.
    pub(super) fn own_slot(&mut self) -> u32 {
        self.code.slot(RegisterId(u32::MAX - self.instruction))
    }

    /// An unknown instruction: it may touch anything, put every register it names anywhere, and leave anything
    /// in it.
    fn unknown(&mut self, operands: &[PtxOperand]) {
        self.push(Action::Anywhere { touch: Touch::BOTH, why: "an instruction this analysis does not know" });
        let anywhere = Target { reach: Reach::Generic, base: Source::Unknown, offset: 0 };
        for operand in operands {
            for slot in self.slots(operand) {
                self.push(Action::Store { target: anywhere, width: 8, from: Source::Register(slot) });
                self.push(Action::Data { to: slot, width: 8 });
            }
        }
    }

    fn first_is_plain(&mut self, operands: &[PtxOperand]) {
        for to in self.targets(operands) {
            self.compute(Operation::Choose, false, to, &[Source::Plain]);
        }
    }

    /// The slots of the destination, which is the first operand.
    pub(super) fn targets(&mut self, operands: &[PtxOperand]) -> Vec<u32> {
        operands.first().map_or(Vec::new(), |operand| self.slots(operand))
    }

    /// The slots of all registers in an operand; predicates count too and do no harm.
    pub(super) fn slots(&mut self, operand: &PtxOperand) -> Vec<u32> {
        let nested = match operand {
            PtxOperand::Vector(elements) | PtxOperand::Bracket(elements) => {
                self.body.map_or(&[][..], |body| body.elements(*elements))
            }
            _ => std::slice::from_ref(operand),
        };
        nested.iter().flat_map(registers_of).map(|register| self.code.slot(register)).collect()
    }

    /// The values of operands, those inside vectors included.
    pub(super) fn sources(&mut self, operands: &[PtxOperand]) -> Vec<Source> {
        let mut sources = Vec::new();
        for operand in operands {
            match operand {
                PtxOperand::Vector(elements) => {
                    let elements = self.body.map_or(&[][..], |body| body.elements(*elements));
                    sources.extend(elements.iter().map(|element| self.source(element)));
                }
                _ => sources.push(self.source(operand)),
            }
        }
        sources
    }

    pub(super) fn source(&mut self, operand: &PtxOperand) -> Source {
        match *operand {
            PtxOperand::Register(id) | PtxOperand::Not(id) | PtxOperand::Element(id, _) => {
                Source::Register(self.code.slot(id))
            }
            PtxOperand::Selected(selected) => Source::Register(self.code.slot(selected.register)),
            PtxOperand::Immediate(value) => Source::Constant(value.bits() as i64),
            PtxOperand::Variable(id, offset) => Source::Address(id, offset),
            PtxOperand::Function(_) => Source::Module,
            PtxOperand::Special(SpecialRegister::Env(_)) => Source::Module,
            PtxOperand::Special(SpecialRegister::Named(SpecialName::CurrentGraphExec, _)) => Source::Unknown,
            _ => Source::Plain,
        }
    }

    pub(super) fn push(&mut self, action: Action) {
        self.code.push(self.instruction, action);
    }

    pub(super) fn elements(&self, operand: &PtxOperand) -> &'a [PtxOperand] {
        match (operand, self.body) {
            (PtxOperand::Vector(elements) | PtxOperand::Bracket(elements), Some(body)) => {
                body.elements(*elements)
            }
            _ => &[],
        }
    }
}

/// How the result of an instruction depends on its operands; `None` when this is no plain computation.
fn operation(form: &Form, operands: &[PtxOperand]) -> Option<Operation> {
    let float = |ty: Option<ScalarType>| ty.is_some_and(|ty| ty.kind() == ScalarKind::Float);
    let opcode = form.opcode();
    if is_arithmetic(opcode) && (float(form.ty()) || float(form.source_type())) {
        return Some(Operation::Number);
    }
    Some(match opcode {
        Opcode::Cvta if !form.has(Flag::To) && form.space().map(Space::base) == Some(Space::Shared) => {
            Operation::ConvertShared
        }
        Opcode::Cvta => Operation::Convert,
        Opcode::Cvt
        | Opcode::Selp
        | Opcode::Slct
        | Opcode::Shfl
        | Opcode::Mapa
        | Opcode::Min
        | Opcode::Max => Operation::Choose,
        // A carry belongs to arithmetic on parts of a number.
        Opcode::Add | Opcode::Sub if form.has(Flag::Cc) => Operation::Mix,
        Opcode::Add => Operation::Add,
        Opcode::Sub => Operation::Subtract,
        Opcode::And | Opcode::Or => Operation::Align,
        Opcode::Mad | Opcode::Mad24 => Operation::MultiplyAdd,
        Opcode::Shl if scales(operands) || !is_wide(form) => Operation::Number,
        Opcode::Shl if shifts_by(operands, 32..64) => Operation::Raise,
        Opcode::Shl => Operation::Assemble,
        // Down to an index that is scaled by the size of an element.
        Opcode::Shr if is_wide(form) && shifts_by(operands, 32 - MAX_SCALE_BITS..64) => Operation::Lower,
        Opcode::Bfi if is_wide(form) => Operation::Assemble,
        _ if is_number(opcode) => Operation::Number,
        Opcode::Abs
        | Opcode::Neg
        | Opcode::Xor
        | Opcode::Not
        | Opcode::Cnot
        | Opcode::Lop3
        | Opcode::Shf
        | Opcode::Shr
        | Opcode::Prmt
        | Opcode::Brev
        | Opcode::Bfe
        | Opcode::Bfi
        | Opcode::Szext
        | Opcode::Clmad
        | Opcode::Addc
        | Opcode::Subc
        | Opcode::Madc
        | Opcode::Redux => Operation::Mix,
        _ if opcode >= Opcode::Vadd && opcode <= Opcode::Vset4 => Operation::Mix,
        _ => return None,
    })
}

/// Opcodes that compute on floats as well as on integers; on floats the result is never an address.
fn is_arithmetic(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Add
            | Opcode::Sub
            | Opcode::Mad
            | Opcode::Min
            | Opcode::Max
            | Opcode::Abs
            | Opcode::Neg
            | Opcode::Cvt
    )
}

/// Opcodes whose result is a count, a product, a quotient or a float.
fn is_number(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Mul
            | Opcode::Mul24
            | Opcode::Div
            | Opcode::Rem
            | Opcode::Sad
            | Opcode::Dp4a
            | Opcode::Dp2a
            | Opcode::Popc
            | Opcode::Clz
            | Opcode::Bfind
            | Opcode::Fns
            | Opcode::Bmsk
            | Opcode::Fma
            | Opcode::Rcp
            | Opcode::Sqrt
            | Opcode::Rsqrt
            | Opcode::Sin
            | Opcode::Cos
            | Opcode::Lg2
            | Opcode::Ex2
            | Opcode::Tanh
            | Opcode::Copysign
            | Opcode::Mma
            | Opcode::Movmatrix
    )
}

/// Whether a result is wide enough for a pointer; a wide product has twice the width of its type.
fn is_wide(form: &Form) -> bool {
    let factor = if form.part() == Some(Part::Wide) { 2 } else { 1 };
    form.ty().is_none_or(|ty| factor * ty.size_bytes() >= 8)
}

fn registers_of(operand: &PtxOperand) -> Vec<RegisterId> {
    match *operand {
        PtxOperand::Register(id) | PtxOperand::Not(id) | PtxOperand::Element(id, _) => vec![id],
        PtxOperand::Selected(selected) => vec![selected.register],
        PtxOperand::Pair(first, second) => first.into_iter().chain(second).collect(),
        _ => Vec::new(),
    }
}

/// Up to this many bits a shift is a multiplication by an element size.
const MAX_SCALE_BITS: u64 = 6;

/// Whether a shift multiplies an index by the size of an element, and does not move bits into the upper half.
fn scales(operands: &[PtxOperand]) -> bool {
    shifts_by(operands, 0..MAX_SCALE_BITS + 1)
}

/// Whether a shift is by a known number of bits in this range.
fn shifts_by(operands: &[PtxOperand], range: std::ops::Range<u64>) -> bool {
    matches!(operands.get(2), Some(PtxOperand::Immediate(bits)) if range.contains(&bits.bits()))
}

/// Bytes of one element of an access.
pub(super) fn width(form: &Form) -> u32 {
    form.ty().map_or(8, ScalarType::size_bytes)
}
