//! Which libraries kiln knows, and what each is called where.

use std::fmt;
use std::path::Path;

use kiln_driver::Version;

use super::version::{LibraryVersion, VersionCall};

/// One of NVIDIA's libraries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum LibraryKind {
    /// Compiles CUDA C at run time.
    Nvrtc,
    /// Dense linear algebra.
    Cublas,
    /// Matrix products with fused steps.
    CublasLt,
    /// Fourier transforms.
    Cufft,
    /// Neural network primitives.
    Cudnn,
    /// Decompositions and solvers.
    Cusolver,
    /// Sparse linear algebra.
    Cusparse,
    /// Random numbers.
    Curand,
    /// Collectives between devices.
    Nccl,
    /// When work ran, for recordings that ask for it.
    Cupti,
}

impl LibraryKind {
    /// All whose operations a program may need. CUPTI is not among them: it only watches.
    pub const ALL: [Self; 9] = [
        Self::Nvrtc,
        Self::Cublas,
        Self::CublasLt,
        Self::Cufft,
        Self::Cudnn,
        Self::Cusolver,
        Self::Cusparse,
        Self::Curand,
        Self::Nccl,
    ];

    /// The name people use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvrtc => "NVRTC",
            Self::Cublas => "cuBLAS",
            Self::CublasLt => "cuBLASLt",
            Self::Cufft => "cuFFT",
            Self::Cudnn => "cuDNN",
            Self::Cusolver => "cuSOLVER",
            Self::Cusparse => "cuSPARSE",
            Self::Curand => "cuRAND",
            Self::Nccl => "NCCL",
            Self::Cupti => "CUPTI",
        }
    }

    /// The name of the file, before the version.
    pub fn file_stem(self) -> &'static str {
        match self {
            Self::Nvrtc => "libnvrtc.so",
            Self::Cublas => "libcublas.so",
            Self::CublasLt => "libcublasLt.so",
            Self::Cufft => "libcufft.so",
            Self::Cudnn => "libcudnn.so",
            Self::Cusolver => "libcusolver.so",
            Self::Cusparse => "libcusparse.so",
            Self::Curand => "libcurand.so",
            Self::Nccl => "libnccl.so",
            Self::Cupti => "libcupti.so",
        }
    }

    /// The environment variable that names its file or folder.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Nvrtc => "KILN_NVRTC",
            Self::Cublas => "KILN_CUBLAS",
            Self::CublasLt => "KILN_CUBLASLT",
            Self::Cufft => "KILN_CUFFT",
            Self::Cudnn => "KILN_CUDNN",
            Self::Cusolver => "KILN_CUSOLVER",
            Self::Cusparse => "KILN_CUSPARSE",
            Self::Curand => "KILN_CURAND",
            Self::Nccl => "KILN_NCCL",
            Self::Cupti => "KILN_CUPTI",
        }
    }

    /// The Python package that brings it, for CUDA 13.
    pub fn python_package(self) -> &'static str {
        match self {
            Self::Nvrtc => "nvidia-cuda-nvrtc",
            Self::Cublas | Self::CublasLt => "nvidia-cublas",
            Self::Cufft => "nvidia-cufft",
            Self::Cudnn => "nvidia-cudnn-cu13",
            Self::Cusolver => "nvidia-cusolver",
            Self::Cusparse => "nvidia-cusparse",
            Self::Curand => "nvidia-curand",
            Self::Nccl => "nvidia-nccl-cu13",
            Self::Cupti => "nvidia-cuda-cupti",
        }
    }

    /// The package for a driver that supports this version of CUDA. A driver does not load the code of a newer compiler, and libraries need a
    /// driver of the same major version or a newer one. Without a driver the compiler is the one that kiln is tested with.
    fn python_requirement(self, driver: Option<Version>) -> String {
        let package = self.python_package();
        let package = match driver {
            Some(Version { major, .. }) if major < 13 => {
                format!("{}-cu{major}", package.strip_suffix("-cu13").unwrap_or(package))
            }
            _ => package.to_owned(),
        };
        match (self, driver) {
            (Self::Nvrtc, Some(Version { major, minor })) => format!("'{package}=={major}.{minor}.*'"),
            (Self::Nvrtc, None) => format!("{package}==13.0.88"),
            _ => package,
        }
    }

    /// How to get it where it is missing.
    pub fn advice(self) -> String {
        self.advice_for(None)
    }

    /// How to get one that fits a driver which supports this version of CUDA.
    pub fn advice_for(self, driver: Option<Version>) -> String {
        format!(
            "install the CUDA toolkit or `pip install {}`, or set {} to its file or folder",
            self.python_requirement(driver),
            self.variable()
        )
    }

    /// The oldest version that kiln can use, if kiln calls it:
    ///
    /// | library | why not an older one |
    /// |---|---|
    /// | NVRTC 11.2 | `nvrtcGetSupportedArchs` |
    /// | cuBLAS 12.0 | functions that count in 64 bits |
    /// | cuBLASLt 12.0 | the two are one release |
    /// | cuFFT 11.0, cuSOLVER 11.4.2, cuSPARSE 12.0 | those of CUDA 12.0; kiln is not tested with older ones |
    /// | cuDNN 9.0 | `cudnnGetLastErrorString` |
    /// | NCCL 2.18 | the configuration of a communicator |
    pub fn oldest_version(self) -> Option<LibraryVersion> {
        let (major, minor, patch) = match self {
            Self::Nvrtc => (11, 2, None),
            Self::Cublas | Self::CublasLt | Self::Cusparse => (12, 0, None),
            Self::Cufft => (11, 0, None),
            Self::Cudnn => (9, 0, None),
            Self::Cusolver => (11, 4, Some(2)),
            Self::Nccl => (2, 18, None),
            Self::Curand | Self::Cupti => return None,
        };
        Some(LibraryVersion { major, minor: Some(minor), patch })
    }

    /// What one that the process has loaded says of its version.
    pub(crate) fn loaded_version(self, path: &Path) -> Option<LibraryVersion> {
        LibraryVersion::of_loaded(path, self.version_call())
    }

    /// What is wrong with a version, if it is older than kiln can use.
    pub(crate) fn too_old(self, version: LibraryVersion) -> Option<String> {
        let oldest = self.oldest_version().filter(|oldest| version.is_before(*oldest))?;
        Some(format!("too old: version {version}, kiln needs {oldest} or newer"))
    }

    /// How the metadata folders of its Python packages begin, for any CUDA version.
    pub(super) fn python_metadata(self) -> &'static str {
        match self {
            Self::Nvrtc => "nvidia_cuda_nvrtc",
            Self::Cublas | Self::CublasLt => "nvidia_cublas",
            Self::Cufft => "nvidia_cufft",
            Self::Cudnn => "nvidia_cudnn",
            Self::Cusolver => "nvidia_cusolver",
            Self::Cusparse => "nvidia_cusparse",
            Self::Curand => "nvidia_curand",
            Self::Nccl => "nvidia_nccl",
            Self::Cupti => "nvidia_cuda_cupti",
        }
    }

    /// How a loaded one tells its version.
    pub(super) fn version_call(self) -> VersionCall {
        match self {
            Self::Nvrtc => VersionCall::Pair("nvrtcVersion"),
            Self::Cublas => VersionCall::Property("cublasGetProperty"),
            Self::CublasLt => VersionCall::Property("cublasLtGetProperty"),
            Self::Cufft => VersionCall::Property("cufftGetProperty"),
            Self::Cudnn => VersionCall::Property("cudnnGetProperty"),
            Self::Cusolver => VersionCall::Property("cusolverGetProperty"),
            Self::Cusparse => VersionCall::Property("cusparseGetProperty"),
            Self::Curand => VersionCall::Property("curandGetProperty"),
            Self::Nccl => VersionCall::Decimal("ncclGetVersion"),
            Self::Cupti => VersionCall::None,
        }
    }

    /// An entry point that each version has which kiln can use, for libraries that kiln calls.
    pub(super) fn first_symbol(self) -> Option<&'static str> {
        match self {
            Self::Nvrtc => Some("nvrtcGetSupportedArchs"),
            Self::Cublas => Some("cublasCreate_v2"),
            Self::CublasLt => Some("cublasLtCreate"),
            Self::Cufft => Some("cufftCreate"),
            Self::Cudnn => Some("cudnnCreate"),
            Self::Cusolver => Some("cusolverDnCreate"),
            Self::Cusparse => Some("cusparseCreate"),
            Self::Nccl => Some("ncclGetUniqueId"),
            Self::Curand | Self::Cupti => None,
        }
    }

    /// Whether a file name is one of this library's: its stem, with or without a version.
    pub(super) fn owns(self, file_name: &str) -> bool {
        match file_name.strip_prefix(self.file_stem()) {
            Some("") => true,
            Some(rest) => {
                rest.starts_with('.') && rest[1..].starts_with(|first: char| first.is_ascii_digit())
            }
            None => false,
        }
    }
}

impl fmt::Display for LibraryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
