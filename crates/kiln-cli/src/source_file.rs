//! A file with kernels: CUDA C or PTX.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use kiln::{
    DeviceRuntime,
    code::{ModuleBuilder, Source},
};
use kiln_ptx::{EntryFacts, Opcode, Order, PtxFunctionId, PtxModule, ScalarKind};

use crate::declared_type::declared_types;
use crate::declared_variable::DeclaredVariable;
use crate::demangled_name::parameter_types;
use crate::failure::Failure;
use crate::kernel_name::KernelNames;
use crate::template_kernel::TemplateKernel;
use crate::text_file::read_text;

/// The flags that say where kernels come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceFlags {
    /// CUDA C (.cu, compiled by NVRTC), PTX (.ptx) or a program (.kir).
    #[arg(value_name = "FILE.{cu,ptx,kir}")]
    pub(crate) file: PathBuf,
    /// A folder with headers for CUDA C, besides the file's own.
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A macro for CUDA C.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The architecture that CUDA C is compiled for, such as sm_90a or compute_100f, instead of the device's own; PTX names its own in `.target`.
    #[arg(long, value_name = "ARCHITECTURE", value_parser = architecture)]
    pub(crate) arch: Option<String>,
}

/// Checks that a word is an architecture as NVRTC writes it.
fn architecture(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"));
    let number = name.map(|name| name.strip_suffix(['a', 'f']).unwrap_or(name));
    match number {
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(text.to_owned())
        }
        _ => Err("write an architecture such as sm_90, sm_90a or compute_100f".to_owned()),
    }
}

/// The text of a file with kernels, and how to compile it.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    flags: SourceFlags,
    text: String,
    language: Language,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    CudaC,
    Ptx,
}

/// A kernel of a file.
pub(crate) struct ChosenKernel {
    pub(crate) kernel: kiln::Kernel,
    pub(crate) facts: EntryFacts,
    /// The variables of the file that can be given a value.
    pub(crate) variables: Vec<DeclaredVariable>,
    /// The names of the other kernels of the file.
    pub(crate) others: Vec<String>,
    /// The types of its parameters, by its name or by the source; none where neither tells.
    pub(crate) types: Vec<Option<String>>,
    /// Whether its results may depend on the order of threads without a race.
    pub(crate) follows_order: bool,
}

impl SourceFile {
    /// Reads the file.
    pub(crate) fn read(flags: &SourceFlags) -> Result<Self, Failure> {
        let path = &flags.file;
        let language = match path.extension().and_then(|end| end.to_str()) {
            Some("cu") => Language::CudaC,
            Some("ptx") => Language::Ptx,
            _ => {
                let why = "the file name must end in .cu (CUDA C), .ptx (PTX) or .kir (a program)";
                return Err(Failure::file(path, why));
            }
        };
        if let (Language::Ptx, Some(architecture)) = (language, &flags.arch) {
            let message = format!("--arch {architecture} is for CUDA C, and {} is PTX", path.display());
            return Err(Failure::usage(message).next("leave it out; the line `.target` of the PTX says it"));
        }
        Ok(Self { flags: flags.clone(), text: read_text(path)?, language })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.flags.file
    }

    /// The kernels of CUDA C that are templates.
    pub(crate) fn templates(&self) -> Vec<TemplateKernel> {
        match self.language {
            Language::CudaC => TemplateKernel::find(&self.text),
            Language::Ptx => Vec::new(),
        }
    }

    /// Compiles with source lines, so that findings have them; templates that are wanted are instantiated.
    fn builder<'a>(
        &'a self,
        gpu: &'a DeviceRuntime,
        name: &'a str,
        wanted: Option<&str>,
    ) -> ModuleBuilder<'a> {
        let source = match self.language {
            Language::Ptx => Source::Ptx(&self.text),
            Language::CudaC => Source::CudaC { name, text: &self.text },
        };
        let mut builder = gpu.source(source).line_info();
        let own = self.path().parent().filter(|folder| !folder.as_os_str().is_empty());
        builder = builder.include(own.unwrap_or(Path::new(".")));
        for folder in &self.flags.include {
            builder = builder.include(folder);
        }
        for pair in &self.flags.define {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "1"));
            builder = builder.define(name, value);
        }
        if let Some(architecture) = &self.flags.arch {
            builder = builder.architecture(architecture);
        }
        match wanted.filter(|wanted| self.is_instance(wanted)) {
            Some(wanted) => builder.instantiate(wanted),
            None => builder,
        }
    }

    /// Whether a name is a template of CUDA C with its arguments, which must be compiled by that name.
    fn is_instance(&self, wanted: &str) -> bool {
        self.language == Language::CudaC && wanted.contains('<')
    }

    /// The PTX of the file, parsed; with a template that is `wanted`.
    pub(crate) fn module(
        &self,
        gpu: &DeviceRuntime,
        wanted: Option<&str>,
    ) -> Result<Arc<PtxModule>, Failure> {
        let name = self.path().to_string_lossy();
        self.parse(&self.builder(gpu, &name, wanted).ptx()?)
    }

    fn parse(&self, ptx: &str) -> Result<Arc<PtxModule>, Failure> {
        PtxModule::parse(ptx).map(Arc::new).map_err(|error| Failure::compile(self.path(), error))
    }

    /// The kernel of that name, ready to be launched, and its facts. Without a name: the only kernel of the file.
    ///
    /// # Errors
    /// The file does not compile; it has no such kernel, or several that may be meant, with the names to choose from.
    pub(crate) fn kernel(&self, gpu: &DeviceRuntime, wanted: Option<&str>) -> Result<ChosenKernel, Failure> {
        let path = self.path().to_string_lossy();
        let builder = self.builder(gpu, &path, wanted);
        let module = self.parse(&builder.ptx()?)?;
        let kernel = match wanted.filter(|wanted| self.is_instance(wanted)) {
            Some(instance) => builder.kernel(instance)?,
            None => builder.kernel(&self.names(&module).choose(wanted)?)?,
        };
        let facts = module.find_function(kernel.name()).and_then(|id| module.facts(id));
        let facts = facts.ok_or_else(|| Failure::refused(format!("`{}` is not a kernel", kernel.name())))?;
        let others = module.entries().filter(|entry| *entry.name != *kernel.name());
        let others = others.map(|entry| entry.name.to_string()).collect();
        let follows_order = follows_order(&module, facts.function);
        let types = self.parameter_types(&facts.name);
        let variables = DeclaredVariable::all(&module);
        Ok(ChosenKernel { kernel, facts, variables, others, types, follows_order })
    }

    /// The types of a kernel's parameters: its mangled name has them all; for an `extern "C"` kernel the source has those of the pointers.
    fn parameter_types(&self, kernel: &str) -> Vec<Option<String>> {
        match (parameter_types(kernel), self.language) {
            (types, _) if !types.is_empty() => types.into_iter().map(Some).collect(),
            (_, Language::CudaC) => declared_types(&self.text, kernel),
            (_, Language::Ptx) => Vec::new(),
        }
    }

    /// The names of the kernels in the PTX of this file.
    pub(crate) fn names(&self, module: &PtxModule) -> KernelNames {
        let names = module.entries().map(|entry| entry.name.to_string()).collect();
        KernelNames::new(self.path(), names, self.templates())
    }
}

/// Whether a kernel, or a function that it may call, has instructions that tell threads apart by their order: atomics that return a value, sums of floats by
/// atomics, and volatile, relaxed or acquire loads.
fn follows_order(module: &PtxModule, kernel: PtxFunctionId) -> bool {
    let own = module.function(kernel).map(|function| &*function.name);
    let functions =
        module.functions().iter().filter(|function| !function.is_entry() || Some(&*function.name) == own);
    let bodies = functions.filter_map(|function| function.body.as_ref());
    let instructions = bodies.flat_map(|body| body.instructions());
    let mut forms = instructions.filter_map(|instruction| module.form(instruction.form));
    forms.any(|form| match form.opcode() {
        Opcode::Atom => true,
        Opcode::Red => form.types().any(|ty| ty.kind() == ScalarKind::Float),
        Opcode::Ld => form.order().is_some_and(|order| order != Order::Weak),
        _ => false,
    })
}
