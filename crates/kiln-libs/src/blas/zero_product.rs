//! A matrix product of no terms: `C` is `beta C` before bias and activation.

use kiln_operation::Matmul;
use kiln_runtime::GpuRef;

use super::element::MatrixElement;
use super::matmul::MatmulCall;
use super::matrix::Matrix;
use crate::Result;
use crate::call_arguments::Argument;
use crate::call_state::check_ready;
use crate::described::{Described, check_named};
use crate::library_tag::library_zeros;

impl<T: MatrixElement, O: MatrixElement> MatmulCall<'_, T, O> {
    /// The product that stands for one of no terms. Libraries do not take matrices without elements, so two of zeros take their places. Everything else is checked
    /// before memory is allocated for them.
    ///
    /// Scale factors multiply nothing then: they must fit, and are not read. Memory that is missing is told of `call`.
    pub(super) fn without_terms(&self, call: &'static str) -> Result<Described<'static>> {
        let gpu = self.loaded().gpu();
        check_ready(gpu, call)?;
        self.operands().check(gpu)?;
        let (a, _, c) = self.matrices();
        c.check_room(Matmul::NAME, "c")?;
        self.check_others(a.buffer)?;
        let count = (c.rows.max(c.columns) as usize).saturating_mul(terms::<T>());
        let zeros = library_zeros::<T>(gpu, count).map_err(|error| error.within(call))?;
        Ok(self.of_factors(&zeros).without_scales().described()?.into_held())
    }

    /// Refuses other operands than the factors where they do not fit. A buffer stands for both factors.
    fn check_others(&self, factors: &GpuRef<T>) -> Result<()> {
        let operation = self.of_factors(factors).stored_product()?;
        let (_, _, c) = self.matrices();
        let bias = self.bias_buffer().map(Argument::borrowed);
        let scales = self.stored_scales().into_iter().flatten().map(Argument::borrowed);
        let others = [Argument::borrowed(c.buffer)].into_iter().chain(bias).chain(scales);
        check_named(operation, self.names(), [None, None].into_iter().chain(others.map(Some)))
    }

    /// The same product of factors that lie in one buffer.
    fn of_factors<'b>(&'b self, factors: &'b GpuRef<T>) -> MatmulCall<'b, T, O> {
        let (_, _, c) = self.matrices();
        let (rows, columns, batch) = (c.rows as usize, c.columns as usize, c.batch as usize);
        let a = Matrix::new(factors, rows, terms::<T>()).batch(batch).stride(0);
        // Libraries take 8-bit factors in one layout only: rows of `a` and columns of `b` lie one after the other.
        let b = match is_narrow::<T>() {
            true => Matrix::new(factors, columns, terms::<T>()).transposed(),
            false => Matrix::new(factors, terms::<T>(), columns),
        };
        let b = b.batch(batch).stride(0);
        self.with_matrices((a, b, c), None).alpha(1.0)
    }
}

/// How many zeros are added: libraries multiply rows of 8-bit numbers that are multiples of 16 bytes.
fn terms<T>() -> usize {
    if is_narrow::<T>() { 16 } else { 1 }
}

fn is_narrow<T>() -> bool {
    size_of::<T>() == 1
}
