//! Matrix products: sums in `f64`, in the order of `k`. Products of integers are added up in 32 bits that wrap, as cuBLASLt computes them (`CUBLAS_COMPUTE_32I`).

use kiln_operation::{Activation, ElementType, Layout, Matmul};

use super::arguments::{OperationArguments, Run, transposed};
use super::elementary_functions::gelu;
use crate::code::kernel::KernelFault;

/// Runs a product. Returns how many multiplications that were.
pub(super) fn run(arguments: &OperationArguments<'_>, operation: &Matmul) -> Result<u64, KernelFault> {
    let Matmul { m, n, k, batch, a, b, d, .. } = *operation;
    let first_scalar = operation.memory_operands();
    let mut alpha = arguments.scalar(first_scalar)?;
    // Libraries do not read the factors then, so that a NaN in them changes nothing.
    let reads_factors = alpha != 0.0;
    if let Some(first) = operation.scale_operand() {
        let factor = |index| arguments.read(index, ElementType::F32, Run::dense(0, 1));
        if reads_factors {
            alpha *= factor(first)?.iter().chain(&factor(first + 1)?).product::<f64>();
        }
    }
    let beta = if operation.accumulate { arguments.scalar(first_scalar + 1)? } else { 0.0 };
    let bias = match operation.epilogue.bias {
        true => arguments.read(3, d.element, Run::dense(0, m))?,
        false => vec![0.0; m as usize],
    };
    // Of integers, sums below 2^53 are exact here, and are cut to 32 bits before they are multiplied.
    let arithmetic = if a.element == ElementType::I8 { Arithmetic::Wrapping } else { Arithmetic::Floating };
    for at in 0..batch {
        let [left, right] = match reads_factors {
            true => [
                factor(arguments, 0, &a, operation.a_stored(), at)?,
                factor(arguments, 1, &b, operation.b_stored(), at)?,
            ],
            false => [const { Vec::new() }; 2],
        };
        for column in 0..n {
            let run = Run::dense(at * d.stride + column * d.leading, m);
            let mut sums = vec![0.0; m as usize];
            if reads_factors {
                let factors = &right[(column * k) as usize..][..k as usize];
                for (part, factor) in left.chunks_exact(m as usize).zip(factors) {
                    sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value * factor);
                }
                sums.iter_mut().for_each(|sum| *sum = arithmetic.product(*sum, alpha));
            }
            if operation.accumulate {
                let before = arguments.read(2, d.element, run)?;
                let add = |(sum, before): (&mut f64, f64)| {
                    *sum = arithmetic.sum(*sum, arithmetic.product(before, beta))
                };
                sums.iter_mut().zip(before).for_each(add);
            }
            if operation.epilogue.bias {
                sums.iter_mut().zip(&bias).for_each(|(sum, bias)| *sum += bias);
            }
            sums.iter_mut().for_each(|sum| *sum = activated(*sum, operation.epilogue.activation));
            arguments.write(2, d.element, run, &sums)?;
        }
    }
    Ok(m.saturating_mul(n).saturating_mul(k).saturating_mul(batch))
}

/// How a sum is multiplied and added to.
#[derive(Clone, Copy)]
enum Arithmetic {
    Floating,
    /// Modulo 2^32, as signed integers.
    Wrapping,
}

impl Arithmetic {
    fn product(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Floating => one * other,
            Self::Wrapping => f64::from(wrapped(one).wrapping_mul(wrapped(other))),
        }
    }

    fn sum(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Floating => one + other,
            Self::Wrapping => f64::from(wrapped(one).wrapping_add(wrapped(other))),
        }
    }
}

/// The lowest 32 bits of an integer.
fn wrapped(value: f64) -> i32 {
    value as i64 as i32
}

/// A factor as the product uses it, by columns.
fn factor(
    arguments: &OperationArguments<'_>,
    index: usize,
    layout: &Layout,
    stored: (u64, u64),
    at: u64,
) -> Result<Vec<f64>, KernelFault> {
    let values = arguments.matrix(index, layout.element, at * layout.stride, stored, layout.leading)?;
    Ok(if layout.transposed { transposed(&values, stored) } else { values })
}

fn activated(value: f64, activation: Activation) -> f64 {
    match activation {
        Activation::None => value,
        // A NaN stays one.
        Activation::Relu => {
            if value < 0.0 {
                0.0
            } else {
                value
            }
        }
        Activation::Gelu => gelu(value),
    }
}
