//! The arguments of a launch of an operation, and the memory behind them.

use kiln_operation::ElementType;

use super::number::{decode, encode};
use crate::code::kernel::{KernelFault, LaunchContext};

/// The arguments of one launch.
pub(super) struct OperationArguments<'a> {
    launch: &'a LaunchContext<'a>,
}

/// A vector of an operand: where it begins, in elements, how many elements it has, and how far apart they are.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) step: u64,
}

impl Run {
    /// Elements side by side.
    pub(super) fn dense(start: u64, len: u64) -> Self {
        Self { start, len, step: 1 }
    }

    /// Elements that are `step` apart.
    pub(super) fn strided(len: u64, step: u64) -> Self {
        Self { start: 0, len, step }
    }

    /// Runs of elements side by side, which together are this run.
    fn pieces(self) -> impl Iterator<Item = Self> {
        let (count, len) = if self.step == 1 { (1, self.len) } else { (self.len, 1) };
        (0..count).map(move |at| Self { start: self.start + at * self.step, len, step: 1 })
    }
}

impl<'a> OperationArguments<'a> {
    pub(super) fn new(launch: &'a LaunchContext<'a>) -> Self {
        Self { launch }
    }

    /// A scalar.
    pub(super) fn scalar(&self, index: usize) -> Result<f64, KernelFault> {
        Ok(f64::from_bits(self.launch.value::<u64>(index)?))
    }

    /// Elements of an operand, as numbers.
    pub(super) fn read(&self, index: usize, element: ElementType, run: Run) -> Result<Vec<f64>, KernelFault> {
        let address = self.launch.address(index)?;
        let mut values = Vec::with_capacity(run.len as usize);
        let mut bytes = Vec::new();
        for piece in run.pieces() {
            bytes.resize((piece.len * element.bytes()) as usize, 0);
            self.launch.memory().read(address.wrapping_add(piece.start * element.bytes()), &mut bytes)?;
            values.extend(bytes.chunks_exact(element.bytes() as usize).map(|bytes| decode(element, bytes)));
        }
        Ok(values)
    }

    /// Writes numbers as elements of an operand. There are as many as the run is long.
    pub(super) fn write(
        &self,
        index: usize,
        element: ElementType,
        run: Run,
        values: &[f64],
    ) -> Result<(), KernelFault> {
        let address = self.launch.address(index)?;
        let mut bytes = Vec::with_capacity(values.len() * element.bytes() as usize);
        values.iter().for_each(|value| encode(element, *value, &mut bytes));
        let mut rest = &bytes[..];
        for piece in run.pieces() {
            let (now, later) = rest.split_at(((piece.len * element.bytes()) as usize).min(rest.len()));
            self.launch.memory().write(address.wrapping_add(piece.start * element.bytes()), now)?;
            rest = later;
        }
        Ok(())
    }

    /// Signed integers of 4 or 8 bytes side by side.
    pub(super) fn read_integers(
        &self,
        index: usize,
        bytes: u64,
        start: u64,
        len: u64,
    ) -> Result<Vec<i64>, KernelFault> {
        let mut read = vec![0; (len * bytes) as usize];
        self.launch.memory().read(self.launch.address(index)?.wrapping_add(start * bytes), &mut read)?;
        let number = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => bytes.try_into().map_or(0, i64::from_le_bytes),
        };
        Ok(read.chunks_exact(bytes as usize).map(number).collect())
    }

    /// Writes integers of 4 or 8 bytes, of which the lowest bits are kept.
    pub(super) fn write_integers(
        &self,
        index: usize,
        bytes: u64,
        start: u64,
        values: &[i64],
    ) -> Result<(), KernelFault> {
        let address = self.launch.address(index)?.wrapping_add(start * bytes);
        let written: Vec<u8> =
            values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes as usize)).collect();
        Ok(self.launch.memory().write(address, &written)?)
    }

    /// A matrix that is stored by columns, column after column.
    pub(super) fn matrix(
        &self,
        index: usize,
        element: ElementType,
        start: u64,
        (rows, columns): (u64, u64),
        leading: u64,
    ) -> Result<Vec<f64>, KernelFault> {
        let mut values = Vec::with_capacity((rows * columns) as usize);
        for column in 0..columns {
            values.extend(self.read(index, element, Run::dense(start + column * leading, rows))?);
        }
        Ok(values)
    }
}

/// The transpose of a matrix that is stored by columns.
pub(super) fn transposed(values: &[f64], (rows, columns): (u64, u64)) -> Vec<f64> {
    let (rows, columns) = (rows as usize, columns as usize);
    (0..rows).flat_map(|row| (0..columns).map(move |column| values[column * rows + row])).collect()
}
