//! A file with kernels, as PTX.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln::DeviceRuntime;
use kiln::code::Source;
use kiln_ptx::exec::ExecProgram;
use kiln_ptx::{EntryFacts, PtxModule};

/// The PTX of a file.
pub(crate) struct KernelFile {
    pub(crate) ptx: String,
    module: Arc<PtxModule>,
    program: ExecProgram,
}

impl KernelFile {
    /// Reads PTX, or compiles CUDA C.
    pub(crate) fn read(path: &Path, includes: &[PathBuf]) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let ptx = match path.extension().is_some_and(|end| end == "cu") {
            true => compile(path, &text, includes)?,
            false => text,
        };
        let module = PtxModule::parse(&ptx).map_err(|error| error.to_string())?;
        let module = Arc::new(module);
        Ok(Self { ptx, program: ExecProgram::new(module.clone()), module })
    }

    /// What is known of its kernels.
    pub(crate) fn kernels(&self) -> Vec<EntryFacts> {
        let ids = self.module.entries().filter_map(|entry| self.module.find_function(&entry.name));
        ids.filter_map(|id| self.module.facts(id)).collect()
    }
}

impl KernelFile {
    /// The first instruction of a kernel that the simulated device does not execute, without its operands.
    pub(crate) fn unsupported(&self, kernel: &str) -> Option<String> {
        let first = self.program.entry(kernel)?.unsupported().into_iter().next()?;
        let instruction = first.site.instruction;
        let name = instruction.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or(&instruction);
        Some(name.split('.').next().unwrap_or(name).trim_end_matches(';').to_owned())
    }
}

fn compile(path: &Path, text: &str, includes: &[PathBuf]) -> Result<String, String> {
    let gpu = DeviceRuntime::simulated(0).map_err(|error| format!("{error:#}"))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut builder = gpu.source(Source::CudaC { name: &name, text }).line_info();
    let own = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    for folder in own.into_iter().chain(includes.iter().map(PathBuf::as_path)) {
        builder = builder.include(folder);
    }
    builder.ptx().map(|ptx| ptx.to_string()).map_err(|error| format!("{error:#}"))
}
