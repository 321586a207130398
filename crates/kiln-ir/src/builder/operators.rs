//! Rust's operators on values.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use crate::operation::{BinaryOp, UnaryOp};

use super::element::{IntoOperand, KernelElement, KernelInteger, KernelNumber};
use super::value::Val;
use super::variable::Var;

/// Operators between two operands of one type.
macro_rules! binary {
    ($($trait:ident, $method:ident, $bound:ident;)*) => {$(
        impl<'k, T: $bound, R: IntoOperand<T>> $trait<R> for Val<'k, T> {
            type Output = Self;

            #[track_caller]
            fn $method(self, other: R) -> Self {
                self.binary(BinaryOp::$trait, other.operand())
            }
        }

        impl<'k, T: $bound, R: IntoOperand<T>> $trait<R> for Var<'k, T> {
            type Output = Val<'k, T>;

            #[track_caller]
            fn $method(self, other: R) -> Val<'k, T> {
                self.get().binary(BinaryOp::$trait, other.operand())
            }
        }
    )*};
}

binary! {
    Add, add, KernelNumber;
    Sub, sub, KernelNumber;
    Mul, mul, KernelNumber;
    Div, div, KernelNumber;
    Rem, rem, KernelInteger;
}

/// Operators on bits and truths; the names of Rust's traits differ from ours.
macro_rules! bits {
    ($($trait:ident, $method:ident, $op:ident;)*) => {$(
        impl<'k, T: KernelElement, R: IntoOperand<T>> $trait<R> for Val<'k, T> {
            type Output = Self;

            #[track_caller]
            fn $method(self, other: R) -> Self {
                self.binary(BinaryOp::$op, other.operand())
            }
        }
    )*};
}

bits! {
    BitAnd, bitand, And;
    BitOr, bitor, Or;
    BitXor, bitxor, Xor;
}

/// Shifts, by a `u32` of either kind.
macro_rules! shifts {
    ($($trait:ident, $method:ident;)*) => {$(
        impl<'k, T: KernelInteger, R: IntoOperand<u32>> $trait<R> for Val<'k, T> {
            type Output = Self;

            #[track_caller]
            fn $method(self, by: R) -> Self {
                self.binary(BinaryOp::$trait, by.operand())
            }
        }
    )*};
}

shifts! {
    Shl, shl;
    Shr, shr;
}

impl<T: KernelNumber> Neg for Val<'_, T> {
    type Output = Self;

    #[track_caller]
    fn neg(self) -> Self {
        self.unary(UnaryOp::Neg)
    }
}

impl<T: KernelElement> Not for Val<'_, T> {
    type Output = Self;

    #[track_caller]
    fn not(self) -> Self {
        self.unary(UnaryOp::Not)
    }
}

/// Operators with a plain Rust value on the left.
macro_rules! from_left {
    ($($rust:ty),*) => { $(
        from_left!(@ $rust, Add, add);
        from_left!(@ $rust, Sub, sub);
        from_left!(@ $rust, Mul, mul);
        from_left!(@ $rust, Div, div);
    )* };
    (@ $rust:ty, $trait:ident, $method:ident) => {
        impl<'k> $trait<Val<'k, $rust>> for $rust {
            type Output = Val<'k, $rust>;

            #[track_caller]
            fn $method(self, other: Val<'k, $rust>) -> Val<'k, $rust> {
                other.kernel.literal(self).binary(BinaryOp::$trait, other.operand)
            }
        }
    };
}

from_left!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
