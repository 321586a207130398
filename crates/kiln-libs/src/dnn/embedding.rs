//! Rows of a table, chosen by indices, and the gradient of the table.
//!
//! The kernels are programs of kiln-ir, the same bits on every device. The gradient sorts the indices, so that the rows that belong to one row of the table are
//! added in their order.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::row_index::{RowIndex, single, stored, wide};
use super::row_launch_shape::{Rows, THREADS};
use super::tensor::NetworkElement;
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::{EXACT_HINT, Operands};
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::prims::{MAX_SORTED, PrimitiveCall, Sort, SortByKey};

/// An [`embedding`](super::Dnn::embedding).
#[derive(Clone, Debug)]
pub struct Embedding<T, I> {
    pub(super) table: GpuRef<T>,
    pub(super) columns: usize,
    pub(super) indices: GpuRef<I>,
    pub(super) rows: GpuRef<T>,
}

/// An [`embedding_backward`](super::Dnn::embedding_backward).
#[derive(Clone, Debug)]
pub struct EmbeddingBackward<T, I> {
    pub(super) indices: GpuRef<I>,
    pub(super) columns: usize,
    pub(super) row_gradients: GpuRef<T>,
    pub(super) table_gradients: GpuRef<T>,
}

const FORWARD: Check = Check("dnn.embedding");
const BACKWARD: Check = Check("dnn.embedding_backward");

impl<T: NetworkElement, I: RowIndex> PrimitiveCall<'_, Embedding<T, I>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::choice(FORWARD.0, T::TYPE))
    }
}

impl<T: NetworkElement, I: RowIndex> PrimitiveCall<'_, EmbeddingBackward<T, I>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(BACKWARD.0, T::TYPE, self.operation.indices.len() as u64))
    }
}

fn blocks(threads: u64) -> u64 {
    threads.div_ceil(u64::from(THREADS))
}

/// A NaN of a type, in programs.
fn nan(of: &str) -> &'static str {
    match of {
        "f16" => "f16#7e00",
        "bf16" => "bf16#7fc0",
        _ => "f32#7fc00000",
    }
}

/// Refuses a list of rows that is not as long as that of indices.
fn check_rows<T: NetworkElement, I: RowIndex>(
    check: Check,
    (name, rows): (&str, &GpuRef<T>),
    columns: usize,
    indices: &GpuRef<I>,
) -> Result<()> {
    let wanted = indices.len() as u128 * columns as u128;
    if rows.len() as u128 == wanted {
        return Ok(());
    }
    let (len, count) = (rows.len(), indices.len());
    let what = format!(
        "`{name}` has {len} elements and must have {wanted}, a row of {columns} for each of {count} `indices`"
    );
    check.refuse(what, EXACT_HINT)
}

impl<T: NetworkElement, I: RowIndex> Operation for Embedding<T, I> {
    fn check(&self) -> Result<()> {
        Rows::of(FORWARD, ("table", &self.table), ("columns", self.columns))?;
        check_rows(FORWARD, ("rows", &self.rows), self.columns, &self.indices)?;
        FORWARD.apart(("table", &self.table), ("rows", &self.rows))?;
        FORWARD.apart(("indices", &self.indices), ("rows", &self.rows))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let table = Rows::of(FORWARD, ("table", &self.table), ("columns", self.columns))?;
        let (of, index) = (T::TYPE.name(), I::NAME);
        let name = format!("embedding_{of}_{index}");
        let text = || {
            format!(
                "kernel {name}(in table: {of}[], in indices: {index}[], inout result: {of}[], columns: u64, rows: u64) block({THREADS}) {{
                let row = {};
                let is_row = (row >= 0) & (u64(row) < rows);
                let from = select(is_row, u64(row), 0u64) * columns + global.x % columns;
                result[global.x] = select(is_row, table[from], {});
            }}",
                wide::<I>("indices[global.x / columns]"),
                nan(of)
            )
        };
        let elements = self.rows.len() as u64;
        let arguments = vec![
            Argument::read(&self.table)?,
            Argument::value(self.table.len() as u64),
            Argument::read(&self.indices)?,
            Argument::value(self.indices.len() as u64),
            Argument::write(&self.rows)?,
            Argument::value(elements),
            Argument::value(table.columns),
            Argument::value(table.rows),
        ];
        plan.launch_program((&name, text), blocks(elements), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(FORWARD.0)
            .with("table", &self.table)
            .with("indices", &self.indices)
            .with("rows", &self.rows)
    }

    fn home(&self) -> StreamKey {
        self.rows.home()
    }
}

impl<T: NetworkElement, I: RowIndex> EmbeddingBackward<T, I> {
    /// The indices in order, and where each was.
    fn sorted(&self, plan: &mut Plan<'_>) -> Result<(GpuRef<I>, GpuRef<u32>)> {
        let count = self.indices.len() as u64;
        let (before, places) = (plan.scratch::<u32>(count)?, plan.scratch::<u32>(count)?);
        let keys = plan.scratch::<I>(count)?;
        let text = || {
            format!(
                "kernel embedding_places(inout places: u32[]) block({THREADS}) {{ places[global.x] = u32(global.x); }}"
            )
        };
        let arguments = vec![Argument::write(&before)?, Argument::value(count)];
        plan.launch_program(("embedding_places", text), blocks(count), THREADS, arguments)?;
        let sort = Sort::new(self.indices.clone(), keys.clone());
        SortByKey { keys: sort, values: before, sorted_values: places.clone() }.plan(plan)?;
        Ok((keys, places))
    }
}

impl<T: NetworkElement, I: RowIndex> Operation for EmbeddingBackward<T, I> {
    fn check(&self) -> Result<()> {
        Rows::of(BACKWARD, ("table_gradients", &self.table_gradients), ("columns", self.columns))?;
        check_rows(BACKWARD, ("row_gradients", &self.row_gradients), self.columns, &self.indices)?;
        BACKWARD.at_most("indices", self.indices.len(), MAX_SORTED)?;
        let result = ("table_gradients", &self.table_gradients);
        BACKWARD.apart(("row_gradients", &self.row_gradients), result)?;
        BACKWARD.apart(("indices", &self.indices), result)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        if self.table_gradients.is_empty() {
            return Ok(());
        }
        plan.zero(&self.table_gradients)?;
        if self.indices.is_empty() {
            return Ok(());
        }
        let (keys, places) = self.sorted(plan)?;
        let table =
            Rows::of(BACKWARD, ("table_gradients", &self.table_gradients), ("columns", self.columns))?;
        let (of, index) = (T::TYPE.name(), I::NAME);
        let name = format!("embedding_backward_{of}_{index}");
        // A thread adds one column of all rows with one index: the thread of the first of them.
        let text = || {
            format!(
                "kernel {name}(in keys: {index}[], in places: u32[], in gradients: {of}[], inout result: {of}[], columns: u64, rows: u64) block({THREADS}) {{
                let first = global.x / columns;
                let column = global.x % columns;
                let key = keys[first];
                let row = {};
                let is_row = (row >= 0) & (u64(row) < rows);
                let is_first = (first == 0) | (keys[select(first == 0, 0u64, first - 1)] != key);
                if (first < len(keys)) & is_row & is_first {{
                    var sum = 0.0f32;
                    var at = first;
                    while (at < len(keys)) & (keys[at] == key) {{
                        sum = sum + {};
                        at = at + 1;
                    }}
                    result[u64(row) * columns + column] = {};
                }}
            }}",
                wide::<I>("key"),
                single(of, "gradients[u64(places[at]) * columns + column]"),
                stored(of, "sum")
            )
        };
        let count = self.indices.len() as u64;
        let arguments = vec![
            Argument::read(&keys)?,
            Argument::value(count),
            Argument::read(&places)?,
            Argument::value(count),
            Argument::read(&self.row_gradients)?,
            Argument::value(self.row_gradients.len() as u64),
            Argument::read_write(&self.table_gradients)?,
            Argument::value(self.table_gradients.len() as u64),
            Argument::value(table.columns),
            Argument::value(table.rows),
        ];
        plan.launch_program((&name, text), blocks(self.row_gradients.len() as u64), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(BACKWARD.0)
            .with("indices", &self.indices)
            .with("row_gradients", &self.row_gradients)
            .with("table_gradients", &self.table_gradients)
    }

    fn home(&self) -> StreamKey {
        self.table_gradients.home()
    }
}
