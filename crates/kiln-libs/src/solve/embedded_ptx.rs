//! The kernels as they are shipped: PTX that was compiled from the sources in `kernels`.

use crate::prims::embedded_ptx::{ShippedKernels, shipped};

/// All files.
pub const SHIPPED: &[ShippedKernels] = shipped! {
    "batch" "f32" "batch.cu" ["TYPE" = "f32"];
    "batch" "f64" "batch.cu" ["TYPE" = "f64"];
    "system" "f32" "system.cu" ["TYPE" = "f32"];
    "system" "f64" "system.cu" ["TYPE" = "f64"];
};
