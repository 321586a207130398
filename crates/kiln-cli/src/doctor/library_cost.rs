//! What the use of a CUDA library costs a program: time and device memory.

use std::fmt;
use std::time::{Duration, Instant};

use kiln::libraries::Library;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, Error, RuntimeConfig};
use kiln_driver::{Image, Refusal};
use serde::{Deserialize, Serialize};

use crate::failure::next_step;
use crate::table::bytes;

/// A small operation of a library that kiln calls; none for a library that it does not call.
pub(crate) fn sample_operation(library: Library) -> Option<&'static str> {
    match library {
        Library::Cublas => Some("blas.scal element=f32 n=1 x_step=1"),
        Library::CublasLt => Some(
            "blas.matmul m=16 n=16 k=16 batch=1 a=f32:n:16:0 b=f32:n:16:0 d=f32:n:16:0 math=ieee epilogue=none scaled=false accumulate=false order=any workspace=0 \
             alignment=256 algorithm=0",
        ),
        Library::Cufft => Some("fft kind=forward element=f32 shape=64 batch=1 in_place=false"),
        Library::Cudnn => Some(
            "dnn.convolution pass=forward element=f32 layout=nchw batch=1 channels=1 image=8x8 filters=1 filter=3x3 padding=1x1 stride=1x1 dilation=1x1 \
             groups=1 math=ieee order=any workspace=33554432",
        ),
        Library::Cusolver => Some("solve.potrf element=f32 n=16 triangle=lower leading=16"),
        Library::Cusparse => Some(
            "sparse.spmv format=csr element=f32 index=i32 rows=4 columns=4 nonzeros=4 transposed=false accumulate=false order=any",
        ),
        _ => None,
    }
}

/// How the first use of a library went.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no other process is asked there"))]
pub(crate) enum Sample {
    /// The operation is loaded.
    Cost(LibraryCost),
    /// The library has no such operation, is too old, or has too little memory: nothing is wrong with the device.
    Unusable(String),
    /// The process could not open the device, which another process has: the cost is not known.
    Unknown(String),
    /// The device failed: the error, and what to do if that is known.
    Fault(String, Option<String>),
    /// The library ended the process, or did not come back.
    Died(String),
}

impl Sample {
    /// Opens a CUDA device and loads an operation of a library that took so long to load.
    #[cfg(target_os = "linux")]
    pub(super) fn on_device(ordinal: u32, operation: &str, load_time: Duration) -> Self {
        match DeviceRuntime::open(&DeviceSpec::cuda(ordinal), RuntimeConfig::default()) {
            Ok(gpu) => Self::on(&gpu, operation, load_time),
            Err(error) => Self::Unknown(format!("{error:#}")),
        }
    }

    /// Loads an operation of a library that took so long to load.
    pub(super) fn on(gpu: &DeviceRuntime, operation: &str, load_time: Duration) -> Self {
        match LibraryCost::measure(gpu, operation, load_time) {
            Ok(cost) => Self::Cost(cost),
            Err(error) if is_of_library(&error) => {
                Self::Unusable(match error.driver().and_then(kiln_driver::Error::refusal) {
                    Some(Refusal::Library { why, .. }) => why.clone(),
                    _ => format!("{error:#}"),
                })
            }
            Err(error) => Self::Fault(format!("{error:#}"), next_step(&error).map(Into::into)),
        }
    }
}

/// Whether an error says that a library cannot be used, and nothing of the device.
fn is_of_library(error: &Error) -> bool {
    let refusal = error.driver().and_then(kiln_driver::Error::refusal);
    let is_unsupported = error.driver().is_some_and(kiln_driver::Error::is_unsupported);
    matches!(refusal, Some(Refusal::Library { .. })) || is_unsupported || error.is_oom()
}

/// What it took to load a library and the first operation of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LibraryCost {
    pub(crate) load_ms: u64,
    pub(crate) device_bytes: u64,
}

impl LibraryCost {
    /// Loads an operation of a library. Only the first operation of a process pays for the library.
    fn measure(gpu: &DeviceRuntime, operation: &str, load_time: Duration) -> Result<Self, Error> {
        let before = gpu.memory_info()?.free_bytes;
        let start = Instant::now();
        let module = gpu.load_module(&Image::Library(operation))?;
        let time = load_time.saturating_add(start.elapsed());
        let after = gpu.memory_info()?.free_bytes;
        drop(module);
        let load_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(Self { load_ms, device_bytes: before.saturating_sub(after) })
    }
}

impl fmt::Display for LibraryCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load_ms, device_bytes } = self;
        write!(f, "the first use takes {load_ms} ms and {} of device memory", bytes(*device_bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kiln::DeviceRuntime;
    use kiln::libraries::Library;

    use super::{LibraryCost, sample_operation};

    #[test]
    fn every_sample_is_an_operation() {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let samples: Vec<_> = Library::ALL.into_iter().filter_map(sample_operation).collect();
        assert_eq!(samples.len(), 6);
        for sample in samples {
            LibraryCost::measure(&gpu, sample, Duration::ZERO).unwrap();
        }
    }
}
