//! Entry points of a library, looked up one by one when it is first used.

use std::mem::ManuallyDrop;

use kiln_driver::{Error, Refusal, Result};

use crate::dynamic_library::Library;
use crate::libraries::{LibraryKind, LibraryVersion, SearchEnvironment};

/// Finds and opens a library. It is never unloaded. One that kiln cannot use because it is too old is refused before it is opened where names tell its version,
/// otherwise by what it says of itself.
pub(super) fn open(call: &'static str, kind: LibraryKind) -> Result<ManuallyDrop<Library>> {
    let opened = SearchEnvironment::of_process().find(kind).and_then(|found| found.open());
    opened.map(|(library, _)| library).map_err(|missing| refused(call, kind, missing.to_string()))
}

/// Refuses a version that kiln cannot use.
pub(super) fn check_version(call: &'static str, kind: LibraryKind, version: LibraryVersion) -> Result<()> {
    let Some(why) = kind.too_old(version) else { return Ok(()) };
    Err(refused(call, kind, format!("{} is {why}; {}", at(kind), kind.advice())))
}

/// The error for a library without an entry point: it is too old, or not whole.
pub(super) fn incomplete(call: &'static str, kind: LibraryKind, symbol: &str) -> Error {
    let having = match kind {
        LibraryKind::Cudnn => "cuDNN 9 has",
        LibraryKind::Nccl => "NCCL 2.18 has",
        _ => "CUDA 12 and newer have",
    };
    refused(call, kind, format!("{} has no `{symbol}`, which {having}; {}", at(kind), kind.advice()))
}

fn refused(call: &'static str, kind: LibraryKind, why: String) -> Error {
    Error::refused(call, Refusal::Library { library: kind.name(), why })
}

/// A library that was opened, with its file.
fn at(kind: LibraryKind) -> String {
    match SearchEnvironment::of_process().find(kind) {
        Ok(found) => format!("{kind} at {}", found.path.display()),
        Err(_) => kind.to_string(),
    }
}

/// What an entry point returns: a status, unless it says something else.
macro_rules! returned {
    () => {
        i32
    };
    ($type:ty) => {
        $type
    };
}
pub(super) use returned;

/// A table of entry points that is loaded once for the process. A failure is not remembered.
macro_rules! entry_points {
    ($(#[$note:meta])* $table:ident of $kind:expr => { $($name:ident = $symbol:literal ($($argument:ty),* $(,)?) $(-> $answer:ty)?;)* }) => {
        $(#[$note])*
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> crate::operation::symbol_lookup::returned!($($answer)?),)*
        }

        impl $table {
            pub(super) fn load(call: &'static str) -> kiln_driver::Result<&'static Self> {
                static LOADED: std::sync::OnceLock<$table> = std::sync::OnceLock::new();
                if let Some(table) = LOADED.get() {
                    return Ok(table);
                }
                let library = crate::operation::symbol_lookup::open(call, $kind)?;
                let table = Self {
                    // SAFETY: the signature is the one the library's header declares for this symbol, and the library is never unloaded.
                    $($name: *unsafe { library.get($symbol) }
                        .map_err(|_| crate::operation::symbol_lookup::incomplete(call, $kind, $symbol))?,)*
                };
                Ok(LOADED.get_or_init(|| table))
            }
        }
    };
}
pub(super) use entry_points;
