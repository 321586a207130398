//! Clusters: their barrier, and addresses in the shared memory of their blocks.

use super::super::alu::{Mode, test};
use super::super::lowered_code::{ClusterAddress, ClusterBarrier, ClusterMapping, Compare, Op, Pred};
use super::super::undefined::DataFlow;
use super::function::Lowering;
use crate::{Flag, Form, Opcode, Order, PtxOperand, ScalarType, SpecialRegister};

impl Lowering<'_> {
    /// `barrier.cluster.arrive` and `barrier.cluster.wait`.
    pub(super) fn lower_cluster_barrier(&mut self, form: &Form) -> Option<()> {
        let (arrives, waits) = (form.has(Flag::Arrive), form.has(Flag::Wait));
        let orders = match form.order() {
            None => true,
            Some(Order::Release) => arrives,
            Some(Order::Acquire) => waits,
            Some(Order::Relaxed) if arrives => false,
            Some(_) => return None,
        };
        if arrives == waits || !orders && form.order() != Some(Order::Relaxed) {
            return None;
        }
        let aligned = form.has(Flag::Aligned);
        self.emit_alone(Op::ClusterBarrier(ClusterBarrier { arrives, orders, aligned }));
        Some(())
    }

    /// `mapa` and `getctarank`.
    pub(super) fn lower_cluster_address(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, address, rest @ ..] = operands else { return None };
        let mapping = match (form.opcode(), rest) {
            (Opcode::Mapa, [_]) => ClusterMapping::Map,
            (Opcode::Getctarank, []) => ClusterMapping::Rank,
            _ => return None,
        };
        let rank = match rest {
            [rank] => self.source(rank, ScalarType::U32)?,
            _ => self.constant(0),
        };
        self.emit_cluster_address(mapping, form.space().is_none(), (to, address), rank)
    }

    /// `cvta.shared::cluster` and `cvta.to.shared::cluster`.
    pub(super) fn lower_cluster_conversion(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, address] = operands else { return None };
        let rank = self.constant(0);
        self.emit_cluster_address(ClusterMapping::Convert, form.has(Flag::To), (to, address), rank)
    }

    fn emit_cluster_address(
        &mut self,
        mapping: ClusterMapping,
        generic: bool,
        (to, address): (&PtxOperand, &PtxOperand),
        rank: super::super::lowered_code::Source,
    ) -> Option<()> {
        let address = self.source(address, ScalarType::B64)?;
        let to = self.destination(to)?;
        self.emit(Op::ClusterAddress(Box::new(ClusterAddress { mapping, generic, to, address, rank })));
        Some(())
    }

    /// A special register that is a predicate: `%is_explicit_cluster`.
    pub(super) fn move_special_predicate(&mut self, to: &PtxOperand, special: SpecialRegister) -> Option<()> {
        let (which, to) = (self.special(special)?, self.predicate_destination(to)?);
        let value = self.scratch();
        self.emit_always(Op::Special { to: value, which });
        let zero = self.constant(0);
        self.emit(Op::Compare(Box::new(Compare {
            test: test!(|a, b| a != b),
            mode: Mode { flow: DataFlow::Equality(32), ..Mode::default() },
            a: value.into(),
            b: zero,
            combine: None,
            to,
            opposite: Pred::SINK,
        })));
        Some(())
    }
}
