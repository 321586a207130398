//! NVIDIA's other libraries: whether one is there, where, and which version.
//!
//! Nothing is loaded to find one; [`FoundLibrary::load`] loads it, and asks it for its version. A library counts as found when a file of its name exists and is a shared library for
//! this machine; everything else is [`MissingLibrary`], with what was looked at and how to get it. The places, in order:
//! what the process has loaded already, the path a `KILN_...` variable names, `CUDA_HOME` and `CUDA_PATH`, the
//! loader's own folders, the packages of the active Python environment, conda, and the usual installation folders.

mod elf;
mod found_library;
mod headers;
mod kind;
mod load;
mod loader_paths;
mod search;
mod search_environment;
mod version;

pub use found_library::{FoundLibrary, LibraryOrigin, MissingLibrary, SearchedPlace};
pub(crate) use headers::HeaderPackage;
pub use headers::{HeadersNotFound, ToolkitHeaders};
pub use kind::LibraryKind;
pub use search_environment::SearchEnvironment;
pub use version::LibraryVersion;
