//! Fourier transforms of arrays in device memory.

use kiln_operation::{FftKind, FftOperation};

use super::arguments::{OperationArguments, Run};
use super::dft::{Complex, Transform};
use crate::code::kernel::KernelFault;

/// Runs a transform. Returns how many multiplications that were, nearly.
pub(super) fn run(arguments: &OperationArguments<'_>, operation: &FftOperation) -> Result<u64, KernelFault> {
    let (rows, last) = (operation.shape.rows(), operation.shape.last());
    let output = usize::from(!operation.in_place);
    for at in 0..operation.batch {
        let mut spectrum = Vec::with_capacity((rows * operation.spectrum_row()) as usize);
        match operation.kind {
            FftKind::RealForward => {
                let transform = Transform::new(last as usize);
                for row in at * rows..(at + 1) * rows {
                    let run = Run::dense(row * operation.real_row(), last);
                    let real = arguments.read(0, operation.element, run)?;
                    let mut row: Vec<Complex> = real.into_iter().map(|re| Complex::new(re, 0.0)).collect();
                    transform.run(&mut row);
                    spectrum.extend_from_slice(&row[..operation.spectrum_row() as usize]);
                }
                slower_axes(operation, &mut spectrum);
                write_spectrum(arguments, operation, output, at, &spectrum)?;
            }
            FftKind::Forward | FftKind::Inverse => {
                spectrum = read_spectrum(arguments, operation, at)?;
                let transform = Transform::new(last as usize);
                let run =
                    if operation.kind == FftKind::Forward { Transform::run } else { Transform::run_inverse };
                spectrum.chunks_exact_mut(last as usize).for_each(|row| run(&transform, row));
                slower_axes(operation, &mut spectrum);
                write_spectrum(arguments, operation, output, at, &spectrum)?;
            }
            FftKind::RealInverse => {
                spectrum = read_spectrum(arguments, operation, at)?;
                slower_axes(operation, &mut spectrum);
                write_real(arguments, operation, output, at, &spectrum)?;
            }
        }
    }
    let elements = rows.saturating_mul(last).saturating_mul(operation.batch);
    Ok(elements.saturating_mul(4 * u64::from(elements.ilog2() + 1)))
}

fn read_spectrum(
    arguments: &OperationArguments<'_>,
    operation: &FftOperation,
    at: u64,
) -> Result<Vec<Complex>, KernelFault> {
    let len = 2 * operation.shape.rows() * operation.spectrum_row();
    let run = Run::dense(at * len, len);
    let parts = arguments.read(0, operation.element, run)?;
    if operation.destroys_input() {
        // What a library leaves there is not said, so that no program may use it.
        arguments.write(0, operation.element, run, &vec![f64::NAN; len as usize])?;
    }
    Ok(parts.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])).collect())
}

fn write_spectrum(
    arguments: &OperationArguments<'_>,
    operation: &FftOperation,
    output: usize,
    at: u64,
    spectrum: &[Complex],
) -> Result<(), KernelFault> {
    let len = 2 * spectrum.len() as u64;
    let parts: Vec<f64> = spectrum.iter().flat_map(|value| [value.re, value.im]).collect();
    arguments.write(output, operation.element, Run::dense(at * len, len), &parts)
}

/// The last step of a transform to real numbers: along the fastest axis, from half of each row.
fn write_real(
    arguments: &OperationArguments<'_>,
    operation: &FftOperation,
    output: usize,
    at: u64,
    spectrum: &[Complex],
) -> Result<(), KernelFault> {
    let (rows, last) = (operation.shape.rows(), operation.shape.last() as usize);
    let transform = Transform::new(last);
    for (row, half) in
        (at * rows..(at + 1) * rows).zip(spectrum.chunks_exact(operation.spectrum_row() as usize))
    {
        let mut whole: Vec<Complex> = (0..last)
            .map(|at| match half.get(at) {
                // These are real in the spectrum of real numbers; libraries do not look at their imaginary parts.
                Some(value) if at == 0 || 2 * at == last => Complex::new(value.re, 0.0),
                Some(value) => *value,
                None => half[last - at].conjugate(),
            })
            .collect();
        transform.run_inverse(&mut whole);
        let real: Vec<f64> = whole.iter().map(|value| value.re).collect();
        arguments.write(
            output,
            operation.element,
            Run::dense(row * operation.real_row(), last as u64),
            &real,
        )?;
    }
    Ok(())
}

/// Transforms an array along all axes but the fastest.
fn slower_axes(operation: &FftOperation, array: &mut [Complex]) {
    let is_inverse = matches!(operation.kind, FftKind::Inverse | FftKind::RealInverse);
    let mut step = operation.spectrum_row() as usize;
    for extent in operation.shape.extents().iter().rev().skip(1) {
        let (extent, transform) = (*extent as usize, Transform::new(*extent as usize));
        for start in (0..array.len()).filter(|at| (at / step).is_multiple_of(extent)) {
            let mut line: Vec<Complex> = (0..extent).map(|at| array[start + at * step]).collect();
            if is_inverse {
                transform.run_inverse(&mut line)
            } else {
                transform.run(&mut line)
            }
            line.into_iter().enumerate().for_each(|(at, value)| array[start + at * step] = value);
        }
        step *= extent;
    }
}
