//! Ranges of integer values.
//!
//! Enough to see that an index made of thread numbers and loop counters stays inside memory of a known size, so that
//! it need not be checked. An interval that could leave its type becomes the whole type.

use crate::declaration::ValueId;
use crate::operation::{BinaryOp, Builtin, MemoryOperand, Op, Operand};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::statement::{Block, StatementKind};

/// The range of each value.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    values: Vec<Option<Range>>,
}

/// From the least to the most, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) least: i128,
    pub(crate) most: i128,
}

impl Range {
    fn new(least: i128, most: i128) -> Self {
        Self { least, most }
    }

    /// The range of an integer type.
    fn of(ty: Type) -> Self {
        match ty.is_signed() {
            true => Self::new(-1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1),
            false => Self::new(0, (1 << ty.bits()) - 1),
        }
    }

    fn is_within(self, other: Self) -> bool {
        self.least >= other.least && self.most <= other.most
    }
}

impl Ranges {
    pub(crate) fn new(draft: &Draft) -> Self {
        let mut ranges = Self { values: vec![None; draft.values.len()] };
        ranges.block(draft, &draft.body);
        ranges
    }

    /// Whether an index is always in range of memory whose size is known.
    pub(crate) fn is_inside(&self, draft: &Draft, memory: MemoryOperand, index: Operand) -> bool {
        let count = match memory {
            MemoryOperand::Shared(id) => draft.shared.get(id.index()).and_then(|shared| shared.count),
            MemoryOperand::Buffer(id) => draft.known_count(id),
        };
        count.is_some_and(|count| self.operand(draft, index).is_within(Range::new(0, i128::from(count) - 1)))
    }

    /// Whether a number is never more than this.
    pub(crate) fn is_at_most(&self, draft: &Draft, value: Operand, most: u64) -> bool {
        self.operand(draft, value).most <= i128::from(most)
    }

    /// Whether a value was computed without leaving its type.
    pub(crate) fn is_known(&self, value: ValueId) -> bool {
        self.values.get(value.index()).is_some_and(Option::is_some)
    }

    /// Whether an index is never negative.
    pub(crate) fn is_natural(&self, draft: &Draft, index: Operand) -> bool {
        self.operand(draft, index).least >= 0
    }

    /// Whether a number is always at least 1.
    pub(crate) fn is_positive(&self, draft: &Draft, number: Operand) -> bool {
        self.operand(draft, number).least >= 1
    }

    /// The range of an integer.
    pub(crate) fn operand(&self, draft: &Draft, operand: Operand) -> Range {
        let ty = draft.type_of(operand).filter(|ty| ty.is_integer()).unwrap_or(Type::U64);
        match operand {
            Operand::Literal(literal) if literal.ty().is_integer() => {
                Range::new(literal.as_integer(), literal.as_integer())
            }
            Operand::Value(ValueId(id)) => {
                self.values.get(id as usize).copied().flatten().unwrap_or_else(|| Range::of(ty))
            }
            Operand::Literal(_) => Range::of(ty),
        }
    }

    fn block(&mut self, draft: &Draft, block: &Block) {
        for statement in block {
            match &statement.kind {
                StatementKind::Let { value, op } => self.values[value.index()] = self.result(draft, op),
                StatementKind::If { then, otherwise, .. } => {
                    self.block(draft, then);
                    self.block(draft, otherwise);
                }
                StatementKind::For { value, start, end, body, .. } => {
                    let (start, end) = (self.operand(draft, *start), self.operand(draft, *end));
                    self.values[value.index()] =
                        Some(Range::new(start.least, (end.most - 1).max(start.least)));
                    self.block(draft, body);
                }
                StatementKind::While { condition, body, .. } => {
                    self.block(draft, condition);
                    self.block(draft, body);
                }
                _ => {}
            }
        }
    }

    /// The range of the result of an operation; `None` if unknown.
    fn result(&self, draft: &Draft, op: &Op) -> Option<Range> {
        let get = |operand: &Operand| self.operand(draft, *operand);
        let (ty, range) = match op {
            Op::Builtin(builtin) => (Type::U64, given(draft, *builtin)?),
            Op::Binary { op, ty, a, b } if ty.is_integer() => (*ty, binary(*op, get(a), get(b))?),
            Op::Select { ty, a, b, .. } if ty.is_integer() => {
                let (a, b) = (get(a), get(b));
                (*ty, Range::new(a.least.min(b.least), a.most.max(b.most)))
            }
            Op::Convert { from, to, a } if from.is_integer() && to.is_integer() => (*to, get(a)),
            _ => return None,
        };
        range.is_within(Range::of(ty)).then_some(range)
    }
}

/// The range of a builtin.
fn given(draft: &Draft, builtin: Builtin) -> Option<Range> {
    let threads: i128 = draft.block.iter().map(|count| i128::from(*count)).product();
    let of = |axis: crate::Axis| i128::from(draft.block[axis.index()]);
    Some(match builtin {
        Builtin::Thread(axis) => Range::new(0, of(axis) - 1),
        Builtin::BlockDim(axis) => Range::new(of(axis), of(axis)),
        Builtin::Lane => Range::new(0, (threads - 1).min(31)),
        Builtin::Warp => Range::new(0, (threads - 1) / 32),
        Builtin::Block(_) => Range::new(0, i128::from(u32::MAX) - 1),
        Builtin::GridDim(_) => Range::new(1, i128::from(u32::MAX)),
        Builtin::Global(axis) => Range::new(0, i128::from(u32::MAX) * of(axis) - 1),
    })
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let corners = |of: fn(i128, i128) -> i128| {
        let all = [of(a.least, b.least), of(a.least, b.most), of(a.most, b.least), of(a.most, b.most)];
        Some(Range::new(all.into_iter().min()?, all.into_iter().max()?))
    };
    let positive = a.least >= 0 && b.least >= 0;
    match op {
        BinaryOp::Add => Some(Range::new(a.least + b.least, a.most + b.most)),
        BinaryOp::Sub => Some(Range::new(a.least - b.most, a.most - b.least)),
        BinaryOp::Mul => corners(i128::saturating_mul),
        BinaryOp::Min => Some(Range::new(a.least.min(b.least), a.most.min(b.most))),
        BinaryOp::Max => Some(Range::new(a.least.max(b.least), a.most.max(b.most))),
        BinaryOp::Div if a.least >= 0 && b.least >= 1 => Some(Range::new(a.least / b.most, a.most / b.least)),
        BinaryOp::Rem if a.least >= 0 && b.least >= 1 => Some(Range::new(0, a.most.min(b.most - 1))),
        BinaryOp::And if positive => Some(Range::new(0, a.most.min(b.most))),
        BinaryOp::Shr if positive => Some(Range::new(0, a.most)),
        BinaryOp::Shl if positive && b.most < 32 => Some(Range::new(a.least << b.least, a.most << b.most)),
        _ => None,
    }
}
