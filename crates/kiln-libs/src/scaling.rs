//! Multiplying a result by a factor, for libraries that do not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kiln_runtime::internal::submit_in_call;
use kiln_runtime::{DeviceRuntime, GpuRef, GraphBuilder, Kernel, Launch, NodeId, Stream, Ticket};

use crate::Result;
use crate::error::LibraryError;
use crate::program_kernel::program_kernel;

const BLOCK_THREADS: u64 = 256;
const KERNEL: &str = "kernel NAME(inout y: TYPE[], factor: TYPE) block(256) {
    y[global.x] = y[global.x] * factor;
}";

/// The kernels of a device that multiply, loaded when they are first used.
#[derive(Default)]
pub(crate) struct ScalingKernels {
    kernels: Mutex<HashMap<&'static str, Kernel>>,
}

/// Numbers to multiply with a factor.
#[derive(Clone, Debug)]
pub(crate) enum Scaling {
    F32(GpuRef<f32>, f32),
    F64(GpuRef<f64>, f64),
}

/// The same with its kernel.
pub(crate) struct PreparedScaling {
    scaling: Scaling,
    kernel: Kernel,
    blocks: u32,
    call: &'static str,
}

impl ScalingKernels {
    fn kernel(
        &self,
        gpu: &DeviceRuntime,
        call: &'static str,
        (name, element): (&'static str, &str),
    ) -> Result<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(name) {
            return Ok(kernel.clone());
        }
        let text = KERNEL.replace("NAME", name).replace("TYPE", element);
        let kernel = program_kernel(gpu, call, (name, &text))?;
        kernels.insert(name, kernel.clone());
        Ok(kernel)
    }
}

impl Scaling {
    pub(crate) fn prepare(
        self,
        gpu: &DeviceRuntime,
        kernels: &ScalingKernels,
        call: &'static str,
    ) -> Result<PreparedScaling> {
        let (name, element, len) = match &self {
            Self::F32(values, _) => ("scale_f32", "f32", values.len()),
            Self::F64(values, _) => ("scale_f64", "f64", values.len()),
        };
        let kernel = kernels.kernel(gpu, call, (name, element))?;
        let blocks =
            u32::try_from((len as u64).div_ceil(BLOCK_THREADS)).ok().filter(|blocks| *blocks < 1 << 31);
        let blocks = blocks.ok_or_else(|| {
            LibraryError::argument(
                call,
                format!("a scaled result of {len} numbers"),
                "split the batch, or scale in a kernel",
            )
        })?;
        Ok(PreparedScaling { scaling: self, kernel, blocks, call })
    }
}

impl PreparedScaling {
    #[track_caller]
    pub(crate) fn submit(&self, gpu: &DeviceRuntime, stream: Option<&Stream>) -> Result<Ticket> {
        let mut launch = gpu.launch(&self.kernel);
        if let Some(stream) = stream {
            launch.on(stream);
        }
        self.describe(&mut launch);
        // SAFETY: the kernel reads and writes elements of the buffer that are below the length it was given, and ends.
        Ok(unsafe { submit_in_call(&mut launch, self.call) }?)
    }

    pub(crate) fn record(&self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let mut launch = graph.launch(&self.kernel);
        self.describe(&mut launch);
        // SAFETY: as for `submit`, at each replay.
        Ok(unsafe { launch.record() }?)
    }

    fn describe<'l, W>(&'l self, launch: &mut Launch<'l, W>) {
        launch.grid(self.blocks).block(BLOCK_THREADS as u32);
        match &self.scaling {
            Scaling::F32(values, factor) => {
                launch.read_write(values).value(values.len() as u64).value_bytes(&factor.to_ne_bytes());
            }
            Scaling::F64(values, factor) => {
                launch.read_write(values).value(values.len() as u64).value_bytes(&factor.to_ne_bytes());
            }
        }
    }
}
