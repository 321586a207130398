//! One function: its frame, its instructions one by one, its branches.

use std::collections::HashMap;
use std::ops::Range;

use super::super::lowered_code::{FunctionCode, Op, Origin, Pred, PredSource, Reg, Slot, Step, Why};
use super::super::memory::generic_address::Place;
use super::dropped_values;
use super::register_uses::Mentions;
use super::unassigned::{Register, read_before_assigned};
use super::warpgroup::mark_registers;
use super::{Builder, Context};
use crate::{Body, Formal, Instruction, PtxFunction, PtxFunctionId, RegisterId, Space, VariableId};

/// Everything on a stack starts at a multiple of this, so that whole words can be copied.
const FRAME_ALIGN: u64 = 8;
/// Bytes before the local variables of a function, and between them and what follows, that belong to nothing: an access there is found.
const LOCAL_GAP: u64 = 64;
/// Frames start at a multiple of this, the largest alignment of a local variable.
const BASE_ALIGN: u64 = 16;

/// A function while it is lowered.
pub(super) struct Lowering<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) out: &'a mut Builder,
    pub(super) id: PtxFunctionId,
    pub(super) function: &'a PtxFunction,
    pub(super) body: &'a Body,
    pub(super) mentions: Mentions,
    /// Columns by register; column 0 is the sink.
    pub(super) columns: HashMap<u32, u32>,
    pub(super) column_count: u32,
    /// Predicates by register.
    pub(super) predicates: HashMap<u32, u32>,
    /// Offsets of variables in the frame, or of kernel parameters among the arguments.
    frame: HashMap<u32, u64>,
    frame_bytes: u64,
    /// The gaps around local variables in the frame, and whether the last thing placed there is one.
    gaps: Vec<Range<u64>>,
    ends_with_local: bool,
    /// The instruction being lowered, and its guard.
    pub(super) at: u32,
    pub(super) guard: PredSource,
    /// Steps whose targets are still numbers of instructions.
    branches: Vec<u32>,
}

/// Lowers a function that has a body.
pub(super) fn lower(context: &Context<'_>, out: &mut Builder, id: PtxFunctionId) -> Option<FunctionCode> {
    let function = context.module.function(id)?;
    let body = function.body.as_ref()?;
    let mut lowering = Lowering {
        context,
        out,
        id,
        function,
        body,
        mentions: Mentions::of(function, body),
        columns: HashMap::new(),
        column_count: 1,
        predicates: HashMap::new(),
        frame: HashMap::new(),
        frame_bytes: 0,
        gaps: Vec::new(),
        ends_with_local: false,
        at: 0,
        guard: PredSource::ALWAYS,
        branches: Vec::new(),
    };
    let start = lowering.out.steps.len() as u32;
    let parameters = lowering.formals(&function.parameters)?;
    let returns = lowering.formals(&function.returns)?;
    lowering.lower_body();
    let mut code = FunctionCode {
        id: id.0,
        start,
        columns: lowering.column_count,
        predicates: 2 + lowering.predicates.len() as u32,
        frame_bytes: lowering.frame_bytes.checked_next_multiple_of(BASE_ALIGN).unwrap_or(u64::MAX),
        gaps: std::mem::take(&mut lowering.gaps),
        parameters,
        returns,
        widths: lowering.widths(),
        unassigned: Vec::new(),
        unassigned_predicates: Vec::new(),
    };
    lowering.find_unassigned(&mut code);
    let Builder { steps, origins, .. } = lowering.out;
    dropped_values::mark(steps, origins, &code);
    mark_registers(steps.get_mut(start as usize..).unwrap_or_default());
    Some(code)
}

impl Lowering<'_> {
    /// Places parameters or results. Those of an entry lie among its arguments.
    fn formals(&mut self, formals: &[Formal]) -> Option<Vec<Slot>> {
        let mut end = 0u64;
        let mut slots = Vec::new();
        for formal in formals {
            slots.push(match formal {
                Formal::Register(id) => match self.column(*id) {
                    Some(column) => Slot::Register(column),
                    None => Slot::Predicate(self.predicate(*id)?),
                },
                Formal::Param(id) if self.function.is_entry() => {
                    let shape = &self.context.module.variable(*id)?.shape;
                    let align = u64::from(shape.align_bytes().max(1));
                    let offset = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
                    end = offset.saturating_add(shape.size_bytes());
                    self.frame.insert(id.0, offset);
                    Slot::Memory { offset, bytes: shape.size_bytes() }
                }
                Formal::Param(id) => {
                    let (_, offset) = self.frame_place(*id)?;
                    Slot::Memory { offset, bytes: self.context.module.variable(*id)?.shape.size_bytes() }
                }
            });
        }
        Some(slots)
    }

    /// Where a local variable or parameter lies: among the arguments of the kernel, or in the frame.
    pub(super) fn frame_place(&mut self, id: VariableId) -> Option<(Place, u64)> {
        let variable = self.context.module.variable(id)?;
        let is_argument = self.function.is_entry()
            && variable.space.base() == Space::Param
            && self.function.parameters.contains(&Formal::Param(id));
        let place = if is_argument { Place::Param } else { Place::Local };
        if let Some(offset) = self.frame.get(&id.0) {
            return Some((place, *offset));
        }
        let align = u64::from(variable.shape.align_bytes()).clamp(FRAME_ALIGN, BASE_ALIGN);
        let mut offset = self.frame_bytes.checked_next_multiple_of(align)?;
        let is_local = variable.space.base() == Space::Local;
        // Below the frame of an entry there is nothing.
        let is_first = self.function.is_entry() && self.frame_bytes == 0;
        if (is_local || self.ends_with_local) && !is_first {
            let behind = offset.checked_add(LOCAL_GAP)?;
            self.gaps.push(self.frame_bytes..behind);
            offset = behind;
        }
        self.ends_with_local = is_local;
        let end = offset.checked_add(variable.shape.size_bytes())?;
        self.frame_bytes = end.checked_next_multiple_of(FRAME_ALIGN)?;
        self.frame.insert(id.0, offset);
        Some((place, offset))
    }

    /// Bits of each column that belongs to a register.
    fn widths(&self) -> Vec<u8> {
        let mut widths = vec![64; self.column_count as usize];
        for (id, first) in &self.columns {
            let Some(group) = self.function.registers.group(RegisterId(*id)) else { continue };
            let bits = (8 * group.ty.size_bytes()).clamp(1, 64) as u8;
            let columns = widths.iter_mut().skip(*first as usize).take(usize::from(group.vector.max(1)));
            columns.for_each(|width| *width = bits);
        }
        widths
    }

    /// Names the registers that may be read before they are assigned.
    fn find_unassigned(&self, code: &mut FunctionCode) {
        let found = read_before_assigned(&self.out.steps, code);
        if found.is_empty() {
            return;
        }
        let mut names: HashMap<Register, u32> = HashMap::new();
        for (id, column) in &self.columns {
            let parts =
                self.function.registers.group(RegisterId(*id)).map_or(1, |group| {
                    u32::from(group.vector.max(1)) * group.ty.size_bytes().div_ceil(8).max(1)
                });
            names.extend((*column..column + parts).map(|column| (Register::Column(column), *id)));
        }
        // Numbers from the top are those of scratch predicates.
        let own = self.predicates.iter().filter(|(id, _)| **id < self.function.registers.count());
        names.extend(own.map(|(id, pred)| (Register::Predicate(*pred), *id)));
        for register in found {
            let Some(id) = names.get(&register) else { continue };
            match register {
                Register::Column(column) => code.unassigned.push((Reg(column), *id)),
                Register::Predicate(pred) => code.unassigned_predicates.push((Pred(pred), *id)),
            }
        }
    }

    fn lower_body(&mut self) {
        let instructions = self.body.instructions();
        let mut starts = Vec::with_capacity(instructions.len() + 1);
        for (at, instruction) in (0..).zip(instructions) {
            self.at = at;
            starts.push(self.out.steps.len() as u32);
            self.lower_instruction(instruction);
        }
        starts.push(self.out.steps.len() as u32);
        self.guard = PredSource::ALWAYS;
        self.emit_return();
        let resolve = |target: &mut u32| *target = starts.get(*target as usize).copied().unwrap_or(*target);
        for step in &self.branches {
            match self.out.steps.get_mut(*step as usize).map(|step| &mut step.op) {
                Some(Op::Branch { target, .. } | Op::Jump { target }) => resolve(target),
                Some(Op::Table { targets, .. }) => targets.iter_mut().for_each(resolve),
                _ => {}
            }
        }
    }

    fn lower_instruction(&mut self, instruction: &Instruction) {
        let (steps, branches) = (self.out.steps.len(), self.branches.len());
        self.guard = PredSource::ALWAYS;
        if let Some(guard) = instruction.guard {
            match self.predicate(guard.register) {
                Some(pred) => self.guard = PredSource { pred, negated: guard.negated },
                None => return self.emit_always(Op::Unsupported(Why::Operands)),
            }
        }
        let Some(form) = self.context.module.form(instruction.form) else { return };
        let operands = self.body.operands(instruction);
        let why = match self.dispatch(form, operands) {
            Ok(()) => return,
            Err(why) => why,
        };
        self.out.steps.truncate(steps);
        self.out.origins.truncate(steps);
        self.branches.truncate(branches);
        self.emit_alone(Op::Unsupported(why));
    }

    /// Appends a step that runs under the guard of the instruction.
    pub(super) fn emit(&mut self, op: Op) {
        let guard = self.guard;
        self.push(guard, op);
    }

    /// Appends a step that runs in all lanes.
    pub(super) fn emit_always(&mut self, op: Op) {
        self.push(PredSource::ALWAYS, op);
    }

    /// Appends a step that lanes whose guard fails go around: for what decides where lanes go or makes them wait.
    pub(super) fn emit_alone(&mut self, op: Op) {
        self.emit_around();
        self.emit_always(op);
    }

    /// Appends a step that runs in the lanes of another predicate than the instruction's.
    pub(super) fn emit_guarded(&mut self, guard: PredSource, op: Op) {
        self.push(guard, op);
    }

    /// Appends a branch by which lanes whose guard fails go around the rest of the instruction.
    pub(super) fn emit_around(&mut self) {
        if self.guard != PredSource::ALWAYS {
            let when = PredSource { negated: !self.guard.negated, ..self.guard };
            let next = self.at + 1;
            self.emit_branch(Op::Branch { target: next, when });
        }
    }

    /// Appends a branch whose targets are numbers of instructions.
    pub(super) fn emit_branch(&mut self, op: Op) {
        self.branches.push(self.out.steps.len() as u32);
        self.emit_always(op);
    }

    /// The end of the function, or of the thread in an entry.
    pub(super) fn emit_return(&mut self) {
        let op = if self.function.is_entry() { Op::Exit } else { Op::Return };
        self.emit_alone(op);
    }

    fn push(&mut self, guard: PredSource, op: Op) {
        let first = self
            .out
            .origins
            .last()
            .is_none_or(|last| last.instruction != self.at || last.function != self.id.0);
        self.out.steps.push(Step { guard, first, decides: 0, watched: false, op });
        self.out.origins.push(Origin { function: self.id.0, instruction: self.at });
    }
}
