//! A simulated device whose traffic is counted and whose report is looked at.

use std::sync::Arc;

use kiln::{
    DeviceRuntime, Error, GpuRef, RuntimeConfig,
    error::ErrorKind,
    graph::{GraphBuilder, GraphError, NodeId},
};
use kiln_driver::layer::{Counting, Layered};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};

pub(crate) const LEN: usize = 4;

pub(crate) struct Rig {
    machine: Machine,
    pub(crate) driver: Arc<Layered<Counting>>,
    pub(crate) gpu: DeviceRuntime,
    pub(crate) kernels: Kernels,
}

impl Rig {
    pub(crate) fn new(config: MachineConfig) -> Self {
        let machine = Machine::new(config.library(library()));
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let kernels = Kernels::load(&gpu);
        Self { machine, driver, gpu, kernels }
    }

    pub(crate) fn seeded() -> Self {
        Self::new(MachineConfig::seeded(11))
    }

    pub(crate) fn buffer(&self, value: u32) -> GpuRef<u32> {
        self.gpu.upload(&[value; LEN]).unwrap()
    }

    /// Records `to = to * k + from`.
    pub(crate) fn mix(
        &self,
        builder: &mut GraphBuilder,
        to: &GpuRef<u32>,
        from: &GpuRef<u32>,
        k: u32,
    ) -> NodeId {
        let mut launch = builder.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(to).read(from).value(LEN as u32).value(k);
        // SAFETY: `mix` touches `LEN` elements, which both buffers have.
        unsafe { launch.record() }.unwrap()
    }

    /// Queues `to = to * k + from` on a stream.
    pub(crate) fn mix_now(&self, stream: &kiln::Stream, to: &GpuRef<u32>, from: &GpuRef<u32>, k: u32) {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(stream).read_write(to).read(from).value(LEN as u32).value(k);
        // SAFETY: `mix` touches `LEN` elements, which both buffers have.
        unsafe { launch.submit() }.unwrap();
    }

    /// Ends the runtime while a caller still has handles.
    pub(crate) fn abandon(self) {
        drop((self.kernels, self.gpu, self.driver));
        let _ = self.machine.finish();
    }

    /// Ends the runtime and asks the simulator whether anything was wrong.
    pub(crate) fn finish(self) {
        let Self { machine, driver, gpu, kernels } = self;
        drop((kernels, gpu, driver));
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> GraphError {
    match result.expect_err("this is to be refused").kind() {
        ErrorKind::Graph(error) => error.clone(),
        other => panic!("expected a refusal of the graph, got {other}"),
    }
}
