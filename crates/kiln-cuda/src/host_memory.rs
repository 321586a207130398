//! Host memory the device can reach.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use kiln_driver::{Code, Error, HostBlock, Refusal, Result, SharedBytes};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::native_handle::Native;

/// A host block as a handle finds it.
pub(crate) struct Host {
    bytes: Arc<SharedBytes>,
    /// Undone with the handle, before the bytes are released.
    _registration: Option<Registration>,
}

/// Pinned memory that the driver allocated, freed when nothing holds the bytes any more.
struct Pinned {
    start: Native<c_void>,
    context: Arc<Context>,
}

/// Memory of the caller that the driver has pinned.
struct Registration {
    bytes: Arc<SharedBytes>,
    context: Arc<Context>,
}

impl CudaDevice {
    pub(crate) fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        const CALL: &str = "allocate_host";
        let api = self.context.enter(CALL)?;
        if bytes == 0 {
            return Err(Error::invalid(CALL, "zero bytes", "ask for at least one"));
        }
        let len = isize::try_from(bytes).map_err(|_| Error::out_of_memory(CALL, bytes, None))?.unsigned_abs();
        let mut pointer: Native<c_void> = Native::NULL;
        // SAFETY: the out-parameter is a live local and the context is current.
        let allocate = || unsafe { (api.host_allocate)(pointer.slot(), len, convert::PORTABLE_HOST) };
        let status = self.context.allocate_after_frees(&self.clock, allocate);
        let start = match (status, NonNull::new(pointer.raw())) {
            (0, Some(start)) => start,
            (0, None) => return Err(Error::out_of_memory(CALL, bytes, None)),
            (status, _) => match Code(status) {
                // The size is the only argument, so it is too large.
                Code::OUT_OF_MEMORY | Code::INVALID_VALUE | Code::OPERATING_SYSTEM => {
                    return Err(Error::out_of_memory(CALL, bytes, None));
                }
                _ => return Err(self.context.failure(CALL, status, None)),
            },
        };
        let pinned = Pinned { start: pointer, context: self.context.clone() };
        // SAFETY: the driver gave `len` bytes to this call alone, readable and writable until `pinned` is dropped, which
        // the shared bytes own; nothing else points to them.
        let bytes = unsafe {
            start.cast::<u8>().write_bytes(0, len);
            SharedBytes::from_raw(start.cast(), len, Box::new(pinned))
        };
        let bytes = Arc::new(bytes);
        let id = self.hosts.insert(Host { bytes: bytes.clone(), _registration: None })?;
        Ok(HostBlock::new(id, bytes, None))
    }

    pub(crate) fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock> {
        const CALL: &str = "register_host";
        let api = self.context.enter(CALL)?;
        if bytes.is_empty() {
            return Err(Error::invalid(CALL, "zero bytes", "register at least one"));
        }
        if !self.info.features.host_registration {
            return Err(Error::unsupported(CALL, "registering host memory", "allocate a host block instead"));
        }
        // SAFETY: the bytes live while the registration below holds them, and it is undone before they are released.
        let status = unsafe {
            (api.host_register)(bytes.as_ptr().cast(), bytes.len(), convert::PORTABLE_REGISTRATION)
        };
        match Code(status) {
            convert::HOST_MEMORY_ALREADY_REGISTERED => {
                let why = "it, or a page it lies on, is registered already".into();
                return Err(Error::refused(CALL, Refusal::Busy { handle: "the memory".into(), why }));
            }
            Code::OUT_OF_MEMORY => return Err(Error::out_of_memory(CALL, bytes.len() as u64, None)),
            _ => self.context.check(CALL, status)?,
        }
        let registration = Registration { bytes: bytes.clone(), context: self.context.clone() };
        let id = self.hosts.insert(Host { bytes: bytes.clone(), _registration: Some(registration) })?;
        Ok(HostBlock::new(id, bytes, None))
    }
}

impl Host {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let start = self.start;
        // SAFETY: the driver allocated it, and nothing holds the bytes any more.
        self.context.free_when_idle(move |api| unsafe { (api.host_free)(start.raw()) });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let bytes = self.bytes.clone();
        // SAFETY: the memory was registered when this was made and is held until it is not any more.
        self.context.free_when_idle(move |api| unsafe { (api.host_unregister)(bytes.as_ptr().cast()) });
    }
}
