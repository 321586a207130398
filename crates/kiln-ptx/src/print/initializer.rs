//! Initializers: bytes back to numbers and names, in braces as the dimensions nest.

use std::fmt::{self, Formatter};

use crate::initializer::{Initializer, Relocation, RelocationTarget};
use crate::module::PtxModule;
use crate::scalar::{ScalarKind, ScalarType};
use crate::variable::VariableShape;

/// Scalars printed so far, and what is left.
struct Values<'a> {
    module: &'a PtxModule,
    ty: ScalarType,
    bytes: &'a [u8],
    relocations: &'a [Relocation],
    offset: u64,
}

pub(super) fn print_initializer(
    module: &PtxModule,
    shape: &VariableShape,
    initializer: &Initializer,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let Initializer { bytes, relocations } = initializer;
    let mut values = Values { module, ty: shape.ty, bytes, relocations, offset: 0 };
    let mut lengths = shape.dimensions.clone();
    if shape.vector > 1 {
        lengths.push(u64::from(shape.vector));
    }
    if bytes.is_empty() { f.write_str("{}") } else { values.print_level(&lengths, f) }
}

impl Values<'_> {
    /// One list in braces, or one scalar when no lengths are left.
    fn print_level(&mut self, lengths: &[u64], f: &mut Formatter<'_>) -> fmt::Result {
        let Some((length, inner)) = lengths.split_first() else { return self.print_scalar(f) };
        f.write_str("{")?;
        for i in 0..*length {
            if self.bytes.is_empty() {
                break;
            }
            if i > 0 {
                f.write_str(", ")?;
            }
            self.print_level(inner, f)?;
        }
        f.write_str("}")
    }

    fn print_scalar(&mut self, f: &mut Formatter<'_>) -> fmt::Result {
        let width = self.ty.size_bytes() as usize;
        let (now, rest) = self.bytes.split_at(width.min(self.bytes.len()));
        let here = self.offset;
        self.bytes = rest;
        self.offset += width as u64;
        match self.relocations.split_first() {
            Some((relocation, rest)) if relocation.offset == here => {
                self.relocations = rest;
                self.print_relocation(relocation, f)
            }
            _ => self.print_number(now, f),
        }
    }

    fn print_number(&self, bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
        let bits = bytes.iter().take(8).rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        match (self.ty, self.ty.kind()) {
            (ScalarType::F32, _) => write!(f, "0f{bits:08X}"),
            (ScalarType::F64, _) => write!(f, "0d{bits:016X}"),
            (_, ScalarKind::Signed) => write!(f, "{}", ((bits << unused) as i64) >> unused),
            _ => write!(f, "{bits}"),
        }
    }

    fn print_relocation(&self, relocation: &Relocation, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match relocation.target {
            RelocationTarget::Variable(id) => self.module.variable(id).map(|v| &v.name),
            RelocationTarget::Function(id) => self.module.function(id).map(|function| &function.name),
        };
        let name: &str = name.map_or("_", |name| name);
        if let Some(mask) = relocation.mask {
            write!(f, "0x{mask:X}(")?;
        }
        if relocation.generic {
            write!(f, "generic({name})")?;
        } else {
            f.write_str(name)?;
        }
        if relocation.addend != 0 {
            write!(f, "+{}", relocation.addend)?;
        }
        if relocation.mask.is_some() { f.write_str(")") } else { Ok(()) }
    }
}
