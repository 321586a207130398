//! The toolkit's headers, which CUDA C may include: `cuda_fp16.h`, `cooperative_groups.h` and others.
//!
//! NVRTC contains none of them. They are looked for beside the NVRTC in use first, because headers of one toolkit
//! need not compile with the NVRTC of another, and then in the usual places of a toolkit. Headers whose major version
//! is not NVRTC's are refused, unless `KILN_CUDA_INCLUDE` names them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use kiln_driver::Version;

use super::found_library::{LibraryOrigin, SearchedPlace, tried_text};
use super::kind::LibraryKind;
use super::search_environment::{SearchEnvironment, entries, file_name};
use super::version::LibraryVersion;

/// Names the folder of the headers instead of the search.
pub(super) const INCLUDE_VARIABLE: &str = "KILN_CUDA_INCLUDE";

/// A header that every toolkit has; a folder with it is a folder of the toolkit's headers.
const MARKER: &str = "cuda_fp16.h";
/// The header that says which toolkit it belongs to, and the macro that does.
const VERSION_HEADER: &str = "cuda.h";
const VERSION_MACRO: &str = "#define CUDA_VERSION ";

/// Where a toolkit keeps its headers, below its root.
const TOOLKIT_FOLDERS: [&str; 3] = ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"];
/// Where NVIDIA's Python packages lie, side by side.
const PACKAGES_FOLDER: &str = "nvidia";
/// Packages for CUDA 12 keep other headers in separate folders, beside that of the runtime.
const SIBLING_PACKAGES: [&str; 3] = ["cuda_nvcc", "cuda_cccl", "curand"];
/// Toolkits from CUDA 13 on keep the headers of CCCL (`cub`, `thrust`, `cuda/std`) in this folder of theirs.
const CCCL_FOLDER: &str = "cccl";

/// The headers of a CUDA toolkit.
///
/// ```
/// use kiln_cuda::nvrtc::ToolkitHeaders;
///
/// match ToolkitHeaders::of_process() {
///     Ok(headers) => println!("CUDA C may include what is in {}", headers.folders[0].display()),
///     Err(missing) => println!("{missing}"),
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolkitHeaders {
    /// The folders to include from, in order; at least one.
    pub folders: Vec<PathBuf>,
    /// The version of the toolkit, where its headers say it.
    pub version: Option<Version>,
    /// How they were found.
    pub origin: LibraryOrigin,
}

/// No headers of a CUDA toolkit were found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the CUDA headers were not found; {} ({})", self.advice(), tried_text(tried))]
pub struct HeadersNotFound {
    /// Where they were looked for, in order.
    pub tried: Vec<SearchedPlace>,
    /// The version of the NVRTC they are needed for, as much of it as is known.
    pub nvrtc: Option<LibraryVersion>,
}

impl HeadersNotFound {
    /// How to get them.
    pub fn advice(&self) -> String {
        self.advice_for(None)
    }

    /// How to get those that fit the compiler or, where there is none, a driver which supports this version of CUDA.
    pub fn advice_for(&self, driver: Option<Version>) -> String {
        let supported =
            driver.map(|Version { major, minor }| LibraryVersion { major, minor: Some(minor), patch: None });
        let package = HeaderPackage::Runtime.requirement(self.nvrtc.or(supported));
        format!(
            "`pip install {package}`, or set {INCLUDE_VARIABLE} to the `include` folder of a CUDA toolkit"
        )
    }
}

impl ToolkitHeaders {
    /// Those that CUDA C of this process includes, found without loading NVRTC. A failure is not remembered; the next call
    /// looks again.
    ///
    /// # Errors
    /// They are not there.
    pub fn of_process() -> Result<&'static Self, HeadersNotFound> {
        static FOUND: OnceLock<ToolkitHeaders> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let environment = SearchEnvironment::of_process();
        let nvrtc = environment.find(LibraryKind::Nvrtc).ok();
        let path = nvrtc.as_ref().map(|nvrtc| nvrtc.path.as_path());
        let found = environment.find_headers(path, nvrtc.as_ref().and_then(|nvrtc| nvrtc.version))?;
        Ok(FOUND.get_or_init(|| found))
    }

    /// Text that headers of another toolkit, or another place, do not have: what a cache of compiled code goes by.
    pub fn identity(&self) -> String {
        let changed =
            |folder: &PathBuf| folder.join(MARKER).metadata().and_then(|about| about.modified()).ok();
        let changed = self.folders.first().and_then(changed);
        let changed = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        format!("{self}, {}", changed.map_or(0, |time| time.as_nanos()))
    }
}

impl fmt::Display for ToolkitHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CUDA headers")?;
        if let Some(version) = self.version {
            write!(f, " {version}")?;
        }
        let folders: Vec<_> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        write!(f, " at {} ({})", folders.join(" and "), self.origin)
    }
}

impl SearchEnvironment {
    /// Looks for the headers that belong to an NVRTC, by its file and its version, as far as they are known.
    ///
    /// # Errors
    /// [`HeadersNotFound`] says where they were looked for and how to get them.
    pub fn find_headers(
        &self,
        nvrtc: Option<&Path>,
        version: Option<LibraryVersion>,
    ) -> Result<ToolkitHeaders, HeadersNotFound> {
        let mut tried = Vec::new();
        if let Some(folder) = self.folder_variable(INCLUDE_VARIABLE) {
            let found = accept(&folder, LibraryOrigin::Configured, None, &mut tried);
            return found.ok_or(HeadersNotFound { tried, nvrtc: version });
        }
        for (origin, folder) in self.header_places(nvrtc) {
            if let Some(found) = accept(&folder, origin, version, &mut tried) {
                return Ok(found);
            }
        }
        Err(HeadersNotFound { tried, nvrtc: version })
    }

    /// All folders to look into, in order, each once. What is no folder is left out, unless a variable leads there.
    fn header_places(&self, nvrtc: Option<&Path>) -> Vec<(LibraryOrigin, PathBuf)> {
        let real = nvrtc.and_then(|nvrtc| nvrtc.canonicalize().ok());
        let beside = nvrtc.into_iter().chain(real.as_deref()).flat_map(beside);
        let mut all: Vec<(LibraryOrigin, PathBuf)> =
            beside.map(|folder| (LibraryOrigin::BesideNvrtc, folder)).collect();
        for (origin, root) in self.toolkit_roots() {
            all.extend(TOOLKIT_FOLDERS.map(|folder| (origin, root.join(folder))));
        }
        let mut places: Vec<(LibraryOrigin, PathBuf)> = Vec::new();
        for (origin, folder) in all {
            let is_known = places.iter().any(|(_, known)| *known == folder);
            if !is_known && (folder.is_dir() || origin == LibraryOrigin::CudaHome) {
                places.push((origin, folder));
            }
        }
        places
    }
}

/// The header folders that belong to the library folder of an NVRTC: of the toolkit or package it is part of, and of the
/// packages beside that.
fn beside(nvrtc: &Path) -> Vec<PathBuf> {
    let Some(root) = nvrtc.parent().and_then(Path::parent) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = TOOLKIT_FOLDERS.map(|folder| root.join(folder)).into();
    match root.parent() {
        Some(packages) if file_name(packages) == PACKAGES_FOLDER => {
            folders.extend(entries(packages).into_iter().map(|package| package.join("include")));
        }
        // Debian's libraries lie one folder deeper than its headers.
        Some(above) => folders.push(above.join("include")),
        None => {}
    }
    folders
}

/// A folder, if it has the toolkit's headers and they are of NVRTC's major version.
fn accept(
    folder: &Path,
    origin: LibraryOrigin,
    nvrtc: Option<LibraryVersion>,
    tried: &mut Vec<SearchedPlace>,
) -> Option<ToolkitHeaders> {
    let mut refuse = |why: String| {
        tried.push(SearchedPlace::other(folder, why));
        None
    };
    if !folder.join(MARKER).is_file() {
        return refuse(if folder.is_dir() { format!("has no {MARKER}") } else { "is no folder".into() });
    }
    let version = read_version(folder);
    if let (Some(version), Some(nvrtc)) = (version, nvrtc)
        && version.major != nvrtc.major
    {
        return refuse(format!("is of CUDA {version}, and NVRTC is of CUDA {nvrtc}"));
    }
    let mut folders = vec![folder.to_owned(), folder.join(CCCL_FOLDER)];
    if let Some(packages) =
        folder.parent().and_then(Path::parent).filter(|it| file_name(it) == PACKAGES_FOLDER)
    {
        folders.extend(SIBLING_PACKAGES.map(|package| packages.join(package).join("include")));
    }
    folders.retain(|folder| folder.is_dir());
    Some(ToolkitHeaders { folders, version, origin })
}

/// The version that the headers in a folder say, such as 13000 for 13.0.
fn read_version(folder: &Path) -> Option<Version> {
    let text = std::fs::read(folder.join(VERSION_HEADER)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let number: u32 = text.lines().find_map(|line| line.strip_prefix(VERSION_MACRO)?.trim().parse().ok())?;
    Some(Version { major: number / 1000, minor: number % 1000 / 10 })
}

/// A Python package with headers of the toolkit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderPackage {
    /// `cuda_fp16.h`, `cooperative_groups.h`, `mma.h` and most others.
    Runtime,
    /// `crt/mma.h` and others that those of the runtime include.
    Crt,
    /// `cub`, `thrust`, `cuda/std`, `nv/target`.
    Cccl,
    /// `curand_kernel.h`.
    Curand,
}

impl HeaderPackage {
    /// The package of a header, if its name is one of the toolkit's.
    pub(crate) fn of(header: &str) -> Option<Self> {
        const CCCL: [&str; 4] = ["cub/", "thrust/", "cuda/", "nv/"];
        const RUNTIME_NAMES: [&str; 8] = [
            "cuda.h",
            "cuda_",
            "cooperative_groups",
            "device_",
            "math_constants.h",
            "mma.h",
            "sm_",
            "vector_",
        ];
        let begins = |names: &[&str]| names.iter().any(|name| header.starts_with(name));
        match header {
            _ if begins(&CCCL) => Some(Self::Cccl),
            _ if header.starts_with("crt/") => Some(Self::Crt),
            _ if header.starts_with("curand") => Some(Self::Curand),
            _ if begins(&RUNTIME_NAMES) => Some(Self::Runtime),
            _ => None,
        }
    }

    /// What pip is asked for, for the version of an NVRTC. Packages carry the major version in their names up to CUDA 12.
    pub(crate) fn requirement(self, nvrtc: Option<LibraryVersion>) -> String {
        let name = match self {
            Self::Runtime => "nvidia-cuda-runtime",
            Self::Crt if nvrtc.is_some_and(|nvrtc| nvrtc.major < 13) => "nvidia-cuda-nvcc",
            Self::Crt => "nvidia-cuda-crt",
            Self::Cccl => "nvidia-cuda-cccl",
            Self::Curand => "nvidia-curand",
        };
        let Some(LibraryVersion { major, minor, .. }) = nvrtc else { return name.into() };
        let name = if major < 13 { format!("{name}-cu{major}") } else { name.into() };
        match (self, minor) {
            // cuRAND counts its versions in another way.
            (Self::Curand, _) | (_, None) => name,
            (_, Some(minor)) => format!("'{name}=={major}.{minor}.*'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_as_the_registry_names_them() {
        let version = |major, minor| Some(LibraryVersion { major, minor, patch: None });
        let runtime = |version| HeaderPackage::Runtime.requirement(version);
        assert_eq!(runtime(version(13, Some(0))), "'nvidia-cuda-runtime==13.0.*'");
        assert_eq!(runtime(version(12, Some(4))), "'nvidia-cuda-runtime-cu12==12.4.*'");
        assert_eq!(runtime(version(13, None)), "nvidia-cuda-runtime");
        assert_eq!(runtime(None), "nvidia-cuda-runtime");
        assert_eq!(HeaderPackage::Crt.requirement(version(13, Some(1))), "'nvidia-cuda-crt==13.1.*'");
        assert_eq!(HeaderPackage::Crt.requirement(version(12, None)), "nvidia-cuda-nvcc-cu12");
        assert_eq!(HeaderPackage::Curand.requirement(version(12, Some(4))), "nvidia-curand-cu12");
    }

    #[test]
    fn headers_are_told_apart_by_their_names() {
        for (header, package) in [
            ("cuda_fp16.h", Some(HeaderPackage::Runtime)),
            ("cooperative_groups/reduce.h", Some(HeaderPackage::Runtime)),
            ("crt/mma.h", Some(HeaderPackage::Crt)),
            ("cuda/std/atomic", Some(HeaderPackage::Cccl)),
            ("cub/cub.cuh", Some(HeaderPackage::Cccl)),
            ("curand_kernel.h", Some(HeaderPackage::Curand)),
            ("mine.h", None),
            ("", None),
        ] {
            assert_eq!(HeaderPackage::of(header), package, "{header}");
        }
    }
}
