//! Reductions, scans, sorts and what is built of them.
//!
//! The kernels are this crate's. They are shipped as PTX, so no compiler is needed at run time, and run on the simulated device with every check.
//! Temporary memory comes from the runtime's heap, on the stream of the call, under the tag `primitives`. Nothing is read back to the host: results, also
//! numbers of elements, stay in device memory, so every operation can be recorded into a graph.
//!
//! | operation | elements | |
//! |---|---|---|
//! | [`reduce`](Primitives::reduce) | `u32` `i32` `u64` `i64` `f32` `f64` | sum, product, minimum, maximum |
//! | [`arg_min`](Primitives::arg_min), [`arg_max`](Primitives::arg_max) | the same | index of the least or greatest element |
//! | [`reduce_segments`](Primitives::reduce_segments) | the same | segments by offsets of 32 or 64 bits |
//! | [`scan_inclusive`](Primitives::scan_inclusive), [`scan_exclusive`](Primitives::scan_exclusive) | the same | sum, minimum, maximum |
//! | [`sort`](Primitives::sort), [`sort_by_key`](Primitives::sort_by_key) | the same | stable; ascending or descending; by a range of bits |
//! | [`select`](Primitives::select) | the same, `u8` | by a comparison |
//! | [`select_flagged`](Primitives::select_flagged) | of 1, 2, 4 or 8 bytes | by a flag for each element |
//! | [`unique`](Primitives::unique) | of 1, 2, 4 or 8 bytes | one of each run; lengths of runs |
//! | [`histogram`](Primitives::histogram) | numbers, `u8` | equally wide bins |
//! | [`top`](Primitives::top) | numbers | the largest or smallest, sorted, with their indices |
//!
//! Results are the same in every run and on every device, floats included: which elements are combined in which order depends on lengths alone.
//!
//! Types in reading order: [`Primitives`], [`PrimitiveCall`], [`Numeric`], [`ReduceOperator`], [`ScanOperator`], [`Predicate`].

pub(crate) mod check;
mod element;
#[doc(hidden)]
pub mod embedded_ptx;
mod histogram;
pub(crate) mod plan;
pub(crate) mod primitive_call;
mod primitives;
mod reduce;
mod scan;
mod segments;
mod select;
mod sort;
mod tile_state;
mod top_k;
mod unique;

pub use element::{Comparable, NumberKind, Numeric};
pub use histogram::Histogram;
pub use primitive_call::PrimitiveCall;
pub use primitives::Primitives;
pub use reduce::{ArgReduce, Reduce, ReduceOperator};
pub use scan::{Scan, ScanOperator};
pub use segments::{Offset, SegmentedReduce};
pub use select::{Predicate, Select, SelectFlagged};
pub(crate) use sort::MAX_LEN as MAX_SORTED;
pub use sort::{Sort, SortByKey};
pub use top_k::Top;
pub use unique::Unique;
