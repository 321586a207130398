//! Arithmetic of the oracle, apart from that of the simulator.

use half::{bf16, f16};
use kiln::buffer::Element;
use kiln::group::{CollectiveElement, Reduction};

/// A number of the oracle.
pub(crate) trait OracleNumber: Element + CollectiveElement + std::fmt::Debug + Send {
    fn small(value: u64) -> Self;
    fn reduce(self, other: Self, reduction: Reduction) -> Self;
    fn divide(self, ranks: usize) -> Self;
    fn same(self, other: Self) -> bool;
}

/// The reduction of several ranks, in their order.
pub(crate) fn reduced<T: OracleNumber>(ranks: &[Vec<T>], reduction: Reduction) -> Vec<T> {
    let one = |at: usize| {
        let values = ranks.iter().map(|values| values[at]);
        let all = values.reduce(|one, other| one.reduce(other, reduction)).unwrap();
        if reduction == Reduction::Average { all.divide(ranks.len()) } else { all }
    };
    (0..ranks[0].len()).map(one).collect()
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl OracleNumber for $type {
            fn small(value: u64) -> Self { (value % 5) as Self }
            fn reduce(self, other: Self, reduction: Reduction) -> Self {
                let exact = match reduction {
                    Reduction::Sum | Reduction::Average => i128::from(self) + i128::from(other),
                    Reduction::Product => i128::from(self).wrapping_mul(i128::from(other)),
                    Reduction::Min => return if other < self { other } else { self },
                    Reduction::Max => return if other > self { other } else { self },
                };
                exact as Self
            }
            fn divide(self, ranks: usize) -> Self { (i128::from(self) / ranks as i128) as Self }
            fn same(self, other: Self) -> bool { self == other }
        }
    )*};
}
integers!(i8 u8 i32 u32 i64 u64);

macro_rules! floats {
    ($($type:ty: $from:expr;)*) => {$(
        impl OracleNumber for $type {
            fn small(value: u64) -> Self { $from((value % 5) as f32 * 0.75) }
            fn reduce(self, other: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum | Reduction::Average => self + other,
                    Reduction::Product => self * other,
                    Reduction::Min => if other < self || self != self { other } else { self },
                    Reduction::Max => if other > self || self != self { other } else { self },
                }
            }
            fn divide(self, ranks: usize) -> Self { self / $from(ranks as f32) }
            fn same(self, other: Self) -> bool { self == other || (self != self && other != other) }
        }
    )*};
}
floats! {
    f32: |value: f32| value;
    f64: |value: f32| f64::from(value);
    f16: f16::from_f32;
    bf16: bf16::from_f32;
}
