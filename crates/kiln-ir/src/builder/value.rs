//! Values, and what can be computed from them.

use std::marker::PhantomData;

use crate::operation::{BinaryOp, BlockVote, CompareOp, MathFunction, Op, Operand, UnaryOp, WarpOp};

use super::element::{IntoOperand, KernelElement, KernelFloat, KernelInteger, KernelNumber};
use super::kernel::KernelBuilder;

/// A value of a kernel that is being built. It is computed where it was made and never changes.
pub struct Val<'k, T> {
    pub(crate) kernel: &'k KernelBuilder,
    pub(crate) operand: Operand,
    ty: PhantomData<T>,
}

impl<T> Clone for Val<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Val<'_, T> {}

impl<T> std::fmt::Debug for Val<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.operand)
    }
}

/// Methods that make one operation of the value and a second operand of its type.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self, other: impl IntoOperand<T>) -> Self {
            self.binary(BinaryOp::$op, other.operand())
        }
    )*};
}

/// Methods that make one operation of the value alone.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self) -> Self {
            self.unary(UnaryOp::$op)
        }
    )*};
}

/// Methods that compute a function of the value.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident => $function:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self) -> Self {
            self.kernel.emit(Op::Function { function: MathFunction::$function, ty: T::TYPE, a: self.operand })
        }
    )*};
}

/// Comparisons with a second operand.
macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self, other: impl IntoOperand<T>) -> Val<'k, bool> {
            let op = CompareOp::$op;
            self.kernel.emit(Op::Compare { op, ty: T::TYPE, a: self.operand, b: other.operand() })
        }
    )*};
}

/// What the lanes of a warp compute from the value of each.
macro_rules! warp {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self) -> Self {
            self.kernel.emit(Op::Warp { op: WarpOp::$op, ty: T::TYPE, a: self.operand, by: None })
        }
    )*};
}

/// Shuffles.
macro_rules! shuffle {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self, by: impl IntoOperand<u32>) -> Self {
            let by = Some(by.operand());
            self.kernel.emit(Op::Warp { op: WarpOp::$op, ty: T::TYPE, a: self.operand, by })
        }
    )*};
}

impl<'k, T: KernelElement> Val<'k, T> {
    pub(crate) fn new(kernel: &'k KernelBuilder, operand: Operand) -> Self {
        Self { kernel, operand, ty: PhantomData }
    }

    /// Gives it a name, for the text form. A literal has none.
    pub fn named(self, name: &str) -> Self {
        if let Operand::Value(id) = self.operand {
            self.kernel.edit(|draft| {
                if let Some(value) = draft.values.get_mut(id.index()) {
                    value.name = Some(name.to_owned());
                }
            });
        }
        self
    }

    #[track_caller]
    pub(crate) fn unary(self, op: UnaryOp) -> Self {
        self.kernel.emit(Op::Unary { op, ty: T::TYPE, a: self.operand })
    }

    #[track_caller]
    pub(crate) fn binary(self, op: BinaryOp, b: Operand) -> Self {
        self.kernel.emit(Op::Binary { op, ty: T::TYPE, a: self.operand, b })
    }

    /// The same number in another type: [`Op::Convert`].
    #[track_caller]
    pub fn to<U: KernelElement>(self) -> Val<'k, U> {
        self.kernel.emit(Op::Convert { from: T::TYPE, to: U::TYPE, a: self.operand })
    }

    /// The same bits as another type of the same size: [`Op::Bitcast`].
    #[track_caller]
    pub fn bits_as<U: KernelElement>(self) -> Val<'k, U> {
        self.kernel.emit(Op::Bitcast { from: T::TYPE, to: U::TYPE, a: self.operand })
    }

    compare! {
        /// Whether they are equal: [`CompareOp::Eq`].
        eq => Eq;
        /// Whether they differ: [`CompareOp::Ne`].
        ne => Ne;
    }

    shuffle! {
        /// The value of a lane: [`WarpOp::Shuffle`].
        shuffle => Shuffle;
        /// The value of the lane this far below: [`WarpOp::ShuffleUp`].
        shuffle_up => ShuffleUp;
        /// The value of the lane this far above: [`WarpOp::ShuffleDown`].
        shuffle_down => ShuffleDown;
        /// The value of the lane whose number differs in these bits: [`WarpOp::ShuffleXor`].
        shuffle_xor => ShuffleXor;
    }
}

impl<'k, T: KernelNumber> Val<'k, T> {
    compare! {
        /// Whether it is less: [`CompareOp::Lt`].
        lt => Lt;
        /// Whether it is less or equal: [`CompareOp::Le`].
        le => Le;
        /// Whether it is greater: [`CompareOp::Gt`].
        gt => Gt;
        /// Whether it is greater or equal: [`CompareOp::Ge`].
        ge => Ge;
    }

    binary! {
        /// The smaller one: [`BinaryOp::Min`].
        min => Min;
        /// The larger one: [`BinaryOp::Max`].
        max => Max;
    }

    unary! {
        /// The magnitude: [`UnaryOp::Abs`].
        abs => Abs;
    }

    warp! {
        /// The sum over the warp: [`WarpOp::Add`].
        warp_add => Add;
        /// The minimum over the warp: [`WarpOp::Min`].
        warp_min => Min;
        /// The maximum over the warp: [`WarpOp::Max`].
        warp_max => Max;
    }
}

impl<'k, T: KernelInteger> Val<'k, T> {
    binary! {
        /// The upper half of the product: [`BinaryOp::MulHi`].
        mul_hi => MulHi;
    }

    unary! {
        /// The bits in reverse order: [`UnaryOp::ReverseBits`].
        reverse_bits => ReverseBits;
    }

    /// Rotated left: [`BinaryOp::RotateLeft`].
    #[track_caller]
    pub fn rotate_left(self, by: impl IntoOperand<u32>) -> Self {
        self.binary(BinaryOp::RotateLeft, by.operand())
    }

    /// Rotated right: [`BinaryOp::RotateRight`].
    #[track_caller]
    pub fn rotate_right(self, by: impl IntoOperand<u32>) -> Self {
        self.binary(BinaryOp::RotateRight, by.operand())
    }

    /// The number of set bits: [`UnaryOp::CountOnes`].
    #[track_caller]
    pub fn count_ones(self) -> Val<'k, u32> {
        self.kernel.emit(Op::Unary { op: UnaryOp::CountOnes, ty: T::TYPE, a: self.operand })
    }

    /// The number of zero bits above the highest set bit: [`UnaryOp::LeadingZeros`].
    #[track_caller]
    pub fn leading_zeros(self) -> Val<'k, u32> {
        self.kernel.emit(Op::Unary { op: UnaryOp::LeadingZeros, ty: T::TYPE, a: self.operand })
    }

    /// The number of zero bits below the lowest set bit: [`UnaryOp::TrailingZeros`].
    #[track_caller]
    pub fn trailing_zeros(self) -> Val<'k, u32> {
        self.kernel.emit(Op::Unary { op: UnaryOp::TrailingZeros, ty: T::TYPE, a: self.operand })
    }

    warp! {
        /// The bitwise and over the warp: [`WarpOp::And`].
        warp_and => And;
        /// The bitwise or over the warp: [`WarpOp::Or`].
        warp_or => Or;
        /// The bitwise exclusive or over the warp: [`WarpOp::Xor`].
        warp_xor => Xor;
    }
}

impl<T: KernelFloat> Val<'_, T> {
    unary! {
        /// The square root: [`UnaryOp::Sqrt`].
        sqrt => Sqrt;
        /// Rounded down: [`UnaryOp::Floor`].
        floor => Floor;
        /// Rounded up: [`UnaryOp::Ceil`].
        ceil => Ceil;
        /// Truncated toward zero: [`UnaryOp::Trunc`].
        trunc => Trunc;
        /// Rounded to nearest, ties to even: [`UnaryOp::Round`].
        round => Round;
    }

    functions! {
        /// [`MathFunction::Exp`].
        exp => Exp;
        /// [`MathFunction::Exp2`].
        exp2 => Exp2;
        /// [`MathFunction::Log`].
        log => Log;
        /// [`MathFunction::Log2`].
        log2 => Log2;
        /// [`MathFunction::Sin`].
        sin => Sin;
        /// [`MathFunction::Cos`].
        cos => Cos;
        /// [`MathFunction::Tanh`].
        tanh => Tanh;
        /// [`MathFunction::Rsqrt`].
        rsqrt => Rsqrt;
    }

    /// `self * b + c`, rounded once: [`Op::Fma`].
    #[track_caller]
    pub fn mul_add(self, b: impl IntoOperand<T>, c: impl IntoOperand<T>) -> Self {
        let (b, c) = (b.operand(), c.operand());
        self.kernel.emit(Op::Fma { ty: T::TYPE, a: self.operand, b, c })
    }
}

impl<'k> Val<'k, bool> {
    /// `a` where it is true, otherwise `b`: [`Op::Select`].
    #[track_caller]
    pub fn select<T: KernelElement>(self, a: impl IntoOperand<T>, b: impl IntoOperand<T>) -> Val<'k, T> {
        let (a, b) = (a.operand(), b.operand());
        self.kernel.emit(Op::Select { ty: T::TYPE, condition: self.operand, a, b })
    }

    /// A bit for every lane whose value is true: [`WarpOp::Ballot`].
    #[track_caller]
    pub fn ballot(self) -> Val<'k, u32> {
        self.kernel.emit(Op::Warp { op: WarpOp::Ballot, ty: bool::TYPE, a: self.operand, by: None })
    }

    /// Whether the value of any lane is true: [`WarpOp::Any`].
    #[track_caller]
    pub fn warp_any(self) -> Self {
        self.kernel.emit(Op::Warp { op: WarpOp::Any, ty: bool::TYPE, a: self.operand, by: None })
    }

    /// Whether the values of all lanes are true: [`WarpOp::All`].
    #[track_caller]
    pub fn warp_all(self) -> Self {
        self.kernel.emit(Op::Warp { op: WarpOp::All, ty: bool::TYPE, a: self.operand, by: None })
    }

    /// A barrier, and whether the value of any thread of the block is true: [`BlockVote::Any`].
    #[track_caller]
    pub fn block_any(self) -> Val<'k, bool> {
        self.kernel.emit(Op::BlockVote { vote: BlockVote::Any, a: self.operand })
    }

    /// A barrier, and whether the values of all threads of the block are true: [`BlockVote::All`].
    #[track_caller]
    pub fn block_all(self) -> Val<'k, bool> {
        self.kernel.emit(Op::BlockVote { vote: BlockVote::All, a: self.operand })
    }

    /// A barrier, and for how many threads of the block the value is true: [`BlockVote::Count`].
    #[track_caller]
    pub fn block_count(self) -> Val<'k, u32> {
        self.kernel.emit(Op::BlockVote { vote: BlockVote::Count, a: self.operand })
    }
}
