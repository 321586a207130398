//! Arithmetic, bits, comparisons, functions.

use crate::scalar_type::Type;
use crate::word_enum::word_enum;

word_enum! {
    /// An operation on one operand.
    ///
    /// Which NaN a float operation gives is not defined, neither its bits nor its sign.
    pub enum UnaryOp {
        /// `-a`. Integers wrap: the negative of the smallest signed number is itself, and that of an unsigned number
        /// its two's complement. Of floats the sign flips, also of zero.
        Neg = "neg",
        /// Bitwise or logical negation. Not for floats.
        Not = "not",
        /// `|a|`. The smallest signed integer stays itself.
        Abs = "abs",
        /// The square root, correctly rounded; NaN of a negative number, `-0.0` of `-0.0`. Only for floats.
        Sqrt = "sqrt",
        /// The largest whole number that is not above `a`. Only for floats.
        Floor = "floor",
        /// The smallest whole number that is not below `a`. Only for floats.
        Ceil = "ceil",
        /// `a` truncated toward zero. Only for floats.
        Trunc = "trunc",
        /// The nearest whole number, ties to even. Only for floats.
        Round = "round",
        /// The number of set bits, as a `u32`. Only for integers.
        CountOnes = "count_ones",
        /// The number of zero bits above the highest set bit, as a `u32`; of 0 the width. Only for integers.
        LeadingZeros = "leading_zeros",
        /// The number of zero bits below the lowest set bit, as a `u32`; of 0 the width. Only for integers.
        TrailingZeros = "trailing_zeros",
        /// The bits in reverse order. Only for integers.
        ReverseBits = "reverse_bits",
    }
}

impl UnaryOp {
    /// Whether it can work on a type.
    pub const fn accepts(self, ty: Type) -> bool {
        match self {
            Self::Neg | Self::Abs => !matches!(ty, Type::Bool),
            Self::Not => !ty.is_float(),
            Self::Sqrt | Self::Floor | Self::Ceil | Self::Trunc | Self::Round => ty.is_float(),
            Self::CountOnes | Self::LeadingZeros | Self::TrailingZeros | Self::ReverseBits => ty.is_integer(),
        }
    }

    /// The type of the result.
    pub const fn result(self, ty: Type) -> Type {
        match self {
            Self::CountOnes | Self::LeadingZeros | Self::TrailingZeros => Type::U32,
            _ => ty,
        }
    }
}

word_enum! {
    /// An operation on two operands.
    ///
    /// Which NaN a float operation gives is not defined, neither its bits nor its sign.
    pub enum BinaryOp {
        /// `a + b`; integers wrap.
        Add = "+",
        /// `a - b`; integers wrap.
        Sub = "-",
        /// `a * b`; integers wrap.
        Mul = "*",
        /// The upper half of the product, computed in twice the width. Only for integers.
        MulHi = "mul_hi",
        /// `a / b`. Integers truncate toward zero; by zero the quotient is 0, and the smallest signed number by -1 is
        /// itself. Floats are correctly rounded; by zero the quotient is infinite, or NaN if `a` is zero too.
        Div = "/",
        /// The remainder, with the sign of `a`; by zero it is `a`, so that `a == a / b * b + a % b` always holds. Only
        /// for integers.
        Rem = "%",
        /// The smaller operand. If one operand is NaN the result is the other; `-0.0` is below `0.0`.
        Min = "min",
        /// The larger operand. If one operand is NaN the result is the other; `-0.0` is below `0.0`.
        Max = "max",
        /// Bitwise or logical and. Not for floats.
        And = "&",
        /// Bitwise or logical or. Not for floats.
        Or = "|",
        /// Bitwise or logical exclusive or. Not for floats.
        Xor = "^",
        /// Shift left by a `u32`; by the width or more the result is 0. Only for integers.
        Shl = "<<",
        /// Shift right by a `u32`, arithmetic for signed types; by the width or more only the sign bits, or zeros, are
        /// left. Only for integers.
        Shr = ">>",
        /// Rotate left by a `u32` modulo the width. Only for integers.
        RotateLeft = "rotate_left",
        /// Rotate right by a `u32` modulo the width. Only for integers.
        RotateRight = "rotate_right",
    }
}

impl BinaryOp {
    /// Whether it can work on a type.
    pub const fn accepts(self, ty: Type) -> bool {
        match self {
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Min | Self::Max => {
                !matches!(ty, Type::Bool)
            }
            Self::And | Self::Or | Self::Xor => !ty.is_float(),
            Self::MulHi | Self::Rem | Self::Shl | Self::Shr | Self::RotateLeft | Self::RotateRight => {
                ty.is_integer()
            }
        }
    }

    /// The type of the second operand.
    pub const fn second(self, ty: Type) -> Type {
        match self {
            Self::Shl | Self::Shr | Self::RotateLeft | Self::RotateRight => Type::U32,
            _ => ty,
        }
    }

    /// Whether the text form writes it between its operands.
    pub(crate) fn is_infix(self) -> bool {
        !self.word().starts_with(|c: char| c.is_ascii_alphabetic())
    }
}

word_enum! {
    /// A comparison.
    ///
    /// Floats compare as numbers, so `-0.0` equals `0.0`. Nothing is equal to, below or above a NaN: with one, only
    /// [`Ne`](Self::Ne) holds. Bools have only [`Eq`](Self::Eq) and [`Ne`](Self::Ne).
    pub enum CompareOp {
        /// Equal.
        Eq = "==",
        /// Not equal.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
    }
}

impl CompareOp {
    /// Whether it can work on a type.
    pub const fn accepts(self, ty: Type) -> bool {
        matches!(self, Self::Eq | Self::Ne) || !matches!(ty, Type::Bool)
    }
}

word_enum! {
    /// A function of a float, computed by a fixed sequence of IEEE operations.
    ///
    /// So the interpreter and every device give the same bits. Results of `f32` and `f64` lie within 2 units in the
    /// last place of the exact value, sine and cosine of `f64` within 1; those of `f16` and `bf16` are computed in
    /// `f32` and rounded.
    pub enum MathFunction {
        /// e to the power of `a`. Overflow gives infinity; subnormal results are rounded like others.
        Exp = "exp",
        /// 2 to the power of `a`.
        Exp2 = "exp2",
        /// The natural logarithm; negative infinity of zero, NaN of a negative number.
        Log = "log",
        /// The logarithm to base 2; negative infinity of zero, NaN of a negative number.
        Log2 = "log2",
        /// The sine of an angle in radians, of any size; NaN of an infinity.
        Sin = "sin",
        /// The cosine of an angle in radians, of any size; NaN of an infinity.
        Cos = "cos",
        /// The hyperbolic tangent.
        Tanh = "tanh",
        /// `1 / sqrt(a)`; infinity of zero with its sign, NaN of a negative number.
        Rsqrt = "rsqrt",
    }
}

impl MathFunction {
    /// Whether it can work on a type.
    pub const fn accepts(self, ty: Type) -> bool {
        ty.is_float()
    }
}
