//! A file with kernels, as PTX.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln::DeviceRuntime;
use kiln::code::Source;
use kiln_ptx::exec::ExecProgram;
use kiln_ptx::{EntryFacts, PtxModule};

/// Why a file was not read.
pub(crate) struct Unread {
    pub(crate) why: String,
    /// The entries in its PTX, if there is any.
    pub(crate) entries: Option<u64>,
}

/// An instruction that the simulated device does not execute.
pub(crate) struct Refused {
    /// What it is, in words.
    pub(crate) what: String,
    /// Its name without modifiers.
    pub(crate) opcode: String,
    /// Its line in the PTX.
    pub(crate) line: u32,
}

/// The PTX of a file.
pub(crate) struct KernelFile {
    pub(crate) ptx: String,
    module: Arc<PtxModule>,
    program: ExecProgram,
}

impl KernelFile {
    /// Reads PTX, or compiles CUDA C.
    pub(crate) fn read(path: &Path, includes: &[PathBuf]) -> Result<Self, Unread> {
        let unread = |why| Unread { why, entries: None };
        let text = std::fs::read(path).map_err(|error| unread(error.to_string()))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let ptx = match path.extension().is_some_and(|end| end == "cu") {
            true => compile(path, &text, includes).map_err(unread)?,
            false => text,
        };
        let module = PtxModule::parse(&ptx).map_err(|error| {
            let entries = ptx.lines().filter(|line| line.contains(".entry ")).count() as u64;
            Unread { why: error.to_string(), entries: Some(entries) }
        })?;
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
    /// The first instruction of a kernel that the simulated device does not execute.
    pub(crate) fn refused(&self, kernel: &str) -> Option<Refused> {
        let first = self.program.entry(kernel)?.unsupported().into_iter().next()?;
        let what = first.what.trim_end_matches(',').to_owned();
        Some(Refused { what, opcode: opcode(&first.site.instruction), line: first.site.ptx_line })
    }
}

fn opcode(instruction: &str) -> String {
    let name = instruction.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or(instruction);
    name.split('.').next().unwrap_or(name).trim_end_matches(';').to_owned()
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
