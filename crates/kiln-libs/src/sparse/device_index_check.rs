//! Looks for offsets and indices that are out of range or out of order, on the device.

use std::panic::Location;

use kiln_mem::StreamKey;
use kiln_operation::SparseFormat;
use kiln_runtime::GpuRef;

use super::conversion::{THREADS, blocks};
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

const CHECK: Check = Check("sparse.check_indices");

/// What can be wrong, as the kernels number it: the least number is told first.
const OFFSET: u64 = 0;
const ROW: u64 = 1;
const ORDER: u64 = 2;
const COLUMN: u64 = 3;
/// Where the kind lies in the word that says what is wrong; below it is the place.
const KIND_SHIFT: u32 = 60;

struct IndexCheck<'a, T: Real, I: SparseIndex> {
    a: SparseView<'a, T, I>,
    word: &'a GpuRef<u64>,
}

impl Sparse {
    /// Looks at all offsets and indices of a matrix on the device, and waits for what is found: for matrices in buffers, whose indices the host does not know.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::sparse::{CooMatrix, Sparse};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let (rows, columns) = (gpu.upload(&[0_i32, 2])?, gpu.upload(&[1_i32, 5])?);
    /// let a = CooMatrix::from_buffers((3, 3), rows, columns, gpu.upload(&[1.0_f32, 2.0])?)?;
    /// let error = Sparse::new(&gpu).check_indices(&a).unwrap_err();
    /// assert_eq!(error.to_string(), "sparse.check_indices: element 1 is in column 5 of 3; count columns from 0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first offset that does not ascend from 0 to the number of elements, the first row or column that is out of range, or coordinates that are not
    /// sorted by rows; otherwise what the runtime answers.
    #[track_caller]
    pub fn check_indices<'a, T: Real, I: SparseIndex>(
        &self,
        a: impl Into<SparseView<'a, T, I>>,
    ) -> Result<()> {
        let (a, gpu) = (a.into(), self.kernels.gpu());
        let operands = a.operands(Operands::of(CHECK.0), SparseNames::A);
        operands.check_submission(gpu, None)?;
        let _scope = operands.enter(gpu, Location::caller());
        self.find_mistake(a).map_err(|error| error.told_of_wait(CHECK.0, Some(gpu)))
    }

    #[track_caller]
    fn find_mistake<T: Real, I: SparseIndex>(&self, a: SparseView<'_, T, I>) -> Result<()> {
        let word = self.kernels.gpu().allocate::<u64>(1)?;
        PrimitiveCall::new(&self.kernels, IndexCheck { a, word: &word }).submit()?;
        let found = word.download()?.first().copied().unwrap_or(0);
        if found == 0 {
            return Ok(());
        }
        let (kind, place) = (!found >> KIND_SHIFT, !found & ((1 << KIND_SHIFT) - 1));
        let list = if kind == COLUMN { a.columns } else { a.rows };
        let at = place as usize;
        let value = list.view(at..at + 1)?.download()?.first().copied().unwrap_or(I::ZERO);
        // Where the transpose is stored, its rows are columns.
        let names = if a.is_transposed { ["column", "row"] } else { ["row", "column"] };
        let count_from_0 = |name| if name == "row" { "count rows from 0" } else { "count columns from 0" };
        let (what, hint) = match kind {
            OFFSET => {
                let what = format!("offset {place} is {value}, with {} elements", a.nonzeros());
                (what, "let offsets ascend from 0 to the number of elements")
            }
            ROW => {
                let what = format!("element {place} is in {} {value} of {}", names[0], a.stored.0);
                (what, count_from_0(names[0]))
            }
            ORDER => {
                let what = format!("element {place} in {} {value} comes behind a greater one", names[0]);
                (what, "sort the elements by rows, or by columns where they are transposed")
            }
            _ => {
                let what = format!("element {place} is in {} {value} of {}", names[1], a.stored.1);
                (what, count_from_0(names[1]))
            }
        };
        CHECK.refuse(what, hint)
    }
}

/// The matrix that an assertion is about, by call and argument, as the kernels number them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Asserted {
    ConvertFrom = 0,
    SortFrom = 1,
    StructureA = 2,
    StructureB = 3,
    ProductA = 4,
    ProductB = 5,
    ProductC = 6,
    TriangularA = 7,
}

/// Added to what an assertion is about where its list has columns.
const COLUMNS: u32 = 0x100;

/// Whether the elements of a matrix have to lie in the order of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ElementOrder {
    ByRows,
    Any,
}

/// On a simulated device, fails the launch where offsets or indices are out of range or out of order, as products of such a matrix do. A GPU does not look: results
/// have no meaning then.
pub(super) fn assert_indices<T: Real, I: SparseIndex>(
    plan: &mut Plan<'_>,
    asserted: Asserted,
    a: &SparseView<'_, T, I>,
    order: ElementOrder,
) -> Result<()> {
    if !plan.has_assertions() {
        return Ok(());
    }
    let nonzeros = a.nonzeros();
    let mut launch = |entry, threads, list, sizes: &[u64], has_columns: bool| {
        let sizes = sizes.iter().map(|size| Ok(Argument::value(*size)));
        let subject = asserted as u32 | if has_columns { COLUMNS } else { 0 };
        let arguments = [Argument::read(list)].into_iter().chain(sizes);
        let arguments = arguments.chain([Ok(Argument::value(subject))]).collect::<Result<_>>()?;
        plan.launch(("sparse_index", I::NAME, entry), blocks(threads), THREADS, arguments)
    };
    if a.format == SparseFormat::Csr {
        launch("assert_offsets", a.stored.0 + 1, a.rows, &[a.stored.0, nonzeros], a.is_transposed)?;
    }
    if nonzeros == 0 {
        return Ok(());
    }
    if a.format == SparseFormat::Coo {
        launch("assert_range", nonzeros, a.rows, &[nonzeros, a.stored.0], a.is_transposed)?;
        if order == ElementOrder::ByRows {
            launch("assert_order", nonzeros, a.rows, &[nonzeros], a.is_transposed)?;
        }
    }
    launch("assert_range", nonzeros, a.columns, &[nonzeros, a.stored.1], !a.is_transposed)
}

impl<T: Real, I: SparseIndex> Operation for IndexCheck<'_, T, I> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (a, nonzeros) = (&self.a, self.a.nonzeros());
        plan.zero(self.word)?;
        let mut launch = |entry, threads, arguments| {
            plan.launch(("sparse_index", I::NAME, entry), blocks(threads), THREADS, arguments)
        };
        let (rows, columns, word) = (a.rows, a.columns, self.word);
        let range = |list, size: u64, kind: u64| -> Result<Vec<Argument>> {
            let sizes = [nonzeros, size, kind].map(Argument::value);
            Ok([Argument::read(list)?]
                .into_iter()
                .chain(sizes)
                .chain([Argument::read_write(word)?])
                .collect())
        };
        if a.format == SparseFormat::Csr {
            let arguments = vec![
                Argument::read(rows)?,
                Argument::value(a.stored.0),
                Argument::value(nonzeros),
                Argument::read_write(word)?,
            ];
            launch("check_offsets", a.stored.0 + 1, arguments)?;
        }
        if nonzeros == 0 {
            return Ok(());
        }
        if a.format == SparseFormat::Coo {
            launch("check_range", nonzeros, range(rows, a.stored.0, ROW)?)?;
            let arguments = vec![
                Argument::read(rows)?,
                Argument::value(nonzeros),
                Argument::value(ORDER),
                Argument::read_write(word)?,
            ];
            launch("check_order", nonzeros, arguments)?;
        }
        launch("check_range", nonzeros, range(columns, a.stored.1, COLUMN)?)
    }

    fn operands(&self) -> Operands<'_> {
        self.a.operands(Operands::of(CHECK.0), SparseNames::A)
    }

    fn home(&self) -> StreamKey {
        self.word.home()
    }
}
