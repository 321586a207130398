//! The compiler itself, loaded.

use std::ffi::c_int;
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kiln_driver::{Capability, Version};

use super::architecture::Architecture;
use super::error::NvrtcError;
use super::include_hint;
use super::options::{CompileOptions, CompileTarget};
use super::program::{Compilation, Compiled, check};
use super::source::CudaSource;
use super::standard_headers::with_standard;
use super::symbols::Api;
use crate::dynamic_library::{self, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use crate::libraries::{HeadersNotFound, LibraryKind, SearchEnvironment, ToolkitHeaders};

/// NVRTC, loaded. Any number of threads may compile with it at once.
///
/// ```
/// use kiln_cuda::nvrtc::{Architecture, CompileOptions, CudaSource, Nvrtc, CompileTarget};
///
/// const SOURCE: &str = "
///     template <typename T> __global__ void scale(T* data, T factor) { data[threadIdx.x] *= factor; }";
/// let mut options = CompileOptions::new(CompileTarget::Ptx(Architecture::new(80)));
/// options.names.push("scale<float>".into());
/// match Nvrtc::load().and_then(|nvrtc| nvrtc.compile(&CudaSource::new("scale.cu", SOURCE), &options)) {
///     Ok(compiled) => assert!(compiled.ptx.contains(&compiled.names[0].1)),
///     Err(reason) => assert!(reason.is_missing(), "{reason}"),
/// }
/// ```
pub struct Nvrtc {
    api: Api,
    path: PathBuf,
    version: Version,
    architectures: Vec<Architecture>,
    headers: OnceLock<ToolkitHeaders>,
}

impl Nvrtc {
    /// Finds NVRTC and loads it, once for the process. A failure is not remembered; the next call tries again.
    ///
    /// # Errors
    /// Missing, with where it was looked for and how to get it; or a file that cannot be used.
    pub fn load() -> Result<&'static Self, NvrtcError> {
        static LOADED: OnceLock<Nvrtc> = OnceLock::new();
        if let Some(nvrtc) = LOADED.get() {
            return Ok(nvrtc);
        }
        let found = SearchEnvironment::of_process().find(LibraryKind::Nvrtc)?;
        // A file that does not load, or is too old, is told as one that a search finds.
        let _ = found.open()?;
        let nvrtc = Self::open(&found.path)?;
        Ok(LOADED.get_or_init(|| nvrtc))
    }

    /// Loads NVRTC from a file.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn open(path: &Path) -> Result<Self, NvrtcError> {
        let unusable = |why: String| NvrtcError::Unusable { path: path.to_owned(), why };
        // SAFETY: running the initialisers of NVRTC is what the caller asked for. It is never unloaded.
        let library = unsafe { dynamic_library::open(path, RTLD_NOW | RTLD_LOCAL) };
        let library = ManuallyDrop::new(library.map_err(|error| unusable(dynamic_library::reason(&error)))?);
        if let Some(why) =
            LibraryKind::Nvrtc.loaded_version(path).and_then(|version| LibraryKind::Nvrtc.too_old(version))
        {
            return Err(unusable(format!("it is {why}")));
        }
        let api = Api::resolve(&library).map_err(|symbol| unusable(format!("it has no `{symbol}`")))?;
        let version = read_version(&api)?;
        load_builtins(path, version);
        let architectures = read_architectures(&api)?;
        Ok(Self { api, path: path.to_owned(), version, architectures, headers: OnceLock::new() })
    }

    /// Its version, which is that of the toolkit it belongs to.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it can compile for, in order.
    pub fn architectures(&self) -> &[Architecture] {
        &self.architectures
    }

    /// What to compile for so that a device can run it: machine code if this NVRTC knows the device's architecture,
    /// PTX for the newest one before it if not, and nothing if it only knows newer ones.
    pub fn target_for(&self, capability: Capability) -> Option<CompileTarget> {
        let wanted = Architecture::from(capability);
        if self.architectures.contains(&wanted) {
            return Some(CompileTarget::Cubin(wanted));
        }
        self.architectures.iter().rev().find(|known| **known < wanted).map(|known| CompileTarget::Ptx(*known))
    }

    /// The headers of the toolkit this NVRTC belongs to, which a source may include. They are looked for at the first call; a
    /// failure is not remembered.
    ///
    /// # Errors
    /// They are not there.
    pub fn headers(&self) -> Result<&ToolkitHeaders, HeadersNotFound> {
        if let Some(headers) = self.headers.get() {
            return Ok(headers);
        }
        let found =
            SearchEnvironment::of_process().find_headers(Some(&self.path), Some(self.version.into()))?;
        Ok(self.headers.get_or_init(|| found))
    }

    /// Compiles a source. If it includes anything, headers are looked for in memory, in the folders of the options, among the
    /// [standard headers](super::standard_headers), and in the folders of the [toolkit](Self::headers), in this order.
    ///
    /// # Errors
    /// The source's errors with their places, and how to get a header that was not found; an architecture this NVRTC
    /// does not know.
    pub fn compile(&self, source: &CudaSource<'_>, options: &CompileOptions) -> Result<Compiled, NvrtcError> {
        let asked = options.target.architecture();
        if !self.architectures.iter().any(|known| known.number() == asked.number()) {
            return Err(NvrtcError::UnknownArchitecture { asked, known: self.architectures.clone() });
        }
        if !source.may_include() && options.include_folders.is_empty() {
            return Compilation::new(&self.api, source)?.run(source, options, None);
        }
        let in_memory = with_standard(source, options);
        let source = &CudaSource { headers: &in_memory, ..*source };
        let headers = self.headers();
        let compiled =
            Compilation::new(&self.api, source)?.run(source, options, headers.as_ref().ok().copied());
        compiled.map_err(|error| match error {
            NvrtcError::Compile(failure) => {
                include_hint::with_hint(failure, &headers, self.version.into()).into()
            }
            error => error,
        })
    }
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC {} at {}", self.version, self.path.display())
    }
}

fn read_version(api: &Api) -> Result<Version, NvrtcError> {
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: both out-parameters are live locals.
    let status = unsafe { (api.version)(&mut major, &mut minor) };
    check(api, "nvrtcVersion", status)?;
    Ok(Version { major: u32::try_from(major).unwrap_or(0), minor: u32::try_from(minor).unwrap_or(0) })
}

fn read_architectures(api: &Api) -> Result<Vec<Architecture>, NvrtcError> {
    let mut count: c_int = 0;
    // SAFETY: the out-parameter is a live local.
    let status = unsafe { (api.architecture_count)(&mut count) };
    check(api, "nvrtcGetNumSupportedArchs", status)?;
    let mut numbers: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the call writes as many numbers as the one before said there are.
    let status = unsafe { (api.architectures)(numbers.as_mut_ptr()) };
    check(api, "nvrtcGetSupportedArchs", status)?;
    let mut known: Vec<Architecture> =
        numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).map(Architecture::new).collect();
    known.sort();
    Ok(known)
}

/// NVRTC asks the loader for a second library by name when it compiles, and the loader does not look beside the
/// first one. One that is loaded already is found by its name, so the one beside is loaded here. Where there is none
/// the loader's own search decides.
fn load_builtins(nvrtc: &Path, version: Version) {
    let name = format!("libnvrtc-builtins.so.{}.{}", version.major, version.minor);
    let real = nvrtc.canonicalize().unwrap_or_else(|_| nvrtc.to_owned());
    let beside = [nvrtc, &real].into_iter().filter_map(|path| Some(path.parent()?.join(&name)));
    if let Some(path) = beside.into_iter().find(|path| path.is_file()) {
        // SAFETY: the library holds data for NVRTC and has no initialisers with preconditions. It is never unloaded.
        std::mem::forget(unsafe { dynamic_library::open(&path, RTLD_NOW | RTLD_GLOBAL) });
    }
}
