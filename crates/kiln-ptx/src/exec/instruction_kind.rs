//! Kinds of instructions, as statistics count them.

use crate::{Form, Opcode, ScalarKind, ScalarType};

/// What an instruction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstructionKind {
    /// Arithmetic on integers.
    Integer,
    /// Logic, shifts, and other work on bits.
    Bits,
    /// Arithmetic on `f32`.
    Single,
    /// Arithmetic on `f64`.
    Double,
    /// Arithmetic on `f16` and `bf16`, also two at once.
    Half,
    /// Matrix products and the moves of their fragments.
    Tensor,
    /// Comparisons and selections.
    Compare,
    /// Conversions between types.
    Convert,
    /// Moves between registers, and addresses.
    Move,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Asynchronous copies.
    Copy,
    /// Atomics and reductions in memory.
    Atomic,
    /// Textures and surfaces.
    Texture,
    /// Barriers, fences, and waits.
    Barrier,
    /// Shuffles, votes and the like between the lanes of a warp.
    Warp,
    /// Branches, calls and ends.
    Control,
    /// All others.
    Other,
}

impl InstructionKind {
    /// The kind of an instruction with this form.
    pub(crate) fn of(form: &Form) -> Self {
        use Opcode::*;
        match form.opcode() {
            Ld | Ldu => Self::Load,
            St => Self::Store,
            Cp => Self::Copy,
            Atom | Red | Multimem => Self::Atomic,
            Tex | Tld4 | Txq | Istypep | Suld | Sust | Sured | Suq => Self::Texture,
            Bar | Barrier | Mbarrier | Membar | Fence | Griddepcontrol => Self::Barrier,
            Shfl | Vote | Match | Activemask | Redux | Elect => Self::Warp,
            Bra | Brx | Call | Ret | Exit | Trap | Brkpt | Nanosleep => Self::Control,
            Wmma | Mma | Wgmma | Tcgen05 | Ldmatrix | Stmatrix | Movmatrix => Self::Tensor,
            Set | Setp | Selp | Slct | Testp => Self::Compare,
            Cvt => Self::Convert,
            Mov | Cvta | Isspacep | Mapa | Getctarank | Alloca | Stacksave | Stackrestore => Self::Move,
            And | Or | Xor | Not | Cnot | Lop3 | Shf | Shl | Shr | Prmt | Popc | Clz | Bfind | Fns | Brev
            | Bfe | Bfi | Bmsk | Szext => Self::Bits,
            Add | Sub | Mul | Mad | Mul24 | Mad24 | Sad | Div | Rem | Abs | Neg | Min | Max | Addc | Subc
            | Madc | Dp4a | Dp2a | Clmad | Fma | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh
            | Copysign => Self::of_arithmetic(form),
            opcode if (Vadd..=Vset4).contains(&opcode) => Self::Integer,
            _ => Self::Other,
        }
    }

    fn of_arithmetic(form: &Form) -> Self {
        match form.ty() {
            Some(ScalarType::F64) => Self::Double,
            Some(ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2) => Self::Half,
            Some(ty) if ty.kind() == ScalarKind::Float => Self::Single,
            _ => Self::Integer,
        }
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Bits => "bits",
            Self::Single => "f32",
            Self::Double => "f64",
            Self::Half => "f16",
            Self::Tensor => "tensor",
            Self::Compare => "compare",
            Self::Convert => "convert",
            Self::Move => "move",
            Self::Load => "load",
            Self::Store => "store",
            Self::Copy => "copy",
            Self::Atomic => "atomic",
            Self::Texture => "texture",
            Self::Barrier => "barrier",
            Self::Warp => "warp",
            Self::Control => "control",
            Self::Other => "other",
        }
    }
}
