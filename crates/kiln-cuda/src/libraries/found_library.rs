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
#[error("{}", self.text())]
pub struct MissingLibrary {
    /// Which one.
    pub kind: LibraryKind,
    /// Where it was looked for, in order.
    pub tried: Vec<SearchedPlace>,
    /// The environment variable that names the place, if one does. No other place is searched then.
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
    /// Whether it is a file of the library that the loader does not load, or that lacks what every version of the library has.
    pub is_unloadable: bool,
}

impl SearchedPlace {
    /// One that has no file of the library.
    pub(super) fn other(path: &Path, why: impl Into<String>) -> Self {
        let (path, why) = (path.to_owned(), why.into());
        Self { path, why, is_incomplete: false, is_too_old: false, is_unloadable: false }
    }

    /// Whether it is a file of the library, one that cannot be used.
    fn is_unusable(&self) -> bool {
        self.is_incomplete || self.is_too_old || self.is_unloadable
    }
}

impl MissingLibrary {
    /// The first file of the library that cannot be used, where one was found: it is too old, incomplete, or does not load.
    pub fn unusable(&self) -> Option<&SearchedPlace> {
        self.tried.iter().find(|place| place.is_unusable())
    }

    fn text(&self) -> String {
        let Self { kind, tried, variable } = self;
        let advice = kind.advice();
        let Some(place) = self.unusable() else {
            let misleading =
                variable.map_or_else(String::new, |name| format!("{name} is set to a wrong place: "));
            return format!("{misleading}{kind} was not found; {advice} ({})", tried_text(tried));
        };
        let (path, why) = (place.path.display(), &place.why);
        let named = variable.map_or_else(String::new, |name| format!(", which {name} names,"));
        let is = if place.is_unloadable { "" } else { " is" };
        let others: Vec<SearchedPlace> = tried.iter().filter(|other| *other != place).cloned().collect();
        let others = if others.is_empty() { String::new() } else { format!(" ({})", tried_text(&others)) };
        format!("{kind} at {path}{named}{is} {why}; {advice}{others}")
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
