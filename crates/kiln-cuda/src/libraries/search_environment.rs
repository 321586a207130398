//! The environment variables, files and loaded libraries that a search uses; tests replace them.
//!
//! A search reads these and nothing else, so a test gives it a folder and a few variables.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::headers::INCLUDE_VARIABLE;
use super::kind::LibraryKind;
use crate::libcuda_search::OVERRIDE_VARIABLE;

/// Variables a search may ask for, besides one per library.
const VARIABLES: [&str; 9] = [
    OVERRIDE_VARIABLE,
    INCLUDE_VARIABLE,
    "CUDA_HOME",
    "CUDA_PATH",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PATH",
    "HOME",
];

/// The machine as a search sees it.
///
/// ```
/// use kiln_cuda::{LibraryKind, SearchEnvironment};
///
/// // An empty machine has nothing, and says where it looked.
/// let nowhere = SearchEnvironment::below("/nonexistent");
/// let missing = nowhere.find(LibraryKind::Cudnn).unwrap_err();
/// assert!(missing.to_string().contains("nvidia-cudnn"));
/// ```
#[derive(Clone, Debug)]
pub struct SearchEnvironment {
    root: PathBuf,
    variables: HashMap<String, OsString>,
    loaded: Vec<PathBuf>,
}

impl SearchEnvironment {
    /// This process on this machine, as they are now.
    pub fn of_process() -> Self {
        let mut environment = Self::below("/");
        let kinds = LibraryKind::ALL.into_iter().chain([LibraryKind::Cupti]);
        let names = VARIABLES.into_iter().chain(kinds.map(LibraryKind::variable));
        for name in names {
            if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
                environment = environment.with_variable(name, value);
            }
        }
        environment.loaded = loaded_libraries(&std::fs::read("/proc/self/maps").unwrap_or_default());
        environment
    }

    /// A machine whose system folders lie below a root, with no variables and nothing loaded.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), variables: HashMap::new(), loaded: Vec::new() }
    }

    /// The same with an environment variable set.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The same with a library loaded into the process.
    #[must_use]
    pub fn with_loaded(mut self, path: impl Into<PathBuf>) -> Self {
        self.loaded.push(path.into());
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }

    /// A loaded library whose file name begins so.
    pub(crate) fn loaded_file(&self, stem: &str) -> Option<PathBuf> {
        self.loaded.iter().find(|path| file_name(path).starts_with(stem)).cloned()
    }

    pub(super) fn folder_variable(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from)
    }

    pub(super) fn loaded(&self) -> &[PathBuf] {
        &self.loaded
    }

    /// A path of the system, below the root.
    pub(super) fn system_path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// The entries of a folder in order of their names; none if it cannot be read.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The name of a file as text; empty if it is none.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or("")
}

/// The files a memory map names that look like libraries, each once.
fn loaded_libraries(map: &[u8]) -> Vec<PathBuf> {
    let map = String::from_utf8_lossy(map);
    let mut paths: Vec<PathBuf> = Vec::new();
    for line in map.lines() {
        let Some(start) = line.find('/') else { continue };
        let path = PathBuf::from(&line[start..]);
        if file_name(&path).contains(".so") && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_map_names_each_library_once() {
        let map = b"7f00-7f01 r-xp 00000000 08:01 1  /usr/lib/libnvrtc.so.12\n\
                    7f01-7f02 r--p 00001000 08:01 1  /usr/lib/libnvrtc.so.12\n\
                    7f02-7f03 rw-p 00000000 00:00 0  [heap]\n\
                    7f03-7f04 r-xp 00000000 08:01 2  /usr/bin/program with spaces\n\
                    7f04-7f05 r-xp 00000000 08:01 3  /opt/a b/libcublas.so.13\n";
        assert_eq!(
            loaded_libraries(map),
            [Path::new("/usr/lib/libnvrtc.so.12"), Path::new("/opt/a b/libcublas.so.13")]
        );
    }
}
