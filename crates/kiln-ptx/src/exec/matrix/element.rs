//! Types of matrix elements.

/// The type of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixElement {
    F16,
    Bf16,
    Tf32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
}

impl MatrixElement {
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f64" => Self::F64,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "s8" => Self::S8,
            "u8" => Self::U8,
            "s4" => Self::S4,
            "u4" => Self::U4,
            "b1" => Self::B1,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::S4 | Self::U4 => 4,
            Self::B1 => 1,
        }
    }

    /// Elements in one register.
    pub(crate) fn per_register(self) -> usize {
        (32 / self.bits()).max(1) as usize
    }

    /// The value of an integer element.
    pub(crate) fn integer(self, bits: u64) -> i64 {
        match self {
            Self::S8 => i64::from(bits as u8 as i8),
            Self::S4 => i64::from(((bits as u8) << 4) as i8 >> 4),
            _ => bits as i64,
        }
    }
}

/// The type of an element of C or D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulator {
    F16,
    F32,
    F64,
    S32,
}

impl Accumulator {
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "f16" => Self::F16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "s32" => Self::S32,
            _ => return None,
        })
    }

    /// Elements in one register.
    pub(crate) fn per_register(self) -> usize {
        if self == Self::F16 { 2 } else { 1 }
    }
}
