//! What the loop over straight code looks at first: a step in few bytes.

use super::{Op, PredSource, Reg, Source, Step};
use crate::exec::alu::SimpleOp;

/// A step, as far as it is the same in all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickStep {
    pub(crate) kind: QuickKind,
    pub(crate) op: SimpleOp,
    /// Whether it is the first step of its instruction.
    pub(crate) first: bool,
    /// The place of the step.
    pub(crate) at: u32,
    pub(crate) to: Reg,
    /// The operands; the first one stands for those that the operation does not have.
    pub(crate) from: [Source; 3],
}

/// How a step runs in a loop over straight code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuickKind {
    /// Not there.
    None,
    /// As an operation on words or patterns.
    Simple,
    /// On patterns, if its operands have some, and by its [`Op`] otherwise.
    Pattern,
    /// By its [`Op`].
    Known,
    Branch {
        target: u32,
        when: PredSource,
    },
    Jump {
        target: u32,
    },
}

impl QuickStep {
    /// A step at a place.
    pub(crate) fn of(at: u32, step: &Step) -> Self {
        let mut quick = Self {
            kind: QuickKind::Known,
            op: SimpleOp::None,
            first: step.first,
            at,
            to: Reg(0),
            from: [Source::default(); 3],
        };
        match &step.op {
            _ if step.watched => quick.kind = QuickKind::None,
            Op::Alu { mode, to, from, .. }
                if step.guard == PredSource::ALWAYS && mode.simple != SimpleOp::None =>
            {
                let is_on_words = mode.simple.is_on_words();
                quick.kind = if is_on_words { QuickKind::Simple } else { QuickKind::Pattern };
                (quick.op, quick.to) = (mode.simple, *to);
                let operand = |at: usize| from[if at < mode.simple.operands() { at } else { 0 }];
                quick.from = [operand(0), operand(1), operand(2)];
            }
            Op::Branch { target, when } if step.decides == 0 && step.guard == PredSource::ALWAYS => {
                quick.kind = QuickKind::Branch { target: *target, when: *when };
            }
            Op::Jump { target } if step.guard == PredSource::ALWAYS => {
                quick.kind = QuickKind::Jump { target: *target };
            }
            Op::Branch { .. } | Op::Jump { .. } => quick.kind = QuickKind::None,
            _ => {}
        }
        quick
    }
}
