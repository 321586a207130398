//! A device that cases are run on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::libraries::{self, Library};
use kiln::{
    DeviceRuntime, GpuRef, Kernel, RuntimeConfig,
    code::Source,
    launch::{Effect, ParameterKind},
};
use kiln_driver::Dim3;
use kiln_kernels::{Case, CaseArgument, CaseArguments};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

/// What kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Simulated,
    Cuda,
}

/// What a kernel was loaded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    CudaC,
    Ptx,
}

/// A folder for compiled code that goes away with the test.
pub(crate) struct CodeFolder(pub(crate) CachePlace);

impl CodeFolder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = format!("kiln-kernels-{name}-{}", std::process::id());
        Self(CachePlace::At(std::env::temp_dir().join(folder)))
    }
}

impl Drop for CodeFolder {
    fn drop(&mut self) {
        if let CachePlace::At(folder) = &self.0 {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A runtime, and the machine below it where it is simulated.
pub(crate) struct Stage {
    runtime: DeviceRuntime,
    machine: Option<Machine>,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Cuda => "cuda",
        }
    }
}

impl Stage {
    /// The first GPU, or a separate simulated device; compiled code is kept at a place.
    pub(crate) fn open(kind: Kind, seed: u64, place: &CachePlace) -> Self {
        let cache = CacheConfig { place: place.clone(), ..CacheConfig::default() };
        let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
        match kind {
            Kind::Cuda => {
                let driver = kiln::probe::require().unwrap().driver().clone();
                Self { runtime: DeviceRuntime::from_driver(driver, config).unwrap(), machine: None }
            }
            Kind::Simulated => {
                let machine =
                    Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
                let driver = machine.device(0).unwrap();
                Self { runtime: DeviceRuntime::from_driver(driver, config).unwrap(), machine: Some(machine) }
            }
        }
    }

    /// Runs a case from CUDA C, or from its PTX where the compiler or a header is missing.
    pub(crate) fn run(&self, case: &Case, arguments: &CaseArguments) -> kiln::Result<(CaseArguments, Form)> {
        match self.compiled(case) {
            Some(kernel) => Ok((self.launch(case, &kernel?, arguments)?, Form::CudaC)),
            None => Ok((self.run_ptx(case, arguments)?, Form::Ptx)),
        }
    }

    /// Runs a case from its PTX.
    pub(crate) fn run_ptx(&self, case: &Case, arguments: &CaseArguments) -> kiln::Result<CaseArguments> {
        let kernel = self.runtime.kernel(Source::Ptx(case.source.ptx), case.entry)?;
        self.launch(case, &kernel, arguments)
    }

    /// The runtime of the device.
    pub(crate) fn runtime(&self) -> &DeviceRuntime {
        &self.runtime
    }

    /// What kernels printed, where the device is simulated; on a GPU the driver prints by itself.
    pub(crate) fn printed(&self) -> String {
        let bytes = self.machine.as_ref().map_or_else(Vec::new, Machine::printed);
        String::from_utf8(bytes).unwrap()
    }

    /// An error, with what was found where findings are collected.
    pub(crate) fn explain(&self, error: &kiln::Error) -> String {
        let findings = self.findings();
        format!("{error:#}{}", findings.iter().map(|finding| format!("\n{finding}")).collect::<String>())
    }

    /// Nothing was found, where findings are collected.
    pub(crate) fn assert_clean(&self) {
        let findings = self.findings();
        assert!(findings.is_empty(), "{findings:#?}");
    }

    /// The first finding, where findings are collected.
    pub(crate) fn first_finding(&self) -> Option<String> {
        self.findings().first().map(ToString::to_string)
    }

    fn findings(&self) -> Vec<kiln_sim::Finding> {
        self.machine.as_ref().map_or_else(Vec::new, Machine::findings)
    }

    /// The kernel as NVRTC makes it for this device; none without NVRTC or a header the source includes.
    fn compiled(&self, case: &Case) -> Option<kiln::Result<Kernel>> {
        let nvrtc = libraries::find(Library::Nvrtc).ok()?;
        let folder = include_folder(&nvrtc.path);
        if !headers(case.source.cuda).all(|header| is_found(folder.as_deref(), header)) {
            return None;
        }
        let text = case.source.cuda;
        let mut builder = self.runtime.source(Source::CudaC { name: case.source.file, text });
        for option in case.source.options() {
            builder = match option {
                "--fmad=false" => builder.fmad(false),
                // The device says for which architecture.
                option if option.starts_with("--gpu-architecture=") => builder,
                option => builder.option(option),
            };
        }
        if let Some(folder) = folder {
            builder = builder.include(folder.join("cccl")).include(folder);
        }
        Some(builder.kernel(case.entry))
    }

    fn launch(&self, case: &Case, kernel: &Kernel, arguments: &CaseArguments) -> kiln::Result<CaseArguments> {
        let gpu = &self.runtime;
        let buffers: Vec<GpuRef<u8>> = arguments
            .buffers()
            .map(|buffer| gpu.upload(&buffer.data.to_bytes()))
            .collect::<Result<_, _>>()?;
        let extents = |[x, y, z]: [u32; 3]| Dim3::new(x, y, z);
        let mut launch = gpu.launch(kernel);
        launch
            .grid(extents(case.shape.grid))
            .block(extents(case.shape.block))
            .shared(case.shape.shared_bytes);
        if case.shape.cooperative {
            launch.cooperative();
        }
        let mut next = buffers.iter();
        for (argument, parameter) in arguments.iter().zip(kernel.signature().unwrap().parameters()) {
            match (argument, parameter.kind) {
                (CaseArgument::Value { bytes, .. }, _) => pass_value(&mut launch, bytes),
                (CaseArgument::Buffer(_), ParameterKind::Pointer(Effect::Reads | Effect::None)) => {
                    launch.read(next.next().unwrap());
                }
                (CaseArgument::Buffer(_), _) => {
                    launch.read_write(next.next().unwrap());
                }
            }
        }
        // SAFETY: the case says which buffers its kernel takes and in which shape it is launched, and its kernel stays inside of
        // them: the executor, which checks every access, finds nothing in any of them.
        unsafe { launch.submit() }?;
        gpu.synchronize()?;
        let contents: Vec<Vec<u8>> = buffers.iter().map(GpuRef::download).collect::<Result<_, _>>()?;
        Ok(arguments.with_contents(&contents))
    }
}

/// Gives a value of a size that some case has, as bits: an array has no kind of number.
fn pass_value(launch: &mut kiln::Launch<'_>, bytes: &[u8]) {
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    };
    match bytes.len() {
        1 => launch.value([bytes[0]]),
        2 => launch.value([u16::from_le_bytes(bytes.try_into().unwrap())]),
        4 => launch.value([u32::from_le_bytes(bytes.try_into().unwrap())]),
        8 => launch.value([u64::from_le_bytes(bytes.try_into().unwrap())]),
        24 => launch.value(<[u64; 3]>::try_from(words(bytes)).unwrap()),
        56 => launch.value(<[u64; 7]>::try_from(words(bytes)).unwrap()),
        other => panic!("no case had a value of {other} bytes"),
    };
}

/// The headers a source needs to be there.
fn headers(text: &str) -> impl Iterator<Item = &str> {
    let included = text.lines().filter_map(|line| line.strip_prefix("#include <")?.strip_suffix('>'));
    // Cooperative groups need a header of the C++ library, which is a separate package.
    included.flat_map(|header| [header, if header == "cooperative_groups.h" { "nv/target" } else { header }])
}

/// Whether a toolkit has a header, there or among those of the C++ library.
fn is_found(folder: Option<&Path>, header: &str) -> bool {
    folder.is_some_and(|folder| folder.join(header).is_file() || folder.join("cccl").join(header).is_file())
}

/// Where the toolkit that NVRTC belongs to keeps its headers.
fn include_folder(library: &Path) -> Option<PathBuf> {
    let path = library.canonicalize().ok()?;
    let folders = path.ancestors().skip(2).take(3).map(|folder| folder.join("include"));
    folders.into_iter().find(|folder| folder.join("cuda_fp16.h").is_file())
}
