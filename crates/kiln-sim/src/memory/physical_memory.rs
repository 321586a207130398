//! Physical memory and the access history of its bytes, independent of its addresses.
//!
//! Pages can be mapped twice, and a host block has no device address at all, so the history of bytes belongs to the
//! memory and not to an address.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::SharedBytes;

use crate::check::byte_shadow::Shadow;
use crate::memory::page_file::PageFile;

/// A piece of memory with its history.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) bytes: Arc<SharedBytes>,
    shadow: Mutex<Shadow>,
    /// The file behind it, if it can be exported.
    pub(crate) file: Option<PageFile>,
    _charge: Option<Charge>,
}

impl Physical {
    pub(crate) fn new(bytes: Arc<SharedBytes>, shadow: Shadow, charge: Option<Charge>) -> Self {
        Self { bytes, shadow: Mutex::new(shadow), file: None, _charge: charge }
    }

    pub(crate) fn with_file(self, file: PageFile) -> Self {
        Self { file: Some(file), ..self }
    }

    pub(crate) fn shadow(&self) -> MutexGuard<'_, Shadow> {
        self.shadow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a device that are in use until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    used_bytes: Arc<AtomicU64>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(used_bytes: &Arc<AtomicU64>, bytes: u64) -> Self {
        used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { used_bytes: used_bytes.clone(), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
