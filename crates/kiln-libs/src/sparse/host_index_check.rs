//! Checks of offsets and indices that are known to the host, and indices made of places.

use kiln_mem::MemoryRefusal;
use kiln_runtime::internal::reserve;
use kiln_runtime::{DeviceRuntime, Element, ErrorKind, GpuRef, Misuse};

use super::index::SparseIndex;
use crate::Result;
use crate::call_state::check_ready;
use crate::error::LibraryError;

/// What messages name: the constructor, what the offsets of its matrix are of, and what its indices are of.
#[derive(Clone, Copy)]
pub(super) struct Words {
    call: &'static str,
    line: &'static str,
    across: &'static str,
}

/// Whether no device has memory for a size.
fn fits_no_memory(error: &kiln_runtime::Error) -> bool {
    match error.kind() {
        ErrorKind::Memory(error) => matches!(error.refusal(), Some(MemoryRefusal::Size(_))),
        ErrorKind::Misuse(misuse) => matches!(misuse, Misuse::TooLarge { .. }),
        _ => false,
    }
}

impl Words {
    /// A constructor of a matrix whose elements lie row after row: compressed rows, and coordinates.
    pub(super) const fn by_rows(call: &'static str) -> Self {
        Self { call, line: "row", across: "column" }
    }

    /// A constructor of a matrix of compressed columns.
    pub(super) const fn by_columns(call: &'static str) -> Self {
        Self { call, line: "column", across: "row" }
    }

    pub(super) fn refuse(self, what: String, hint: &'static str) -> LibraryError {
        LibraryError::argument(self.call, what, hint)
    }

    /// Refuses a device that takes no work.
    pub(super) fn check_device(self, gpu: &DeviceRuntime) -> Result<()> {
        check_ready(gpu, self.call)
    }

    /// Memory for an operand, which errors name.
    pub(super) fn allocate<T: Element>(
        self,
        gpu: &DeviceRuntime,
        name: &str,
        len: usize,
    ) -> Result<GpuRef<T>> {
        gpu.allocate(len).map_err(|error| {
            if !fits_no_memory(&error) {
                return error.within(self.place(name)).into();
            }
            let hint = match (name, self.line) {
                ("offsets", "row") => "use fewer rows",
                ("offsets", _) => "use fewer columns",
                _ => "use fewer non-zeros",
            };
            self.refuse(format!("`{name}` would have {len} elements, which fit no memory"), hint)
        })
    }

    /// An operand in device memory.
    #[track_caller]
    pub(super) fn upload<T: Element>(
        self,
        gpu: &DeviceRuntime,
        name: &str,
        values: &[T],
    ) -> Result<GpuRef<T>> {
        Ok(gpu.upload(values).map_err(|error| error.within(self.place(name)))?)
    }

    fn place(self, name: &str) -> String {
        format!("{}: `{name}`", self.call)
    }

    /// Refuses lists of other lengths, and elements in a matrix without rows or columns.
    pub(super) fn check_compressed<I: SparseIndex>(
        self,
        (lines, width): (usize, usize),
        offsets: usize,
        indices: usize,
        values: usize,
    ) -> Result<()> {
        self.check_sizes::<I>((lines, width))?;
        if lines.checked_add(1) != Some(offsets) {
            let what = format!("{offsets} offsets for {lines} {}s", self.line);
            let hint = match self.line {
                "row" => "give one more offset than there are rows",
                _ => "give one more offset than there are columns",
            };
            return Err(self.refuse(what, hint));
        }
        self.check_values::<I>((lines, width), indices, values)
    }

    /// Refuses sizes that the type of the indices does not count to.
    pub(super) fn check_sizes<I: SparseIndex>(self, (lines, width): (usize, usize)) -> Result<()> {
        for (size, of) in [(lines, self.line), (width, self.across)] {
            if I::from_place(size as u64).is_none() {
                let what = format!("{size} {of}s with indices of type {}", I::TYPE);
                let hint = match i64::from_place(size as u64) {
                    Some(_) => I::WIDER,
                    None => I::FEWER,
                };
                return Err(self.refuse(what, hint));
            }
        }
        Ok(())
    }

    /// Refuses other numbers of indices than of values, elements in a matrix without rows or columns, and sizes that the indices do not count to.
    pub(super) fn check_values<I: SparseIndex>(
        self,
        (lines, width): (usize, usize),
        indices: usize,
        values: usize,
    ) -> Result<()> {
        if indices != values {
            let what = format!("{indices} {} indices for {values} values", self.across);
            let hint = match self.across {
                "column" => "give a column for each value",
                _ => "give a row for each value",
            };
            return Err(self.refuse(what, hint));
        }
        if values > 0 && (lines == 0 || width == 0) {
            let what =
                format!("{values} elements in a matrix of {lines} {}s, {width} {}s", self.line, self.across);
            return Err(self.refuse(what, "give no elements, or other sizes"));
        }
        self.check_sizes::<I>((lines, width))
    }

    /// Where lines begin and the last one ends, from the line of each element in ascending order.
    pub(super) fn offsets<I: SparseIndex>(
        self,
        lines: usize,
        sorted: impl Iterator<Item = usize>,
    ) -> Result<Vec<I>> {
        let (mut ends, mut count, mut sorted) = (Vec::new(), 0_u64, sorted.peekable());
        let reserved = reserve(&mut ends, lines.saturating_add(1), "the offsets of a sparse matrix");
        reserved.map_err(|error| LibraryError::from(error).told_of(self.call))?;
        ends.push(I::ZERO);
        for line in 0..lines {
            while sorted.next_if_eq(&line).is_some() {
                count += 1;
            }
            ends.push(self.index(count)?);
        }
        Ok(ends)
    }

    /// Refuses offsets that do not ascend from 0 to the number of elements.
    pub(super) fn check_offsets<I: SparseIndex>(self, offsets: &[I], elements: usize) -> Result<()> {
        let (mut before, count, last) = (0, elements as u64, offsets.len().saturating_sub(1));
        for (line, offset) in offsets.iter().enumerate() {
            let (least, most) =
                (if line == last { count } else { before }, if line == 0 { 0 } else { count });
            match offset.to_place() {
                Some(place) if (least..=most).contains(&place) => before = place,
                _ => {
                    let what = format!("offset {line} is {offset}, where {least} to {most} is possible");
                    return Err(self.refuse(what, "let offsets ascend from 0 to the number of elements"));
                }
            }
        }
        Ok(())
    }

    /// Refuses an index that is not below a size.
    pub(super) fn check_range<I: SparseIndex>(
        self,
        of: &'static str,
        indices: &[I],
        size: usize,
    ) -> Result<()> {
        let is_outside = |index: &&I| index.to_place().is_none_or(|place| place >= size as u64);
        match indices.iter().find(is_outside) {
            None => Ok(()),
            Some(index) => {
                let what = format!("{of} {index} in a matrix of {size} {of}s");
                let hint = if of == "row" { "count rows from 0" } else { "count columns from 0" };
                Err(self.refuse(what, hint))
            }
        }
    }

    /// Places as indices.
    pub(super) fn indices<I: SparseIndex>(self, places: impl IntoIterator<Item = u64>) -> Result<Vec<I>> {
        places.into_iter().map(|place| self.index(place)).collect()
    }

    fn index<I: SparseIndex>(self, place: u64) -> Result<I> {
        I::from_place(place).ok_or_else(|| {
            let what = format!("{place} as an index of type {}", I::TYPE);
            self.refuse(what, I::WIDER)
        })
    }

    /// Elements with row and column, sorted by rows and in each row by columns. Those of one place keep their order.
    pub(super) fn sorted<T: Copy>(
        self,
        (rows, columns): (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Vec<(usize, usize, T)>> {
        if let Some((row, column, _)) =
            triplets.iter().find(|(row, column, _)| *row >= rows || *column >= columns)
        {
            let what = format!("an element at row {row}, column {column} of a matrix of {rows} x {columns}");
            return Err(self.refuse(what, "count rows and columns from 0"));
        }
        let mut sorted = triplets.to_vec();
        sorted.sort_by_key(|(row, column, _)| (*row, *column));
        Ok(sorted)
    }

    /// The elements of a dense matrix, row after row, that are not zero.
    pub(super) fn nonzeros<T: Copy + PartialEq + Default>(
        self,
        (rows, columns): (usize, usize),
        dense: &[T],
    ) -> Result<Vec<(usize, usize, T)>> {
        if rows.checked_mul(columns) != Some(dense.len()) {
            let what = format!("{} elements for a matrix of {rows} x {columns}", dense.len());
            return Err(self.refuse(what, "give all elements, row after row"));
        }
        let stored = dense.iter().enumerate().filter(|(_, value)| **value != T::default());
        Ok(stored.map(|(at, value)| (at / columns, at % columns, *value)).collect())
    }
}
