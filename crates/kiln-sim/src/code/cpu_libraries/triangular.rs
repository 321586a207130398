//! Symmetric products and triangular systems. Only the triangle that counts is read and written.

use kiln_operation::{Diagonal, Side, Syrk, Triangle, Trsm};

use super::arguments::{OperationArguments, Run, transposed};
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

/// The rows of a column that belong to a triangle: the first, and how many.
pub(super) fn rows_of(triangle: Triangle, column: u64, n: u64) -> (u64, u64) {
    match triangle {
        Triangle::Upper => (0, column + 1),
        Triangle::Lower => (column, n - column),
    }
}

pub(super) fn syrk(arguments: &OperationArguments<'_>, operation: &Syrk) -> Work {
    let Syrk { element, n, k, triangle, a_leading, c_leading, accumulate, .. } = *operation;
    let alpha = arguments.scalar(2)?;
    let stored = arguments.matrix(0, element, 0, operation.stored(), a_leading)?;
    // By rows of op(A), so that each is a slice.
    let rows = if operation.transposed { stored } else { transposed(&stored, operation.stored()) };
    let row = |at: u64| &rows[(at * k) as usize..][..k as usize];
    for column in 0..n {
        let (first, len) = rows_of(triangle, column, n);
        let run = Run::dense(column * c_leading + first, len);
        let product = |at: u64| row(at).iter().zip(row(column)).fold(0.0, |sum, (x, y)| sum + x * y);
        let mut sums: Vec<f64> = (first..first + len).map(|at| alpha * product(at)).collect();
        if accumulate {
            let (beta, before) = (arguments.scalar(3)?, arguments.read(1, element, run)?);
            sums.iter_mut().zip(&before).for_each(|(sum, before)| *sum += beta * before);
        }
        arguments.write(1, element, run, &sums)?;
    }
    Ok(n * n * k / 2 + 1)
}

pub(super) fn trsm(arguments: &OperationArguments<'_>, operation: &Trsm) -> Work {
    let Trsm { element, m, n, side, diagonal, b_leading, .. } = *operation;
    let (alpha, order) = (arguments.scalar(2)?, operation.order());
    let a = triangle(arguments, operation)?;
    // X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ.
    let is_transposed = operation.transposed != (side == Side::Right);
    let at = |row: u64, column: u64| {
        let (row, column) = if is_transposed { (column, row) } else { (row, column) };
        a[(column * order + row) as usize]
    };
    let is_lower = (operation.triangle == Triangle::Lower) != is_transposed;
    let (count, run): (u64, Box<dyn Fn(u64) -> Run>) = match side {
        Side::Left => (n, Box::new(|column| Run::dense(column * b_leading, m))),
        Side::Right => (m, Box::new(|row| Run { start: row, len: n, step: b_leading })),
    };
    for which in 0..count {
        let mut x = arguments.read(1, element, run(which))?;
        x.iter_mut().for_each(|x| *x *= alpha);
        for step in 0..order {
            let row = if is_lower { step } else { order - 1 - step };
            let known = if is_lower { 0..row } else { row + 1..order };
            let sum = known.fold(x[row as usize], |sum, column| sum - at(row, column) * x[column as usize]);
            x[row as usize] = if diagonal == Diagonal::Unit { sum } else { sum / at(row, row) };
        }
        arguments.write(1, element, run(which), &x)?;
    }
    Ok(order * order * count / 2 + 1)
}

/// The triangle of `A`, with zeros in the rest.
fn triangle(arguments: &OperationArguments<'_>, operation: &Trsm) -> Result<Vec<f64>, KernelFault> {
    let order = operation.order();
    let mut values = vec![0.0; (order * order) as usize];
    for column in 0..order {
        let (mut first, mut len) = rows_of(operation.triangle, column, order);
        if operation.diagonal == Diagonal::Unit {
            first += u64::from(operation.triangle == Triangle::Lower);
            len -= 1;
        }
        let run = Run::dense(column * operation.a_leading + first, len);
        let part = arguments.read(0, operation.element, run)?;
        values[(column * order + first) as usize..][..len as usize].copy_from_slice(&part);
    }
    Ok(values)
}
