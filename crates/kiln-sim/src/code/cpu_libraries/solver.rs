//! Factorisations, systems of equations, eigenvalues and singular values of matrices in device memory.
//!
//! Where a library does not say what it leaves in an operand, NaN is written, so that no program may use it.

use kiln_driver::Code;
use kiln_operation::{
    ElementType, Geqrf, Gesvd, Getrf, Getrs, Orgqr, Ormqr, Potrf, Potrs, Side, Syevd, Triangle,
};

use super::arguments::{OperationArguments, Run};
use super::dense_matrix::Dense;
use super::factorization;
use super::jacobi::{SingularValues, symmetric_eigen};
use super::triangular::rows_of;
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

/// What the info word says of an iteration that does not converge.
const NOT_CONVERGED: i64 = 1;

pub(super) fn potrf(arguments: &OperationArguments<'_>, operation: &Potrf) -> Work {
    let Potrf { element, n, triangle, leading } = *operation;
    let mut a = read_triangle(arguments, element, n, triangle, leading)?;
    let minor = match factorization::cholesky(&mut a) {
        Ok(()) => 0,
        Err(minor) => {
            a.values.fill(f64::NAN);
            minor as i64
        }
    };
    write_triangle(arguments, element, triangle, leading, &a)?;
    arguments.write_integers(1, 4, 0, &[minor])?;
    Ok(cube(n) / 3)
}

pub(super) fn potrs(arguments: &OperationArguments<'_>, operation: &Potrs) -> Work {
    let Potrs { element, n, columns, triangle, a_leading, b_leading } = *operation;
    let l = read_triangle(arguments, element, n, triangle, a_leading)?;
    for column in 0..columns {
        let run = Run::dense(column * b_leading, n);
        let mut x = arguments.read(1, element, run)?;
        factorization::cholesky_solve(&l, &mut x);
        arguments.write(1, element, run, &x)?;
    }
    arguments.write_integers(2, 4, 0, &[0])?;
    Ok(n * n * columns)
}

pub(super) fn getrf(arguments: &OperationArguments<'_>, operation: &Getrf) -> Work {
    let Getrf { element, m, n, leading } = *operation;
    let mut a = read_dense(arguments, 0, element, (m, n), leading)?;
    let (pivots, zero) = factorization::lu(&mut a);
    write_dense(arguments, 0, element, leading, &a)?;
    arguments.write_integers(1, 8, 0, &pivots)?;
    arguments.write_integers(2, 4, 0, &[zero as i64])?;
    Ok(m.saturating_mul(n).saturating_mul(m.min(n)))
}

pub(super) fn getrs(arguments: &OperationArguments<'_>, operation: &Getrs) -> Work {
    let Getrs { element, n, columns, transposed, a_leading, b_leading } = *operation;
    let a = read_dense(arguments, 0, element, (n, n), a_leading)?;
    let rows = arguments.read_integers(1, 8, 0, n)?.into_iter().enumerate().map(|(at, pivot)| {
        let row = pivot.wrapping_sub(1);
        match usize::try_from(row) {
            Ok(row) if (row as u64) < n => Ok(row),
            _ => {
                let detail = format!("pivot {at} of solve.getrs is {pivot}, which is no row of 1 to {n}");
                Err(KernelFault::Stopped { code: Code::ILLEGAL_ADDRESS, detail })
            }
        }
    });
    let rows = rows.collect::<Result<Vec<usize>, _>>()?;
    for column in 0..columns {
        let run = Run::dense(column * b_leading, n);
        let mut x = arguments.read(2, element, run)?;
        factorization::lu_solve(&a, &rows, transposed, &mut x);
        arguments.write(2, element, run, &x)?;
    }
    arguments.write_integers(3, 4, 0, &[0])?;
    Ok(n * n * columns)
}

pub(super) fn geqrf(arguments: &OperationArguments<'_>, operation: &Geqrf) -> Work {
    let Geqrf { element, m, n, leading } = *operation;
    let mut a = read_dense(arguments, 0, element, (m, n), leading)?;
    let tau = factorization::qr(&mut a);
    write_dense(arguments, 0, element, leading, &a)?;
    arguments.write(1, element, Run::dense(0, operation.vectors()), &tau)?;
    arguments.write_integers(2, 4, 0, &[0])?;
    Ok(2_u64.saturating_mul(m * n).saturating_mul(operation.vectors()))
}

/// The first columns of `Q` are those of the identity, reflected.
pub(super) fn orgqr(arguments: &OperationArguments<'_>, operation: &Orgqr) -> Work {
    let Orgqr { element, m, n, k, leading } = *operation;
    let a = read_vectors(arguments, element, (m, k), leading)?;
    let tau = arguments.read(1, element, Run::dense(0, k))?;
    let mut q = Dense::zeros(m as usize, n as usize);
    (0..n as usize).for_each(|at| q.column_mut(at)[at] = 1.0);
    factorization::apply_q(&a, &tau, false, &mut q);
    write_dense(arguments, 0, element, leading, &q)?;
    arguments.write_integers(2, 4, 0, &[0])?;
    Ok(2_u64.saturating_mul(m * n).saturating_mul(k))
}

/// The Householder vectors below the diagonal of the first operand. What lies above belongs to `R`, and is not read.
fn read_vectors(
    arguments: &OperationArguments<'_>,
    element: ElementType,
    (order, k): (u64, u64),
    leading: u64,
) -> Result<Dense, KernelFault> {
    let mut a = Dense::zeros(order as usize, k as usize);
    for column in 0..k {
        let run = Run::dense(column * leading + column + 1, order - column - 1);
        let vector = arguments.read(0, element, run)?;
        a.column_mut(column as usize)[column as usize + 1..].copy_from_slice(&vector);
    }
    Ok(a)
}

pub(super) fn ormqr(arguments: &OperationArguments<'_>, operation: &Ormqr) -> Work {
    let Ormqr { element, side, transposed, m, n, k, a_leading, c_leading } = *operation;
    let a = read_vectors(arguments, element, (operation.order(), k), a_leading)?;
    let tau = arguments.read(1, element, Run::dense(0, k))?;
    let mut c = read_dense(arguments, 2, element, (m, n), c_leading)?;
    match side {
        Side::Left => factorization::apply_q(&a, &tau, transposed, &mut c),
        Side::Right => {
            // C Q is the transpose of Qᵀ Cᵀ.
            let mut other = c.transposed();
            factorization::apply_q(&a, &tau, !transposed, &mut other);
            c = other.transposed();
        }
    }
    write_dense(arguments, 2, element, c_leading, &c)?;
    arguments.write_integers(3, 4, 0, &[0])?;
    Ok(2_u64.saturating_mul(m * n).saturating_mul(k))
}

pub(super) fn syevd(arguments: &OperationArguments<'_>, operation: &Syevd) -> Work {
    let Syevd { element, n, triangle, vectors, leading } = *operation;
    let mut a = read_triangle(arguments, element, n, triangle, leading)?;
    for column in 0..n as usize {
        for row in column + 1..n as usize {
            let value = a.at(row, column);
            a.set(column, row, value);
        }
    }
    let found = symmetric_eigen(a);
    let (values, left) = match &found {
        Some((values, found)) if vectors => (values.clone(), found.clone()),
        Some((values, _)) => (values.clone(), undefined(n, n)),
        None => (vec![f64::NAN; n as usize], undefined(n, n)),
    };
    match vectors {
        true => write_dense(arguments, 0, element, leading, &left)?,
        false => write_triangle(arguments, element, triangle, leading, &left)?,
    }
    arguments.write(1, element, Run::dense(0, n), &values)?;
    arguments.write_integers(2, 4, 0, &[if found.is_some() { 0 } else { NOT_CONVERGED }])?;
    Ok(cube(n).saturating_mul(20))
}

pub(super) fn gesvd(arguments: &OperationArguments<'_>, operation: &Gesvd) -> Work {
    let Gesvd { element, m, n, vectors, a_leading, u_leading, v_leading } = *operation;
    let k = operation.values();
    let a = read_dense(arguments, 0, element, (m, n), a_leading)?;
    let found = SingularValues::of(a);
    let info = if found.is_some() { 0 } else { NOT_CONVERGED };
    let SingularValues { s, u, v } = found.unwrap_or_else(|| SingularValues {
        s: vec![f64::NAN; k as usize],
        u: undefined(m, k),
        v: undefined(n, k),
    });
    write_dense(arguments, 0, element, a_leading, &undefined(m, n))?;
    arguments.write(1, element, Run::dense(0, k), &s)?;
    if vectors {
        write_dense(arguments, 2, element, u_leading, &u)?;
        write_dense(arguments, 3, element, v_leading, &v)?;
    }
    arguments.write_integers(if vectors { 4 } else { 2 }, 4, 0, &[info])?;
    Ok((m * n).saturating_mul(k).saturating_mul(20))
}

fn cube(n: u64) -> u64 {
    n.saturating_mul(n).saturating_mul(n)
}

/// A matrix whose elements a library does not define.
fn undefined(rows: u64, columns: u64) -> Dense {
    let (rows, columns) = (rows as usize, columns as usize);
    Dense { rows, columns, values: vec![f64::NAN; rows * columns] }
}

fn read_dense(
    arguments: &OperationArguments<'_>,
    index: usize,
    element: ElementType,
    shape: (u64, u64),
    leading: u64,
) -> Result<Dense, KernelFault> {
    let values = arguments.matrix(index, element, 0, shape, leading)?;
    Ok(Dense { rows: shape.0 as usize, columns: shape.1 as usize, values })
}

fn write_dense(
    arguments: &OperationArguments<'_>,
    index: usize,
    element: ElementType,
    leading: u64,
    a: &Dense,
) -> Result<(), KernelFault> {
    for column in 0..a.columns {
        let run = Run::dense(column as u64 * leading, a.rows as u64);
        arguments.write(index, element, run, a.column(column))?;
    }
    Ok(())
}

/// One triangle of the first operand, as the lower triangle of a matrix with zeros in the rest.
fn read_triangle(
    arguments: &OperationArguments<'_>,
    element: ElementType,
    n: u64,
    triangle: Triangle,
    leading: u64,
) -> Result<Dense, KernelFault> {
    let mut a = Dense::zeros(n as usize, n as usize);
    for column in 0..n {
        let (first, len) = rows_of(triangle, column, n);
        let part = arguments.read(0, element, Run::dense(column * leading + first, len))?;
        a.column_mut(column as usize)[first as usize..][..len as usize].copy_from_slice(&part);
    }
    Ok(if triangle == Triangle::Upper { a.transposed() } else { a })
}

/// Writes the lower triangle of a matrix as a triangle of the first operand. The rest of the operand stays as it is.
fn write_triangle(
    arguments: &OperationArguments<'_>,
    element: ElementType,
    triangle: Triangle,
    leading: u64,
    a: &Dense,
) -> Result<(), KernelFault> {
    let n = a.rows as u64;
    let other = (triangle == Triangle::Upper).then(|| a.transposed());
    let a = other.as_ref().unwrap_or(a);
    for column in 0..n {
        let (first, len) = rows_of(triangle, column, n);
        let part = &a.column(column as usize)[first as usize..][..len as usize];
        arguments.write(0, element, Run::dense(column * leading + first, len), part)?;
    }
    Ok(())
}
