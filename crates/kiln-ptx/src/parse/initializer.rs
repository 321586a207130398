//! Initializers of variables, laid out as bytes while they are read.

use std::ops::Range;

use super::Parser;
use super::cursor::{invalid, limit, unknown_name};
use super::lexer::TokenKind;
use super::scope::Binding;
use crate::error::ParseError;
use crate::initializer::{Initializer, Relocation, RelocationTarget};
use crate::operand::Immediate;
use crate::scalar::{ScalarKind, ScalarType};
use crate::variable::VariableShape;

/// The most zeros that the nested initializers of one module may leave out between them: `{{1}, {2}}` for a
/// variable with gigantic rows would otherwise turn a short text into a gigantic module.
const MAX_PADDING_BYTES: u64 = 64 << 20;

/// The element lengths of an array: how many scalars each level of braces spans.
struct Layout {
    ty: ScalarType,
    /// Scalars under one item of each level, outermost first; the last is 1.
    strides: Vec<u64>,
    /// Scalars in all; `None` when the outermost dimension is open.
    total: Option<u64>,
}

impl<'a> Parser<'a> {
    /// What stands behind `=`. An open dimension of `shape` takes the length given here.
    pub(super) fn initializer(&mut self, shape: &mut VariableShape) -> Result<Initializer, ParseError> {
        let layout = Layout::new(shape);
        let mut out = Initializer::default();
        let is_list = self.is_punct(b'{');
        let is_scalar = shape.vector == 1 && shape.dimensions.is_empty();
        if is_list == is_scalar {
            let wanted = if is_scalar { "a constant without braces" } else { "`{` and a list of constants" };
            return Err(self.unexpected(wanted));
        }
        let end = if is_list {
            self.initializer_list(&layout, 0, 0..layout.total.unwrap_or(u64::MAX), &mut out)?
        } else {
            self.initializer_value(&layout, 0, &mut out)?;
            1
        };
        if let (Some(open @ 0), Some(stride)) = (shape.dimensions.first_mut(), layout.strides.first()) {
            *open = end.div_ceil((*stride).max(1));
        }
        Ok(out)
    }

    /// A list in braces at `level`, for the scalars of these numbers; returns the number behind its last.
    fn initializer_list(
        &mut self,
        layout: &Layout,
        level: usize,
        room: Range<u64>,
        out: &mut Initializer,
    ) -> Result<u64, ParseError> {
        self.expect(b'{')?;
        let mut next = room.start;
        while !self.is_punct(b'}') {
            if next >= room.end {
                return Err(self.unexpected("`}`, because the variable has no more elements"));
            }
            if self.is_punct(b'{') {
                let Some(stride) = layout.strides.get(level).filter(|_| level + 1 < layout.strides.len())
                else {
                    return Err(self.unexpected("a constant, because the variable has no more dimensions"));
                };
                // A row behind single scalars begins in the middle of one, and must still end with the variable.
                let end = next.saturating_add(*stride);
                self.initializer_list(layout, level + 1, next..end.min(room.end), out)?;
                next = end;
            } else {
                self.initializer_value(layout, next, out)?;
                next += 1;
            }
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b'}')?;
        Ok(next)
    }

    /// One scalar, stored as number `index`.
    fn initializer_value(
        &mut self,
        layout: &Layout,
        index: u64,
        out: &mut Initializer,
    ) -> Result<(), ParseError> {
        let width = u64::from(layout.ty.size_bytes());
        let offset = index.saturating_mul(width);
        self.pad(offset, out)?;
        let position = self.position();
        if self.token.kind == TokenKind::Word && self.token.text != "WARP_SZ" {
            if !holds_address(layout.ty) {
                let text = format!("a variable of type .{} holds no address; use .u64", layout.ty);
                return Err(invalid(position, text));
            }
            let relocation = self.relocation(offset, None)?;
            out.relocations.push(relocation);
            out.bytes.resize(out.bytes.len() + width as usize, 0);
            return Ok(());
        }
        let value = self.constant()?;
        if self.accept(b'(')? {
            let relocation = self.relocation(offset, Some(value.bits()))?;
            self.expect(b')')?;
            out.relocations.push(relocation);
            out.bytes.resize(out.bytes.len() + width as usize, 0);
            return Ok(());
        }
        if !is_value_of(layout.ty, value) {
            let text = format!("a variable of type .{} takes no first value of this kind", layout.ty);
            return Err(invalid(position, text));
        }
        let bits = scalar_bits(layout.ty, value).to_le_bytes();
        out.bytes.extend(bits.iter().chain(std::iter::repeat(&0)).take(width as usize));
        Ok(())
    }

    /// Fills with zeros up to `offset`.
    fn pad(&mut self, offset: u64, out: &mut Initializer) -> Result<(), ParseError> {
        let gap = offset.saturating_sub(out.bytes.len() as u64);
        self.padding_bytes = self.padding_bytes.saturating_add(gap);
        if self.padding_bytes > MAX_PADDING_BYTES {
            return Err(limit(self.position(), "the bytes that initializers leave out", MAX_PADDING_BYTES));
        }
        out.bytes.resize(out.bytes.len() + gap as usize, 0);
        Ok(())
    }

    /// `name`, `name+4`, `generic(name)+4`.
    fn relocation(&mut self, offset: u64, mask: Option<u64>) -> Result<Relocation, ParseError> {
        let generic = self.is_word("generic");
        if generic {
            self.bump()?;
            self.expect(b'(')?;
        }
        let name = self.expect_word("a variable or function")?;
        let target = match self.scope.find(name.text) {
            Some(Binding::Variable(id)) => RelocationTarget::Variable(id),
            Some(Binding::Register(_)) => return Err(invalid(name.position, "a register has no address")),
            None => match self.function_ids.get(name.text) {
                Some(id) => RelocationTarget::Function(*id),
                None => return Err(unknown_name(&name, "variable or function")),
            },
        };
        let mut addend = self.addend()?;
        if generic {
            self.expect(b')')?;
            addend = addend.wrapping_add(self.addend()?);
        }
        Ok(Relocation { offset, target, addend, generic, mask })
    }

    /// `+4` or `-4` behind a name, 0 when there is neither.
    pub(super) fn addend(&mut self) -> Result<i64, ParseError> {
        let plus = self.accept(b'+')?;
        if plus || self.is_punct(b'-') { self.integer() } else { Ok(0) }
    }
}

impl Layout {
    fn new(shape: &VariableShape) -> Self {
        let mut lengths = shape.dimensions.clone();
        if shape.vector > 1 || lengths.is_empty() {
            lengths.push(u64::from(shape.vector));
        }
        let mut strides = vec![1u64; lengths.len()];
        for level in (1..lengths.len()).rev() {
            let below = strides.get(level).copied().unwrap_or(1);
            let length = lengths.get(level).copied().unwrap_or(1);
            if let Some(stride) = strides.get_mut(level - 1) {
                *stride = below.saturating_mul(length);
            }
        }
        let total = match (lengths.first(), strides.first()) {
            (Some(0), _) => None,
            (Some(n), Some(stride)) => Some(n.saturating_mul(*stride)),
            _ => Some(1),
        };
        Self { ty: shape.ty, strides, total }
    }
}

/// Whether a variable of this type can hold the address of another.
fn holds_address(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, U32 | U64)
}

/// Whether a constant may be the first value of a variable of this type: numbers are not converted between integers and floats.
fn is_value_of(ty: ScalarType, value: Immediate) -> bool {
    let is_integer = matches!(value, Immediate::Signed(_) | Immediate::Unsigned(_));
    match ty.kind() {
        ScalarKind::Bits => true,
        ScalarKind::Signed | ScalarKind::Unsigned => is_integer,
        ScalarKind::Float => matches!(ty, ScalarType::F32 | ScalarType::F64) && !is_integer,
        ScalarKind::Predicate | ScalarKind::Opaque => false,
    }
}

/// The bits of a constant stored as `ty`.
fn scalar_bits(ty: ScalarType, value: Immediate) -> u64 {
    match (ty, value) {
        (ScalarType::F64, Immediate::F32(bits)) => f64::from(f32::from_bits(bits)).to_bits(),
        (ScalarType::F64, Immediate::Signed(x)) => (x as f64).to_bits(),
        (ScalarType::F64, Immediate::Unsigned(x)) => (x as f64).to_bits(),
        (ScalarType::F32, Immediate::F64(bits)) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (ScalarType::F32, Immediate::Signed(x)) => u64::from((x as f32).to_bits()),
        (ScalarType::F32, Immediate::Unsigned(x)) => u64::from((x as f32).to_bits()),
        _ => value.bits(),
    }
}
