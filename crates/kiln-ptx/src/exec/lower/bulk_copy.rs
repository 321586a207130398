//! Bulk copies between global and shared memory.

use super::super::lowered_code::{BulkCopy, Op, Why};
use super::super::memory::generic_address::Place;
use super::atomics::bulk_update;
use super::function::Lowering;
use super::memory::COMPLETES;
use crate::{Flag, Form, Modifier, Operation, PtxOperand, ScalarType, Space};

impl Lowering<'_> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`, with their groups. A copy is done when it is issued; groups concern the checks.
    pub(super) fn lower_bulk_copy(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        if form.has(Flag::Tensor) {
            return self.lower_tensor_copy(form, operands);
        }
        if form.has(Flag::CommitGroup) {
            self.emit(Op::CommitBulkCopies);
            return Ok(());
        }
        if form.has(Flag::WaitGroup) {
            let open = operands.first().and_then(|open| self.source(open, ScalarType::U32));
            self.emit(Op::WaitForBulkCopies { open: open.ok_or(Why::Operands)? });
            return Ok(());
        }
        if form.has(Flag::Prefetch) {
            self.emit(Op::Nothing);
            return Ok(());
        }
        self.lower_bulk(form, operands).ok_or(Why::Operands)
    }

    fn lower_bulk(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let mut spaces = form.spaces().map(place_of);
        let (to_place, from_place) = (spaces.next()??, spaces.next()??);
        let words = |word: &Modifier| match word {
            Modifier::Other(word) => matches!(&**word, COMPLETES | "bulk_group" | MULTICAST),
            _ => true,
        };
        let has_barrier = form.has_word(COMPLETES);
        let is_known = matches!(
            (to_place, from_place),
            (Place::Shared | Place::Cluster, Place::Global)
                | (Place::Cluster, Place::Shared)
                | (Place::Global, Place::Shared)
        );
        // A copy to shared memory tells an object, one to global memory belongs to a group.
        if !is_known || !form.modifiers().iter().all(words) || has_barrier == (to_place == Place::Global) {
            return None;
        }
        let multicast = form.has_word(MULTICAST);
        if multicast && (to_place, from_place) != (Place::Cluster, Place::Global) {
            return None;
        }
        let [to, from, bytes, rest @ ..] = operands else { return None };
        let (_, to) = self.address(to, to_place)?;
        let (_, from) = self.address(from, from_place)?;
        let bytes = self.source(bytes, ScalarType::U32)?;
        let reduce = match form.has(Flag::Reduce) {
            true => {
                let ty = form.ty()?;
                let operation =
                    form.operation().filter(|op| !matches!(op, Operation::Exch | Operation::Cas))?;
                let is_half = matches!(ty, ScalarType::F16 | ScalarType::Bf16);
                let is_global = to_place == Place::Global;
                if !is_global && (from_place != Place::Shared || !reduces_shared(operation, ty))
                    || is_half && operation == Operation::Add && !form.has(Flag::Noftz)
                {
                    return None;
                }
                Some((bulk_update(operation, ty)?, ty.size_bytes()))
            }
            false => None,
        };
        let barrier = match has_barrier {
            true => Some(self.address(rest.first()?, Place::Cluster)?),
            false => None,
        };
        let blocks = match multicast {
            true => Some(self.source(rest.get(1)?, ScalarType::U16)?),
            false => None,
        };
        let copy = BulkCopy { to_place, from_place, to, from, bytes, reduce, barrier, blocks };
        self.emit(Op::BulkCopy(Box::new(copy)));
        Some(())
    }
}

/// What makes a copy go to several blocks of the cluster.
const MULTICAST: &str = "multicast::cluster";

/// Whether there is such a reduction of shared memory.
fn reduces_shared(operation: Operation, ty: ScalarType) -> bool {
    use Operation::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    use ScalarType::{B32, S32, U32, U64};
    match operation {
        Add => matches!(ty, U32 | S32 | U64),
        Min | Max => matches!(ty, U32 | S32),
        Inc | Dec => ty == U32,
        And | Or | Xor => ty == B32,
        _ => false,
    }
}

fn place_of(space: Space) -> Option<Place> {
    match space.base() {
        Space::Global => Some(Place::Global),
        Space::Shared => Some(Place::Shared),
        Space::SharedCluster => Some(Place::Cluster),
        _ => None,
    }
}
