//! `FoundLibrary`: the kind, path, version and origin of a library that was found.

use std::fmt;
use std::path::{Path, PathBuf};

use super::kind::LibraryKind;
use super::version::LibraryVersion;

/// A library that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLibrary {
    /// Which one.
    pub kind: LibraryKind,
    /// Its file.
    pub path: PathBuf,
    /// Its version, as much of it as can be told without loading it.
    pub version: Option<LibraryVersion>,
    /// How it was found.
    pub origin: LibraryOrigin,
}

/// How a library was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LibraryOrigin {
    /// The process has it loaded already.
    Loaded,
    /// A `KILN_...` variable names it.
    Configured,
    /// `CUDA_HOME` or `CUDA_PATH`.
    CudaHome,
    /// A folder of the system's loader.
    System,
    /// A package of the active Python environment.
    Python,
    /// The active conda environment.
    Conda,
    /// A usual folder of the toolkit.
    Toolkit,
    /// The toolkit or package that NVRTC belongs to.
    BesideNvrtc,
}

/// A library that is not there, or none that kiln can use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{kind} {}; {} ({})", misleading(*variable), self.answer(), kind.advice(), tried_text(tried))]
pub struct MissingLibrary {
    /// Which one.
    pub kind: LibraryKind,
    /// Where it was looked for, in order.
    pub tried: Vec<SearchedPlace>,
    /// The environment variable that names a place without the library. No other place is searched then.
    pub variable: Option<&'static str>,
}

/// One place that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchedPlace {
    /// A folder without the library, or a file that is none.
    pub path: PathBuf,
    /// Why it did not do.
    pub why: String,
    /// Whether it is a file of the library that ends too early.
    pub is_incomplete: bool,
    /// Whether it is a file of the library, of a version that kiln cannot use.
    pub is_too_old: bool,
}

impl SearchedPlace {
    /// One that has no file of the library.
    pub(super) fn other(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), is_incomplete: false, is_too_old: false }
    }
}

impl MissingLibrary {
    /// The first file that is too old, where one was found.
    pub fn too_old(&self) -> Option<&SearchedPlace> {
        self.tried.iter().find(|place| place.is_too_old)
    }

    fn answer(&self) -> String {
        match self.too_old() {
            Some(place) => format!("at {} is {}", place.path.display(), place.why),
            None => "was not found".to_owned(),
        }
    }
}

impl fmt::Display for FoundLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => {
                write!(f, "{} {version} at {} ({})", self.kind, self.path.display(), self.origin)
            }
            None => write!(f, "{} at {} ({})", self.kind, self.path.display(), self.origin),
        }
    }
}

impl fmt::Display for LibraryOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loaded => "loaded already",
            Self::Configured => "configured",
            Self::CudaHome => "CUDA_HOME",
            Self::System => "system",
            Self::Python => "Python package",
            Self::Conda => "conda",
            Self::Toolkit => "toolkit",
            Self::BesideNvrtc => "beside NVRTC",
        })
    }
}

fn misleading(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |name| format!("{name} is set to a wrong place: "))
}

pub(super) fn tried_text(tried: &[SearchedPlace]) -> String {
    match tried {
        [] => "there was nowhere to look".into(),
        tried => {
            let places: Vec<_> =
                tried.iter().map(|tried| format!("{}: {}", tried.path.display(), tried.why)).collect();
            places.join(", ")
        }
    }
}
