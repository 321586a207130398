//! Textures and surfaces.

use super::super::lowered_code::{
    Geometry, Load, Op, Outside, PredSource, Reg, Source, Strength, SurfaceAccess, TextureAction, TextureStep,
};
use super::super::memory::generic_address::Place;
use super::super::texture::{geometry_of, query_of};
use super::atomics::update;
use super::function::Lowering;
use crate::{Address, AddressBase, Flag, Form, Opcode, Operation, PtxOperand, ScalarType, Space};

impl Lowering<'_> {
    /// `tex` and `tld4`.
    pub(super) fn lower_texture(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, PtxOperand::Bracket(place), rest @ ..] = operands else { return None };
        let geometry = geometry_of(form)?;
        let float = match form.source_type()? {
            ScalarType::F32 => true,
            ScalarType::S32 | ScalarType::U32 => false,
            _ => return None,
        };
        let action = match form.opcode() {
            Opcode::Tld4 => {
                let channel = ["r", "g", "b", "a"].iter().position(|word| form.has_word(word))?;
                if !float || geometry.dimensions != 2 {
                    return None;
                }
                TextureAction::Gather { channel: channel as u8 }
            }
            _ => TextureAction::Fetch { float },
        };
        // There is one level of detail, so that level and gradients do not matter.
        let skipped = if form.has_word("level") {
            1
        } else if form.has_word("grad") {
            2
        } else {
            0
        };
        let offsets = match rest.get(skipped..)? {
            [] => Vec::new(),
            [PtxOperand::Vector(elements)] => {
                let elements = self.body.elements(*elements).to_vec();
                let used = elements.iter().take(geometry.dimensions.into());
                used.map(|element| self.source(element, ScalarType::S32)).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        };
        let is_32_bits =
            form.ty().is_some_and(|ty| matches!(ty, ScalarType::F32 | ScalarType::U32 | ScalarType::S32));
        if form.vector() != 4 || !is_32_bits {
            return None;
        }
        let parts = self.parts(to);
        let to = parts.iter().map(|part| match self.mentions.is_never_read(part) {
            true => Some(Reg(0)),
            false => self.destination(part),
        });
        let to = to.collect::<Option<Vec<_>>>()?;
        let (handle, sampler, coordinates) = self.texture_place(self.body.elements(*place), geometry)?;
        if to.len() != 4 {
            return None;
        }
        self.emit(Op::Texture(Box::new(TextureStep {
            action,
            geometry,
            handle,
            sampler,
            coordinates: coordinates.into(),
            offsets: offsets.into(),
            to: to.into(),
            from: Box::default(),
        })));
        Some(())
    }

    /// `txq` and `suq`.
    pub(super) fn lower_texture_query(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let [to, PtxOperand::Address(address)] = operands else { return None };
        let query = query_of(form)?;
        let handle = match address.base {
            _ if address.offset != 0 => return None,
            AddressBase::Register(id) => PtxOperand::Register(id),
            AddressBase::Variable(id) => PtxOperand::Variable(id, 0),
            AddressBase::Absolute => return None,
        };
        let (handle, to) = (self.texture_handle(&handle)?, self.destination(to)?);
        let geometry = Geometry { dimensions: 1, layered: false, cube: false };
        self.emit(Op::Texture(Box::new(TextureStep {
            action: TextureAction::Query(query),
            geometry,
            handle,
            sampler: None,
            coordinates: Box::default(),
            offsets: Box::default(),
            to: [to].into(),
            from: Box::default(),
        })));
        Some(())
    }

    /// `suld`, `sust` and `sured`.
    pub(super) fn lower_surface(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let geometry = geometry_of(form).filter(|geometry| !geometry.cube)?;
        let formatted = form.has_word("p");
        let ty = form.ty()?;
        if formatted == form.has_word("b") {
            return None;
        }
        let outside = if form.has(Flag::Clamp) {
            Outside::Clamp
        } else if form.has(Flag::Zero) {
            Outside::Zero
        } else {
            Outside::Trap
        };
        let access = SurfaceAccess { bytes: ty.size_bytes(), formatted, outside };
        let [first, second] = operands else { return None };
        let (place, value) = if form.opcode() == Opcode::Suld { (second, first) } else { (first, second) };
        let PtxOperand::Bracket(place) = place else { return None };
        let values = self.parts(value);
        if values.len() != usize::from(form.vector()) || access.bytes > 8 {
            return None;
        }
        let (mut to, mut from) = (Vec::new(), Vec::new());
        let action = match form.opcode() {
            Opcode::Suld if !formatted => {
                to = values.iter().map(|value| self.destination(value)).collect::<Option<Vec<_>>>()?;
                TextureAction::Load(access)
            }
            Opcode::Sust => {
                from = values.iter().map(|value| self.source(value, ty)).collect::<Option<Vec<_>>>()?;
                TextureAction::Store(access)
            }
            Opcode::Sured if values.len() == 1 && access.bytes >= 4 => {
                let operation = form.operation()?;
                let is_known = matches!(
                    operation,
                    Operation::Add | Operation::Min | Operation::Max | Operation::And | Operation::Or
                );
                from = vec![self.source(values.first()?, ty)?];
                TextureAction::Reduce(access, update(operation, ty).filter(|_| is_known)?.1)
            }
            _ => return None,
        };
        let (handle, sampler, coordinates) = self.texture_place(self.body.elements(*place), geometry)?;
        if sampler.is_some() {
            return None;
        }
        self.emit(Op::Texture(Box::new(TextureStep {
            action,
            geometry,
            handle,
            sampler,
            coordinates: coordinates.into(),
            offsets: Box::default(),
            to: to.into(),
            from: from.into(),
        })));
        Some(())
    }

    /// What stands in the brackets: a texture, perhaps a sampler, and coordinates.
    fn texture_place(
        &mut self,
        place: &[PtxOperand],
        geometry: Geometry,
    ) -> Option<(Source, Option<Source>, Vec<Source>)> {
        let (handle, sampler, coordinates) = match place {
            [handle, coordinates] => (handle, None, coordinates),
            [handle, sampler, coordinates] => (handle, Some(sampler), coordinates),
            _ => return None,
        };
        let handle = self.texture_handle(handle)?;
        let sampler = match sampler {
            Some(sampler) => Some(self.texture_handle(sampler)?),
            None => None,
        };
        let parts = self.parts(coordinates);
        let used = parts.get(..geometry.coordinates())?.iter();
        let coordinates = used.map(|part| self.source(part, ScalarType::B32)).collect::<Option<Vec<_>>>()?;
        Some((handle, sampler, coordinates))
    }

    /// A handle in a register, or a variable or parameter that holds one.
    fn texture_handle(&mut self, operand: &PtxOperand) -> Option<Source> {
        let PtxOperand::Variable(id, offset) = *operand else { return self.source(operand, ScalarType::U64) };
        let is_parameter = self.context.module.variable(id)?.space.base() == Space::Param;
        if !is_parameter {
            return self.source(operand, ScalarType::U64);
        }
        let address = PtxOperand::Address(Address { base: AddressBase::Variable(id), offset });
        let (place, address) = self.address(&address, Place::Param)?;
        let to = self.scratch();
        self.emit(Op::Load(Box::new(Load {
            place,
            bytes: 8,
            extend_to: 0,
            strength: Strength::default(),
            constant: false,
            address,
            to: [to].into(),
            used_where: PredSource::ALWAYS,
        })));
        Some(to.into())
    }
}
