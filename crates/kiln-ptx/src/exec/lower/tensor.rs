//! Tensor copies, and changes of tensor maps.

use super::super::lowered_code::{Base, Fence, MapEdit, Op, Source, TensorCopy, TensorMapEdit, Why};
use super::super::memory::generic_address::Place;
use super::super::tensor_form::{MapField, TensorAction, TensorForm, is_map_copy};
use super::function::Lowering;
use crate::{Form, Operation, PtxOperand, ScalarType};

impl Lowering<'_> {
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and `cp.async.bulk.prefetch.tensor`.
    pub(super) fn lower_tensor_copy(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        let tensor = TensorForm::of(form).ok_or(Why::Operands)?;
        if let TensorAction::Reduce(Operation::Exch | Operation::Cas | Operation::Popc) = tensor.action {
            return Err(Why::Operands);
        }
        let copy = self.tensor_copy(tensor, operands).ok_or(Why::Operands)?;
        self.emit(Op::TensorCopy(Box::new(copy)));
        Ok(())
    }

    fn tensor_copy(&mut self, form: TensorForm, operands: &[PtxOperand]) -> Option<TensorCopy> {
        let is_load = matches!(form.action, TensorAction::Load { .. });
        let (shared, tensor, rest) = match operands {
            [shared, tensor, rest @ ..] if is_load => (Some(shared), tensor, rest),
            [tensor, rest @ ..] if form.action == TensorAction::Prefetch => (None, tensor, rest),
            [tensor, shared, rest @ ..] => (Some(shared), tensor, rest),
            _ => return None,
        };
        let PtxOperand::Bracket(elements) = tensor else { return None };
        let [map, coordinates] = self.body.elements(*elements) else { return None };
        let (map, coordinates) = (*map, *coordinates);
        let map = self.map_address(&map)?;
        let coordinates = self.numbers(&coordinates, ScalarType::S32)?;
        // A column, and four rows.
        let needed = if form.four_rows { 5 } else { form.dimensions };
        if coordinates.len() != needed {
            return None;
        }
        let place = if form.cluster { Place::Cluster } else { Place::Shared };
        let shared = match shared {
            Some(operand) => Some(self.address(operand, place)?),
            None => None,
        };
        let (barrier, rest) = match rest.split_first() {
            Some((barrier, rest)) if is_load => (Some(self.address(barrier, place)?), rest),
            _ if is_load => return None,
            _ => (None, rest),
        };
        // Columns of stores have no offsets.
        let has_offsets =
            form.im2col && matches!(form.action, TensorAction::Load { .. } | TensorAction::Prefetch);
        let (offsets, rest) = match rest.split_first() {
            Some((offsets, rest)) if has_offsets => (self.numbers(offsets, ScalarType::U16)?, rest),
            _ if has_offsets => return None,
            _ => (Box::default(), rest),
        };
        if has_offsets && offsets.len() != form.dimensions - 2 {
            return None;
        }
        let blocks = match form.action {
            TensorAction::Load { multicast: true } => Some(self.source(rest.first()?, ScalarType::U16)?),
            _ => None,
        };
        let TensorForm { action, im2col, four_rows, .. } = form;
        Some(TensorCopy { action, im2col, four_rows, map, coordinates, offsets, shared, barrier, blocks })
    }

    /// The generic address of a tensor map.
    fn map_address(&mut self, operand: &PtxOperand) -> Option<Source> {
        match operand {
            PtxOperand::Variable(id, offset) => {
                let (place, address) = self.variable(*id, *offset)?;
                match (place, address.base) {
                    (Place::Param, Base::Zero) => {
                        Some(self.constant(Place::Param.base().wrapping_add_signed(address.offset)))
                    }
                    (Place::Global, _) => self.source(operand, ScalarType::B64),
                    _ => None,
                }
            }
            operand => self.source(operand, ScalarType::B64),
        }
    }

    fn numbers(&mut self, operand: &PtxOperand, ty: ScalarType) -> Option<Box<[Source]>> {
        self.parts(operand).iter().map(|part| self.source(part, ty)).collect()
    }

    /// `tensormap.replace` and `tensormap.cp_fenceproxy`.
    pub(super) fn lower_tensor_map(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        if is_map_copy(form) {
            return self.lower_map_copy(form, operands).ok_or(Why::Operands);
        }
        let field = MapField::of(form).ok_or(Why::Operands)?;
        self.lower_replace(form, field, operands).ok_or(Why::Operands)
    }

    fn lower_replace(&mut self, form: &Form, field: MapField, operands: &[PtxOperand]) -> Option<()> {
        let (address, rest) = operands.split_first()?;
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        let (index, value) = match rest {
            [PtxOperand::Immediate(index), value] if field.is_list() => (index.bits() as usize, value),
            [value] if !field.is_list() => (0, value),
            _ => return None,
        };
        let is_wide = matches!(field, MapField::Address | MapField::GlobalStride);
        let value = self.source(value, if is_wide { ScalarType::B64 } else { ScalarType::B32 })?;
        let edit = MapEdit::Replace { field, index, value };
        self.emit(Op::TensorMapEdit(Box::new(TensorMapEdit { place, address, edit })));
        Some(())
    }

    /// The copy of a map from shared to global memory that threads of a warp make together, and the fence behind it.
    fn lower_map_copy(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, from, PtxOperand::Immediate(bytes)] = operands else { return None };
        if bytes.bits() != 128 {
            return None;
        }
        let (place, address) = self.address(to, Place::Global)?;
        let (_, from) = self.address(from, Place::Shared)?;
        let edit = MapEdit::Copy { from };
        self.emit(Op::TensorMapEdit(Box::new(TensorMapEdit { place, address, edit })));
        self.emit(Op::Fence(self.map_fence(form)));
        Some(())
    }

    /// The fence of a tensor map: it orders what comes before its release and behind its acquire.
    pub(super) fn map_fence(&self, form: &Form) -> Fence {
        use crate::{Order, Scope};
        let order = form.order();
        Fence {
            acquire: order != Some(Order::Release),
            release: order != Some(Order::Acquire),
            wide: !matches!(form.scope(), Some(Scope::Cta | Scope::Cluster)),
            cluster: form.scope() == Some(Scope::Cluster),
            proxy: false,
        }
    }
}
