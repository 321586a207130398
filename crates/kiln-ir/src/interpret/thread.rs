//! A thread in the interpreter.

use std::sync::Arc;

use super::bytecode::{Step, is_below, next_number};
use super::launch::World;
use super::memory::{Access, Elements};
use super::outcome::InterpretError;
use crate::declaration::ValueId;
use crate::evaluate::{self, integer};
use crate::operation::{Axis, Builtin, MemoryOperand, Op, Operand};
use crate::statement::STEP_TRAP;

/// The state of a thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Its index in the block.
    pub(super) at: [u32; 3],
    /// The next step.
    pub(super) step: usize,
    pub(super) state: State,
    values: Vec<u64>,
    variables: Vec<u64>,
}

/// Whether a thread can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// It waits at its step for other threads.
    Waiting,
    Done,
}

/// What the threads of a block share.
pub(super) struct Surroundings {
    pub(super) block: [u32; 3],
    pub(super) shared: Vec<Vec<u8>>,
}

impl Thread {
    pub(super) fn new(at: [u32; 3], world: &World<'_>) -> Self {
        let (values, variables) = (world.draft.values.len(), world.draft.variables.len());
        Self { at, step: 0, state: State::Ready, values: vec![0; values], variables: vec![0; variables] }
    }

    pub(super) fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Literal(literal) => literal.bits(),
            Operand::Value(id) => self.values[id.index()],
        }
    }

    /// Takes the result of the step it waited at and becomes ready.
    pub(super) fn resume(&mut self, result: Option<(ValueId, u64)>) {
        if let Some((value, bits)) = result {
            self.values[value.index()] = bits;
        }
        self.step += 1;
        self.state = State::Ready;
    }

    /// Runs until it must wait or is done.
    pub(super) fn run(
        &mut self,
        world: &mut World<'_>,
        around: &mut Surroundings,
    ) -> Result<(), InterpretError> {
        let code = Arc::clone(&world.code);
        while self.state == State::Ready {
            world.count_step()?;
            match &code[self.step] {
                Step::Compute(_, Op::Warp { .. } | Op::BlockVote { .. })
                | Step::Tile(_)
                | Step::Barrier(_) => {
                    self.state = State::Waiting;
                    return Ok(());
                }
                Step::Compute(value, op) => self.values[value.index()] = self.compute(op, world, around)?,
                Step::Copy(value, operand) => self.values[value.index()] = self.operand(*operand),
                Step::Assign(variable, operand) => self.variables[variable.index()] = self.operand(*operand),
                Step::Store(memory, index, value) => {
                    let access = Access::Store(self.operand(*value));
                    self.access(*memory, *index, access, world, around)?;
                }
                Step::Jump(to) => {
                    self.step = *to;
                    continue;
                }
                Step::Unless(test, to) => {
                    if self.operand(*test) == 0 {
                        self.step = *to;
                        continue;
                    }
                }
                Step::Enter { value, ty, end, exit } => {
                    if !is_below(*ty, self.values[value.index()], self.operand(*end)) {
                        self.step = *exit;
                        continue;
                    }
                }
                Step::Next { value, ty, end, step, exit } => {
                    let [end, step] = [*end, *step].map(|operand| self.operand(operand));
                    match next_number(*ty, self.values[value.index()], end, step) {
                        Some(next) => self.values[value.index()] = next,
                        None => {
                            self.step = *exit;
                            continue;
                        }
                    }
                }
                Step::RequireStride { ty, step } => {
                    if integer::value(*ty, self.operand(*step)) < 1 {
                        return Err(InterpretError::Trap {
                            code: STEP_TRAP,
                            block: around.block,
                            thread: self.at,
                        });
                    }
                }
                Step::Return => {
                    self.state = State::Done;
                    return Ok(());
                }
                Step::Trap(code) => {
                    let code = self.operand(*code) as u32;
                    return Err(InterpretError::Trap { code, block: around.block, thread: self.at });
                }
            }
            self.step += 1;
        }
        Ok(())
    }

    fn compute(
        &self,
        op: &Op,
        world: &mut World<'_>,
        around: &mut Surroundings,
    ) -> Result<u64, InterpretError> {
        let get = |operand: &Operand| self.operand(*operand);
        let mode = world.mode;
        Ok(match op {
            Op::Unary { op, ty, a } => evaluate::unary(*op, *ty, get(a), mode),
            Op::Binary { op, ty, a, b } => evaluate::binary(*op, *ty, get(a), get(b), mode),
            Op::Compare { op, ty, a, b } => u64::from(evaluate::compare(*op, *ty, get(a), get(b), mode)),
            Op::Select { condition, a, b, .. } => {
                if get(condition) != 0 {
                    get(a)
                } else {
                    get(b)
                }
            }
            Op::Fma { ty, a, b, c } => evaluate::fma(*ty, [get(a), get(b), get(c)], mode),
            Op::Convert { from, to, a } => evaluate::convert::convert(*from, *to, get(a), mode),
            Op::Bitcast { a, .. } => get(a),
            Op::Builtin(builtin) => self.builtin(*builtin, world, around.block),
            Op::Parameter(id) => world.scalars[id.index()].bits(),
            Op::Read(variable) => self.variables[variable.index()],
            Op::Length(memory) => {
                let elements = elements(*memory, world.draft, world.buffers, around);
                elements.bytes.len() as u64 / elements.ty.bytes()
            }
            Op::Load { memory, index } => self.access(*memory, *index, Access::Load, world, around)?,
            Op::Atomic { op, memory, index, value, expected, .. } => {
                let access =
                    Access::Atomic { op: *op, value: get(value), expected: expected.as_ref().map(get) };
                self.access(*memory, *index, access, world, around)?
            }
            // Functions were expanded before the launch; the others are done with other threads.
            Op::Function { a, .. } | Op::Warp { a, .. } | Op::BlockVote { a, .. } => get(a),
        })
    }

    fn access(
        &self,
        memory: MemoryOperand,
        index: Operand,
        access: Access,
        world: &mut World<'_>,
        around: &mut Surroundings,
    ) -> Result<u64, InterpretError> {
        let ty = world.draft.type_of(index).unwrap_or(crate::Type::U64);
        let index = integer::value(ty, self.operand(index));
        let global_x = u64::from(around.block[0]) * u64::from(world.draft.block[0]) + u64::from(self.at[0]);
        let counted = match world.covered {
            Some(elements) if global_x >= elements => &mut world.surplus_out_of_range,
            _ => &mut world.covered_out_of_range,
        };
        elements(memory, world.draft, world.buffers, around).access(index, access, counted)
    }

    fn builtin(&self, builtin: Builtin, world: &World<'_>, block: [u32; 3]) -> u64 {
        let (threads, grid) = (world.draft.block, world.grid);
        let on = |triple: [u32; 3], axis: Axis| u64::from(triple[axis.index()]);
        match builtin {
            Builtin::Thread(axis) => on(self.at, axis),
            Builtin::Block(axis) => on(block, axis),
            Builtin::BlockDim(axis) => on(threads, axis),
            Builtin::GridDim(axis) => on(grid, axis),
            Builtin::Global(axis) => on(block, axis) * on(threads, axis) + on(self.at, axis),
            Builtin::Lane => linear(self.at, threads) % 32,
            Builtin::Warp => linear(self.at, threads) / 32,
        }
    }
}

/// The number of a thread in its block: along x, then y, then z.
pub(super) fn linear(at: [u32; 3], threads: [u32; 3]) -> u64 {
    let [x, y, z] = at.map(u64::from);
    let [width, height, _] = threads.map(u64::from);
    x + width * (y + height * z)
}

/// The elements of a buffer or of shared memory.
pub(super) fn elements<'m>(
    memory: MemoryOperand,
    draft: &'m crate::Draft,
    buffers: &'m mut [Vec<u8>],
    around: &'m mut Surroundings,
) -> Elements<'m> {
    match memory {
        MemoryOperand::Buffer(id) => {
            let buffer = &draft.buffers[id.index()];
            let unchecked = buffer.unchecked.then_some(&*buffer.name);
            Elements { ty: buffer.element, bytes: &mut buffers[id.index()], unchecked }
        }
        MemoryOperand::Shared(id) => {
            let ty = draft.shared[id.index()].element;
            Elements { ty, bytes: &mut around.shared[id.index()], unchecked: None }
        }
    }
}
