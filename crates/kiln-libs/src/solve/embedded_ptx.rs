//! The kernels as they are shipped: PTX that was compiled from the sources in `kernels`.

use crate::prims::embedded_ptx::{ShippedKernels, shipped};

/// The header of the kernels for batches.
pub const HEADER: (&str, &str) = ("batch.cuh", include_str!("kernels/batch.cuh"));

/// All files.
pub const SHIPPED: &[ShippedKernels] = shipped! {
    "batch" "f32" "batch.cu" ["TYPE" = "f32"];
    "batch" "f64" "batch.cu" ["TYPE" = "f64"];
    "batch_qr" "f32" "batch_qr.cu" ["TYPE" = "f32"];
    "batch_qr" "f64" "batch_qr.cu" ["TYPE" = "f64"];
    "batch_spectra" "f32" "batch_spectra.cu" ["TYPE" = "f32"];
    "batch_spectra" "f64" "batch_spectra.cu" ["TYPE" = "f64"];
    "system" "f32" "system.cu" ["TYPE" = "f32"];
    "system" "f64" "system.cu" ["TYPE" = "f64"];
};
