//! Matrix products: sums in `f64`, in the order of `k`.

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
                sums.iter_mut().for_each(|sum| *sum *= alpha);
            }
            if operation.accumulate {
                let before = arguments.read(2, d.element, run)?;
                sums.iter_mut().zip(before).for_each(|(sum, before)| *sum += beta * before);
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
