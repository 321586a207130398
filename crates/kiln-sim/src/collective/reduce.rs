//! Reductions, element by element, in the arithmetic of the element type.

use kiln_operation::{CollectiveType, Reduction};

use crate::code::cpu_libraries::small_float;

/// Arithmetic of one element type.
trait Value: Sized + Copy {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn divided(self, by: u32) -> Self;

    fn reduce(self, other: Self, reduction: Reduction) -> Self {
        match reduction {
            Reduction::Sum | Reduction::Average => self.sum(other),
            Reduction::Product => self.product(other),
            Reduction::Min => self.smaller(other),
            Reduction::Max => self.larger(other),
        }
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn smaller(self, other: Self) -> Self { Ord::min(self, other) }
            fn larger(self, other: Self) -> Self { Ord::max(self, other) }
            fn divided(self, by: u32) -> Self {
                // A sum of 8 bits has no more ranks than its type can count; the quotient fits in any case.
                (i128::from(self) / i128::from(by)) as Self
            }
        }
    )*};
}
integers!(i8 u8 i32 u32 i64 u64);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn sum(self, other: Self) -> Self { self + other }
            fn product(self, other: Self) -> Self { self * other }
            fn smaller(self, other: Self) -> Self { self.min(other) }
            fn larger(self, other: Self) -> Self { self.max(other) }
            fn divided(self, by: u32) -> Self { self / by as Self }
        }
    )*};
}
floats!(f32 f64);

/// Changes `result` to its reduction with `block`. A type of 8 or 16 bits is computed in `f64` and rounded after each rank.
pub(crate) fn combine(
    element: CollectiveType,
    reduction: Option<Reduction>,
    result: &mut [u8],
    block: &[u8],
) {
    let reduction = reduction.unwrap_or(Reduction::Sum);
    macro_rules! native {
        ($type:ty) => {
            each(result, block, |one: $type, other| one.reduce(other, reduction))
        };
    }
    match element {
        CollectiveType::I8 => native!(i8),
        CollectiveType::U8 => native!(u8),
        CollectiveType::I32 => native!(i32),
        CollectiveType::U32 => native!(u32),
        CollectiveType::I64 => native!(i64),
        CollectiveType::U64 => native!(u64),
        CollectiveType::F32 => native!(f32),
        CollectiveType::F64 => native!(f64),
        other => small(other, result, |at, one| {
            let theirs = block.get(at..).map_or(0.0, |bytes| small_float::decode(other, bytes));
            one.reduce(theirs, reduction)
        }),
    }
}

/// Divides a sum by the number of ranks.
pub(crate) fn average(element: CollectiveType, sum: &mut [u8], ranks: u32) {
    macro_rules! native {
        ($type:ty) => {{
            let ignored = sum.to_vec();
            each(sum, &ignored, |one: $type, _| one.divided(ranks))
        }};
    }
    match element {
        CollectiveType::I8 => native!(i8),
        CollectiveType::U8 => native!(u8),
        CollectiveType::I32 => native!(i32),
        CollectiveType::U32 => native!(u32),
        CollectiveType::I64 => native!(i64),
        CollectiveType::U64 => native!(u64),
        CollectiveType::F32 => native!(f32),
        CollectiveType::F64 => native!(f64),
        other => small(other, sum, |_, one| one.divided(ranks)),
    }
}

/// A value as its bytes.
trait Bytes: Sized {
    fn from_slice(bytes: &[u8]) -> Option<Self>;
    fn put(self, into: &mut [u8]);
}

macro_rules! bytes {
    ($($type:ty)*) => {$(
        impl Bytes for $type {
            fn from_slice(bytes: &[u8]) -> Option<Self> { bytes.try_into().ok().map(Self::from_le_bytes) }
            fn put(self, into: &mut [u8]) { into.copy_from_slice(&self.to_le_bytes()); }
        }
    )*};
}
bytes!(i8 u8 i32 u32 i64 u64 f32 f64);

fn each<T: Bytes>(result: &mut [u8], block: &[u8], combine: impl Fn(T, T) -> T) {
    let elements = result.chunks_exact_mut(size_of::<T>()).zip(block.chunks_exact(size_of::<T>()));
    for (into, other) in elements {
        if let (Some(one), Some(other)) = (T::from_slice(into), T::from_slice(other)) {
            combine(one, other).put(into);
        }
    }
}

fn small(element: CollectiveType, values: &mut [u8], change: impl Fn(usize, f64) -> f64) {
    let bytes = element.bytes() as usize;
    for at in (0..values.len()).step_by(bytes) {
        let Some(value) = values.get_mut(at..at + bytes) else { return };
        let changed = change(at, small_float::decode(element, value));
        small_float::encode(element, changed, value);
    }
}
