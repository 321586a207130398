//! A simulated device whose traffic is counted a second time, below the runtime.

use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream};
use kiln_driver::layer::{Counting, Layered};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};

pub(crate) struct Rig {
    pub(crate) machine: Machine,
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

    pub(crate) fn mix(&self, stream: &Stream, to: &GpuRef<u32>, from: &GpuRef<u32>) {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(stream).read_write(to).read(from).value(to.len() as u32).value(1_u32);
        // SAFETY: `mix` touches as many elements as the first buffer has, and the second is as long.
        unsafe { launch.submit() }.unwrap();
    }

    /// Ends the runtime and asks the simulator whether anything was wrong.
    pub(crate) fn finish(self) {
        let Self { machine, driver, gpu, kernels } = self;
        drop((kernels, gpu, driver));
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}
