//! Physical memory in pages: created, exported, imported.

#[cfg(unix)]
use std::ffi::c_void;
#[cfg(unix)]
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::fd::{BorrowedFd, OwnedFd};
use kiln_driver::{Code, Error, PageRequest, PagesId, Result};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::libcuda_symbols::{Api, Status};

/// Pages as a handle finds them.
pub(crate) struct Pages {
    raw: sys::CUmemGenericAllocationHandle,
    bytes: u64,
    exportable: bool,
    context: Arc<Context>,
}

impl CudaDevice {
    pub(crate) fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        const CALL: &str = "create_pages";
        let api = self.context.enter(CALL)?;
        self.check_page_size(CALL, request.bytes)?;
        if request.exportable {
            self.check_export(CALL)?;
        }
        let size = self.check_size(CALL, request.bytes)?;
        let properties = convert::page_properties(self.context.device(), request.exportable);
        let mut raw = 0;
        // SAFETY: the out-parameter and the properties are live locals and the context is current.
        let create = || unsafe { (api.pages_create)(&mut raw, size, &properties, 0) };
        match self.context.allocate_after_frees(&self.clock, create) {
            0 => self.insert_pages(raw, request.bytes, request.exportable),
            status => Err(self.context.memory_failure(CALL, status, request.bytes)),
        }
    }

    #[cfg(unix)]
    pub(crate) fn export_pages(&self, id: PagesId) -> Result<OwnedFd> {
        const CALL: &str = "export_pages";
        let api = self.context.enter(CALL)?;
        let pages = self.pages.pin(id).map_err(|error| error.seen_by(CALL))?;
        if !pages.exportable {
            return Err(Error::invalid(
                CALL,
                format!("{id} was not created to be exported"),
                "create it exportable",
            ));
        }
        let mut descriptor: RawFd = -1;
        // SAFETY: for this kind of handle the driver writes a descriptor, an `int`; the pages are pinned.
        let status = unsafe {
            (api.pages_export)((&raw mut descriptor).cast::<c_void>(), pages.raw, convert::DESCRIPTOR, 0)
        };
        self.context.check(CALL, status)?;
        // SAFETY: the driver opened this descriptor for us just now.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // The copy is closed in programs this process starts, as descriptors are in Rust; the driver's is not.
        descriptor.try_clone().map_err(|error| {
            Error::invalid(
                CALL,
                format!("the descriptor cannot be copied: {error}"),
                "close some descriptors",
            )
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn export_pages(&self, _: PagesId) -> Result<OwnedFd> {
        Err(Error::unsupported("export_pages", "exported pages", "use Linux"))
    }

    #[cfg(not(unix))]
    pub(crate) fn import_pages(&self, _: BorrowedFd<'_>, _: u64) -> Result<PagesId> {
        Err(Error::unsupported("import_pages", "imported pages", "use Linux"))
    }

    #[cfg(unix)]
    pub(crate) fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        const CALL: &str = "import_pages";
        let api = self.context.enter(CALL)?;
        self.check_page_size(CALL, bytes)?;
        self.check_export(CALL)?;
        // Larger pages cannot exist.
        let size = self.check_size(CALL, bytes).map_err(|_| wrong_size(CALL, bytes, "less"))?;
        let handle = std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        let mut raw = 0;
        // SAFETY: for this kind of handle the pointer is the descriptor's number, which stays open during the call.
        let status = unsafe { (api.pages_import)(&mut raw, handle, convert::DESCRIPTOR) };
        if status != 0 {
            return Err(self.not_pages(CALL, status));
        }
        let pages = Pages { raw, bytes, exportable: true, context: self.context.clone() };
        self.check_import(CALL, api, &pages, size)?;
        self.pages.insert(pages)
    }

    /// Refuses sizes that are no whole pages.
    pub(crate) fn check_page_size(&self, call: &'static str, bytes: u64) -> Result<()> {
        let granularity = self.info.limits.page_granularity_bytes;
        if !self.info.features.pages || granularity == 0 {
            return Err(Error::unsupported(call, "mapping pages", "allocate memory directly instead"));
        }
        if bytes == 0 || !bytes.is_multiple_of(granularity) {
            return Err(Error::invalid(
                call,
                format!("{bytes} bytes are no multiple of the page granularity {granularity}"),
                "round the size up",
            ));
        }
        Ok(())
    }

    /// Refuses offsets inside of a page.
    pub(crate) fn check_page_offset(&self, call: &'static str, offset: u64) -> Result<()> {
        let granularity = self.info.limits.page_granularity_bytes;
        if offset.is_multiple_of(granularity) {
            return Ok(());
        }
        let what = format!("offset {offset} is no multiple of the page granularity {granularity}");
        Err(Error::invalid(call, what, "map where a page begins"))
    }

    fn check_export(&self, call: &'static str) -> Result<()> {
        match self.info.features.page_export {
            true => Ok(()),
            false => Err(Error::unsupported(
                call,
                "pages in another process",
                "the driver has no descriptors for them",
            )),
        }
    }

    fn insert_pages(&self, raw: u64, bytes: u64, exportable: bool) -> Result<PagesId> {
        self.pages.insert(Pages { raw, bytes, exportable, context: self.context.clone() })
    }

    /// Compares the size of imported pages with what the caller said. The driver has no call that tells, but it maps no
    /// more than there is: one granule more must fail, and the size itself must work.
    fn check_import(&self, call: &'static str, api: &Api, pages: &Pages, size: usize) -> Result<()> {
        let granule = self.info.limits.page_granularity_bytes as usize;
        let mut address = 0;
        // SAFETY: the out-parameter is a live local and the context is current.
        let status = unsafe { (api.reserve)(&mut address, size + granule, 0, 0, 0) };
        if status != 0 {
            return Err(self.context.memory_failure(call, status, (size + granule) as u64));
        }
        let larger = try_map(api, address, size + granule, pages);
        let exact = if larger == 0 { larger } else { try_map(api, address, size, pages) };
        // SAFETY: the range was reserved above and nothing is mapped in it any more.
        unsafe { (api.unreserve)(address, size + granule) };
        match (larger, exact) {
            (0, _) => Err(wrong_size(call, size as u64, "more")),
            (_, 0) => Ok(()),
            (_, status) if Code(status).is_sticky() => Err(self.context.failure(call, status, None)),
            _ => Err(wrong_size(call, size as u64, "less")),
        }
    }

    fn not_pages(&self, call: &'static str, status: Status) -> Error {
        match Code(status) {
            code if code.is_sticky() => self.context.failure(call, status, None),
            code => Error::invalid(
                call,
                format!("the descriptor is not device memory of this machine ({code})"),
                "pass one that `export_pages` gave out",
            ),
        }
    }
}

impl Pages {
    /// The pages as libcuda takes them.
    pub(crate) fn raw(&self) -> sys::CUmemGenericAllocationHandle {
        self.raw
    }

    /// Their length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this is the only owner of the handle; the memory itself lives on while it is mapped or exported.
        self.context.release(|api| unsafe { (api.pages_release)(self.raw) });
    }
}

/// Maps pages for a moment, only to see whether it works.
fn try_map(api: &Api, address: u64, size: usize, pages: &Pages) -> Status {
    // SAFETY: the caller reserved at least `size` bytes at this address and holds the pages.
    let status = unsafe { (api.map)(address, size, 0, pages.raw, 0) };
    if status == 0 {
        // SAFETY: mapped by the line above.
        unsafe { (api.unmap)(address, size) };
    }
    status
}

fn wrong_size(call: &'static str, bytes: u64, actual: &str) -> Error {
    let what = format!("the descriptor holds {actual} than {bytes} bytes");
    Error::invalid(call, what, "pass the size the pages were created with")
}
