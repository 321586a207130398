//! Kernels of this crate around a library that solves a system of equations.
//!
//! A library moves rows by the pivots that it is given, also to memory outside of the matrix, so that it is given a checked copy of them. It takes right-hand sides
//! column after column, so that those in rows are copied into columns and back. It says nothing of a NaN in a matrix, or takes it for a
//! zero, nor of a zero in factors that it solves with, so that a matrix is looked at before it is factored, and the diagonal of factors.

use kiln_runtime::{DeviceRuntime, GpuRef, Stream};

use super::batch::Batch;
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::library_tag::library_tag;
use crate::prims::Primitives;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;
/// Elements that a thread of a scan looks at, up to [`SCAN_BLOCKS`].
const SCAN_ITEMS: u64 = 8;
/// Blocks of a scan at most.
const SCAN_BLOCKS: u64 = 1024;

/// What a system of equations needs beside the library.
#[derive(Debug)]
pub(super) struct System<'a> {
    pub(super) kernels: &'a Primitives,
    /// The type that kernels are named by.
    of: &'static str,
    pivots: Option<GpuRef<i64>>,
    sides: Option<RowSides>,
    factors: Option<Factors>,
}

/// Triangular factors that are looked at.
#[derive(Debug)]
struct Factors {
    buffer: GpuRef<u8>,
    /// Rows and columns of what is stored, column after column.
    stored: (u64, u64),
    leading: u64,
    /// Whether the library writes them, and tells of zeros.
    are_made: bool,
}

/// The words of a system, so that those of a factorisation come first: what was found, its kind, the library's word, the row of a pivot, and the pivot. Of a factorisation, which
/// is given no pivots, the fourth is what a scan found in the matrix.
const WORDS: usize = 6;
const WORDS_BYTES: usize = WORDS * size_of::<i32>();
/// Allocations begin at multiples of this at least.
const PIECE_BYTES: usize = 512;
const WORD: usize = 0;
const KIND: usize = 1;
pub(super) const LIBRARY_WORD: usize = 2;
const PIVOT_ROW: usize = 3;
const SCANNED: usize = 3;
const PIVOT: usize = 4;

/// Right-hand sides that are stored row after row.
#[derive(Debug)]
struct RowSides {
    buffer: GpuRef<u8>,
    element_bytes: u64,
    rows: u64,
    columns: u64,
    leading: u64,
}

/// The same with its memory.
pub(super) struct PreparedSystem<'a> {
    system: System<'a>,
    /// Pivots that are all rows.
    pub(super) usable: Option<GpuRef<i64>>,
    /// Right-hand sides, column after column.
    pub(super) columns: Option<GpuRef<u8>>,
    pub(super) words: GpuRef<i32>,
}

/// Words, pivots that are all rows, and right-hand sides, column after column.
type Memory = (GpuRef<i32>, Option<GpuRef<i64>>, Option<GpuRef<u8>>);

impl Factors {
    fn new<T: Real>(matrix: &Matrix<'_, T>, are_made: bool) -> Result<Self> {
        let ((rows, columns), leading) = (matrix.stored(), matrix.distance());
        let reach = columns.saturating_sub(1).saturating_mul(leading).saturating_add(rows);
        let reach = usize::try_from(reach).unwrap_or(usize::MAX).min(matrix.buffer.len());
        let buffer = matrix.buffer.view(..reach)?.cast()?;
        Ok(Self { buffer, stored: (rows, columns), leading, are_made })
    }
}

impl<'a> System<'a> {
    /// The factors of a matrix that are looked at when they are made.
    pub(super) fn factorisation<T: Real>(kernels: &'a Primitives, a: &Matrix<'_, T>) -> Result<Self> {
        let factors = Some(Factors::new(a, true)?);
        Ok(Self { kernels, of: Batch::<T>::kernels(), pivots: None, sides: None, factors })
    }

    /// A system with factors and right-hand sides that fit each other. Returns also how far apart its columns lie, where the library sees them.
    pub(super) fn new<T: Real>(
        kernels: &'a Primitives,
        check: Check,
        factors: &Matrix<'_, T>,
        pivots: Option<&GpuRef<i64>>,
        b: &Matrix<'_, T>,
    ) -> Result<(Self, u64)> {
        let of = Batch::<T>::kernels();
        let looked_at = match pivots {
            Some(_) => Some(Factors::new(factors, false)?),
            None => None,
        };
        let mut system = Self { kernels, of, pivots: pivots.cloned(), sides: None, factors: looked_at };
        if b.by_columns {
            return Ok((system, b.distance()));
        }
        if b.columns == 1 && b.distance() == 1 {
            return Ok((system, b.rows));
        }
        let name = if pivots.is_some() { "factors" } else { "factor" };
        let a = Batch::read(check, name, factors)?;
        let found = a.sides(b)?;
        if let Some(pivots) = pivots {
            check.apart(("pivots", pivots), ("b", &found.buffer))?;
        }
        system.sides = Some(RowSides {
            buffer: found.buffer.cast()?,
            element_bytes: T::TYPE.bytes(),
            rows: found.rows,
            columns: found.columns,
            leading: found.row_step,
        });
        Ok((system, b.rows))
    }

    /// Allocates what it needs. Where a part of it does not fit, the error is that of all of it, so that as much memory as it says suffices.
    pub(super) fn prepare(self, gpu: &DeviceRuntime, stream: &Stream) -> Result<PreparedSystem<'a>> {
        match self.allocate(gpu, stream) {
            Err(error) if error.runtime().is_some_and(kiln_runtime::Error::is_oom) => {
                let all = [WORDS_BYTES, self.pivot_bytes(), self.column_bytes()];
                let all = all.into_iter().fold(0, |sum: usize, bytes| {
                    sum.saturating_add(bytes.checked_next_multiple_of(PIECE_BYTES).unwrap_or(usize::MAX))
                });
                drop(gpu.allocate_tagged::<u8>(stream, all, library_tag())?);
                let (words, usable, columns) = self.allocate(gpu, stream)?;
                Ok(PreparedSystem { system: self, usable, columns, words })
            }
            allocated => {
                let (words, usable, columns) = allocated?;
                Ok(PreparedSystem { system: self, usable, columns, words })
            }
        }
    }

    fn allocate(&self, gpu: &DeviceRuntime, stream: &Stream) -> Result<Memory> {
        let words = gpu.allocate_tagged(stream, WORDS, library_tag())?;
        let usable = match &self.pivots {
            Some(pivots) => Some(gpu.allocate_tagged(stream, pivots.len(), library_tag())?),
            None => None,
        };
        let columns = match &self.sides {
            Some(_) => Some(gpu.allocate_tagged(stream, self.column_bytes(), library_tag())?),
            None => None,
        };
        Ok((words, usable, columns))
    }

    fn pivot_bytes(&self) -> usize {
        self.pivots.as_ref().map_or(0, |pivots| pivots.len().saturating_mul(size_of::<i64>()))
    }

    /// Bytes of the copy of right-hand sides.
    fn column_bytes(&self) -> usize {
        self.sides.as_ref().map_or(0, |RowSides { element_bytes, rows, columns, .. }| {
            let bytes = rows.saturating_mul(*columns).saturating_mul(*element_bytes);
            usize::try_from(bytes).unwrap_or(usize::MAX)
        })
    }
}

impl PreparedSystem<'_> {
    /// The words that tell what was found, if that is looked for.
    pub(super) fn found_words(&self) -> Result<Option<GpuRef<i32>>> {
        let last = match (&self.system.factors, &self.usable) {
            (None, _) => return Ok(None),
            (Some(_), None) => LIBRARY_WORD,
            (Some(_), Some(_)) => WORDS - 1,
        };
        Ok(Some(self.words.view(..=last)?))
    }

    /// Looks at a matrix that is factored.
    fn add_scan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let Some(factors) = self.system.factors.as_ref().filter(|it| it.are_made) else {
            return Ok(());
        };
        let (rows, columns) = factors.stored;
        let blocks = rows.saturating_mul(columns).div_ceil(u64::from(THREADS) * SCAN_ITEMS);
        let blocks = blocks.clamp(1, SCAN_BLOCKS);
        let found = self.words.view(SCANNED..=SCANNED)?;
        let found = if blocks == 1 {
            Argument::write(&found)?
        } else {
            plan.zero(&found)?;
            Argument::read_write(&found)?
        };
        let mut arguments = vec![Argument::read(&factors.buffer)?];
        arguments.extend([rows, columns, factors.leading].map(Argument::value));
        arguments.push(found);
        plan.launch(("system", self.system.of, "scan_matrix"), blocks, THREADS, arguments)
    }

    /// Looks at the factors, if it is time to.
    fn add_check(&self, plan: &mut Plan<'_>, are_made: bool) -> Result<()> {
        let Some(factors) = self.system.factors.as_ref().filter(|it| it.are_made == are_made) else {
            return Ok(());
        };
        let before = if are_made { LIBRARY_WORD } else { PIVOT_ROW };
        let word = |at: usize| self.words.view(at..=at);
        let scanned = if are_made { Argument::read(&word(SCANNED)?)? } else { Argument::Null };
        let arguments = vec![
            Argument::read(&factors.buffer)?,
            Argument::value(factors.stored.0),
            Argument::value(factors.stored.1),
            Argument::value(factors.leading),
            Argument::value(u32::from(!are_made)),
            scanned,
            Argument::read(&word(before)?)?,
            Argument::write(&word(WORD)?)?,
            Argument::write(&word(KIND)?)?,
        ];
        plan.launch(("system", self.system.of, "check_factors"), 1, THREADS, arguments)
    }

    /// What comes before the library.
    pub(super) fn add_before(&self, plan: &mut Plan<'_>) -> Result<()> {
        let System { of, pivots, .. } = &self.system;
        if let (Some(pivots), Some(usable)) = (pivots, &self.usable) {
            let row = self.words.view(PIVOT_ROW..=PIVOT_ROW)?;
            let value = self.words.view(PIVOT..WORDS)?.cast::<i64>()?;
            let arguments = vec![
                Argument::read(pivots)?,
                Argument::value(pivots.len() as u64),
                Argument::write(usable)?,
                Argument::write(&row)?,
                Argument::write(&value)?,
            ];
            plan.launch(("system", of, "check_pivots"), 1, THREADS, arguments)?;
        }
        self.add_scan(plan)?;
        self.add_check(plan, false)?;
        let Some((sides, columns)) = self.copied() else { return Ok(()) };
        let from = [sides.leading, 1].map(Argument::value);
        let to = [1, sides.rows].map(Argument::value);
        let mut arguments = vec![Argument::read(&sides.buffer)?];
        arguments.extend(from);
        arguments.push(Argument::write(columns)?);
        arguments.extend(to);
        self.add_copy(plan, sides, arguments)
    }

    /// What comes after the library.
    pub(super) fn add_after(&self, plan: &mut Plan<'_>) -> Result<()> {
        self.add_check(plan, true)?;
        let Some((sides, columns)) = self.copied() else { return Ok(()) };
        let from = [1, sides.rows].map(Argument::value);
        let to = [sides.leading, 1].map(Argument::value);
        let mut arguments = vec![Argument::read(columns)?];
        arguments.extend(from);
        // What lies between the rows stays.
        arguments.push(Argument::read_write(&sides.buffer)?);
        arguments.extend(to);
        self.add_copy(plan, sides, arguments)
    }

    /// Right-hand sides that are copied, and their copy.
    fn copied(&self) -> Option<(&RowSides, &GpuRef<u8>)> {
        self.system.sides.as_ref().zip(self.columns.as_ref())
    }

    fn add_copy(&self, plan: &mut Plan<'_>, sides: &RowSides, mut arguments: Vec<Argument>) -> Result<()> {
        let RowSides { rows, columns, .. } = *sides;
        arguments.extend([rows, columns].map(Argument::value));
        let blocks = rows.saturating_mul(columns).div_ceil(u64::from(THREADS));
        plan.launch(("system", self.system.of, "copy_matrix"), blocks, THREADS, arguments)
    }
}
