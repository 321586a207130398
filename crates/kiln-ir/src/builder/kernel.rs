//! The kernel that is being built.

use std::cell::RefCell;
use std::mem;

use crate::declaration::{
    Buffer, BufferId, Extent, Role, ScalarId, ScalarParameter, Shared, SharedId, Value, ValueId, Variable,
    VariableId,
};
use crate::operation::{Axis, Builtin, MemoryOperand, Op, Operand};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::source_location::SourceLocation;
use crate::statement::{Block, Statement, StatementKind};

use super::element::{IntoOperand, KernelElement};
use super::memory::Mem;
use super::value::Val;
use super::variable::Var;

/// A kernel that is being built. [`Program::build`](crate::Program::build) hands one to its closure.
///
/// Parameters may be declared anywhere. Their names appear in the text form and in messages.
pub struct KernelBuilder {
    state: RefCell<State>,
}

struct State {
    draft: Draft,
    /// The statements of the innermost open block; those of the blocks around it are on the Rust stack.
    open: Block,
}

impl KernelBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { state: RefCell::new(State { draft: Draft::new(name), open: Block::new() }) }
    }

    /// A kernel with the declarations of another one and no statements, values or variables.
    pub(crate) fn rewriting(draft: &Draft) -> Self {
        let (values, variables, body) = (Vec::new(), Vec::new(), Block::new());
        let Draft { name, buffers, scalars, shared, tiles, block, over, flush, .. } = draft.clone();
        let draft =
            Draft { name, buffers, scalars, shared, tiles, variables, values, block, over, flush, body };
        Self { state: RefCell::new(State { draft, open: Block::new() }) }
    }

    pub(crate) fn into_draft(self) -> Draft {
        let State { mut draft, open } = self.state.into_inner();
        draft.body = open;
        draft
    }

    /// Threads of a block in each dimension; 256 in one dimension by default.
    pub fn block(&self, threads: [u32; 3]) {
        self.state.borrow_mut().draft.block = threads;
    }

    /// A launch without a grid covers the elements of this buffer.
    pub fn over<T: KernelElement>(&self, buffer: Mem<'_, T>) {
        if let MemoryOperand::Buffer(id) = buffer.memory {
            self.state.borrow_mut().draft.over = Some(id);
        }
    }

    /// `f32` operations treat subnormal operands and results as zero.
    pub fn flush_subnormals(&self) {
        self.state.borrow_mut().draft.flush = true;
    }

    /// A buffer that is only read.
    pub fn input<T: KernelElement>(&self, name: &str) -> Mem<'_, T> {
        self.buffer(name, Role::Input)
    }

    /// A buffer that is only written.
    pub fn output<T: KernelElement>(&self, name: &str) -> Mem<'_, T> {
        self.buffer(name, Role::Output)
    }

    /// A buffer that is read and written.
    pub fn in_out<T: KernelElement>(&self, name: &str) -> Mem<'_, T> {
        self.buffer(name, Role::InOut)
    }

    /// A buffer that is read and written and stays on the device between launches.
    pub fn persistent<T: KernelElement>(&self, name: &str) -> Mem<'_, T> {
        self.buffer(name, Role::Persistent)
    }

    fn buffer<T: KernelElement>(&self, name: &str, role: Role) -> Mem<'_, T> {
        let buffers = &mut self.state.borrow_mut().draft.buffers;
        let id = BufferId(buffers.len() as u32);
        let (name, element) = (name.to_owned(), T::TYPE);
        buffers.push(Buffer { name, element, role, extent: Extent::Dynamic, unchecked: false });
        Mem::new(self, MemoryOperand::Buffer(id))
    }

    /// Shared memory of a fixed number of elements, zero at first.
    pub fn shared<T: KernelElement>(&self, name: &str, count: u64) -> Mem<'_, T> {
        self.shared_memory(name, Some(count))
    }

    /// Shared memory of as many elements as the launch gives bytes for, zero at first.
    pub fn dynamic_shared<T: KernelElement>(&self, name: &str) -> Mem<'_, T> {
        self.shared_memory(name, None)
    }

    fn shared_memory<T: KernelElement>(&self, name: &str, count: Option<u64>) -> Mem<'_, T> {
        let shared = &mut self.state.borrow_mut().draft.shared;
        let id = SharedId(shared.len() as u32);
        shared.push(Shared { name: name.to_owned(), element: T::TYPE, count, raw: false });
        Mem::new(self, MemoryOperand::Shared(id))
    }

    /// A parameter passed by value.
    #[track_caller]
    pub fn scalar<T: KernelElement>(&self, name: &str) -> Val<'_, T> {
        let id = {
            let scalars = &mut self.state.borrow_mut().draft.scalars;
            scalars.push(ScalarParameter { name: name.to_owned(), ty: T::TYPE });
            ScalarId(scalars.len() as u32 - 1)
        };
        self.emit(Op::Parameter(id))
    }

    /// A literal as a [`Val`].
    pub fn literal<T: KernelElement>(&self, value: T) -> Val<'_, T> {
        Val::new(self, Operand::Literal(value.into()))
    }

    /// A variable with a first value.
    #[track_caller]
    pub fn var<T: KernelElement>(&self, initial: impl IntoOperand<T>) -> Var<'_, T> {
        let initial = Some(initial.operand());
        let id = self.add_variable(T::TYPE);
        self.push(StatementKind::Declare { variable: id, initial });
        Var::new(self, id)
    }

    /// A variable that is assigned later, on every path before it is read.
    #[track_caller]
    pub fn var_unset<T: KernelElement>(&self) -> Var<'_, T> {
        let id = self.add_variable(T::TYPE);
        self.push(StatementKind::Declare { variable: id, initial: None });
        Var::new(self, id)
    }

    pub(crate) fn add_variable(&self, ty: Type) -> VariableId {
        let variables = &mut self.state.borrow_mut().draft.variables;
        variables.push(Variable { name: None, ty });
        VariableId(variables.len() as u32 - 1)
    }

    /// Any [`Builtin`]; its Rust type must be that of the builtin.
    #[track_caller]
    pub fn builtin<T: KernelElement>(&self, builtin: Builtin) -> Val<'_, T> {
        self.emit(Op::Builtin(builtin))
    }

    /// The index of the thread in its block.
    #[track_caller]
    pub fn thread(&self, axis: Axis) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::Thread(axis)))
    }

    /// The index of the block in the grid.
    #[track_caller]
    pub fn block_index(&self, axis: Axis) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::Block(axis)))
    }

    /// The number of threads of a block.
    #[track_caller]
    pub fn block_dim(&self, axis: Axis) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::BlockDim(axis)))
    }

    /// The number of blocks of the grid.
    #[track_caller]
    pub fn grid_dim(&self, axis: Axis) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::GridDim(axis)))
    }

    /// The index of the thread in the grid.
    #[track_caller]
    pub fn global(&self, axis: Axis) -> Val<'_, u64> {
        self.emit(Op::Builtin(Builtin::Global(axis)))
    }

    /// The index of the thread in the grid along x.
    #[track_caller]
    pub fn global_x(&self) -> Val<'_, u64> {
        self.global(Axis::X)
    }

    /// The lane of the thread.
    #[track_caller]
    pub fn lane(&self) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::Lane))
    }

    /// The index of the warp in its block.
    #[track_caller]
    pub fn warp(&self) -> Val<'_, u32> {
        self.emit(Op::Builtin(Builtin::Warp))
    }

    /// Adds an operation whose result has the type `T` stands for.
    #[track_caller]
    pub(crate) fn emit<T: KernelElement>(&self, op: Op) -> Val<'_, T> {
        let value = self.add_value(T::TYPE);
        self.push(StatementKind::Let { value, op });
        Val::new(self, Operand::Value(value))
    }

    pub(crate) fn add_value(&self, ty: Type) -> ValueId {
        let values = &mut self.state.borrow_mut().draft.values;
        values.push(Value { name: None, ty });
        ValueId(values.len() as u32 - 1)
    }

    /// Adds a statement to the open block.
    #[track_caller]
    pub(crate) fn push(&self, kind: StatementKind) {
        self.push_at(kind, SourceLocation::here());
    }

    pub(crate) fn push_at(&self, kind: StatementKind, location: SourceLocation) {
        self.state.borrow_mut().open.push(Statement { kind, location });
    }

    /// The statements a closure adds, and what it answers.
    pub(crate) fn collect<R>(&self, write: impl FnOnce() -> R) -> (Block, R) {
        let around = mem::take(&mut self.state.borrow_mut().open);
        let result = write();
        let block = mem::replace(&mut self.state.borrow_mut().open, around);
        (block, result)
    }

    /// Changes the draft.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Draft)) {
        change(&mut self.state.borrow_mut().draft);
    }
}

impl std::fmt::Debug for KernelBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelBuilder").field("name", &self.state.borrow().draft.name).finish_non_exhaustive()
    }
}
