//! Shared libraries that are loaded at run time, with the flags of the system's loader.

use std::ffi::c_int;
use std::path::Path;

#[cfg(unix)]
pub(crate) use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
#[cfg(not(unix))]
pub(crate) use libloading::os::windows::Library;

/// Loads what is needed when it is called.
pub(crate) const RTLD_LAZY: c_int = 1;
/// Only what is loaded already.
pub(crate) const RTLD_NOLOAD: c_int = 4;
#[cfg(not(unix))]
pub(crate) const RTLD_NOW: c_int = 2;
#[cfg(not(unix))]
pub(crate) const RTLD_GLOBAL: c_int = 0x100;
#[cfg(not(unix))]
pub(crate) const RTLD_LOCAL: c_int = 0;

/// Why the loader does not load a library, in its own words.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Opens a library.
///
/// # Safety
/// Its initialisers run in this process.
#[cfg(unix)]
pub(crate) unsafe fn open(path: &Path, flags: c_int) -> Result<Library, libloading::Error> {
    // SAFETY: the caller vouches for the initialisers.
    unsafe { Library::open(Some(path), flags) }
}

/// Opens a library; this loader has no such flags, and only finds what is loaded already if that is asked for.
///
/// # Safety
/// Its initialisers run in this process.
#[cfg(not(unix))]
pub(crate) unsafe fn open(path: &Path, flags: c_int) -> Result<Library, libloading::Error> {
    if flags & RTLD_NOLOAD != 0 {
        return Library::open_already_loaded(path);
    }
    // SAFETY: the caller vouches for the initialisers.
    unsafe { Library::new(path) }
}
