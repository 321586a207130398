//! What an element of a tensor is, as a tensor map says.

use crate::ScalarType;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorElement {
    /// `.u8`.
    U8,
    /// `.u16`.
    U16,
    /// `.u32`.
    U32,
    /// `.s32`.
    S32,
    /// `.u64`.
    U64,
    /// `.s64`.
    S64,
    /// `.f16`.
    F16,
    /// `.f32`.
    F32,
    /// `.f32` whose subnormal values a load makes zero.
    F32Ftz,
    /// `.f64`.
    F64,
    /// `.bf16`.
    Bf16,
    /// `.f32` that a load rounds to `.tf32`.
    Tf32,
    /// The same, and subnormal values become zero.
    Tf32Ftz,
}

impl TensorElement {
    /// All of them, by their numbers in `tensormap.replace`.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::F32,
        Self::F32Ftz,
        Self::F64,
        Self::Bf16,
        Self::Tf32,
        Self::Tf32Ftz,
    ];

    /// All of them, by their numbers in `CUtensorMapDataType`, which are others.
    pub const DRIVER: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::F32Ftz,
        Self::Tf32,
        Self::Tf32Ftz,
    ];

    /// Its number in `CUtensorMapDataType`.
    pub fn driver_code(self) -> u32 {
        Self::DRIVER.iter().position(|element| *element == self).unwrap_or(0) as u32
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }

    /// Whether it is a floating-point number.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::S32 | Self::U64 | Self::S64)
    }

    /// Its number in `tensormap.replace`.
    pub(crate) fn code(self) -> u8 {
        Self::ALL.iter().position(|element| *element == self).unwrap_or(0) as u8
    }

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The type that reductions compute with.
    pub(crate) fn scalar(self) -> ScalarType {
        match self {
            Self::U8 => ScalarType::U8,
            Self::U16 => ScalarType::U16,
            Self::U32 => ScalarType::U32,
            Self::S32 => ScalarType::S32,
            Self::U64 => ScalarType::U64,
            Self::S64 => ScalarType::S64,
            Self::F16 => ScalarType::F16,
            Self::Bf16 => ScalarType::Bf16,
            Self::F64 => ScalarType::F64,
            Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => ScalarType::F32,
        }
    }

    /// The bytes of the NaN that stands for elements outside of a tensor, over and over. CUDA does not say which NaN it is; these are an H200's for
    /// every type.
    pub(crate) const OUTSIDE_NAN: [u8; 2] = 0x7ff7_u16.to_le_bytes();

    /// Whether a load changes values.
    pub(crate) fn converts(self) -> bool {
        matches!(self, Self::Tf32 | Self::Tf32Ftz)
    }

    /// What a load makes of the bits of an element.
    pub(crate) fn converted(self, bits: u32) -> u32 {
        const EXPONENT: u32 = 0xff << 23;
        /// Bits of the fraction of a single that `.tf32` does not have.
        const DROPPED: u32 = (1 << 13) - 1;
        const BELOW_HALF: u32 = (1 << 12) - 1;
        let is_finite = bits & EXPONENT != EXPONENT;
        match self {
            // To the nearest, and in the middle to the even one, as an H200 does.
            Self::Tf32 | Self::Tf32Ftz if is_finite => (bits + BELOW_HALF + (bits >> 13 & 1)) & !DROPPED,
            _ => bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_conversions() {
        for element in TensorElement::ALL {
            assert_eq!(TensorElement::of_code(element.code()), Some(element));
            assert_eq!(element.scalar().size_bytes(), element.bytes());
        }
        assert_eq!(TensorElement::of_code(13), None);
        let subnormal = 0x8000_1234;
        assert_eq!(TensorElement::F32.converted(subnormal), subnormal);
        assert_eq!(TensorElement::F32Ftz.converted(subnormal), subnormal);
        assert_eq!(TensorElement::Tf32.converted(0x3f80_1000), 0x3f80_0000);
        assert_eq!(TensorElement::Tf32.converted(0x3f80_3000), 0x3f80_4000);
        assert_eq!(TensorElement::Tf32.converted(0x3f80_1001), 0x3f80_2000);
        assert_eq!(TensorElement::Tf32.converted(0x3f80_0fff), 0x3f80_0000);
        assert_eq!(TensorElement::Tf32Ftz.converted(0x7fc0_0001), 0x7fc0_0001);
    }
}
