//! Uniformity: for which group of threads a value is the same, and which group reaches a statement together.
//!
//! Every value and every statement has a level: the largest group of threads that all have the same value, or all
//! execute the statement together. A barrier, a vote and a warp operation need a level of their group or larger. Levels
//! only fall, and the walk over the program is repeated until none does.

use super::error::{VerifyError, VerifyReason};
use crate::operation::{Builtin, MemoryOperand, Op, Operand, TileOp};
use crate::program::Draft;
use crate::source_location::SourceLocation;
use crate::statement::{BarrierScope, Block, Statement, StatementKind};

/// Groups of threads, the largest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Thread,
    Warp,
    Block,
    Grid,
}

/// A level, and the statement that keeps it from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    level: Level,
    cause: SourceLocation,
}

impl Known {
    const ALL: Self = Self { level: Level::Grid, cause: SourceLocation::Unknown };

    /// The lower one; of two equal ones the first, so that the cause stays the same.
    fn and(self, other: Self) -> Self {
        if other.level < self.level { other } else { self }
    }
}

/// A loop that is being walked.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Which loop of the program, in the order of the walk.
    number: usize,
    /// The group whose threads have not skipped to the next iteration.
    skipped: Known,
}

pub(super) fn check(draft: &Draft) -> Result<(), VerifyError> {
    let mut walk = Walk {
        draft,
        values: vec![Known::ALL; draft.values.len()],
        variables: vec![Known::ALL; draft.variables.len()],
        returned: Known::ALL,
        left: Vec::new(),
        next_loop: 0,
        rounds: Vec::new(),
        fault: None,
    };
    loop {
        let before = (walk.variables.clone(), walk.left.clone());
        (walk.next_loop, walk.returned) = (0, Known::ALL);
        walk.block(&draft.body, Known::ALL);
        if before == (walk.variables.clone(), walk.left.clone()) {
            return walk.fault.map_or(Ok(()), Err);
        }
    }
}

struct Walk<'d> {
    draft: &'d Draft,
    values: Vec<Known>,
    variables: Vec<Known>,
    /// Some threads are done already.
    returned: Known,
    /// For every loop: some threads have left it.
    left: Vec<Known>,
    next_loop: usize,
    rounds: Vec<Round>,
    fault: Option<VerifyError>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, control: Known) {
        for statement in block {
            self.statement(statement, control);
        }
    }

    /// The level of the next statement inside `control`.
    fn here(&self, control: Known) -> Known {
        let here = control.and(self.returned);
        self.rounds.last().map_or(here, |round| here.and(self.left[round.number]).and(round.skipped))
    }

    fn statement(&mut self, statement: &Statement, control: Known) {
        let location = statement.location;
        let here = self.here(control);
        match &statement.kind {
            StatementKind::Let { value, op } => {
                self.meeting(op, here, location);
                let known = self.level(op, here, location);
                self.values[value.index()] = known;
            }
            StatementKind::Declare { variable, initial } => {
                let known = initial.map_or(Known::ALL, |initial| self.operand(initial));
                let variable = &mut self.variables[variable.index()];
                *variable = variable.and(known).and(here);
            }
            StatementKind::Assign { variable, value } => {
                let known = self.operand(*value).and(here);
                let variable = &mut self.variables[variable.index()];
                *variable = variable.and(known);
            }
            StatementKind::If { condition, then, otherwise } => {
                let inner = here.and(at(self.operand(*condition), location));
                self.block(then, inner);
                self.block(otherwise, inner);
            }
            StatementKind::For { value, start, end, step, body } => {
                let bounds = self.operand(*start).and(self.operand(*end)).and(self.operand(*step));
                self.values[value.index()] = self.operand(*start);
                self.repeat(here, |walk, here| {
                    let inner = here.and(at(bounds, location));
                    walk.values[value.index()] = walk.values[value.index()].and(inner);
                    walk.block(body, inner);
                });
            }
            StatementKind::While { condition, test, body } => {
                self.repeat(here, |walk, here| {
                    walk.block(condition, here);
                    let test = at(walk.operand(*test), location);
                    // A thread whose condition is false has left the loop.
                    walk.leave(test.and(here), 1);
                    walk.block(body, here.and(test));
                });
            }
            StatementKind::Break => self.leave(here, 1),
            StatementKind::Continue => {
                if let Some(round) = self.rounds.last_mut() {
                    round.skipped = round.skipped.and(here);
                }
            }
            StatementKind::Return => {
                self.returned = self.returned.and(here);
                self.leave(here, usize::MAX);
            }
            StatementKind::Barrier(BarrierScope::Block) => {
                self.demand("barrier block", Level::Block, here, location)
            }
            StatementKind::Barrier(BarrierScope::Grid) => {
                self.demand("barrier grid", Level::Grid, here, location)
            }
            StatementKind::Tile(op) => self.tile(op, here, location),
            StatementKind::Store { .. } | StatementKind::Fence(_) | StatementKind::Trap(_) => {}
        }
    }

    /// Walks a loop once; the whole program is walked again as long as something falls.
    fn repeat(&mut self, here: Known, round: impl FnOnce(&mut Self, Known)) {
        let number = self.next_loop;
        self.next_loop += 1;
        if self.left.len() <= number {
            self.left.push(Known::ALL);
        }
        self.rounds.push(Round { number, skipped: Known::ALL });
        let start = self.here(here);
        round(self, start);
        self.rounds.pop();
    }

    /// Some threads leave the innermost `count` loops here.
    fn leave(&mut self, here: Known, count: usize) {
        for round in self.rounds.iter().rev().take(count) {
            self.left[round.number] = self.left[round.number].and(here);
        }
    }

    /// Requires that the group of an operation reaches it.
    fn meeting(&mut self, op: &Op, here: Known, location: SourceLocation) {
        match op {
            Op::Warp { op, .. } => self.demand(op.word(), Level::Warp, here, location),
            Op::BlockVote { vote, .. } => self.demand(vote.word(), Level::Block, here, location),
            _ => {}
        }
    }

    /// Requires that all lanes reach an operation on a tile, with the same operands.
    fn tile(&mut self, op: &TileOp, here: Known, location: SourceLocation) {
        self.demand(op.word(), Level::Warp, here, location);
        let mut parts = Vec::new();
        if let TileOp::Fill { value, .. } = op {
            parts.push(("the value".to_owned(), *value));
        }
        for matrix in op.matrices() {
            let name = self.draft.memory_name(matrix.memory);
            parts.push((format!("the start of `{name}`"), matrix.start));
            parts.push((format!("the stride of `{name}`"), matrix.stride));
        }
        for (what, operand) in parts {
            let known = self.operand(operand);
            if known.level < Level::Warp && self.fault.is_none() {
                let why = match known.cause {
                    SourceLocation::Unknown => "it depends on the thread".to_owned(),
                    cause => format!("it depends on the thread, by {cause}"),
                };
                let reason = VerifyReason::Varying { what, operation: op.word().to_owned(), why };
                self.fault = Some(VerifyError::new(location, reason));
            }
        }
    }

    fn demand(&mut self, what: &str, level: Level, here: Known, location: SourceLocation) {
        if here.level >= level || self.fault.is_some() {
            return;
        }
        let group = match level {
            Level::Thread | Level::Warp => "warp",
            Level::Block => "block",
            Level::Grid => "grid",
        };
        let why = match here.cause {
            SourceLocation::Unknown => "threads take different paths to it".to_owned(),
            cause => format!("threads take different paths at {cause}"),
        };
        self.fault =
            Some(VerifyError::new(location, VerifyReason::Divergent { what: what.to_owned(), group, why }));
    }

    fn operand(&self, operand: Operand) -> Known {
        match operand {
            Operand::Literal(_) => Known::ALL,
            Operand::Value(id) => self.values[id.index()],
        }
    }

    /// The level of the result of an operation.
    fn level(&self, op: &Op, here: Known, location: SourceLocation) -> Known {
        let known = |level| Known { level, cause: location };
        let operands = op.operands().into_iter().fold(Known::ALL, |known, o| known.and(self.operand(o)));
        match op {
            Op::Builtin(builtin) => match builtin {
                Builtin::BlockDim(_) | Builtin::GridDim(_) => Known::ALL,
                Builtin::Block(_) => known(Level::Block),
                Builtin::Warp => known(Level::Warp),
                Builtin::Thread(_) | Builtin::Global(_) | Builtin::Lane => known(Level::Thread),
            },
            Op::Read(variable) => self.variables[variable.index()],
            // Inputs do not change during a launch, so equal indices load equal values.
            Op::Load { memory: MemoryOperand::Buffer(id), .. }
                if !self.draft.buffers[id.index()].role.is_writable() =>
            {
                operands
            }
            Op::Load { .. } | Op::Atomic { .. } => known(Level::Thread),
            Op::Warp { op, .. } if op.is_shuffle() => match operands.level >= Level::Warp {
                true => operands,
                false => known(Level::Thread),
            },
            // Warps of one block may have different numbers of lanes.
            Op::Warp { .. } => known(Level::Warp),
            Op::BlockVote { .. } => operands.and(here).raised(Level::Block, location),
            _ => operands,
        }
    }
}

impl Known {
    /// At least this level: the group has computed the value together.
    fn raised(self, level: Level, location: SourceLocation) -> Self {
        if self.level < level { Self { level, cause: location } } else { self }
    }
}

/// The same, but the cause is the statement that decides by it.
fn at(known: Known, location: SourceLocation) -> Known {
    if known.level == Level::Grid { known } else { Known { cause: location, ..known } }
}
