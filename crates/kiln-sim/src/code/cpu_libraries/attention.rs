//! Scaled dot-product attention: scores, their softmax and the weighted sum of values in `f64`.

use kiln_operation::Attention;

use super::arguments::{OperationArguments, Run};
use super::elementary_functions::exp;
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

pub(super) fn run(arguments: &OperationArguments<'_>, operation: &Attention) -> Work {
    let Attention { element, layout, batch, heads, key_heads, queries, keys, head, .. } = *operation;
    let scale = arguments.scalar(4)?;
    let q_strides = layout.strides(heads, queries, head);
    let k_strides = layout.strides(key_heads, keys, head);
    let start = |[sequence, per_head, position]: [u64; 3], n: u64, h: u64, at: u64| {
        n * sequence + h * per_head + at * position
    };
    // The last query sees the most keys.
    let seen_keys = operation.seen(queries - 1);
    for n in 0..batch {
        for h in 0..heads {
            let key_head = h / (heads / key_heads);
            let rows = |index: usize| -> Result<Vec<Vec<f64>>, KernelFault> {
                let row = |at| {
                    let run = Run::dense(start(k_strides, n, key_head, at), head);
                    arguments.read(index, element, run)
                };
                (0..seen_keys).map(row).collect()
            };
            let (key_rows, value_rows) = (rows(1)?, rows(2)?);
            for query in 0..queries {
                let place = Run::dense(start(q_strides, n, h, query), head);
                let row = arguments.read(0, element, place)?;
                let seen = operation.seen(query) as usize;
                let result = attended(&row, &key_rows[..seen], &value_rows[..seen], scale);
                arguments.write(3, element, place, &result)?;
            }
        }
    }
    Ok(batch.saturating_mul(heads).saturating_mul(queries).saturating_mul(keys).saturating_mul(2 * head))
}

/// What one query gets.
fn attended(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>], scale: f64) -> Vec<f64> {
    let score = |key: &Vec<f64>| scale * query.iter().zip(key).fold(0.0, |sum, (q, k)| sum + q * k);
    let scores: Vec<f64> = keys.iter().map(score).collect();
    // A NaN stays one.
    let greatest =
        scores.iter().fold(f64::NEG_INFINITY, |one, other| if one >= *other { one } else { *other });
    let weights: Vec<f64> = scores.iter().map(|score| exp(score - greatest)).collect();
    let total = weights.iter().fold(0.0, |sum, weight| sum + weight);
    let mut sums = vec![0.0; query.len()];
    for (weight, value) in weights.iter().zip(values) {
        sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
    }
    sums.iter_mut().for_each(|sum| *sum /= total);
    sums
}
