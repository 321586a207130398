//! The kernels as they are shipped: PTX that was compiled from the sources in `kernels`.

use crate::prims::embedded_ptx::{ShippedKernels, shipped};

/// The header of all sources.
pub const HEADER: (&str, &str) = ("network.cuh", include_str!("kernels/network.cuh"));

/// All files.
pub const SHIPPED: &[ShippedKernels] = shipped! {
    "softmax" "f32" "softmax.cu" ["TYPE" = "f32"];
    "softmax" "f16" "softmax.cu" ["TYPE" = "f16"];
    "softmax" "bf16" "softmax.cu" ["TYPE" = "bf16"];
    "norm" "f32" "norm.cu" ["TYPE" = "f32"];
    "norm" "f16" "norm.cu" ["TYPE" = "f16"];
    "norm" "bf16" "norm.cu" ["TYPE" = "bf16"];
    "pool" "f32" "pool.cu" ["TYPE" = "f32"];
    "pool" "f16" "pool.cu" ["TYPE" = "f16"];
    "pool" "bf16" "pool.cu" ["TYPE" = "bf16"];
};
