//! A batch of matrices in a buffer, as kernels take it, and what every call on batches asks of its operands.

use kiln_operation::ElementType;
use kiln_runtime::{Element, GpuRef};

use crate::Result;
use crate::blas::{Matrix, Real};
use crate::operands::EXACT_HINT;
use crate::prims::check::Check;
use crate::prims::plan::Argument;

/// Rows and matrices of a batch are fewer than this.
const SIZE_LIMIT: u64 = 1 << 31;

/// A batch of matrices that passed its checks.
pub(super) struct Batch<T: Real> {
    /// The call.
    check: Check,
    /// What the call names it.
    name: &'static str,
    /// The part of the buffer that they lie in.
    pub(super) buffer: GpuRef<T>,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) count: u64,
    pub(super) row_step: u64,
    pub(super) column_step: u64,
    stride: u64,
}

impl<T: Real> Batch<T> {
    /// A batch that is read. With a stride of 0, its matrices are one.
    pub(super) fn read(check: Check, name: &'static str, matrix: &Matrix<'_, T>) -> Result<Self> {
        Self::new(check, name, matrix, false)
    }

    /// A batch that is written, whose matrices share no memory.
    pub(super) fn written(check: Check, name: &'static str, matrix: &Matrix<'_, T>) -> Result<Self> {
        Self::new(check, name, matrix, true)
    }

    fn new(check: Check, name: &'static str, matrix: &Matrix<'_, T>, is_written: bool) -> Result<Self> {
        let (rows, columns, count) = (matrix.rows, matrix.columns, matrix.batch);
        if rows == 0 || columns == 0 || count == 0 {
            let (buffer, [row_step, column_step, stride]) = (matrix.buffer.view(..0)?, [0; 3]);
            return Ok(Self { check, name, buffer, rows, columns, count, row_step, column_step, stride });
        }
        matrix.check_line(check.0, name)?;
        let ((length, lines), leading) = (matrix.stored(), matrix.distance());
        // Where no stride is given, matrices lie one behind the other.
        let dense = u128::from(leading) * u128::from(lines);
        let stride = matrix.stride.map_or(dense, u128::from);
        let reach = u128::from(lines - 1) * u128::from(leading) + u128::from(length);
        if is_written && count > 1 && stride < reach {
            let what =
                format!("matrices of `{name}` that are {stride} elements apart and reach over {reach}");
            return Err(check.refusal(what, "use a stride that holds a matrix"));
        }
        let all = u128::from(count - 1).checked_mul(stride).and_then(|last| last.checked_add(reach));
        let Some(all) = all.filter(|all| *all <= matrix.buffer.len() as u128) else {
            let wanted = all.map_or("more than 2^128".to_owned(), |all| all.to_string());
            let given = matrix.buffer.len();
            let what =
                format!("`{name}` has {given} elements and must have {wanted} for {}", matrix.sizes_text());
            return Err(check.refusal(what, "use a longer buffer, or smaller sizes"));
        };
        let (row_step, column_step) = if matrix.by_columns { (1, leading) } else { (leading, 1) };
        let buffer = matrix.buffer.view(..all as usize)?;
        // It is less than the length of the buffer, where there is a second matrix.
        let stride = u64::try_from(stride).unwrap_or(u64::MAX);
        Ok(Self { check, name, buffer, rows, columns, count, row_step, column_step, stride })
    }

    /// A batch of square matrices. Their sizes fit the words that say what was found.
    pub(super) fn square(self) -> Result<Self> {
        if self.rows != self.columns {
            let what = format!("`{}` is {} x {}, and must be square", self.name, self.rows, self.columns);
            return Err(self.check.refusal(what, "use `qr_batched` or `svd_batched` for other shapes"));
        }
        self.counted()
    }

    /// A batch whose sizes fit the words that say what was found.
    pub(super) fn counted(self) -> Result<Self> {
        if [self.rows, self.columns, self.count].into_iter().all(|size| size < SIZE_LIMIT) {
            return Ok(self);
        }
        let what = format!("`{}` is {} matrices of {} x {}", self.name, self.count, self.rows, self.columns);
        Err(self.check.refusal(what, "use sizes below 2^31"))
    }

    /// The same, with a list that has an element for each row of each matrix, and no memory of theirs.
    pub(super) fn with_pivots(self, pivots: &GpuRef<i64>) -> Result<Self> {
        self.check_list(("pivots", pivots), self.rows, || format!("{} rows", self.rows))?;
        Ok(self)
    }

    /// The same, with a list that has as many elements for each matrix as its shorter side, and no memory of theirs.
    pub(super) fn with_list<V: Element>(self, name: &str, list: &GpuRef<V>) -> Result<Self> {
        self.check_list((name, list), self.shorter_side(), || format!("{} x {}", self.rows, self.columns))?;
        Ok(self)
    }

    /// Refuses another number of elements than so many for each matrix, and memory that the matrices have.
    fn check_list<V: Element>(
        &self,
        (name, list): (&str, &GpuRef<V>),
        of_each: u64,
        shape: impl FnOnce() -> String,
    ) -> Result<()> {
        let wanted = u128::from(of_each) * u128::from(self.count);
        if list.len() as u128 != wanted {
            let matrices = counted_shapes(self.count, ("a matrix", "matrices"), shape());
            let what = format!("`{name}` has {} elements and must have {wanted} for {matrices}", list.len());
            return self.check.refuse(what, EXACT_HINT);
        }
        self.apart((name, list))
    }

    /// The matrices have no memory of another operand.
    pub(super) fn apart<V: Element>(&self, other: (&str, &GpuRef<V>)) -> Result<()> {
        self.check.apart((self.name, &self.buffer), other)
    }

    /// Right-hand sides `b`, which are written: as many rows for each matrix, and no memory of the matrices.
    pub(super) fn sides(&self, b: &Matrix<'_, T>) -> Result<Self> {
        let sides = Self::written(self.check, "b", b)?;
        if (sides.rows, sides.count) != (self.rows, self.count) {
            let given = self.shapes_text(("a matrix", "matrices"));
            let of_sides =
                counted_shapes(sides.count, ("a right-hand side", "right-hand sides"), b.shape_text());
            let what = format!("{given} and {of_sides}");
            return Err(self.check.refusal(what, "give a right-hand side with as many rows for each matrix"));
        }
        self.apart(sides.named())?;
        Ok(sides)
    }

    /// How many there are of which shape, under a noun for one and for several.
    pub(super) fn shapes_text(&self, nouns: (&str, &str)) -> String {
        counted_shapes(self.count, nouns, format!("{} x {}", self.rows, self.columns))
    }

    /// Its name and its memory, for checks of other operands.
    pub(super) fn named(&self) -> (&'static str, &GpuRef<T>) {
        (self.name, &self.buffer)
    }

    /// How many matrices there are, and how many rows each has.
    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.count, self.rows)
    }

    /// Rows or columns, whichever are fewer.
    pub(super) fn shorter_side(&self) -> u64 {
        self.rows.min(self.columns)
    }

    /// Whether there is nothing to read or write.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 || self.columns == 0 || self.count == 0
    }

    /// The same matrices, transposed.
    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Elements between rows, columns and matrices.
    pub(super) fn steps(&self) -> [Argument; 3] {
        [Argument::value(self.row_step), Argument::value(self.column_step), Argument::value(self.stride)]
    }

    /// The type that kernels are named by.
    pub(super) fn kernels() -> &'static str {
        match T::TYPE {
            ElementType::F64 => "f64",
            _ => "f32",
        }
    }
}

/// So many of a shape, under a noun for one and for several.
pub(super) fn counted_shapes(count: u64, (one, several): (&str, &str), shape: String) -> String {
    match count {
        1 => format!("{one} of {shape}"),
        count => format!("{count} {several} of {shape}"),
    }
}
