//! The kernels as they are shipped: PTX that was compiled from the sources in `kernels`.

use crate::prims::embedded_ptx::{ShippedKernels, shipped};

/// All files.
pub const SHIPPED: &[ShippedKernels] = shipped! {
    "sparse_index" "i32" "index.cu" ["INDEX" = "i32"];
    "sparse_index" "i64" "index.cu" ["INDEX" = "i64"];
    "sparse_matrix" "f32_i32" "matrix.cu" ["TYPE" = "f32", "INDEX" = "i32"];
    "sparse_matrix" "f32_i64" "matrix.cu" ["TYPE" = "f32", "INDEX" = "i64"];
    "sparse_matrix" "f64_i32" "matrix.cu" ["TYPE" = "f64", "INDEX" = "i32"];
    "sparse_matrix" "f64_i64" "matrix.cu" ["TYPE" = "f64", "INDEX" = "i64"];
};
