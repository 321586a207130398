//! Instructions to steps: which operands a result depends on, and how.
//!
//! Every opcode is named here or falls to the last case, which assumes the worst. So a new instruction makes the
//! answer "cannot tell", never wrong.

use super::step::{Action, Code, Operation, Source, Touch};
use crate::body::Body;
use crate::form::Form;
use crate::function::Function;
use crate::instruction::Instruction;
use crate::modifier::Flag;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::operand::Operand;
use crate::register::RegisterId;
use crate::scalar::{ScalarKind, ScalarType};
use crate::special::{SpecialName, SpecialRegister};

/// The steps of a function; none when it has no body.
pub(super) fn decode(module: &Module, function: &Function) -> Code {
    let mut decoder = Decoder { code: Code::default(), body: None, instruction: 0 };
    let Some(body) = &function.body else { return decoder.code };
    decoder.body = Some(body);
    for (index, instruction) in body.instructions().iter().enumerate() {
        decoder.instruction = index as u32;
        if let Some(form) = module.form(instruction.form) {
            decoder.instruction(form, instruction, body);
        }
    }
    decoder.code
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
    fn arithmetic(&mut self, form: &Form, operands: &[Operand]) -> bool {
        let ty = form.ty();
        let float = ty.is_some_and(|t| t.kind() == ScalarKind::Float);
        let wide = ty.is_none_or(|t| t.size_bytes() >= 8);
        let operation = match form.opcode() {
            Opcode::Mov => return self.mov(form, operands),
            Opcode::Cvta => Operation::Convert,
            Opcode::Cvt if float || form.source_type().is_some_and(|t| t.kind() == ScalarKind::Float) => {
                Operation::Number
            }
            Opcode::Cvt | Opcode::Selp | Opcode::Slct | Opcode::Shfl | Opcode::Mapa => Operation::Choose,
            Opcode::Min | Opcode::Max if !float => Operation::Choose,
            // A carry belongs to arithmetic on parts of a number.
            Opcode::Add | Opcode::Sub if form.has(Flag::Cc) => Operation::Mix,
            Opcode::Add if !float => Operation::Add,
            Opcode::And | Opcode::Or => Operation::Align,
            Opcode::Sub if !float => Operation::Subtract,
            Opcode::Mad | Opcode::Mad24 if !float => Operation::MultiplyAdd,
            Opcode::Shl if scales(operands) || !wide => Operation::Number,
            Opcode::Shl | Opcode::Bfi if wide => Operation::Assemble,
            Opcode::Add | Opcode::Sub | Opcode::Mad | Opcode::Min | Opcode::Max | Opcode::Fma => {
                Operation::Number
            }
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
            | Opcode::Movmatrix => Operation::Number,
            Opcode::Abs | Opcode::Neg if float => Operation::Number,
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
            opcode if is_video(opcode) => Operation::Mix,
            _ => return false,
        };
        // Behind the values there may be a predicate, a lane or a mask, which only say which value.
        let values = match form.opcode() {
            Opcode::Cvt | Opcode::Cvta | Opcode::Shfl | Opcode::Mapa => 1,
            Opcode::Selp | Opcode::Slct => 2,
            _ => operands.len(),
        };
        self.compute_all(operation, wide, operands.get(..values + 1).unwrap_or(operands));
        true
    }

    /// `mov`: a copy, or vectors taken apart and put together.
    fn mov(&mut self, form: &Form, operands: &[Operand]) -> bool {
        let wide = form.ty().is_none_or(|t| t.size_bytes() >= 8);
        match operands {
            [Operand::Vector(_), source] => {
                let source = self.source(source);
                for to in self.targets(operands) {
                    self.compute(Operation::Piece, false, to, &[source]);
                }
                true
            }
            [_, Operand::Vector(_)] => {
                let operation = if wide { Operation::Assemble } else { Operation::Number };
                self.compute_all(operation, wide, operands);
                true
            }
            _ => {
                self.compute_all(Operation::Choose, wide, operands);
                true
            }
        }
    }

    /// One result that depends on all other operands.
    pub(super) fn compute_all(&mut self, operation: Operation, wide: bool, operands: &[Operand]) {
        let sources = self.sources(operands.get(1..).unwrap_or(&[]));
        for to in self.targets(operands) {
            self.compute(operation, wide, to, &sources);
        }
    }

    fn compute(&mut self, operation: Operation, wide: bool, to: u32, from: &[Source]) {
        self.push(Action::Compute { operation, wide, to, from: from.into() });
    }

    fn call(&mut self, operands: &[Operand]) {
        let Some(body) = self.body else { return };
        for operand in operands {
            let Operand::Call(id) = operand else { continue };
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

    /// An instruction nobody knows: it may touch anything, and every register it names may hold anything after.
    fn unknown(&mut self, operands: &[Operand]) {
        self.push(Action::Anywhere { touch: Touch::BOTH, why: "an instruction this analysis does not know" });
        for operand in operands {
            for to in self.slots(operand) {
                self.push(Action::Data { to, width: 8 });
            }
        }
    }

    fn first_is_plain(&mut self, operands: &[Operand]) {
        for to in self.targets(operands) {
            self.compute(Operation::Choose, false, to, &[Source::Plain]);
        }
    }

    /// The slots of the destination, which is the first operand.
    pub(super) fn targets(&mut self, operands: &[Operand]) -> Vec<u32> {
        operands.first().map_or(Vec::new(), |operand| self.slots(operand))
    }

    /// The slots of all registers in an operand; predicates count too and do no harm.
    pub(super) fn slots(&mut self, operand: &Operand) -> Vec<u32> {
        let nested = match operand {
            Operand::Vector(elements) | Operand::Bracket(elements) => {
                self.body.map_or(&[][..], |body| body.elements(*elements))
            }
            _ => std::slice::from_ref(operand),
        };
        nested.iter().flat_map(registers_of).map(|register| self.code.slot(register)).collect()
    }

    /// The values of operands, those inside vectors included.
    pub(super) fn sources(&mut self, operands: &[Operand]) -> Vec<Source> {
        let mut sources = Vec::new();
        for operand in operands {
            match operand {
                Operand::Vector(elements) => {
                    let elements = self.body.map_or(&[][..], |body| body.elements(*elements));
                    sources.extend(elements.iter().map(|element| self.source(element)));
                }
                _ => sources.push(self.source(operand)),
            }
        }
        sources
    }

    pub(super) fn source(&mut self, operand: &Operand) -> Source {
        match *operand {
            Operand::Register(id) | Operand::Not(id) | Operand::Element(id, _) => {
                Source::Register(self.code.slot(id))
            }
            Operand::Immediate(value) => Source::Constant(value.bits() as i64),
            Operand::Variable(id, offset) => Source::Address(id, offset),
            Operand::Function(_) => Source::Module,
            Operand::Special(SpecialRegister::Env(_)) => Source::Module,
            Operand::Special(SpecialRegister::Named(SpecialName::CurrentGraphExec, _)) => Source::Unknown,
            _ => Source::Plain,
        }
    }

    pub(super) fn push(&mut self, action: Action) {
        self.code.push(self.instruction, action);
    }

    pub(super) fn elements(&self, operand: &Operand) -> &'a [Operand] {
        match (operand, self.body) {
            (Operand::Vector(elements) | Operand::Bracket(elements), Some(body)) => body.elements(*elements),
            _ => &[],
        }
    }
}

fn registers_of(operand: &Operand) -> Vec<RegisterId> {
    match *operand {
        Operand::Register(id) | Operand::Not(id) | Operand::Element(id, _) => vec![id],
        Operand::Pair(first, second) => first.into_iter().chain(second).collect(),
        _ => Vec::new(),
    }
}

/// Whether a shift multiplies an index by the size of an element, and does not move bits into the upper half.
fn scales(operands: &[Operand]) -> bool {
    /// Up to this many bits a shift is a multiplication by an element size.
    const MAX_SCALE_BITS: u64 = 6;
    matches!(operands.get(2), Some(Operand::Immediate(bits)) if bits.bits() <= MAX_SCALE_BITS)
}

fn is_video(opcode: Opcode) -> bool {
    opcode >= Opcode::Vadd && opcode <= Opcode::Vset4
}

/// Bytes of one element of an access.
pub(super) fn width(form: &Form) -> u32 {
    form.ty().map_or(8, ScalarType::size_bytes)
}
