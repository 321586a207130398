//! Warp-level operations and barriers.

use super::super::lowered_code::{
    Barrier, BarrierKind, Collective, CollectiveKind, Op, Pred, PredSource, Reg, Why,
};
use super::function::Lowering;
use crate::{Flag, Form, Opcode, Operation, PtxOperand, ScalarType, Vote};

impl Lowering<'_> {
    /// `shfl`, `vote`, `match`, `redux`, `elect`, `activemask`.
    pub(super) fn lower_collective(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let zero = self.constant(0);
        let mut collective = Collective {
            kind: CollectiveKind::Sync,
            to: Reg(0),
            to_pred: Pred::SINK,
            from: [zero; 3],
            pred: PredSource::ALWAYS,
            members: None,
            fragments_from: Box::default(),
            fragments_to: Box::default(),
        };
        let (first, rest) = operands.split_first()?;
        let word = ScalarType::B32;
        let members = match form.opcode() {
            Opcode::Activemask => {
                let to = self.destination(first)?;
                self.emit(Op::ActiveMask { to });
                return Some(());
            }
            Opcode::Shfl => {
                collective.kind = CollectiveKind::Shuffle(form.shuffle()?);
                collective.to = self.destination(first)?;
                collective.to_pred = self.second_result(first)?;
                for (slot, operand) in collective.from.iter_mut().zip(rest) {
                    *slot = self.source(operand, word)?;
                }
                rest.get(3)
            }
            Opcode::Vote => {
                let vote = form.vote()?;
                collective.kind = CollectiveKind::Vote(vote);
                match vote {
                    Vote::Ballot => collective.to = self.destination(first)?,
                    _ => collective.to_pred = self.predicate_destination(first)?,
                }
                collective.pred = self.predicate_source(rest.first()?)?;
                rest.get(1)
            }
            Opcode::Match => {
                let ty = form.ty()?;
                let wide = ty.size_bytes() == 8;
                let all = form.vote()? == Vote::All;
                collective.kind =
                    if all { CollectiveKind::MatchAll { wide } } else { CollectiveKind::MatchAny { wide } };
                collective.to = self.destination(first)?;
                collective.to_pred = self.second_result(first)?;
                collective.from[0] = self.source(rest.first()?, ty)?;
                rest.get(1)
            }
            Opcode::Redux => {
                let ty = form.ty().filter(|ty| *ty != ScalarType::F32)?;
                collective.kind = CollectiveKind::Reduce(form.operation()?, ty);
                collective.to = self.destination(first)?;
                collective.from[0] = self.source(rest.first()?, ty)?;
                rest.get(1)
            }
            _ => {
                collective.kind = CollectiveKind::Elect;
                collective.to = self.destination(first)?;
                collective.to_pred = self.second_result(first)?;
                rest.first()
            }
        };
        if form.has(Flag::Sync) {
            collective.members = Some(self.source(members?, word)?);
        }
        self.emit_alone(Op::Collective(Box::new(collective)));
        Some(())
    }

    /// `bar` and `barrier`, of a block or of a warp.
    pub(super) fn lower_barrier(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        // A barrier of a cluster has the word `cluster` before the operation.
        if form.scope() == Some(crate::Scope::Cluster) {
            return self.lower_cluster_barrier(form).ok_or(Why::Operands);
        }
        let done = if form.has(Flag::Warp) {
            self.lower_warp_barrier(operands)
        } else {
            self.lower_block_barrier(form, operands)
        };
        done.ok_or(Why::Operands)
    }

    fn lower_warp_barrier(&mut self, operands: &[PtxOperand]) -> Option<()> {
        let members = self.source(operands.first()?, ScalarType::B32)?;
        let zero = self.constant(0);
        self.emit_alone(Op::Collective(Box::new(Collective {
            kind: CollectiveKind::Sync,
            to: Reg(0),
            to_pred: Pred::SINK,
            from: [zero; 3],
            pred: PredSource::ALWAYS,
            members: Some(members),
            fragments_from: Box::default(),
            fragments_to: Box::default(),
        })));
        Some(())
    }

    fn lower_block_barrier(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let word = ScalarType::U32;
        let kind = match (form.has(Flag::Red), form.operation()) {
            (false, _) if form.has(Flag::Arrive) => BarrierKind::Arrive,
            (false, _) => BarrierKind::Sync,
            (true, Some(Operation::Popc)) => BarrierKind::CountTrue,
            (true, Some(Operation::And)) => BarrierKind::AllTrue,
            (true, Some(Operation::Or)) => BarrierKind::AnyTrue,
            _ => return None,
        };
        let (mut to, mut to_pred, mut pred) = (Reg(0), Pred::SINK, PredSource::ALWAYS);
        let mut rest = operands;
        if form.has(Flag::Red) {
            let (first, others) = operands.split_first()?;
            let (last, middle) = others.split_last()?;
            match kind {
                BarrierKind::CountTrue => to = self.destination(first)?,
                _ => to_pred = self.predicate_destination(first)?,
            }
            pred = self.predicate_source(last)?;
            rest = middle;
        }
        let number = self.source(rest.first()?, word)?;
        let count = match rest.get(1) {
            Some(operand) => Some(self.source(operand, word)?),
            None => None,
        };
        let aligned = form.opcode() == Opcode::Bar || form.has(Flag::Aligned);
        let barrier = Barrier { kind, aligned, number, count, pred, to, to_pred };
        self.emit_alone(Op::Barrier(Box::new(barrier)));
        Some(())
    }
}
