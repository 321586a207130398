//! Products of sparse matrices.
//!
//! How many elements a product has is known on the device alone. So its structure comes first, by a function that waits; the product itself then has
//! sizes that are known, and is queued, recorded and repeated as every call is.

use std::panic::Location;

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::conversion::{THREADS, bits_of, blocks, check_index};
use super::csr::CsrMatrix;
use super::device_index_check::{Asserted, ElementOrder, assert_indices};
use super::from_dense::{BLOCK_ROWS, ROW_THREADS};
use super::handle::Sparse;
use super::index::{SparseIndex, matrix_name, number};
use super::view::{SparseNames, SparseView};
use crate::Result;
use crate::blas::Real;
use crate::operands::Operands;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::prims::{MAX_SORTED, PrimitiveCall, Scan, ScanOperator, Sort, Unique};
use crate::scalar_argument::{accumulated, checked};

const STRUCTURE: Check = Check("sparse.product_structure");
const PRODUCT: Check = Check("sparse.spgemm");
/// Threads of a warp, which works on one element of `a`.
const WARP: u64 = 32;

/// A [`spgemm`](Sparse::spgemm).
#[derive(Debug)]
pub struct SparseProduct<'a, T: Real, I: SparseIndex> {
    alpha: f64,
    a: &'a CsrMatrix<T, I>,
    b: &'a CsrMatrix<T, I>,
    beta: Option<f64>,
    c: &'a CsrMatrix<T, I>,
}

/// Where the terms of each element of `a` begin, and the number of all terms.
struct CountTerms<'a, T: Real, I: SparseIndex> {
    a: &'a CsrMatrix<T, I>,
    b: &'a CsrMatrix<T, I>,
    starts: &'a GpuRef<u64>,
}

/// The places of the product, each once and in order, and their number.
struct FindPlaces<'a, T: Real, I: SparseIndex> {
    a: &'a CsrMatrix<T, I>,
    b: &'a CsrMatrix<T, I>,
    starts: &'a GpuRef<u64>,
    places: &'a GpuRef<u64>,
    count: &'a GpuRef<u64>,
}

/// Offsets and columns of places.
struct WriteStructure<'a, T: Real, I: SparseIndex> {
    places: &'a GpuRef<u64>,
    c: &'a CsrMatrix<T, I>,
}

impl Sparse {
    /// Finds out which elements the product `A B` has, and returns a matrix with its offsets and indices, for [`spgemm`](Self::spgemm) to write the values of.
    /// Columns ascend in each row. The structure stays of use while those of `a` and `b` do not change.
    ///
    /// This waits for the device twice: for the number of terms, which temporary memory is allocated for, and for the number of elements. A term is a
    /// product of two elements, and takes 24 bytes meanwhile. There may be 2^30 - 1 terms.
    ///
    /// # Errors
    /// Shapes that do not fit; more terms than can be sorted; what the runtime answers.
    #[track_caller]
    pub fn product_structure<T: Real, I: SparseIndex>(
        &self,
        a: &CsrMatrix<T, I>,
        b: &CsrMatrix<T, I>,
    ) -> Result<CsrMatrix<T, I>> {
        check_factors(STRUCTURE, a, b)?;
        if u128::from(a.rows) * u128::from(b.columns) > u128::from(u64::MAX) {
            let what = format!("a product of {} x {}", a.rows, b.columns);
            return Err(STRUCTURE.refusal(what, "multiply blocks of rows, whose size fits 64 bits"));
        }
        let gpu = self.kernels.gpu();
        let operands = factor_operands(STRUCTURE, a, b);
        operands.check_submission(gpu, None)?;
        let _scope = operands.enter(gpu, Location::caller());
        self.find_structure(a, b).map_err(|error| error.told_of_wait(STRUCTURE.0, Some(gpu)))
    }

    #[track_caller]
    fn find_structure<T: Real, I: SparseIndex>(
        &self,
        a: &CsrMatrix<T, I>,
        b: &CsrMatrix<T, I>,
    ) -> Result<CsrMatrix<T, I>> {
        let (gpu, shape) = (self.kernels.gpu(), (a.rows as usize, b.columns as usize));
        let starts = gpu.allocate::<u64>(a.nonzeros() + 1)?;
        PrimitiveCall::new(&self.kernels, CountTerms { a, b, starts: &starts }).submit()?;
        let terms = last(&starts)?;
        if terms > MAX_SORTED {
            let what = format!("a product of {terms} terms, more than {MAX_SORTED}");
            return Err(STRUCTURE.refusal(what, "multiply blocks of rows of `a`, one after the other"));
        }
        let (places, count) = (gpu.allocate::<u64>(terms as usize)?, gpu.allocate::<u64>(1)?);
        let find = FindPlaces { a, b, starts: &starts, places: &places, count: &count };
        PrimitiveCall::new(&self.kernels, find).submit()?;
        let nonzeros = last(&count)? as usize;
        let c = CsrMatrix::allocate(gpu, shape, nonzeros)?;
        let places = places.view(..nonzeros)?;
        PrimitiveCall::new(&self.kernels, WriteStructure { places: &places, c: &c }).submit()?;
        Ok(c)
    }

    /// `C = alpha A B`, or `C = alpha A B + beta C` where a `beta` is given; without one, and with 0, the values of `C` are not read. `C` has the structure that
    /// [`product_structure`](Self::product_structure) gives. Only elements that `C` stores are computed, so another structure is a mask for the product; columns
    /// must ascend in each of its rows.
    ///
    /// Equal calls give equal bits, unless a row of `B` has a column more than once.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::sparse::{CsrMatrix, Sparse};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let sparse = Sparse::new(&gpu);
    /// let a: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 2), &[1.0, 2.0, 0.0, 3.0])?;
    /// let c = sparse.product_structure(&a, &a)?;
    /// sparse.spgemm(1.0, &a, &a, None, &c).submit()?;
    /// assert_eq!(c.indices().download()?, [0, 1, 1]);
    /// assert_eq!(c.values().download()?, [1.0, 8.0, 9.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spgemm<'a, T: Real, I: SparseIndex>(
        &'a self,
        alpha: f64,
        a: &'a CsrMatrix<T, I>,
        b: &'a CsrMatrix<T, I>,
        beta: Option<f64>,
        c: &'a CsrMatrix<T, I>,
    ) -> PrimitiveCall<'a, SparseProduct<'a, T, I>> {
        PrimitiveCall::new(&self.kernels, SparseProduct { alpha, a, b, beta, c })
    }
}

/// The last number, read when everything that writes it is done.
#[track_caller]
fn last(numbers: &GpuRef<u64>) -> Result<u64> {
    Ok(numbers.view(numbers.len() - 1..)?.download()?.first().copied().unwrap_or(0))
}

/// The buffers of both factors.
fn factor_operands<'a, T: Real, I: SparseIndex>(
    check: Check,
    a: &'a CsrMatrix<T, I>,
    b: &'a CsrMatrix<T, I>,
) -> Operands<'a> {
    let operands = SparseView::from(a).operands(Operands::of(check.0), SparseNames::A);
    SparseView::from(b).operands(operands, SparseNames::B)
}

fn check_factors<T: Real, I: SparseIndex>(
    check: Check,
    a: &CsrMatrix<T, I>,
    b: &CsrMatrix<T, I>,
) -> Result<()> {
    if a.columns != b.rows {
        let what = format!("{} x {} times {} x {}", a.rows, a.columns, b.rows, b.columns);
        return check.refuse(what, "give m x k and k x n");
    }
    check_index::<I>(check, (a.rows, a.columns), a.nonzeros() as u64)?;
    check_index::<I>(check, (b.rows, b.columns), b.nonzeros() as u64)
}

impl<T: Real, I: SparseIndex> Operation for CountTerms<'_, T, I> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (a, b) = (self.a, self.b);
        assert_indices(plan, Asserted::StructureA, &SparseView::from(a), ElementOrder::ByRows)?;
        assert_indices(plan, Asserted::StructureB, &SparseView::from(b), ElementOrder::ByRows)?;
        if a.nonzeros() == 0 || b.nonzeros() == 0 {
            return plan.zero(self.starts);
        }
        let count = a.nonzeros() as u64;
        let arguments = vec![
            Argument::read(&a.indices)?,
            Argument::value(count),
            Argument::read(&b.offsets)?,
            Argument::value(b.rows),
            Argument::value(b.nonzeros() as u64),
            Argument::write(self.starts)?,
        ];
        plan.launch(("sparse_index", I::NAME, "term_counts"), blocks(count + 1), THREADS, arguments)?;
        let starts = self.starts.clone();
        Scan::new(starts.clone(), ScanOperator::Sum, starts).exclusive(0).plan(plan)
    }

    fn operands(&self) -> Operands<'_> {
        factor_operands(STRUCTURE, self.a, self.b)
    }

    fn home(&self) -> StreamKey {
        self.starts.home()
    }
}

impl<T: Real, I: SparseIndex> Operation for FindPlaces<'_, T, I> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (a, b, terms) = (self.a, self.b, self.places.len() as u64);
        if terms == 0 {
            return plan.zero(self.count);
        }
        let keys = plan.scratch::<u64>(terms)?;
        let arguments = vec![
            Argument::read(&a.offsets)?,
            Argument::value(a.rows),
            Argument::read(&a.indices)?,
            Argument::value(a.nonzeros() as u64),
            Argument::read(&b.offsets)?,
            Argument::value(b.rows),
            Argument::read(&b.indices)?,
            Argument::value(b.nonzeros() as u64),
            Argument::value(b.columns),
            Argument::read(self.starts)?,
            Argument::value(terms),
            Argument::write(&keys)?,
        ];
        let threads = a.nonzeros() as u64 * WARP;
        plan.launch(("sparse_index", I::NAME, "term_keys"), blocks(threads), THREADS, arguments)?;
        let bits = 0..bits_of(a.rows * b.columns);
        Sort::new(keys.clone(), keys.clone()).with_bits(bits).plan(plan)?;
        Unique::new(keys, self.places.clone(), self.count.clone()).plan(plan)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(STRUCTURE.0)
    }

    fn home(&self) -> StreamKey {
        self.places.home()
    }
}

impl<T: Real, I: SparseIndex> Operation for WriteStructure<'_, T, I> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (count, c) = (self.places.len() as u64, self.c);
        if count == 0 {
            return plan.zero(&c.offsets);
        }
        let arguments = vec![
            Argument::read(self.places)?,
            Argument::value(count),
            Argument::value(c.rows),
            Argument::value(c.columns),
            Argument::write(&c.offsets)?,
        ];
        plan.launch(("sparse_index", I::NAME, "key_offsets"), blocks(c.rows + 1), THREADS, arguments)?;
        let arguments = vec![
            Argument::read(self.places)?,
            Argument::value(count),
            Argument::value(c.columns),
            Argument::write(&c.indices)?,
        ];
        plan.launch(("sparse_index", I::NAME, "key_columns"), blocks(count), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(STRUCTURE.0)
    }

    fn home(&self) -> StreamKey {
        self.c.offsets.home()
    }
}

impl<T: Real, I: SparseIndex> SparseProduct<'_, T, I> {
    /// The factor of what the result holds, if it is read.
    fn accumulated(&self) -> Result<Option<f64>> {
        accumulated(PRODUCT.0, T::TYPE, self.beta)
    }
}

impl<T: Real, I: SparseIndex> Operation for SparseProduct<'_, T, I> {
    fn check(&self) -> Result<()> {
        let (a, b, c) = (self.a, self.b, self.c);
        checked(PRODUCT.0, "alpha", T::TYPE, self.alpha)?;
        self.accumulated()?;
        check_factors(PRODUCT, a, b)?;
        if (c.rows, c.columns) != (a.rows, b.columns) {
            let what = format!(
                "{} x {} times {} x {} into {} x {}",
                a.rows, a.columns, b.rows, b.columns, c.rows, c.columns
            );
            return PRODUCT.refuse(what, "give m x k, k x n and m x n");
        }
        check_index::<I>(PRODUCT, (c.rows, c.columns), c.nonzeros() as u64)?;
        SparseView::from(a).check_apart(PRODUCT, SparseNames::A, ("c.values", &c.values))?;
        SparseView::from(b).check_apart(PRODUCT, SparseNames::B, ("c.values", &c.values))?;
        SparseView::from(c).check_parts(PRODUCT, SparseNames::C)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (a, b, c) = (self.a, self.b, self.c);
        for (asserted, matrix) in [(Asserted::ProductA, a), (Asserted::ProductB, b), (Asserted::ProductC, c)]
        {
            assert_indices(plan, asserted, &SparseView::from(matrix), ElementOrder::ByRows)?;
        }
        if c.nonzeros() == 0 {
            return Ok(());
        }
        let mut arguments = Vec::new();
        // With a factor of 0 no element of `a` is read, and with it none of `b`.
        let is_read = checked(PRODUCT.0, "alpha", T::TYPE, self.alpha)? != 0.0;
        for factor in [a, b] {
            arguments.extend([
                Argument::read(&factor.offsets)?,
                Argument::read(&factor.indices)?,
                Argument::read(&factor.values)?,
                Argument::value(factor.rows),
                Argument::value(if is_read { factor.nonzeros() as u64 } else { 0 }),
            ]);
        }
        arguments.extend([Argument::read(&c.offsets)?, Argument::read(&c.indices)?]);
        // Every value is written before it is added to.
        let beta = self.accumulated()?;
        arguments.push(match beta {
            Some(_) => Argument::read_write(&c.values)?,
            None => Argument::write(&c.values)?,
        });
        arguments.extend([
            Argument::value(c.nonzeros() as u64),
            number::<T>(self.alpha),
            number::<T>(beta.unwrap_or(0.0)),
            Argument::value(u32::from(beta.is_some())),
        ]);
        let kernel = ("sparse_matrix", matrix_name::<T, I>(), "multiply");
        plan.launch(kernel, c.rows.div_ceil(BLOCK_ROWS), ROW_THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        SparseView::from(self.c).operands(factor_operands(PRODUCT, self.a, self.b), SparseNames::C)
    }

    fn home(&self) -> StreamKey {
        self.c.values.home()
    }
}
