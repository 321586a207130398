//! Options of an NVRTC compilation.

use std::path::PathBuf;

use super::architecture::Architecture;

/// What comes out of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompileTarget {
    /// PTX for this architecture and every newer one; the driver compiles it further when it is loaded.
    Ptx(Architecture),
    /// Machine code for this architecture, and the PTX it was made from.
    Cubin(Architecture),
}

/// The choices of a compilation. All of them reach NVRTC as arguments ([`arguments`](Self::arguments)), and nothing else
/// does: what they say and the source together decide what comes out.
///
/// ```
/// use kiln_cuda::nvrtc::{Architecture, CompileOptions, CompileTarget};
///
/// let options = CompileOptions { fmad: false, ..CompileOptions::new(CompileTarget::Ptx(Architecture::new(80))) };
/// assert_eq!(options.arguments(), ["--gpu-architecture=compute_80", "--fmad=false"]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompileOptions {
    /// What comes out.
    pub target: CompileTarget,
    /// Whether a multiplication and an addition that follow each other become one instruction with one rounding. It is
    /// faster and more accurate, and gives other bits than the two separate ones; true unless it is said otherwise,
    /// as in nvcc.
    pub fmad: bool,
    /// Whether the code says which source line each instruction came from.
    pub line_info: bool,
    /// Folders that includes are looked for in, in order.
    pub include_folders: Vec<PathBuf>,
    /// Macros, with their values.
    pub macros: Vec<(String, String)>,
    /// Name expressions whose mangled names are wanted, such as `scale<float>`; for templates this is what makes the
    /// compiler instantiate them.
    pub names: Vec<String>,
    /// Further arguments, as NVRTC takes them.
    pub further: Vec<String>,
}

impl CompileOptions {
    /// The usual choices for a target.
    pub fn new(target: CompileTarget) -> Self {
        Self {
            target,
            fmad: true,
            line_info: false,
            include_folders: Vec::new(),
            macros: Vec::new(),
            names: Vec::new(),
            further: Vec::new(),
        }
    }

    /// The arguments NVRTC gets, in order.
    pub fn arguments(&self) -> Vec<String> {
        let architecture = match self.target {
            CompileTarget::Ptx(architecture) => format!("compute_{architecture}"),
            CompileTarget::Cubin(architecture) => format!("sm_{architecture}"),
        };
        let mut arguments =
            vec![format!("--gpu-architecture={architecture}"), format!("--fmad={}", self.fmad)];
        if self.line_info {
            arguments.push("--generate-line-info".into());
        }
        for folder in &self.include_folders {
            arguments.push(format!("--include-path={}", folder.display()));
        }
        for (name, value) in &self.macros {
            arguments.push(format!("--define-macro={name}={value}"));
        }
        arguments.extend(self.further.iter().cloned());
        arguments
    }
}

impl CompileTarget {
    /// The architecture, whatever comes out.
    pub fn architecture(self) -> Architecture {
        match self {
            Self::Ptx(architecture) | Self::Cubin(architecture) => architecture,
        }
    }
}
