//! What programs hold, and what random ones are to hold: every statement, and every operation on every type it takes.

use std::collections::BTreeSet;

use kiln_ir::{
    Axis, BinaryOp, Block, BlockVote, Builtin, CompareOp, MathFunction, MemoryOperand, MemoryOrder,
    MemoryScope, Op, Operand, Program, Statement, StatementKind, TileOp, Type, UnaryOp, WarpOp,
};

use super::tile::FACTORS;
use super::{ATOMIC_OPS, ATOMIC_TYPES};

/// Words for what programs hold.
#[derive(Default)]
pub(crate) struct Inventory(BTreeSet<String>);

impl Inventory {
    /// Adds what a program holds.
    pub(crate) fn add(&mut self, program: &Program) {
        self.block(program, &program.body, 0);
    }

    /// What is to be there and is not.
    pub(crate) fn missing(&self) -> Vec<String> {
        wanted().into_iter().filter(|word| !self.0.contains(word)).collect()
    }

    fn note(&mut self, word: impl ToString) {
        self.0.insert(word.to_string());
    }

    fn block(&mut self, program: &Program, block: &Block, loops: u32) {
        block.iter().for_each(|statement| self.statement(program, statement, loops));
    }

    fn statement(&mut self, program: &Program, statement: &Statement, loops: u32) {
        match &statement.kind {
            StatementKind::Let { op, .. } => self.operation(program, op),
            StatementKind::Declare { .. } => self.note("declare"),
            StatementKind::Assign { .. } => self.note("assign"),
            StatementKind::Store { memory, .. } => self.note(format!("store {}", space(*memory))),
            StatementKind::If { then, otherwise, .. } => {
                self.note("if");
                self.block(program, then, loops);
                self.block(program, otherwise, loops);
            }
            StatementKind::For { step, body, .. } => {
                self.note(if let Operand::Literal(_) = step { "for" } else { "for with a computed step" });
                self.block(program, body, loops + 1);
            }
            StatementKind::While { condition, body, .. } => {
                self.note("while");
                self.block(program, condition, loops + 1);
                self.block(program, body, loops + 1);
            }
            StatementKind::Break => self.note("break"),
            StatementKind::Continue => self.note("continue"),
            StatementKind::Return => self.note("return"),
            StatementKind::Barrier(scope) => {
                self.note(format!("barrier {scope}, {} loops around", loops.min(2)))
            }
            StatementKind::Fence(scope) => self.note(format!("fence {scope}")),
            StatementKind::Trap(_) => self.note("trap"),
            StatementKind::Tile(TileOp::MultiplyAdd { a, .. }) => {
                self.note(format!("tile_multiply_add {}", element(program, a.memory)));
            }
            StatementKind::Tile(op) => self.note(op.word()),
        }
    }

    fn operation(&mut self, program: &Program, op: &Op) {
        let word = match op {
            Op::Unary { op, ty, .. } => format!("{op} {ty}"),
            Op::Function { function, ty, .. } => format!("{function} {ty}"),
            Op::Binary { op, ty, .. } => format!("{op} {ty}"),
            Op::Compare { op, ty, .. } => format!("{op} {ty}"),
            Op::Select { ty, .. } => format!("select {ty}"),
            Op::Fma { ty, .. } => format!("fma {ty}"),
            Op::Convert { from, to, .. } => format!("convert {from} {to}"),
            Op::Bitcast { from, to, .. } => format!("bitcast {from} {to}"),
            Op::Builtin(builtin) => builtin.to_string(),
            Op::Parameter(id) => format!("parameter {}", program.scalars[id.0 as usize].ty),
            Op::Read(id) => format!("read {}", program.variables[id.0 as usize].ty),
            Op::Load { memory, .. } => format!("load {} {}", space(*memory), element(program, *memory)),
            Op::Length(memory) => format!("length {}", space(*memory)),
            Op::Atomic { op, memory, order, scope, .. } => {
                self.note(format!("{order} {scope}"));
                format!("{op} {} {}", space(*memory), element(program, *memory))
            }
            Op::Warp { op, ty, .. } => format!("{op} {ty}"),
            Op::BlockVote { vote, .. } => vote.to_string(),
        };
        self.note(word);
    }
}

fn space(memory: MemoryOperand) -> &'static str {
    match memory {
        MemoryOperand::Buffer(_) => "global",
        MemoryOperand::Shared(_) => "shared",
    }
}

fn element(program: &Program, memory: MemoryOperand) -> Type {
    match memory {
        MemoryOperand::Buffer(id) => program.buffers[id.0 as usize].element,
        MemoryOperand::Shared(id) => program.shared[id.0 as usize].element,
    }
}

/// Everything. Left out is what depends on the order of threads, an exchange and a sum of floats by atomics, and a trap: which of several
/// threads is named depends on it too. Those are in the text files.
fn wanted() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = statements().into_iter().chain(builtins()).collect();
    for ty in Type::ALL.iter().copied() {
        all.extend(UnaryOp::ALL.iter().filter(|op| op.accepts(ty)).map(|op| format!("{op} {ty}")));
        all.extend(MathFunction::ALL.iter().filter(|op| op.accepts(ty)).map(|op| format!("{op} {ty}")));
        all.extend(BinaryOp::ALL.iter().filter(|op| op.accepts(ty)).map(|op| format!("{op} {ty}")));
        all.extend(CompareOp::ALL.iter().filter(|op| op.accepts(ty)).map(|op| format!("{op} {ty}")));
        all.extend(WarpOp::ALL.iter().filter(|op| op.accepts(ty)).map(|op| format!("{op} {ty}")));
        all.extend(
            ["select", "parameter", "read", "load global", "load shared"].map(|word| format!("{word} {ty}")),
        );
        all.extend(Type::ALL.iter().map(|to| format!("convert {ty} {to}")));
        all.extend(ty.is_float().then(|| format!("fma {ty}")));
        let same = |to: &&Type| to.bytes() == ty.bytes() && ty != Type::Bool && **to != Type::Bool;
        all.extend(Type::ALL.iter().filter(same).map(|to| format!("bitcast {ty} {to}")));
    }
    for (op, ty) in ATOMIC_OPS.iter().flat_map(|op| ATOMIC_TYPES.iter().map(move |ty| (op, ty))) {
        all.extend(["global", "shared"].map(|space| format!("{op} {space} {ty}")));
    }
    for (order, scope) in
        MemoryOrder::ALL.iter().flat_map(|order| MemoryScope::ALL.iter().map(move |scope| (order, scope)))
    {
        all.insert(format!("{order} {scope}"));
    }
    all
}

fn statements() -> Vec<String> {
    let words = ["declare", "assign", "store global", "store shared", "length global", "length shared"];
    let flow = ["if", "for", "for with a computed step", "while", "break", "continue", "return"];
    let mut all: Vec<String> = words.into_iter().chain(flow).map(str::to_owned).collect();
    all.extend(
        ["block", "grid"]
            .iter()
            .flat_map(|scope| (0..3).map(move |loops| format!("barrier {scope}, {loops} loops around"))),
    );
    all.extend(MemoryScope::ALL.iter().map(|scope| format!("fence {scope}")));
    all.extend(["tile_fill", "tile_load", "tile_store"].map(str::to_owned));
    all.extend(FACTORS.map(|(ty, _, _)| format!("tile_multiply_add {ty}")));
    all.extend(BlockVote::ALL.iter().map(ToString::to_string));
    all
}

fn builtins() -> Vec<String> {
    let each = [Builtin::Thread, Builtin::Block, Builtin::BlockDim, Builtin::GridDim, Builtin::Global];
    let placed = each.iter().flat_map(|make| Axis::ALL.iter().map(|axis| make(*axis)));
    placed.chain([Builtin::Lane, Builtin::Warp]).map(|builtin| builtin.to_string()).collect()
}
