//! A launch on a device, from the files' contents to what came back.

use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::{Access, Dim3};
use kiln_mem::Direct;
use kiln_ptx::Feature;
use kiln_ptx::exec::Checks;
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::finding::{KernelFinding, collect};
use super::flags::LaunchFlags;
use super::map::ArrayMap;
use super::plan::{Argument, ArgumentSheet, Plan};
use super::program::{ProgramLaunch, Shape};
use crate::code_file::CodeFile;
use crate::failure::Failure;
use crate::npy::Array;
use crate::program_file::ProgramFile;
use crate::source_file::SourceFile;

/// A device to launch on.
pub(crate) struct Attempt {
    runtime: DeviceRuntime,
    machine: Option<Machine>,
}

/// What came of a launch.
pub(crate) struct Outcome {
    /// The kernel's name in the PTX.
    pub(crate) kernel: String,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) arguments: Vec<ArgumentSheet>,
    /// What the kernel printed; on a GPU its driver prints by itself.
    pub(crate) printed: String,
    /// What ended the launch early.
    pub(crate) fault: Option<String>,
    pub(crate) findings: Vec<KernelFinding>,
    /// The arrays afterwards, by argument; none after a fault.
    pub(crate) arrays: Vec<(usize, Array)>,
}

/// The arrays of a launch on the device, by argument.
#[derive(Default)]
struct Arrays {
    buffers: Vec<Option<GpuRef<u8>>>,
    map: ArrayMap,
}

impl Attempt {
    /// A simulated device of the launch's own. Every array is an allocation of its own there, with nothing behind it, so that no
    /// access leaves one unseen.
    pub(crate) fn simulated(flags: &LaunchFlags, seed: u64, checks: Checks) -> Result<Self, Failure> {
        let engine = PtxEngine::with_checks(checks).step_limit(flags.step_limit);
        let mut config = MachineConfig::seeded(seed).engine(Arc::new(engine));
        // What a lost device could not give back is no mistake of the kernel.
        config.checks.leaks = false;
        let machine = Machine::new(config);
        let driver = machine.device(0).map_err(kiln::Error::from)?;
        let runtime = DeviceRuntime::with_resource(driver, RuntimeConfig::default(), |driver, order| {
            Ok(Arc::new(Direct::new(driver.clone(), order)))
        })?;
        Ok(Self { runtime, machine: Some(machine) })
    }

    /// A GPU.
    pub(crate) fn on(runtime: &DeviceRuntime) -> Self {
        Self { runtime: runtime.clone(), machine: None }
    }

    /// What the device is called.
    pub(crate) fn device(&self) -> String {
        match self.machine {
            Some(_) => "the simulated device".to_owned(),
            None => self.runtime.info().name.clone(),
        }
    }

    /// Compiles, uploads, launches, waits, downloads.
    ///
    /// # Errors
    /// What kept the kernel from being launched. A kernel that faults is an outcome.
    pub(crate) fn launch(
        &self,
        code: &CodeFile,
        flags: &LaunchFlags,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        match code {
            CodeFile::Kernels(source) => self.launch_kernel(source, flags, plan),
            CodeFile::Program(file) => self.launch_program(file, flags, plan),
        }
    }

    fn launch_kernel(
        &self,
        source: &SourceFile,
        flags: &LaunchFlags,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        let gpu = &self.runtime;
        let (name, shape) = flags.of_kernel()?;
        let (kernel, facts) = source.kernel(gpu, name)?;
        let arguments = plan.check(&flags.arguments, &facts)?;
        let arrays = self.upload(plan)?;
        let mut launch = gpu.launch(&kernel);
        launch.grid(shape.grid).block(shape.block).shared(flags.shared);
        if facts.requirements.needs(Feature::CooperativeLaunch) {
            launch.cooperative();
        }
        for (argument, buffer) in plan.arguments.iter().zip(&arrays.buffers) {
            match (argument, buffer) {
                (Argument::Array { access: Access::Read, .. }, Some(buffer)) => _ = launch.read(buffer),
                (Argument::Array { .. }, Some(buffer)) => _ = launch.read_write(buffer),
                (Argument::Value(bytes), _) => pass_value(&mut launch, bytes),
                (Argument::Array { .. }, None) => {}
            }
        }
        // SAFETY: the arguments were held against the signature and the effects of the kernel's own PTX. On the simulated device
        // every access is checked. On a GPU whoever asked for this kernel to be run answers for its indices, as with any program
        // they start; a fault there loses this process's context only.
        unsafe { launch.submit() }?;
        let fault = gpu.synchronize().err().map(|error| format!("{error:#}"));
        self.outcome(kernel.name(), shape, arguments, fault, plan, &arrays)
    }

    fn launch_program(
        &self,
        file: &ProgramFile,
        flags: &LaunchFlags,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        let launch = ProgramLaunch::new(&file.program, flags, plan)?;
        let arrays = self.upload(plan)?;
        let found = || self.machine.as_ref().is_some_and(|machine| !machine.findings().is_empty());
        let stopped = launch.dispatch(&self.runtime, &arrays.buffers, found)?;
        let trap = stopped.as_ref().filter(|stopped| stopped.trapped);
        let trap = trap.map(|stopped| KernelFinding::of_trap(&stopped.text));
        let (name, shape, fault) = (&file.program.name, launch.shape, stopped.map(|stopped| stopped.text));
        let mut outcome = self.outcome(name, shape, launch.arguments, fault, plan, &arrays)?;
        let (from, to) = (file.name_in_findings(), file.path.display().to_string());
        outcome.findings.iter_mut().for_each(|finding| finding.rename_source(&from, &to));
        outcome.findings.extend(trap);
        Ok(outcome)
    }

    /// Puts the arrays of the arguments on the device.
    fn upload(&self, plan: &Plan) -> Result<Arrays, Failure> {
        let mut arrays = Arrays::default();
        for (index, argument) in plan.arguments.iter().enumerate() {
            arrays.buffers.push(match argument {
                Argument::Value(_) => None,
                Argument::Array { array, .. } => {
                    let buffer = self.runtime.upload(&array.bytes)?;
                    let memory = buffer.access().map_err(kiln::Error::from)?;
                    arrays.map.add(index, memory.address.0, memory.bytes);
                    Some(buffer)
                }
            });
        }
        Ok(arrays)
    }

    /// What came of a launch; arrays are fetched unless it faulted.
    fn outcome(
        &self,
        kernel: &str,
        shape: Shape,
        arguments: Vec<ArgumentSheet>,
        fault: Option<String>,
        plan: &Plan,
        uploaded: &Arrays,
    ) -> Result<Outcome, Failure> {
        let mut arrays = Vec::new();
        if fault.is_none() {
            for (index, (argument, buffer)) in plan.arguments.iter().zip(&uploaded.buffers).enumerate() {
                if let (Argument::Array { array, to: Some(_), .. }, Some(buffer)) = (argument, buffer) {
                    arrays.push((index, Array { bytes: buffer.download()?, ..array.clone() }));
                }
            }
        }
        let findings = self.machine.as_ref().map_or_else(Vec::new, Machine::findings);
        Ok(Outcome {
            kernel: kernel.to_owned(),
            grid: shape.grid,
            block: shape.block,
            arguments,
            printed: self.printed(),
            fault,
            findings: collect(&findings, &uploaded.map),
            arrays,
        })
    }

    fn printed(&self) -> String {
        let bytes = self.machine.as_ref().map_or_else(Vec::new, Machine::printed);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Gives a value of any of the sizes numbers have.
fn pass_value(launch: &mut kiln::Launch<'_>, bytes: &[u8]) {
    match *bytes {
        [a] => _ = launch.value([a]),
        [a, b] => _ = launch.value([u16::from_le_bytes([a, b])]),
        [a, b, c, d] => _ = launch.value([u32::from_le_bytes([a, b, c, d])]),
        [a, b, c, d, e, f, g, h] => _ = launch.value([u64::from_le_bytes([a, b, c, d, e, f, g, h])]),
        _ => {}
    }
}
