//! The search itself: places in order, the best file in the first place that has one.

use std::path::{Path, PathBuf};

use super::elf::{NotALibrary, SharedLibrary};
use super::found_library::{FoundLibrary, LibraryOrigin, MissingLibrary, SearchedPlace};
use super::kind::LibraryKind;
use super::search_environment::{SearchEnvironment, entries, file_name};
use super::version::LibraryVersion;

/// Where a toolkit keeps its libraries.
const TOOLKIT_FOLDERS: [&str; 4] = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
/// Where a toolkit has CUPTI, and nothing else.
const CUPTI_FOLDER: &str = "extras/CUPTI/lib64";

impl SearchEnvironment {
    /// Looks for a library. If a variable names a path without the library, nothing else is searched. A file whose names say that it is of a version that kiln cannot use is
    /// passed over; one that the process has loaded already, or that a variable names, is refused then.
    ///
    /// # Errors
    /// [`MissingLibrary`] says where it was looked for, which file was too old, and how to get it.
    pub fn find(&self, kind: LibraryKind) -> Result<FoundLibrary, MissingLibrary> {
        if let Some(path) = self.loaded().iter().find(|path| kind.owns(file_name(path))) {
            let version = kind.loaded_version(path).or_else(|| version_of(kind, path));
            let found = FoundLibrary { kind, path: path.clone(), version, origin: LibraryOrigin::Loaded };
            // A second one beside it would find the first one's parts.
            let mut tried = Vec::new();
            return new_enough(found, &mut tried).ok_or(MissingLibrary { kind, tried, variable: None });
        }
        let mut tried = Vec::new();
        if let Some(configured) = self.folder_variable(kind.variable()) {
            let found = configured_file(kind, &configured, &mut tried);
            return found.ok_or(MissingLibrary { kind, tried, variable: Some(kind.variable()) });
        }
        for (origin, folder) in self.places(kind) {
            if let Some(found) = best_in(kind, &folder, origin, &mut tried) {
                return Ok(found);
            }
        }
        Err(MissingLibrary { kind, tried, variable: None })
    }

    /// All folders to look into, in order.
    fn places(&self, kind: LibraryKind) -> Vec<(LibraryOrigin, PathBuf)> {
        let further = if kind == LibraryKind::Cupti { Some(CUPTI_FOLDER) } else { None };
        let folders = || TOOLKIT_FOLDERS.into_iter().chain(further);
        let mut places = Vec::new();
        for (origin, root) in self.homes() {
            places.extend(folders().map(|folder| (origin, root.join(folder))));
        }
        places.extend(self.loader_folders().into_iter().map(|folder| (LibraryOrigin::System, folder)));
        let library_folder = |(origin, package): (LibraryOrigin, PathBuf)| (origin, package.join("lib"));
        let has_libraries = |place: &(LibraryOrigin, PathBuf)| place.1.is_dir();
        places.extend(self.python_packages().into_iter().map(library_folder).filter(has_libraries));
        for (origin, root) in self.installations() {
            places.extend(folders().map(|folder| (origin, root.join(folder))));
        }
        places
    }

    /// The roots of everything that may be a toolkit, or a part of one, in the order of the search.
    pub(super) fn toolkit_roots(&self) -> Vec<(LibraryOrigin, PathBuf)> {
        let mut roots = self.homes();
        roots.extend(self.python_packages());
        roots.extend(self.installations());
        roots.push((LibraryOrigin::System, self.system_path("usr")));
        roots
    }

    /// The toolkits that variables name.
    fn homes(&self) -> Vec<(LibraryOrigin, PathBuf)> {
        let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| self.folder_variable(name));
        named.map(|home| (LibraryOrigin::CudaHome, home)).collect()
    }

    /// NVIDIA's packages in the active Python and conda environments.
    fn python_packages(&self) -> Vec<(LibraryOrigin, PathBuf)> {
        let python = self.python_prefixes().into_iter().map(|prefix| (LibraryOrigin::Python, prefix));
        let conda = self.folder_variable("CONDA_PREFIX").map(|prefix| (LibraryOrigin::Conda, prefix));
        let mut packages: Vec<(LibraryOrigin, PathBuf)> = Vec::new();
        for (origin, prefix) in python.chain(conda) {
            for package in nvidia_packages(&prefix) {
                if !packages.iter().any(|(_, known)| *known == package) {
                    packages.push((origin, package));
                }
            }
        }
        packages
    }

    /// The conda environment and the usual folders of a toolkit.
    fn installations(&self) -> Vec<(LibraryOrigin, PathBuf)> {
        let conda = self.folder_variable("CONDA_PREFIX").map(|prefix| (LibraryOrigin::Conda, prefix));
        let mut toolkits = entries(&self.system_path("usr/local"));
        // The newest first; the plain name is a link to one of the others.
        toolkits.sort_by_key(|path| {
            std::cmp::Reverse(LibraryVersion::parse(file_name(path).trim_start_matches("cuda-")))
        });
        toolkits.retain(|path| file_name(path).starts_with("cuda"));
        toolkits.push(self.system_path("opt/cuda"));
        conda
            .into_iter()
            .chain(toolkits.into_iter().map(|toolkit| (LibraryOrigin::Toolkit, toolkit)))
            .collect()
    }

    /// Where Python packages are installed: the virtual environment, the Python that comes first on the path, and the
    /// packages of the user. No Python is started.
    fn python_prefixes(&self) -> Vec<PathBuf> {
        let mut prefixes: Vec<PathBuf> = self.folder_variable("VIRTUAL_ENV").into_iter().collect();
        let interpreter = self.variable("PATH").and_then(|path| {
            std::env::split_paths(path).map(|folder| folder.join("python3")).find(|python| python.exists())
        });
        if let Some(python) = interpreter {
            let linked = python.canonicalize().ok();
            prefixes.extend(
                [Some(python), linked]
                    .into_iter()
                    .flatten()
                    .filter_map(|python| python.parent().and_then(Path::parent).map(Path::to_owned)),
            );
        }
        prefixes.extend(self.folder_variable("HOME").map(|home| home.join(".local")));
        prefixes
    }
}

/// `lib/python3.x/site-packages/nvidia/*` below a prefix.
fn nvidia_packages(prefix: &Path) -> Vec<PathBuf> {
    entries(&prefix.join("lib"))
        .into_iter()
        .filter(|folder| file_name(folder).starts_with("python3"))
        .flat_map(|python| {
            ["site-packages", "dist-packages"].map(|packages| python.join(packages).join("nvidia"))
        })
        .flat_map(|nvidia| entries(&nvidia))
        .collect()
}

/// What a `KILN_...` variable names: the file itself, or a folder that has it.
fn configured_file(kind: LibraryKind, path: &Path, tried: &mut Vec<SearchedPlace>) -> Option<FoundLibrary> {
    if path.is_dir() {
        return best_in(kind, path, LibraryOrigin::Configured, tried);
    }
    accept(kind, path, LibraryOrigin::Configured, tried)
}

/// The newest library of this kind in a folder.
fn best_in(
    kind: LibraryKind,
    folder: &Path,
    origin: LibraryOrigin,
    tried: &mut Vec<SearchedPlace>,
) -> Option<FoundLibrary> {
    let mut files: Vec<PathBuf> =
        entries(folder).into_iter().filter(|path| kind.owns(file_name(path))).collect();
    if files.is_empty() {
        let why = match folder.is_dir() {
            true => format!("has no file {}", kind.file_stem()),
            false => "is no folder".to_owned(),
        };
        tried.push(SearchedPlace::other(folder, why));
    }
    files.sort_by_key(|path| std::cmp::Reverse(version_of(kind, path)));
    files.iter().find_map(|file| accept(kind, file, origin, tried))
}

/// A file, if it is a library for this machine and goes by the right name.
fn accept(
    kind: LibraryKind,
    path: &Path,
    origin: LibraryOrigin,
    tried: &mut Vec<SearchedPlace>,
) -> Option<FoundLibrary> {
    let refused = match SharedLibrary::read(path) {
        Ok(library) => match library.soname {
            Some(soname) if !kind.owns(&soname) => NotALibrary::from(format!("is {soname}")),
            _ => {
                let version = version_of(kind, path)
                    .or_else(|| library.soname.as_deref().and_then(LibraryVersion::of_file_name));
                return new_enough(FoundLibrary { kind, path: path.to_owned(), version, origin }, tried);
            }
        },
        Err(refused) => refused,
    };
    let NotALibrary { why, is_incomplete } = refused;
    tried.push(SearchedPlace { is_incomplete, ..SearchedPlace::other(path, why) });
    None
}

/// A library, unless it is known to be of a version that kiln cannot use.
fn new_enough(found: FoundLibrary, tried: &mut Vec<SearchedPlace>) -> Option<FoundLibrary> {
    let Some(why) = found.version.and_then(|version| found.kind.too_old(version)) else { return Some(found) };
    tried.push(SearchedPlace { is_too_old: true, ..SearchedPlace::other(&found.path, why) });
    None
}

/// The most that names around a file tell about its version: its own after links are followed, or the metadata of the
/// Python package it lies in.
fn version_of(kind: LibraryKind, path: &Path) -> Option<LibraryVersion> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // A variable may name a file by any name, whose number is that of another library.
    let by_name =
        kind.owns(file_name(&real)).then(|| LibraryVersion::of_file_name(file_name(&real))).flatten();
    let packages = path.ancestors().find(|folder| file_name(folder).ends_with("-packages"));
    let by_package = packages.into_iter().flat_map(entries).find_map(|entry| {
        let name = file_name(&entry).strip_suffix(".dist-info")?.strip_prefix(kind.python_metadata())?;
        LibraryVersion::parse(name.split_once('-')?.1)
    });
    match (by_name, by_package) {
        (Some(name), Some(package)) if name.minor.is_none() && name.major == package.major => Some(package),
        (None, package) => package,
        (name, _) => name,
    }
}
