//! Sparse matrices from one format to another.

use kiln_mem::StreamKey;
use kiln_operation::SparseFormat;
use kiln_runtime::{Element, GpuRef};

use super::coo::CooMatrix;
use super::device_index_check::{Asserted, ElementOrder, assert_indices};
use super::handle::Sparse;
use super::index::SparseIndex;
use super::view::{SparseNames, SparseView};
use crate::Result;
use crate::blas::Real;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::prims::{MAX_SORTED, Sort, SortByKey};

/// Threads of a block, as the kernels are written.
pub(super) const THREADS: u32 = 256;

const CHECK: Check = Check("sparse.convert");
const SORT: Check = Check("sparse.sort_coordinates");

/// A [`convert`](Sparse::convert).
#[derive(Debug)]
pub struct Conversion<'a, T: Real, I: SparseIndex> {
    pub(super) from: SparseView<'a, T, I>,
    pub(super) to: SparseView<'a, T, I>,
}

impl Sparse {
    /// Writes a sparse matrix in another format. Both have the same shape and number of elements; [`CsrMatrix::allocate`](super::CsrMatrix::allocate) and the
    /// like give memory for the result. A transposed view is converted into the transpose, and a transposed `to` is written as one.
    ///
    /// Coordinates must be sorted by rows: use [`sort_coordinates`](Self::sort_coordinates) first. Offsets and indices must be those of a matrix: a simulated device
    /// fails the launch where they are not, and a GPU writes a result without a meaning; [`check_indices`](Self::check_indices) tells on both.
    ///
    /// Elements of one row, or of one column of [`CscMatrix`](super::CscMatrix), keep their order. From rows to columns, and back, they are sorted, of
    /// at most 2^30 - 1 elements. The same matrix gives the same bits on every device.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::sparse::{CscMatrix, CsrMatrix, Sparse};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let rows: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 3), &[0.0, 2.0, 0.0, 1.0, 0.0, 3.0])?;
    /// let columns = CscMatrix::allocate(&gpu, rows.shape(), rows.nonzeros())?;
    /// Sparse::new(&gpu).convert(&rows, &columns).submit()?;
    /// assert_eq!(columns.offsets().download()?, [0, 1, 2, 3]);
    /// assert_eq!(columns.values().download()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convert<'a, T: Real, I: SparseIndex>(
        &'a self,
        from: impl Into<SparseView<'a, T, I>>,
        to: impl Into<SparseView<'a, T, I>>,
    ) -> PrimitiveCall<'a, Conversion<'a, T, I>> {
        PrimitiveCall::new(&self.kernels, Conversion { from: from.into(), to: to.into() })
    }
}

/// A [`sort_coordinates`](Sparse::sort_coordinates).
#[derive(Debug)]
pub struct SortCoordinates<'a, T: Real, I: SparseIndex> {
    from: SparseView<'a, T, I>,
    to: SparseView<'a, T, I>,
}

impl Sparse {
    /// Sorts the elements of a matrix by rows, and in each row by columns, as all other operations need them. Elements of one place keep their order. There may be
    /// 2^30 - 1 elements.
    pub fn sort_coordinates<'a, T: Real, I: SparseIndex>(
        &'a self,
        from: &'a CooMatrix<T, I>,
        to: &'a CooMatrix<T, I>,
    ) -> PrimitiveCall<'a, SortCoordinates<'a, T, I>> {
        PrimitiveCall::new(&self.kernels, SortCoordinates { from: from.into(), to: to.into() })
    }
}

impl<T: Real, I: SparseIndex> Operation for SortCoordinates<'_, T, I> {
    fn check(&self) -> Result<()> {
        let check = SORT;
        check.at_most("from", self.from.values.len(), MAX_SORTED)?;
        check_pair(check, &self.from, &self.to)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (from, nonzeros) = (&self.from, self.from.nonzeros());
        if nonzeros == 0 {
            return Ok(());
        }
        assert_indices(plan, Asserted::SortFrom, from, ElementOrder::Any)?;
        // By columns, and then by rows: the second sort keeps the order of the first.
        let (rows, columns) = (plan.scratch::<I>(nonzeros)?, plan.scratch::<I>(nonzeros)?);
        let values = plan.scratch::<T>(nonzeros)?;
        let between = SparseView {
            format: SparseFormat::Coo,
            stored: (from.stored.1, from.stored.0),
            is_transposed: true,
            rows: &rows,
            columns: &columns,
            values: &values,
        };
        exchange(plan, from, &between)?;
        exchange(plan, &between, &self.to)
    }

    fn operands(&self) -> Operands<'_> {
        let operands = self.from.operands(Operands::of(SORT.0), SparseNames::FROM);
        self.to.operands(operands, SparseNames::TO)
    }

    fn home(&self) -> StreamKey {
        self.to.values.home()
    }
}

impl<T: Real, I: SparseIndex> Conversion<'_, T, I> {
    /// The steps, for indices that were looked at.
    pub(super) fn add_steps(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (from, to) = (&self.from, &self.to);
        if from.nonzeros() == 0 {
            // Offsets are zeros, and there are no indices.
            return plan.zero(to.rows);
        }
        if from.is_transposed != to.is_transposed {
            return exchange(plan, from, to);
        }
        match (from.format, to.format) {
            (SparseFormat::Csr, SparseFormat::Coo) => expand(plan, from.rows, to.rows)?,
            (SparseFormat::Coo, SparseFormat::Csr) => compress(plan, from.rows, to.rows)?,
            _ => plan.copy(from.rows, to.rows)?,
        }
        plan.copy(from.columns, to.columns)?;
        plan.copy(from.values, to.values)
    }
}

impl<T: Real, I: SparseIndex> Operation for Conversion<'_, T, I> {
    fn check(&self) -> Result<()> {
        let (from, to) = (&self.from, &self.to);
        if from.is_transposed != to.is_transposed {
            CHECK.at_most("from", from.values.len(), MAX_SORTED)?;
        }
        check_pair(CHECK, from, to)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        assert_indices(plan, Asserted::ConvertFrom, &self.from, ElementOrder::ByRows)?;
        self.add_steps(plan)
    }

    fn operands(&self) -> Operands<'_> {
        let operands = self.from.operands(Operands::of(CHECK.0), SparseNames::FROM);
        self.to.operands(operands, SparseNames::TO)
    }

    fn home(&self) -> StreamKey {
        self.to.values.home()
    }
}

/// Refuses matrices of different shapes, and those that share memory.
fn check_pair<T: Real, I: SparseIndex>(
    check: Check,
    from: &SparseView<'_, T, I>,
    to: &SparseView<'_, T, I>,
) -> Result<()> {
    if (from.shape(), from.nonzeros()) != (to.shape(), to.nonzeros()) {
        let what = format!(
            "{} with {} elements into {} with {}",
            from.shape_text(),
            from.nonzeros(),
            to.shape_text(),
            to.nonzeros()
        );
        return check.refuse(what, "give two matrices of one shape with as many elements");
    }
    check_index::<I>(check, from.stored, from.nonzeros())?;
    from.check_apart(check, SparseNames::FROM, (SparseNames::TO.rows(to.format), to.rows))?;
    from.check_apart(check, SparseNames::FROM, (SparseNames::TO.indices, to.columns))?;
    from.check_apart(check, SparseNames::FROM, (SparseNames::TO.values, to.values))?;
    to.check_parts(check, SparseNames::TO)
}

/// Refuses sizes that the type of the indices does not count to.
pub(super) fn check_index<I: SparseIndex>(check: Check, shape: (u64, u64), nonzeros: u64) -> Result<()> {
    match [shape.0, shape.1, nonzeros].into_iter().find(|size| I::from_place(*size).is_none()) {
        None => Ok(()),
        Some(size) => check.refuse(format!("a size of {size} with indices of type {}", I::TYPE), I::WIDER),
    }
}

/// From an order by rows to one by columns, or back: a stable sort by what was not sorted.
fn exchange<T: Real, I: SparseIndex>(
    plan: &mut Plan<'_>,
    from: &SparseView<'_, T, I>,
    to: &SparseView<'_, T, I>,
) -> Result<()> {
    let nonzeros = from.nonzeros();
    let rows = match from.format {
        SparseFormat::Coo => from.rows.clone(),
        SparseFormat::Csr => {
            let rows = plan.scratch(nonzeros)?;
            expand(plan, from.rows, &rows)?;
            rows
        }
    };
    let sorted = match to.format {
        SparseFormat::Coo => to.rows.clone(),
        SparseFormat::Csr => plan.scratch(nonzeros)?,
    };
    let (before, places) = (plan.scratch::<u32>(nonzeros)?, plan.scratch::<u32>(nonzeros)?);
    let arguments = vec![Argument::value(nonzeros), Argument::write(&before)?];
    plan.launch(("sparse_index", I::NAME, "places"), blocks(nonzeros), THREADS, arguments)?;
    let bits = 0..bits_of(from.stored.1);
    let keys = Sort::new(from.columns.clone(), sorted.clone()).with_bits(bits);
    SortByKey { keys, values: before, sorted_values: places.clone() }.plan(plan)?;
    gather::<I, I>(plan, &rows, &places, to.columns)?;
    gather::<T, I>(plan, from.values, &places, to.values)?;
    match to.format {
        SparseFormat::Coo => Ok(()),
        SparseFormat::Csr => compress(plan, &sorted, to.rows),
    }
}

/// Bits of the numbers below a size.
pub(super) fn bits_of(size: u64) -> u32 {
    (u64::BITS - size.saturating_sub(1).leading_zeros()).max(1)
}

/// Blocks for one thread each.
pub(super) fn blocks(threads: u64) -> u64 {
    threads.div_ceil(u64::from(THREADS))
}

/// From offsets to the row of each element.
fn expand<I: SparseIndex>(plan: &mut Plan<'_>, offsets: &GpuRef<I>, rows: &GpuRef<I>) -> Result<()> {
    let count = rows.len() as u64;
    let arguments = vec![
        Argument::read(offsets)?,
        Argument::value(offsets.len() as u64 - 1),
        Argument::value(count),
        Argument::write(rows)?,
    ];
    plan.launch(("sparse_index", I::NAME, "expand"), blocks(count), THREADS, arguments)
}

/// From the row of each element to offsets.
pub(super) fn compress<I: SparseIndex>(
    plan: &mut Plan<'_>,
    rows: &GpuRef<I>,
    offsets: &GpuRef<I>,
) -> Result<()> {
    let count = offsets.len() as u64;
    let arguments = vec![
        Argument::read(rows)?,
        Argument::value(rows.len() as u64),
        Argument::value(count - 1),
        Argument::write(offsets)?,
    ];
    plan.launch(("sparse_index", I::NAME, "compress"), blocks(count), THREADS, arguments)
}

fn gather<T: Element, I: SparseIndex>(
    plan: &mut Plan<'_>,
    from: &GpuRef<T>,
    places: &GpuRef<u32>,
    to: &GpuRef<T>,
) -> Result<()> {
    let count = to.len() as u64;
    let entry = if size_of::<T>() == 4 { "gather_4" } else { "gather_8" };
    let arguments =
        vec![Argument::read(from)?, Argument::read(places)?, Argument::value(count), Argument::write(to)?];
    plan.launch(("sparse_index", I::NAME, entry), blocks(count), THREADS, arguments)
}
