//! The types of PTX values.

use crate::keyword::keywords;

keywords! {
    /// The type of a register, variable element or operation.
    ///
    /// ```
    /// use kiln_ptx::{ScalarKind, ScalarType};
    ///
    /// let t = ScalarType::from_keyword("s64").unwrap();
    /// assert_eq!((t.size_bytes(), t.kind()), (8, ScalarKind::Signed));
    /// ```
    pub enum ScalarType {
        B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128",
        U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        U16x2 = "u16x2", S16x2 = "s16x2", U8x4 = "u8x4", S8x4 = "s8x4",
        F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16", Bf16x2 = "bf16x2",
        Tf32 = "tf32", F32 = "f32", F32x2 = "f32x2", F64 = "f64",
        E4m3 = "e4m3", E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2", E4m3x4 = "e4m3x4", E5m2x4 = "e5m2x4",
        E2m1 = "e2m1", E2m3 = "e2m3", E3m2 = "e3m2",
        E2m1x2 = "e2m1x2", E2m3x2 = "e2m3x2", E3m2x2 = "e3m2x2",
        E2m1x4 = "e2m1x4", E2m3x4 = "e2m3x4", E3m2x4 = "e3m2x4",
        Ue8m0 = "ue8m0", Ue8m0x2 = "ue8m0x2", Ue4m3 = "ue4m3",
        U4 = "u4", S4 = "s4", U2 = "u2", S2 = "s2", B1 = "b1", B4 = "b4", B6 = "b6",
        B4x16 = "b4x16", B6x16P32 = "b6x16_p32", B4x16P64 = "b4x16_p64", B8x16 = "b8x16",
        Pred = "pred",
        TexRef = "texref", SamplerRef = "samplerref", SurfRef = "surfref",
    }
}

/// What the bits of a [`ScalarType`] mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// Bits without a type.
    Bits,
    /// Unsigned integer, or several packed ones.
    Unsigned,
    /// Two's complement integer, or several packed ones.
    Signed,
    /// Floating point, or several packed ones.
    Float,
    /// One truth value.
    Predicate,
    /// A texture, sampler or surface.
    Opaque,
}

impl ScalarType {
    /// Bytes a variable of this type takes. A predicate counts one, a texture, sampler or surface eight;
    /// types below a byte count one.
    pub fn size_bytes(self) -> u32 {
        use ScalarType::*;
        match self {
            B8 | U8 | S8 | E4m3 | E5m2 | E2m1 | E2m3 | E3m2 | Ue8m0 | Ue4m3 | E2m1x2 => 1,
            U4 | S4 | U2 | S2 | B1 | B4 | B6 | Pred => 1,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E2m3x2 | E3m2x2 | E2m1x4 | Ue8m0x2 => 2,
            B32 | U32 | S32 | U16x2 | S16x2 | U8x4 | S8x4 | F16x2 | Bf16x2 | Tf32 | F32 => 4,
            E4m3x4 | E5m2x4 | E2m3x4 | E3m2x4 => 4,
            B64 | U64 | S64 | F64 | F32x2 | TexRef | SamplerRef | SurfRef => 8,
            B128 | B4x16 | B6x16P32 | B4x16P64 | B8x16 => 16,
        }
    }

    /// What the bits mean.
    pub fn kind(self) -> ScalarKind {
        use ScalarType::*;
        match self {
            B8 | B16 | B32 | B64 | B128 | B1 | B4 | B6 | B4x16 | B6x16P32 | B4x16P64 | B8x16 => {
                ScalarKind::Bits
            }
            U8 | U16 | U32 | U64 | U16x2 | U8x4 | U4 | U2 => ScalarKind::Unsigned,
            S8 | S16 | S32 | S64 | S16x2 | S8x4 | S4 | S2 => ScalarKind::Signed,
            Pred => ScalarKind::Predicate,
            TexRef | SamplerRef | SurfRef => ScalarKind::Opaque,
            _ => ScalarKind::Float,
        }
    }
}
