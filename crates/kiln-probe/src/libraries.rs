//! NVIDIA's other libraries: found or not, with path and version.
//!
//! Nothing is loaded to find out, and a missing one is an ordinary answer with the places that were looked at and the way
//! to get it. It is looked for in what the process has loaded already, where a `KILN_...` variable points, in `CUDA_HOME`
//! and `CUDA_PATH`, in the system's folders, in the packages of the active Python environment, in conda, and in the
//! usual folders of the toolkit, in this order.
//!
//! ```
//! use kiln::libraries::{self, Library};
//!
//! match libraries::find(Library::Nvrtc) {
//!     Ok(found) => println!("{found}"),
//!     Err(missing) => println!("{missing}"),
//! }
//! assert_eq!(libraries::find_all().len(), Library::ALL.len());
//! ```

use std::path::PathBuf;

use kiln_cuda::SearchEnvironment;
use kiln_driver::Version;

use crate::cuda_init_error::unavailable;
use crate::error::Result as ProbeResult;

pub use kiln_cuda::nvrtc::{HeadersNotFound, ToolkitHeaders};
pub use kiln_cuda::{
    FoundLibrary, LibraryKind as Library, LibraryOrigin, LibraryVersion, MissingLibrary, SearchedPlace,
};

/// The driver's own library, as this process has loaded it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverLibrary {
    /// The name or path it was opened by.
    pub name: String,
    /// Its file, where the loader can tell.
    pub path: Option<PathBuf>,
    /// The CUDA version that it supports.
    pub version: Version,
}

/// Loads and starts the driver's library, unless that was done before. No device is opened.
///
/// # Errors
/// Absence, or a fault. Nothing is kept: the next call tries again.
pub fn driver() -> ProbeResult<DriverLibrary> {
    let library = kiln_cuda::Libcuda::load().map_err(unavailable)?;
    Ok(DriverLibrary { name: library.name().into(), path: library.path(), version: library.version() })
}

/// Looks for a library, as the process and the machine are now.
///
/// # Errors
/// It is not there.
pub fn find(library: Library) -> Result<FoundLibrary, MissingLibrary> {
    SearchEnvironment::of_process().find(library)
}

/// Looks for the headers of the CUDA toolkit, which CUDA C may include.
///
/// # Errors
/// They are not there.
pub fn headers() -> Result<&'static ToolkitHeaders, HeadersNotFound> {
    ToolkitHeaders::of_process()
}

/// Looks for all of them, in the order of [`Library::ALL`].
pub fn find_all() -> Vec<Result<FoundLibrary, MissingLibrary>> {
    let surroundings = SearchEnvironment::of_process();
    Library::ALL.iter().map(|library| surroundings.find(*library)).collect()
}
