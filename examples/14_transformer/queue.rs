//! Where the model's work goes: to the device at once, or into a graph. The model is written once, for both.

use kiln::graph::GraphBuilder;
use kiln::program::ProgramCall;
use kiln::{DeviceRuntime, GpuRef, Result};
use kiln_libs::blas::{Blas, Determinism, MatmulCall, Matrix};
use kiln_libs::prims::{Primitives, ReduceOperator};

use super::kernels::Kernels;

/// A device with the libraries and kernels that the model uses.
pub struct Device {
    pub gpu: DeviceRuntime,
    pub kernels: Kernels,
    blas: Blas,
    prims: Primitives,
}

impl Device {
    /// Loads the kernels. Libraries are loaded when they are first used.
    pub fn new(gpu: &DeviceRuntime) -> Result<Self> {
        let (kernels, blas, prims) = (Kernels::load(gpu)?, Blas::new(gpu), Primitives::new(gpu));
        Ok(Self { gpu: gpu.clone(), kernels, blas, prims })
    }

    /// Work that is submitted at once.
    pub fn queue(&self) -> Queue<'_> {
        Queue { device: self, graph: None }
    }

    /// Work that becomes nodes of a graph.
    pub fn record<'q>(&'q self, graph: &'q mut GraphBuilder) -> Queue<'q> {
        Queue { device: self, graph: Some(graph) }
    }
}

/// Takes work: submits it, or records it. Its order follows from the buffers.
pub struct Queue<'q> {
    device: &'q Device,
    graph: Option<&'q mut GraphBuilder>,
}

impl<'q> Queue<'q> {
    /// The kernels.
    pub fn kernels(&self) -> &'q Kernels {
        &self.device.kernels
    }

    /// A kernel of the model.
    pub fn run(&mut self, call: ProgramCall<'_>) -> Result<()> {
        match &mut self.graph {
            None => call.submit().map(drop),
            Some(graph) => call.record(graph).map(drop),
        }
    }

    /// `c = a b`.
    pub fn matmul(&mut self, a: Matrix<'_, f32>, b: Matrix<'_, f32>, c: Matrix<'_, f32>) -> Result<()> {
        self.product(self.device.blas.matmul(a, b, c))
    }

    /// `c = a b + c`.
    pub fn matmul_add(&mut self, a: Matrix<'_, f32>, b: Matrix<'_, f32>, c: Matrix<'_, f32>) -> Result<()> {
        self.product(self.device.blas.matmul(a, b, c).beta(1.0))
    }

    /// A product whose bits are the same each time, so that a step that is done again gives the same.
    fn product(&mut self, call: MatmulCall<'_, f32, f32>) -> Result<()> {
        let call = call.determinism(Determinism::RunToRun);
        match &mut self.graph {
            None => call.submit().map(drop)?,
            Some(graph) => call.record(graph).map(drop)?,
        }
        Ok(())
    }

    /// The sum of all elements.
    pub fn sum(&mut self, of: &GpuRef<f32>, into: &GpuRef<f32>) -> Result<()> {
        let call = self.device.prims.reduce(of, ReduceOperator::Sum, into);
        match &mut self.graph {
            None => call.submit().map(drop)?,
            Some(graph) => call.record(graph).map(drop)?,
        }
        Ok(())
    }

    /// The index of the greatest element.
    pub fn arg_max(&mut self, of: &GpuRef<f32>, into: &GpuRef<u64>) -> Result<()> {
        let call = self.device.prims.arg_max(of, into);
        match &mut self.graph {
            None => call.submit().map(drop)?,
            Some(graph) => call.record(graph).map(drop)?,
        }
        Ok(())
    }

    /// Copies a buffer.
    pub fn copy(&mut self, from: &GpuRef<f32>, to: &GpuRef<f32>) -> Result<()> {
        match &mut self.graph {
            None => to.copy_from(from).map(drop),
            Some(graph) => graph.copy(from, to).map(drop),
        }
    }

    /// Sets all elements to zero.
    pub fn clear(&mut self, buffer: &GpuRef<f32>) -> Result<()> {
        match &mut self.graph {
            None => buffer.fill(0.0).map(drop),
            Some(graph) => graph.fill(buffer, 0.0).map(drop),
        }
    }
}

/// A buffer as a matrix with so many rows.
pub fn rows(buffer: &GpuRef<f32>, rows: usize) -> Matrix<'_, f32> {
    Matrix::new(buffer, rows, buffer.len() / rows)
}
