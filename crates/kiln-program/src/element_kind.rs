//! The size and number type of a Rust type that is used as a buffer's element.

use std::any::TypeId;
use std::fmt;

use kiln_ir::Type;
use kiln_runtime::Element;

/// The size of an element and, for plain numbers, which number it is. Other types (half precision of any library, arrays of bytes) fit by size
/// alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementKind {
    bytes: u64,
    number: Option<Type>,
}

impl ElementKind {
    /// Of a Rust type.
    pub fn of<T: Element>() -> Self {
        let numbers = [
            (TypeId::of::<u8>(), Type::U8),
            (TypeId::of::<u16>(), Type::U16),
            (TypeId::of::<u32>(), Type::U32),
            (TypeId::of::<u64>(), Type::U64),
            (TypeId::of::<i8>(), Type::I8),
            (TypeId::of::<i16>(), Type::I16),
            (TypeId::of::<i32>(), Type::I32),
            (TypeId::of::<i64>(), Type::I64),
            (TypeId::of::<f32>(), Type::F32),
            (TypeId::of::<f64>(), Type::F64),
        ];
        let number = numbers.into_iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, ty)| ty);
        Self { bytes: size_of::<T>() as u64, number }
    }

    /// Of elements that are known to be of a type.
    pub(crate) fn exactly(ty: Type) -> Self {
        Self { bytes: ty.bytes(), number: Some(ty) }
    }

    /// Which number it is, if it is a plain one.
    pub(crate) fn number(self) -> Option<Type> {
        self.number
    }

    /// Whether it can be an element of a type. Truth is a byte.
    pub fn fits(self, ty: Type) -> bool {
        match self.number {
            Some(number) if number == ty => true,
            Some(Type::U8) => ty == Type::Bool,
            Some(_) => false,
            None => self.bytes == ty.bytes(),
        }
    }
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(ty) => write!(f, "{ty}"),
            None => write!(f, "elements of {} bytes", self.bytes),
        }
    }
}
