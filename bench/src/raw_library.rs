//! NVIDIA's libraries called directly, in the same process: what library calls through kiln are measured against.
//!
//! Each is the file that kiln uses, opened at run time. Handles and plans live as long as the process.

pub(crate) mod cublaslt;
pub(crate) mod cufft;
pub(crate) mod cusolver;
pub(crate) mod cusparse;
pub(crate) mod nccl;

use kiln_cuda::{LibraryKind, SearchEnvironment};
use libloading::Library;

use crate::Failure;

/// Opens a library for the rest of the process.
fn open(kind: LibraryKind) -> Result<&'static Library, Failure> {
    let found = SearchEnvironment::of_process().find(kind).map_err(|missing| missing.to_string())?;
    // SAFETY: running the initialisers of the library is what the caller asked for. It is never unloaded.
    let library = unsafe { Library::new(&found.path) }?;
    Ok(Box::leak(Box::new(library)))
}

/// Refuses what a library did not do well.
fn check(call: &str, status: i32) -> Result<(), Failure> {
    if status == 0 { Ok(()) } else { Err(format!("{call} answered {status}").into()) }
}

/// A table of entry points of a library.
macro_rules! entry_points {
    ($table:ident of $kind:expr => { $($name:ident = $symbol:literal ($($argument:ty),* $(,)?);)* }) => {
        pub(super) struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> i32,)*
        }

        impl $table {
            fn load() -> Result<Self, crate::Failure> {
                let library = super::open($kind)?;
                Ok(Self {
                    // SAFETY: the signature is the one the library's header declares for this symbol, and the library is never unloaded.
                    $($name: *unsafe { library.get($symbol.as_bytes()) }?,)*
                })
            }
        }
    };
}
use entry_points;
