//! Operations on vectors, and on a matrix and vectors. With an `alpha` of 0 the operands that it multiplies are not read, as cuBLAS does it.

use kiln_operation::{Asum, Axpy, Dot, Gemv, Ger, Iamax, Nrm2, Scal, Swap, VectorCopy};

use super::arguments::{OperationArguments, Run};
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

pub(super) fn dot(arguments: &OperationArguments<'_>, operation: &Dot) -> Work {
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    let y = arguments.read(1, operation.element, Run::strided(operation.n, operation.y_step))?;
    let sum = x.iter().zip(&y).fold(0.0, |sum, (x, y)| sum + x * y);
    arguments.write(2, operation.element, Run::dense(0, 1), &[sum])?;
    Ok(operation.n)
}

/// Elements are divided by the largest first, so that no square overflows.
pub(super) fn nrm2(arguments: &OperationArguments<'_>, operation: &Nrm2) -> Work {
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    let largest = x.iter().fold(0.0, |largest: f64, x| if x.abs() > largest { x.abs() } else { largest });
    let is_plain = largest == 0.0 || largest.is_infinite() || x.iter().any(|x| x.is_nan());
    let scale = if is_plain { 1.0 } else { largest };
    let sum = x.iter().fold(0.0, |sum, x| sum + (x / scale) * (x / scale));
    arguments.write(1, operation.element, Run::dense(0, 1), &[scale * sum.sqrt()])?;
    Ok(operation.n)
}

pub(super) fn axpy(arguments: &OperationArguments<'_>, operation: &Axpy) -> Work {
    let alpha = arguments.scalar(2)?;
    if alpha == 0.0 {
        return Ok(1);
    }
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    let run = Run::strided(operation.n, operation.y_step);
    let mut y = arguments.read(1, operation.element, run)?;
    y.iter_mut().zip(&x).for_each(|(y, x)| *y += alpha * x);
    arguments.write(1, operation.element, run, &y)?;
    Ok(operation.n)
}

pub(super) fn scal(arguments: &OperationArguments<'_>, operation: &Scal) -> Work {
    let alpha = arguments.scalar(1)?;
    let run = Run::strided(operation.n, operation.x_step);
    let mut x = arguments.read(0, operation.element, run)?;
    x.iter_mut().for_each(|x| *x *= alpha);
    arguments.write(0, operation.element, run, &x)?;
    Ok(operation.n)
}

pub(super) fn copy(arguments: &OperationArguments<'_>, operation: &VectorCopy) -> Work {
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    arguments.write(1, operation.element, Run::strided(operation.n, operation.y_step), &x)?;
    Ok(operation.n)
}

pub(super) fn swap(arguments: &OperationArguments<'_>, operation: &Swap) -> Work {
    let (x_run, y_run) =
        (Run::strided(operation.n, operation.x_step), Run::strided(operation.n, operation.y_step));
    let x = arguments.read(0, operation.element, x_run)?;
    let y = arguments.read(1, operation.element, y_run)?;
    arguments.write(0, operation.element, x_run, &y)?;
    arguments.write(1, operation.element, y_run, &x)?;
    Ok(operation.n)
}

pub(super) fn asum(arguments: &OperationArguments<'_>, operation: &Asum) -> Work {
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    let sum = x.iter().fold(0.0, |sum, x| sum + x.abs());
    arguments.write(1, operation.element, Run::dense(0, 1), &[sum])?;
    Ok(operation.n)
}

/// Of equal elements the first.
pub(super) fn iamax(arguments: &OperationArguments<'_>, operation: &Iamax) -> Work {
    let x = arguments.read(0, operation.element, Run::strided(operation.n, operation.x_step))?;
    let larger = |best: usize, at: usize| if x[at].abs() > x[best].abs() { at } else { best };
    let best = (1..x.len()).fold(0, larger);
    arguments.write_integers(1, 8, 0, &[best as i64 + 1])?;
    Ok(operation.n)
}

pub(super) fn gemv(arguments: &OperationArguments<'_>, operation: &Gemv) -> Work {
    let Gemv { element, m, n, transposed, leading, x_step, y_step, accumulate } = *operation;
    let alpha = arguments.scalar(3)?;
    let (x_len, y_len) = operation.lengths();
    let (columns, x) = match alpha == 0.0 {
        true => (0, Vec::new()),
        false => (n, arguments.read(1, element, Run::strided(x_len, x_step))?),
    };
    let mut sums = vec![0.0; y_len as usize];
    for column in 0..columns {
        let a = arguments.read(0, element, Run::dense(column * leading, m))?;
        if transposed {
            sums[column as usize] = a.iter().zip(&x).fold(0.0, |sum, (a, x)| sum + a * x);
        } else {
            let x = x[column as usize];
            sums.iter_mut().zip(&a).for_each(|(sum, a)| *sum += a * x);
        }
    }
    sums.iter_mut().for_each(|sum| *sum *= alpha);
    let run = Run::strided(y_len, y_step);
    if accumulate {
        let (beta, y) = (arguments.scalar(4)?, arguments.read(2, element, run)?);
        sums.iter_mut().zip(&y).for_each(|(sum, y)| *sum += beta * y);
    }
    arguments.write(2, element, run, &sums)?;
    Ok(m * n)
}

pub(super) fn ger(arguments: &OperationArguments<'_>, operation: &Ger) -> Work {
    let Ger { element, m, n, leading, x_step, y_step } = *operation;
    let alpha = arguments.scalar(3)?;
    if alpha == 0.0 {
        return Ok(1);
    }
    let x = arguments.read(0, element, Run::strided(m, x_step))?;
    let y = arguments.read(1, element, Run::strided(n, y_step))?;
    for (column, y) in (0..n).zip(&y) {
        let run = Run::dense(column * leading, m);
        let mut a = arguments.read(2, element, run)?;
        a.iter_mut().zip(&x).for_each(|(a, x)| *a += alpha * x * y);
        arguments.write(2, element, run, &a)?;
    }
    Ok(m * n)
}
