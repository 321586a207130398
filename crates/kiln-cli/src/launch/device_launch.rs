//! A launch on a device: from the contents of files to the outcome.

use std::path::PathBuf;
use std::sync::Arc;

use kiln::checking::Findings;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::{Access, Dim3};
use kiln_mem::Direct;
use kiln_ptx::Feature;
use kiln_ptx::exec::{Checks, LaunchProgress, TextureObject};
use kiln_sim::{KernelLog, Machine, MachineConfig, PtxEngine};

use super::argument_check::Fitted;
use super::array_addresses::ArrayMap;
use super::constants::{Constant, ConstantSheet};
use super::finding::{KernelFinding, collect};
use super::flags::LaunchFlags;
use super::loaded_arguments::{Argument, ArgumentSheet, Plan};
use super::program_arguments::{ProgramLaunch, Shape};
use super::truncated_output::LeftOut;
use super::undefined_elements::OutputArray;
use crate::argument_spec::Start;
use crate::code_file::CodeFile;
use crate::demangled_name::with_readable_names;
use crate::failure::{Failure, error_text};
use crate::npy::Array;
use crate::plural::counted;
use crate::printable_text::text_of;
use crate::program_file::ProgramFile;
use crate::source_file::{ChosenKernel, SourceFile};

/// A device to launch on.
pub(crate) struct Attempt {
    runtime: DeviceRuntime,
    machine: Option<Machine>,
    /// Whether a read of an output that was not written before is looked for.
    checks_outputs: bool,
    /// What the engine notes, and how many notes it had before.
    log: KernelLog,
    notes_before: usize,
    progress: Option<Arc<LaunchProgress>>,
}

/// The outcome of a launch.
pub(crate) struct Outcome {
    /// The kernel's name in the PTX.
    pub(crate) kernel: String,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) arguments: Vec<ArgumentSheet>,
    /// Variables that were given a value.
    pub(crate) constants: Vec<ConstantSheet>,
    /// What may be wrong with the arguments and may be meant.
    pub(crate) warnings: Vec<String>,
    /// What the kernel printed. On a GPU the driver prints it.
    pub(crate) printed: String,
    /// What ended the launch early.
    pub(crate) fault: Option<String>,
    pub(crate) findings: Vec<KernelFinding>,
    /// What is allowed and may still be a mistake.
    pub(crate) notes: Vec<KernelFinding>,
    /// What was found or printed beyond the limits.
    pub(crate) left_out: LeftOut,
    /// The arrays that the kernel may have written; none after a fault.
    pub(crate) results: Vec<ResultArray>,
    /// Instructions of the kernel that only a GPU executes.
    pub(crate) unsupported: Vec<String>,
    /// Other kernels of the file.
    pub(crate) other_kernels: Vec<String>,
    /// Whether the results may depend on the order of threads without a race.
    pub(crate) follows_order: bool,
}

/// An array after a launch.
pub(crate) struct ResultArray {
    pub(crate) argument: usize,
    /// Where it is kept, if it is.
    pub(crate) to: Option<PathBuf>,
    pub(crate) array: Array,
}

/// The arrays of a launch on the device: for each argument those that it refers to.
#[derive(Default)]
struct Arrays {
    buffers: Vec<Vec<GpuRef<u8>>>,
    map: ArrayMap,
}

impl Attempt {
    /// A simulated device for one launch. Every array is an allocation with no memory next to it, so that every access outside of
    /// an array is seen.
    pub(crate) fn simulated(flags: &LaunchFlags, seed: u64, log: &KernelLog) -> Result<Self, Failure> {
        Self::with_engine(PtxEngine::default(), flags, seed, false, log)
    }

    /// The same with every check on, and lines that are executed in a log. A kernel that may reach an instruction which is not executed
    /// runs until it does.
    pub(crate) fn checked(
        flags: &LaunchFlags,
        seed: u64,
        strict: bool,
        log: &KernelLog,
    ) -> Result<Self, Failure> {
        let checks = Checks { strict, ..Checks::ALL };
        let engine = PtxEngine::with_checks(checks).run_unsupported();
        Self::with_engine(engine, flags, seed, true, log)
    }

    /// The same without checks, for results alone.
    pub(crate) fn unchecked(flags: &LaunchFlags, seed: u64) -> Result<Self, Failure> {
        let engine = PtxEngine::with_checks(Checks::NONE).run_unsupported();
        Self::with_engine(engine, flags, seed, true, &KernelLog::default())
    }

    fn with_engine(
        engine: PtxEngine,
        flags: &LaunchFlags,
        seed: u64,
        checks_outputs: bool,
        log: &KernelLog,
    ) -> Result<Self, Failure> {
        // Nothing else uses the device, so a loop that waits for memory that no thread writes cannot end.
        let engine = engine
            .step_limit(flags.step_limit)
            .stall_limit(flags.step_limit)
            .sole_writer()
            .refuse_kernels_alone()
            .log(log);
        let (findings, printed) = (flags.max_findings as usize, flags.max_printed as usize);
        let progress = Arc::new(LaunchProgress::default());
        let engine = engine.max_findings(findings).max_printed_bytes(printed).progress(progress.clone());
        let mut config = MachineConfig::seeded(seed).engine(Arc::new(engine));
        // The machine adds findings about the same accesses, which are not shown.
        (config.limits.findings, config.limits.printed_bytes) = (findings.saturating_mul(2), printed);
        // Memory that a lost device did not give back is not the kernel's mistake.
        config.checks.leaks = false;
        let machine = Machine::new(config);
        let driver = machine.device(0).map_err(kiln::Error::from)?;
        // The command lists what the machine found itself, whatever the variable says.
        let (findings, findings_variable) = (Findings::Ignore, false);
        let config = RuntimeConfig { findings, findings_variable, ..RuntimeConfig::default() };
        let runtime = DeviceRuntime::with_resource(driver, config, |driver, order| {
            Ok(Arc::new(Direct::new(driver.clone(), order)))
        })?;
        Ok(Self {
            runtime,
            machine: Some(machine),
            checks_outputs,
            notes_before: log.notes().len(),
            log: log.clone(),
            progress: Some(progress),
        })
    }

    /// How far the launch is; none on a GPU.
    pub(crate) fn progress(&self) -> Option<Arc<LaunchProgress>> {
        self.progress.clone()
    }

    /// A GPU.
    pub(crate) fn on(runtime: &DeviceRuntime) -> Self {
        let (machine, log, progress) = (None, KernelLog::default(), None);
        Self { runtime: runtime.clone(), machine, checks_outputs: false, log, notes_before: 0, progress }
    }

    /// The name of the device.
    pub(crate) fn device(&self) -> String {
        match self.machine {
            Some(_) => "the simulated device".to_owned(),
            None => self.runtime.info().name.clone(),
        }
    }

    /// Compiles, uploads, launches, waits, downloads.
    ///
    /// # Errors
    /// The kernel could not be launched. A kernel that faults is an outcome.
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
        let shape = flags.shape()?;
        let ChosenKernel { kernel, facts, variables, others, types, follows_order } =
            source.kernel(gpu, flags.kernel.as_deref())?;
        let Fitted { plan, sheets, mut warnings } = plan.fit(&flags.arguments, &facts, &types, flags.cast)?;
        warnings.extend(refused_beside(&self.log.refused_kernels()));
        for constant in &plan.constants {
            constant.copy_to(&kernel, &variables)?;
        }
        let arrays = self.upload(&plan)?;
        let mut launch = gpu.launch(&kernel);
        launch.grid(shape.grid).block(shape.block).shared(flags.shared);
        if facts.requirements.needs(Feature::CooperativeLaunch) {
            launch.cooperative();
        }
        for (argument, buffers) in plan.arguments.iter().zip(&arrays.buffers) {
            match (argument, &buffers[..]) {
                (Argument::Array(array), [buffer]) if array.access == Access::Read => _ = launch.read(buffer),
                (Argument::Array(_), [buffer]) => _ = launch.read_write(buffer),
                (Argument::Array(_), _) => {}
                (Argument::Texture { texels, .. }, [buffer, object]) => {
                    match texels.access {
                        Access::Read => _ = launch.also_read(buffer),
                        _ => _ = launch.also_write(buffer),
                    }
                    launch.also_read(object);
                    let handle = object.access().map_err(kiln::Error::from)?.address.0;
                    _ = launch.value_bytes(&handle.to_le_bytes());
                }
                (Argument::Texture { .. }, _) => {}
                (Argument::Null, _) => _ = launch.null(),
                (Argument::Value(bytes), _) => _ = launch.value_bytes(bytes),
                (Argument::Struct { bytes, arrays }, buffers) => {
                    for ((_, array), buffer) in arrays.iter().zip(buffers) {
                        match array.access {
                            Access::Read => _ = launch.also_read(buffer),
                            _ => _ = launch.also_write(buffer),
                        }
                    }
                    let offsets = arrays.iter().map(|(offset, _)| *offset);
                    _ = launch.value_bytes(&with_addresses(bytes, offsets.zip(buffers))?);
                }
            }
        }
        // SAFETY: the arguments were compared with the signature and the effects of the kernel's own PTX. On the simulated device
        // every access is checked. On a GPU the user who runs this kernel answers for its indices, as with any program they
        // start; a fault there loses this process's context only.
        unsafe { launch.submit() }?;
        let fault = gpu.synchronize().err().map(|error| error_text(&error));
        let run = Run { kernel: kernel.name(), shape, sheets, warnings, fault };
        let mut outcome = self.outcome(run, &plan, &arrays)?;
        let place = |found: &kiln_ptx::Unsupported| format!("`{}` at {}", found.instruction, found.position);
        if facts.shared.is_dynamic() {
            outcome.findings.iter_mut().for_each(|finding| finding.hint_dynamic_shared(flags.shared));
        }
        outcome.unsupported = facts.unsupported.iter().map(place).collect();
        outcome.other_kernels = others;
        outcome.follows_order = follows_order;
        Ok(outcome)
    }

    fn launch_program(
        &self,
        file: &ProgramFile,
        flags: &LaunchFlags,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        if !flags.constants.is_empty() {
            let message = "--const is for variables of CUDA C and PTX, and a program (.kir) has none";
            return Err(Failure::usage(message).next("give the value as a scalar of the program, with --arg"));
        }
        let launch = ProgramLaunch::new(&file.program, flags, plan)?;
        let arrays = self.upload(&launch.plan)?;
        let found = || self.machine.as_ref().is_some_and(|machine| !machine.findings().is_empty());
        let buffers: Vec<Option<GpuRef<u8>>> =
            arrays.buffers.iter().map(|list| list.first().cloned()).collect();
        let stopped = launch.dispatch(&self.runtime, &buffers, found)?;
        let path = file.path.display().to_string();
        let trap = stopped.as_ref().and_then(|stopped| stopped.trap);
        let trap = trap.map(|trap| trap.finding(&path, &launch.program, launch.shape));
        let run = Run {
            kernel: &file.program.name,
            shape: launch.shape,
            sheets: launch.arguments,
            warnings: Vec::new(),
            fault: stopped.map(|stopped| stopped.text),
        };
        let mut outcome = self.outcome(run, &launch.plan, &arrays)?;
        let (from, to) = (file.name_in_findings(), path);
        let told = outcome.findings.iter_mut().chain(&mut outcome.notes);
        told.for_each(|finding| finding.rename_source(&from, &to));
        outcome.findings.extend(trap);
        Ok(outcome)
    }

    /// Copies the arrays of the arguments to the device.
    fn upload(&self, plan: &Plan) -> Result<Arrays, Failure> {
        let mut arrays = Arrays::default();
        for (index, argument) in plan.arguments.iter().enumerate() {
            let mut buffers = Vec::new();
            for array in argument.arrays() {
                let bytes = &array.array.bytes;
                let buffer = match array.start {
                    Some(Start::Uninitialised | Start::Scratch) => self.runtime.allocate(bytes.len())?,
                    Some(Start::Output) if self.checks_outputs => self.runtime.allocate(bytes.len())?,
                    _ => self.runtime.upload(bytes)?,
                };
                let memory = buffer.access().map_err(kiln::Error::from)?;
                arrays.map.add(index, memory.address.0, memory.bytes);
                buffers.push(buffer);
            }
            if let Argument::Texture { object, .. } = argument {
                let object = self.upload_object(*object, buffers.first())?;
                buffers.push(object);
            }
            arrays.buffers.push(buffers);
        }
        Ok(arrays)
    }

    /// Makes the object of a texture, whose handle is its address on the simulated device.
    fn upload_object(
        &self,
        object: TextureObject,
        texels: Option<&GpuRef<u8>>,
    ) -> Result<GpuRef<u8>, Failure> {
        if self.machine.is_none() {
            let message = "textures and surfaces are bound on the simulated device alone";
            return Err(Failure::refused(message.to_owned()).next("add --device sim"));
        }
        let memory = texels.map(GpuRef::access).transpose().map_err(kiln::Error::from)?;
        let texels = memory.map_or(0, |memory| memory.address.0);
        Ok(self.runtime.upload(&TextureObject { texels, ..object }.record())?)
    }

    /// The outcome of a launch; arrays are copied back unless it faulted.
    fn outcome(&self, run: Run<'_>, plan: &Plan, uploaded: &Arrays) -> Result<Outcome, Failure> {
        // The copies below may read what no thread wrote, which is not the kernel's mistake.
        let findings = self.machine.as_ref().map_or_else(Vec::new, Machine::findings);
        let left_out = self.machine.as_ref().map_or_else(LeftOut::default, LeftOut::of);
        if run.fault.is_none() {
            self.log.note_leaks();
        }
        let undefined = self.undefined_elements(plan, uploaded, run.fault.is_none());
        let mut findings: Vec<_> = collect(&findings, &uploaded.map).into_iter().chain(undefined).collect();
        if run.fault.is_some() {
            findings.iter_mut().for_each(KernelFinding::note_end_of_launch);
        }
        let notes = self.log.notes();
        let notes = notes.iter().skip(self.notes_before);
        let notes = notes.map(|note| KernelFinding::of_code(note, &uploaded.map)).collect();
        let mut results = Vec::new();
        for (argument, (given, buffers)) in plan.arguments.iter().zip(&uploaded.buffers).enumerate() {
            for (array, buffer) in given.arrays().into_iter().zip(buffers) {
                if array.is_written() && array.start != Some(Start::Scratch) && run.fault.is_none() {
                    let to = array.to.clone();
                    let Array { element, shape, .. } = &*array.array;
                    let array = Array { element: *element, shape: shape.clone(), bytes: buffer.download()? };
                    results.push(ResultArray { argument, to, array });
                }
            }
        }
        Ok(Outcome {
            kernel: run.kernel.to_owned(),
            grid: run.shape.grid,
            block: run.shape.block,
            arguments: run.sheets,
            constants: plan.constants.iter().map(Constant::sheet).collect(),
            warnings: run.warnings,
            printed: self.printed(),
            fault: run.fault,
            findings,
            notes,
            left_out,
            results,
            unsupported: Vec::new(),
            other_kernels: Vec::new(),
            follows_order: false,
        })
    }

    /// Elements that are undefined in the outputs of a launch, and those that were not written if it ran to its end.
    fn undefined_elements(&self, plan: &Plan, uploaded: &Arrays, ended: bool) -> Vec<KernelFinding> {
        let Some(machine) = &self.machine else { return Vec::new() };
        let mut findings = Vec::new();
        for (argument, (given, buffers)) in plan.arguments.iter().zip(&uploaded.buffers).enumerate() {
            for (array, buffer) in given.arrays().into_iter().zip(buffers) {
                if !array.is_output() {
                    continue;
                }
                // A device that was lost has no memory.
                let Ok(memory) = buffer.access() else { continue };
                let (address, bytes) = (memory.address.0, memory.bytes);
                let (element, widest_access) = (array.array.element, array.widest_access);
                let output = OutputArray { argument, element, address, bytes, widest_access };
                let ranges = machine.undefined_values(0, address, bytes);
                findings.extend(output.findings(&ranges, &uploaded.map));
                if ended && array.start == Some(Start::Output) {
                    findings.extend(output.unwritten(&machine.unwritten_addresses(0, address, bytes)));
                }
            }
        }
        findings
    }

    fn printed(&self) -> String {
        let bytes = self.machine.as_ref().map_or_else(Vec::new, Machine::printed);
        text_of(&bytes)
    }
}

/// A launch that was made.
struct Run<'k> {
    kernel: &'k str,
    shape: Shape,
    sheets: Vec<ArgumentSheet>,
    warnings: Vec<String>,
    fault: Option<String>,
}

/// That a GPU does not load the file because of other kernels in it, with the first reason.
fn refused_beside(reasons: &[String]) -> Option<String> {
    let more = match reasons.len() {
        0 => return None,
        1 => String::new(),
        count => format!(" (and {} more)", counted(count as u64 - 1, "kernel")),
    };
    let first = reasons.first()?;
    let first = with_readable_names(first);
    Some(format!("a GPU does not load this file because of another kernel{more}: {first}"))
}

/// The bytes of a struct with the addresses of buffers at their offsets.
fn with_addresses<'b>(
    bytes: &[u8],
    buffers: impl Iterator<Item = (u64, &'b GpuRef<u8>)>,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = bytes.to_vec();
    for (offset, buffer) in buffers {
        let address = buffer.access().map_err(kiln::Error::from)?.address.0;
        let places = bytes.iter_mut().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        places.zip(address.to_le_bytes()).for_each(|(place, byte)| *place = byte);
    }
    Ok(bytes)
}
