//! Element types of matrices and vectors.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use kiln_operation::{CollectiveElement, CollectiveType, ElementType};
use kiln_runtime::Element;

/// What matrices of a product consist of.
pub trait MatrixElement: Element {
    /// The type, as operations name it.
    const TYPE: ElementType;
}

/// What the other operations compute with: `f32` and `f64`.
pub trait Real: MatrixElement + Default + PartialEq {}

/// A floating point number of 8 bits, as its bits: sign, 4 bits of exponent with a bias of 7, 3 bits of fraction. There are no infinities, and the
/// largest number is 448. The other type of 8 bits, E5M2, is not there: `f16` has all of its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

macro_rules! elements {
    ($($type:ty = $name:ident,)*) => {
        $(impl MatrixElement for $type { const TYPE: ElementType = ElementType::$name; })*
    };
}

elements! {
    F8E4M3 = F8E4M3,
    f16 = F16,
    bf16 = Bf16,
    f32 = F32,
    f64 = F64,
    i8 = I8,
    i32 = I32,
}

impl CollectiveElement for F8E4M3 {
    const TYPE: CollectiveType = CollectiveType::F8E4M3;
}

impl Real for f32 {}
impl Real for f64 {}
