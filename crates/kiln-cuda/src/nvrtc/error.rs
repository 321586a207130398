//! What can go wrong with a compilation.

use std::fmt;
use std::path::PathBuf;

use super::architecture::{Architecture, UnknownArchitectureName};
use super::diagnostic::{Diagnostic, DiagnosticSeverity};
use crate::libraries::{LibraryKind, MissingLibrary};

/// Why there is no compiled code.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// NVRTC is not on this machine.
    #[error(transparent)]
    Missing(#[from] MissingLibrary),
    /// There is a file with NVRTC's name, and it cannot be used.
    #[error("{} cannot be used as NVRTC: {why}; {}", path.display(), LibraryKind::Nvrtc.advice())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The source has errors.
    #[error(transparent)]
    Compile(#[from] CompileFailure),
    /// This NVRTC cannot compile for that architecture.
    #[error("this NVRTC does not compile for architecture {asked}; it knows {}", list(known))]
    UnknownArchitecture {
        /// What was asked for.
        asked: Architecture,
        /// What it can.
        known: Vec<Architecture>,
    },
    /// What was asked for is no architecture.
    #[error(transparent)]
    ArchitectureName(#[from] UnknownArchitectureName),
    /// Source, header or option holds something that cannot be handed over.
    #[error("{what} holds a zero byte; take it out")]
    ZeroByte {
        /// What it is.
        what: String,
    },
    /// NVRTC failed for another reason.
    #[error("{call}: {text} ({code})")]
    Failed {
        /// The entry point.
        call: &'static str,
        /// What it answered.
        code: i32,
        /// What NVRTC calls that.
        text: String,
    },
}

/// The errors of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileFailure {
    /// The name of the source.
    pub source: String,
    /// Every message, warnings among them.
    pub diagnostics: Vec<Diagnostic>,
    /// The log as the compiler wrote it.
    pub log: String,
    /// How to get a header that was not found.
    pub hint: Option<String>,
}

impl NvrtcError {
    /// Whether NVRTC itself is what is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Unusable { .. })
    }

    /// Whether the source is at fault.
    pub fn is_compile_error(&self) -> bool {
        matches!(self, Self::Compile(_))
    }

    /// The errors of a source that does not compile.
    pub fn compile_errors(&self) -> Vec<&Diagnostic> {
        match self {
            Self::Compile(failure) => failure.errors().collect(),
            _ => Vec::new(),
        }
    }

    /// What the compiler said, if it said something.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Compile(failure) => &failure.diagnostics,
            _ => &[],
        }
    }
}

impl CompileFailure {
    /// The errors among the messages.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == DiagnosticSeverity::Error)
    }
}

impl fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<&Diagnostic> = self.errors().collect();
        match errors.as_slice() {
            [] => write!(f, "{} was not compiled:\n{}", self.source, self.log.trim_end())?,
            [first] => write!(f, "{first}")?,
            [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len())?,
        }
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for CompileFailure {}

fn list(architectures: &[Architecture]) -> String {
    architectures.iter().map(Architecture::to_string).collect::<Vec<_>>().join(", ")
}
