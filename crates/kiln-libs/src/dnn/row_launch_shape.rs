//! Rows of numbers that kernels work on: each belongs to a warp, or to a block where it is long.

use kiln_runtime::GpuRef;

use super::tensor::NetworkElement;
use crate::Result;
use crate::prims::check::Check;

/// Threads of a block, as the kernels are written.
pub(super) const THREADS: u32 = 256;
/// Rows of a block where a row belongs to a warp.
const WARPS: u64 = 8;
/// The longest row that a warp works on.
const WARP_COLUMNS: u64 = 1024;

/// How many rows there are, and how long they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub(super) rows: u64,
    pub(super) columns: u64,
}

impl Rows {
    /// The rows of a buffer, which has a name, as the length of its rows has. It holds whole rows, and rows have elements.
    pub(super) fn of<T: NetworkElement>(
        check: Check,
        (name, buffer): (&str, &GpuRef<T>),
        (columns_name, columns): (&str, usize),
    ) -> Result<Self> {
        if columns == 0 {
            return Err(check.refusal(format!("`{columns_name}` is 0"), "use 1 or more"));
        }
        if !buffer.len().is_multiple_of(columns) {
            let what = format!("`{name}` has {} elements, which are no rows of {columns}", buffer.len());
            return Err(check.refusal(what, "use a length of rows that divides the number of elements"));
        }
        Ok(Self { rows: (buffer.len() / columns) as u64, columns: columns as u64 })
    }

    /// Whether a row belongs to a warp.
    pub(super) fn are_short(self) -> bool {
        self.columns <= WARP_COLUMNS
    }

    /// Blocks for all rows.
    pub(super) fn blocks(self) -> u64 {
        if self.are_short() { self.rows.div_ceil(WARPS) } else { self.rows }
    }
}
