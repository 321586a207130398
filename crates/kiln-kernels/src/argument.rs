//! Arguments: values and buffers a kernel is called with.

use crate::buffer::{Buffer, Compare, Data};

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// Bytes by value, aligned to a power of two.
    Value {
        /// The bytes.
        bytes: Vec<u8>,
        /// Their alignment.
        align: usize,
    },
    /// The address of a buffer.
    Buffer(Buffer),
}

impl Argument {
    pub(crate) fn buffer(&self) -> Option<&Buffer> {
        match self {
            Self::Buffer(buffer) => Some(buffer),
            Self::Value { .. } => None,
        }
    }

    /// The same buffer judged another way.
    pub(crate) fn judged(self, compare: Compare) -> Self {
        match self {
            Self::Buffer(buffer) => Self::Buffer(Buffer { compare, ..buffer }),
            value => value,
        }
    }
}

/// A value argument.
pub(crate) fn value(value: impl Into<Argument>) -> Argument {
    value.into()
}

/// A buffer that is compared bit for bit.
pub(crate) fn exact(list: impl Into<Data>) -> Argument {
    Argument::Buffer(Buffer { data: list.into(), compare: Compare::Exact })
}

macro_rules! numbers {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for Argument {
            fn from(value: $ty) -> Self {
                Self::Value { bytes: value.to_le_bytes().to_vec(), align: align_of::<$ty>() }
            }
        }

        impl From<Vec<$ty>> for Data {
            fn from(list: Vec<$ty>) -> Self {
                Self::$variant(list)
            }
        }
    )*};
}

numbers!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32, f64 => F64);
