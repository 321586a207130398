//! The types of elements.

use half::{bf16, f16};
use kiln_operation::ElementType;
use kiln_runtime::Element;

/// What elements can be: floats, and integers of 8 to 64 bits.
pub trait ElementNumber: Element {
    /// The name of the type in programs.
    #[doc(hidden)]
    const NAME: &'static str;
    /// The type in which elements are computed.
    #[doc(hidden)]
    const COMPUTED_IN: &'static str;
}

/// `f32`, `f64`, `f16` and `bf16`.
pub trait ElementFloat: ElementNumber {
    /// The type, for tolerances.
    #[doc(hidden)]
    const TYPE: ElementType;
}

macro_rules! numbers {
    ($($type:ty: $name:literal in $computed:literal;)*) => {$(
        impl ElementNumber for $type {
            const NAME: &'static str = $name;
            const COMPUTED_IN: &'static str = $computed;
        }
    )*};
}

numbers! {
    f64: "f64" in "f64";
    f32: "f32" in "f32";
    f16: "f16" in "f32";
    bf16: "bf16" in "f32";
    i8: "i8" in "i8";
    i16: "i16" in "i16";
    i32: "i32" in "i32";
    i64: "i64" in "i64";
    u8: "u8" in "u8";
    u16: "u16" in "u16";
    u32: "u32" in "u32";
    u64: "u64" in "u64";
}

impl ElementFloat for f64 {
    const TYPE: ElementType = ElementType::F64;
}
impl ElementFloat for f32 {
    const TYPE: ElementType = ElementType::F32;
}
impl ElementFloat for f16 {
    const TYPE: ElementType = ElementType::F16;
}
impl ElementFloat for bf16 {
    const TYPE: ElementType = ElementType::Bf16;
}
