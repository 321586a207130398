//! A file with kernels: CUDA C or PTX.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use kiln::{
    DeviceRuntime,
    code::{ModuleBuilder, Source},
};
use kiln_ptx::{EntryFacts, Module};

use crate::failure::Failure;

/// The flags that say where kernels come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceFlags {
    /// The kernels: CUDA C (.cu, compiled by NVRTC) or PTX (.ptx); or a program (.kir).
    #[arg(value_name = "FILE.{cu,ptx,kir}")]
    pub(crate) file: PathBuf,
    /// A folder that CUDA C includes headers from, besides the file's own.
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// A macro for CUDA C.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

/// The file as it was read.
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

impl SourceFile {
    /// Reads the file.
    pub(crate) fn read(flags: &SourceFlags) -> Result<Self, Failure> {
        let path = &flags.file;
        let language = match path.extension().and_then(|end| end.to_str()) {
            Some("cu") => Language::CudaC,
            Some("ptx") => Language::Ptx,
            _ => {
                return Err(Failure::file(
                    path,
                    "the name of a file with kernels ends in .cu or .ptx, and that of a program in .kir",
                ));
            }
        };
        let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::file(path, "it is no UTF-8 text"))?;
        Ok(Self { flags: flags.clone(), text, language })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.flags.file
    }

    /// Says to a runtime how it is compiled: with source lines, so that findings have them.
    pub(crate) fn builder<'a>(&'a self, gpu: &'a DeviceRuntime, name: &'a str) -> ModuleBuilder<'a> {
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
        builder
    }

    /// The PTX, read. Mistakes in it are said with the name of the file.
    pub(crate) fn module(&self, gpu: &DeviceRuntime) -> Result<Arc<Module>, Failure> {
        let name = self.path().to_string_lossy();
        let ptx = self.builder(gpu, &name).ptx()?;
        self.parse(&ptx)
    }

    fn parse(&self, ptx: &str) -> Result<Arc<Module>, Failure> {
        let module = Module::parse(ptx).map_err(|error| {
            let path = self.path().display();
            Failure { exit: crate::exit::Exit::Compile, text: format!("{path}: {error}") }
        })?;
        Ok(Arc::new(module))
    }

    /// The kernel of a name, ready to be launched, and what is known of it.
    pub(crate) fn kernel(
        &self,
        gpu: &DeviceRuntime,
        wanted: &str,
    ) -> Result<(kiln::Kernel, EntryFacts), Failure> {
        let path = self.path().to_string_lossy();
        let mut builder = self.builder(gpu, &path);
        // A template exists only once somebody says with which arguments.
        let is_instance = self.language == Language::CudaC && wanted.contains('<');
        if is_instance {
            builder = builder.instantiate(wanted);
        }
        let module = self.parse(&builder.ptx()?)?;
        let kernel = if is_instance {
            builder.kernel(wanted)?
        } else {
            builder.kernel(&find(&module, wanted, self.path())?)?
        };
        let facts = module.find_function(kernel.name()).and_then(|id| module.facts(id));
        let facts = facts.ok_or_else(|| Failure::refused(format!("`{wanted}` is no kernel")))?;
        Ok((kernel, facts))
    }
}

/// The name in the PTX of what the user calls by a name: the same, or the C++ function it was made from.
fn find(module: &Module, wanted: &str, path: &Path) -> Result<String, Failure> {
    let names: Vec<&str> = module.entries().map(|entry| &*entry.name).collect();
    if names.contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    let meant: Vec<&str> =
        names.iter().copied().filter(|name| plain_name(name).as_deref() == Some(wanted)).collect();
    match &meant[..] {
        [only] => Ok((*only).to_owned()),
        [] => {
            let there = match &names[..] {
                [] => "it has none".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            let path = path.display();
            Err(Failure::refused(format!("there is no kernel named `{wanted}` in {path}; {there}")))
        }
        several => {
            Err(Failure::refused(format!("`{wanted}` may mean {}; write one of them", several.join(" or "))))
        }
    }
}

/// The function a mangled name was made from, with its namespaces and without its parameters; none for other names.
pub(crate) fn plain_name(mangled: &str) -> Option<String> {
    let rest = mangled.strip_prefix("_Z")?;
    let (mut rest, nested) = match rest.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let mut parts = Vec::new();
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        let part = rest.get(digits..digits.checked_add(length)?)?;
        parts.push(part);
        rest = &rest[digits + length..];
        if !nested {
            break;
        }
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// A name as its author wrote it, as far as that can be told.
pub(crate) fn readable(name: &str) -> String {
    plain_name(name).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_read_and_others_are_left_alone() {
        assert_eq!(plain_name("_Z4axpyfPKfPfj").as_deref(), Some("axpy"));
        assert_eq!(plain_name("_ZN3lib5inner4axpyEf").as_deref(), Some("lib::inner::axpy"));
        assert_eq!(plain_name("_Z5scaleIfEvPT_").as_deref(), Some("scale"));
        for name in ["axpy", "_Z", "_Z99short", "_ZN", "_Zé", "_Z18446744073709551615x"] {
            assert_eq!(plain_name(name), None, "{name}");
        }
    }
}
