//! `mbarrier`, and the arrival that asynchronous copies make.

use super::super::lowered_code::{Mbarrier, MbarrierAction, Op, Pred, Reg, Source, Why};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use crate::{Flag, Form, Order, PtxOperand, ScalarType};

impl Lowering<'_> {
    pub(super) fn lower_mbarrier(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        if form.has(Flag::PendingCount) {
            return self.lower_pending_count(operands).ok_or(Why::Operands);
        }
        let action = action(form).ok_or(Why::Instruction)?;
        self.lower_mbarrier_action(form, action, operands).ok_or(Why::Operands)
    }

    /// `cp.async.mbarrier.arrive`.
    pub(super) fn lower_copies_arrive(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let action = MbarrierAction::ArriveAfterCopies { counts: form.has(Flag::Noinc) };
        self.lower_mbarrier_action(form, action, operands)
    }

    /// A store, an update or a copy completes bytes of an object.
    pub(super) fn complete_bytes(&mut self, object: &PtxOperand, bytes: u32) -> Option<()> {
        let value = self.constant(u64::from(bytes));
        self.complete(object, value)
    }

    /// The same for a number of bytes that the code computes.
    pub(super) fn complete(&mut self, object: &PtxOperand, value: Source) -> Option<()> {
        let (place, address) = self.address(object, Place::Cluster)?;
        let (action, to, to_pred) = (MbarrierAction::Complete, Reg(0), Pred::SINK);
        self.emit(Op::Mbarrier(Box::new(Mbarrier {
            action,
            place,
            address,
            value,
            to,
            to_pred,
            orders: true,
        })));
        Some(())
    }

    /// The arrivals that a phase waited for are the lowest bits of its state.
    fn lower_pending_count(&mut self, operands: &[PtxOperand]) -> Option<()> {
        let [to, state] = operands else { return None };
        let (to, from) = (self.destination(to)?, self.source(state, ScalarType::B64)?);
        self.emit(Op::Split { to: Box::new([to]), from, bits: 20 });
        Some(())
    }

    fn lower_mbarrier_action(
        &mut self,
        form: &Form,
        action: MbarrierAction,
        operands: &[PtxOperand],
    ) -> Option<()> {
        let (mut to, mut to_pred, mut rest) = (Reg(0), Pred::SINK, operands);
        if let MbarrierAction::Arrive { .. } | MbarrierAction::Wait { .. } = action {
            let (first, others) = operands.split_first()?;
            match action {
                MbarrierAction::Wait { .. } => to_pred = self.predicate_destination(first)?,
                _ => to = self.destination(first)?,
            }
            rest = others;
        }
        let (address, rest) = rest.split_first()?;
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        let one = self.constant(1);
        let value = match (rest, action) {
            ([], MbarrierAction::Invalidate | MbarrierAction::ArriveAfterCopies { .. }) => one,
            ([], MbarrierAction::Arrive { expects: false, completes: true, .. }) => one,
            ([state, ..], MbarrierAction::Wait { parity: false, .. }) => {
                self.source(state, ScalarType::B64)?
            }
            ([value, ..], _) => self.source(value, ScalarType::U32)?,
            _ => return None,
        };
        let is_relaxed = form.order() == Some(Order::Relaxed);
        let step = Mbarrier { action, place, address, value, to, to_pred, orders: !is_relaxed };
        self.emit(Op::Mbarrier(Box::new(step)));
        Some(())
    }
}

fn action(form: &Form) -> Option<MbarrierAction> {
    let (expects, completes) = (form.has(Flag::ExpectTx), !form.has(Flag::NoComplete));
    Some(if form.has(Flag::Init) {
        MbarrierAction::Start
    } else if form.has(Flag::Inval) {
        MbarrierAction::Invalidate
    } else if form.has(Flag::Arrive) || form.has(Flag::ArriveDrop) {
        MbarrierAction::Arrive { drops: form.has(Flag::ArriveDrop), expects, completes }
    } else if expects {
        MbarrierAction::Expect
    } else if form.has(Flag::CompleteTx) {
        MbarrierAction::Complete
    } else if form.has(Flag::TestWait) || form.has(Flag::TryWait) {
        MbarrierAction::Wait { parity: form.has(Flag::Parity), suspends: form.has(Flag::TryWait) }
    } else {
        return None;
    })
}
