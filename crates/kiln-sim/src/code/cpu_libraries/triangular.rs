//! Sums of matrices, symmetric and triangular products, and triangular systems. Only the triangle that counts is read and written.

use kiln_operation::{Diagonal, ElementType, Geam, Side, Symm, Syrk, Triangle, Trmm, Trsm};

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
    // With a factor of 0 the matrix is not read.
    let (k, stored) = match alpha == 0.0 {
        true => (0, Vec::new()),
        false => (k, arguments.matrix(0, element, 0, operation.stored(), a_leading)?),
    };
    // By rows of op(A), so that each is a slice.
    let is_by_rows = operation.transposed || k == 0;
    let rows = if is_by_rows { stored } else { transposed(&stored, operation.stored()) };
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
    if alpha == 0.0 {
        // Neither matrix is read.
        for column in 0..n {
            arguments.write(1, element, Run::dense(column * b_leading, m), &vec![0.0; m as usize])?;
        }
        return Ok(m * n + 1);
    }
    let stored = Stored { element, triangle: operation.triangle, order, leading: operation.a_leading };
    let a = stored.read(arguments, diagonal)?;
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

/// Sums in the order of the rows and columns of `op(A)`, one column of the result after the other.
pub(super) fn trmm(arguments: &OperationArguments<'_>, operation: &Trmm) -> Work {
    let Trmm { element, m, n, side, diagonal, b_leading, c_leading, .. } = *operation;
    let (alpha, order) = (arguments.scalar(3)?, operation.order());
    let stored = Stored { element, triangle: operation.triangle, order, leading: operation.a_leading };
    let mut a = stored.read(arguments, diagonal)?;
    if diagonal == Diagonal::Unit {
        (0..order).for_each(|at| a[(at * order + at) as usize] = 1.0);
    }
    let is_lower = (operation.triangle == Triangle::Lower) != operation.transposed;
    let entry = |row: u64, column: u64| {
        let (row, column) = if operation.transposed { (column, row) } else { (row, column) };
        a[(column * order + row) as usize]
    };
    // What lies in the other triangle is not part of a sum, so that no infinity meets a zero.
    let rows = |column: u64| if is_lower { column..order } else { 0..column + 1 };
    let columns = |row: u64| if is_lower { 0..row + 1 } else { row..order };
    let b = arguments.matrix(1, element, 0, (m, n), b_leading)?;
    let at = |row: u64, column: u64| b[(column * m + row) as usize];
    for column in 0..n {
        let sum = |row: u64| match side {
            Side::Left => columns(row).fold(0.0, |sum, k| sum + entry(row, k) * at(k, column)),
            Side::Right => rows(column).fold(0.0, |sum, k| sum + at(row, k) * entry(k, column)),
        };
        let sums: Vec<f64> = (0..m).map(|row| alpha * sum(row)).collect();
        arguments.write(2, element, Run::dense(column * c_leading, m), &sums)?;
    }
    Ok(m * n * order / 2 + 1)
}

pub(super) fn symm(arguments: &OperationArguments<'_>, operation: &Symm) -> Work {
    let Symm { element, m, n, side, triangle, b_leading, c_leading, accumulate, .. } = *operation;
    let (alpha, order) = (arguments.scalar(3)?, operation.order());
    let stored = Stored { element, triangle, order, leading: operation.a_leading };
    let a = stored.read(arguments, Diagonal::Stored)?;
    let entry = |row: u64, column: u64| {
        let is_stored = (triangle == Triangle::Lower) == (row >= column) || row == column;
        let (row, column) = if is_stored { (row, column) } else { (column, row) };
        a[(column * order + row) as usize]
    };
    let b = arguments.matrix(1, element, 0, (m, n), b_leading)?;
    let at = |row: u64, column: u64| b[(column * m + row) as usize];
    for column in 0..n {
        let run = Run::dense(column * c_leading, m);
        let sum = |row: u64| match side {
            Side::Left => (0..m).fold(0.0, |sum, k| sum + entry(row, k) * at(k, column)),
            Side::Right => (0..n).fold(0.0, |sum, k| sum + at(row, k) * entry(k, column)),
        };
        let mut sums: Vec<f64> = (0..m).map(|row| alpha * sum(row)).collect();
        if accumulate {
            let (beta, before) = (arguments.scalar(4)?, arguments.read(2, element, run)?);
            sums.iter_mut().zip(&before).for_each(|(sum, before)| *sum += beta * before);
        }
        arguments.write(2, element, run, &sums)?;
    }
    Ok(m * n * order + 1)
}

/// Column after column of the result.
pub(super) fn geam(arguments: &OperationArguments<'_>, operation: &Geam) -> Work {
    let Geam { element, m, n, a_leading, b_leading, c_leading, has_b, .. } = *operation;
    let result = 1 + usize::from(has_b);
    let column_of = |transposed: bool, leading: u64, column: u64| match transposed {
        true => Run { start: column, len: m, step: leading },
        false => Run::dense(column * leading, m),
    };
    let (alpha, beta) =
        (arguments.scalar(result + 1)?, if has_b { arguments.scalar(result + 2)? } else { 0.0 });
    for column in 0..n {
        let mut values = arguments.read(0, element, column_of(operation.a_transposed, a_leading, column))?;
        values.iter_mut().for_each(|value| *value *= alpha);
        if has_b {
            let added = arguments.read(1, element, column_of(operation.b_transposed, b_leading, column))?;
            values.iter_mut().zip(&added).for_each(|(value, added)| *value += beta * added);
        }
        arguments.write(result, element, Run::dense(column * c_leading, m), &values)?;
    }
    Ok(m * n + 1)
}

/// How a triangle of a square matrix lies in the first operand.
struct Stored {
    element: ElementType,
    triangle: Triangle,
    order: u64,
    leading: u64,
}

impl Stored {
    /// The triangle, with zeros in the rest. A diagonal of ones is not read.
    fn read(&self, arguments: &OperationArguments<'_>, diagonal: Diagonal) -> Result<Vec<f64>, KernelFault> {
        let order = self.order;
        let mut values = vec![0.0; (order * order) as usize];
        for column in 0..order {
            let (mut first, mut len) = rows_of(self.triangle, column, order);
            if diagonal == Diagonal::Unit {
                first += u64::from(self.triangle == Triangle::Lower);
                len -= 1;
            }
            let run = Run::dense(column * self.leading + first, len);
            let part = arguments.read(0, self.element, run)?;
            values[(column * order + first) as usize..][..len as usize].copy_from_slice(&part);
        }
        Ok(values)
    }
}
