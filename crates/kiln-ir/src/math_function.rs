//! Functions of floats, as sequences of IEEE operations.
//!
//! They are written with the builder and put in the place of [`Op::Function`] before a program is interpreted or
//! emitted. So there is one definition, and every device computes the same bits.

mod double;
mod double_trigonometric;
mod exponential;
mod logarithm;
mod trigonometric;

use crate::builder::{KernelBuilder, Val};
use crate::declaration::ValueId;
use crate::operation::{MathFunction, Op, Operand};
use crate::program::Program;
use crate::rewrite::{Change, rewrite};
use crate::scalar_type::Type;
use crate::statement::{Block, StatementKind};

impl Program {
    /// The same program with every function replaced by the operations that compute it.
    pub fn expanded(&self) -> Self {
        if !has_function(&self.body) {
            return self.clone();
        }
        Self::trusted(rewrite(self, &mut Expand))
    }
}

struct Expand;

impl Change for Expand {
    fn operation(&mut self, kernel: &KernelBuilder, _: ValueId, op: &Op) -> Option<Operand> {
        let Op::Function { function, ty, a } = op else { return None };
        Some(match ty {
            Type::F32 => compute(*function, Val::new(kernel, *a)).operand,
            Type::F64 => compute64(*function, Val::new(kernel, *a)).operand,
            Type::F16 => {
                let x: Val<'_, crate::F16> = Val::new(kernel, *a);
                compute(*function, x.to::<f32>()).to::<crate::F16>().operand
            }
            _ => {
                let x: Val<'_, crate::Bf16> = Val::new(kernel, *a);
                compute(*function, x.to::<f32>()).to::<crate::Bf16>().operand
            }
        })
    }
}

fn compute(function: MathFunction, x: Val<'_, f32>) -> Val<'_, f32> {
    match function {
        MathFunction::Exp => exponential::exp(x),
        MathFunction::Exp2 => exponential::exp2(x),
        MathFunction::Tanh => exponential::tanh(x),
        MathFunction::Log => logarithm::log(x),
        MathFunction::Log2 => logarithm::log2(x),
        MathFunction::Sin => trigonometric::sin(x),
        MathFunction::Cos => trigonometric::cos(x),
        MathFunction::Rsqrt => 1.0 / x.sqrt(),
    }
}

fn compute64(function: MathFunction, x: Val<'_, f64>) -> Val<'_, f64> {
    match function {
        MathFunction::Exp => double::exp(x),
        MathFunction::Exp2 => double::exp2(x),
        MathFunction::Tanh => double::tanh(x),
        MathFunction::Log => double::log(x),
        MathFunction::Log2 => double::log2(x),
        MathFunction::Rsqrt => 1.0 / x.sqrt(),
        MathFunction::Sin => double_trigonometric::sin(x),
        MathFunction::Cos => double_trigonometric::cos(x),
    }
}

fn has_function(block: &Block) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::Let { op, .. } => matches!(op, Op::Function { .. }),
        StatementKind::If { then, otherwise, .. } => has_function(then) || has_function(otherwise),
        StatementKind::For { body, .. } => has_function(body),
        StatementKind::While { condition, body, .. } => has_function(condition) || has_function(body),
        _ => false,
    })
}

/// A polynomial, the highest coefficient first.
fn polynomial<'k>(x: Val<'k, f32>, coefficients: &[f32]) -> Val<'k, f32> {
    let mut coefficients = coefficients.iter();
    let first = x.kernel.literal(coefficients.next().copied().unwrap_or(0.0));
    coefficients.fold(first, |sum, coefficient| sum.mul_add(x, *coefficient))
}

/// The same in double precision.
fn polynomial64<'k>(x: Val<'k, f64>, coefficients: &[f64]) -> Val<'k, f64> {
    let mut coefficients = coefficients.iter();
    let first = x.kernel.literal(coefficients.next().copied().unwrap_or(0.0));
    coefficients.fold(first, |sum, coefficient| sum.mul_add(x, *coefficient))
}
