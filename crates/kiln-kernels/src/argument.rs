//! Arguments: values and buffers a kernel is called with.

use crate::buffer::{CaseBuffer, Compare, Data};

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseArgument {
    /// Bytes by value, aligned to a power of two.
    Value {
        /// The bytes.
        bytes: Vec<u8>,
        /// Their alignment.
        align: usize,
    },
    /// The address of a buffer.
    Buffer(CaseBuffer),
}

impl CaseArgument {
    pub(crate) fn buffer(&self) -> Option<&CaseBuffer> {
        match self {
            Self::Buffer(buffer) => Some(buffer),
            Self::Value { .. } => None,
        }
    }

    /// The same buffer judged another way.
    pub(crate) fn judged(self, compare: Compare) -> Self {
        match self {
            Self::Buffer(buffer) => Self::Buffer(CaseBuffer { compare, ..buffer }),
            value => value,
        }
    }
}

/// A value argument.
pub(crate) fn value(value: impl Into<CaseArgument>) -> CaseArgument {
    value.into()
}

/// A buffer that is compared bit for bit.
pub(crate) fn exact(list: impl Into<Data>) -> CaseArgument {
    CaseArgument::Buffer(CaseBuffer { data: list.into(), compare: Compare::Exact })
}

macro_rules! numbers {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for CaseArgument {
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
