//! Kernels of this crate around a library that solves a system of equations.
//!
//! A library moves rows by the pivots that it is given, also to memory outside of the matrix, so that it is given a checked copy of them. It takes right-hand sides
//! column after column, so that those in rows are copied into columns and back.

use kiln_runtime::{DeviceRuntime, GpuRef, Stream};

use super::batch::Batch;
use super::batched::sides;
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::library_tag::library_tag;
use crate::prims::Primitives;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};

/// Threads of a block, as the kernels are written.
const THREADS: u32 = 256;

/// What a system of equations needs beside the library.
#[derive(Debug)]
pub(super) struct System<'a> {
    pub(super) kernels: &'a Primitives,
    /// The type that kernels are named by.
    of: &'static str,
    pivots: Option<GpuRef<i64>>,
    sides: Option<RowSides>,
}

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
    /// The row of the first pivot that is out of range, counted from 1, and the pivot.
    found: Option<(GpuRef<i32>, GpuRef<i64>)>,
}

impl<'a> System<'a> {
    /// A system with factors and right-hand sides that fit each other. Returns also how far apart its columns lie, where the library sees them.
    pub(super) fn new<T: Real>(
        kernels: &'a Primitives,
        check: Check,
        factors: &Matrix<'_, T>,
        pivots: Option<&GpuRef<i64>>,
        b: &Matrix<'_, T>,
    ) -> Result<(Self, u64)> {
        let of = Batch::<T>::kernels();
        let mut system = Self { kernels, of, pivots: pivots.cloned(), sides: None };
        if b.by_columns {
            return Ok((system, b.distance()));
        }
        if b.columns == 1 && b.distance() == 1 {
            return Ok((system, b.rows));
        }
        let name = if pivots.is_some() { "factors" } else { "factor" };
        let a = Batch::read(check, name, factors)?;
        let found = sides(check, (name, &a), b)?;
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

    /// Allocates what it needs. `words` has room for a row, another word, and a pivot.
    pub(super) fn prepare(
        self,
        gpu: &DeviceRuntime,
        stream: &Stream,
        words: &GpuRef<i32>,
    ) -> Result<PreparedSystem<'a>> {
        let usable = match &self.pivots {
            Some(pivots) => Some(gpu.allocate_tagged(stream, pivots.len(), library_tag())?),
            None => None,
        };
        let columns = match &self.sides {
            Some(RowSides { element_bytes, rows, columns, .. }) => {
                let bytes = rows.saturating_mul(*columns).saturating_mul(*element_bytes);
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                Some(gpu.allocate_tagged(stream, bytes, library_tag())?)
            }
            None => None,
        };
        let found = match &usable {
            Some(_) => Some((words.view(..1)?, words.view(2..4)?.cast()?)),
            None => None,
        };
        Ok(PreparedSystem { system: self, usable, columns, found })
    }
}

impl PreparedSystem<'_> {
    /// What comes before the library.
    pub(super) fn add_before(&self, plan: &mut Plan<'_>) -> Result<()> {
        let System { of, pivots, .. } = &self.system;
        if let (Some(pivots), Some(usable), Some((row, value))) = (pivots, &self.usable, &self.found) {
            let arguments = vec![
                Argument::read(pivots)?,
                Argument::value(pivots.len() as u64),
                Argument::write(usable)?,
                Argument::write(row)?,
                Argument::write(value)?,
            ];
            plan.launch(("system", of, "check_pivots"), 1, THREADS, arguments)?;
        }
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
