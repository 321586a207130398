//! Which pages a block lies in, and handing them to another process.

use kiln_driver::fd::OwnedFd;

use super::Heap;
use super::page_backing::PageBacking;
use crate::block::DeviceBlock;
use crate::error::{ErrorKind, MemoryRefusal, Result};
use crate::exported_pages::PagePart;

impl Heap {
    /// The physical memory that a block lies in. The block may have passed through layers. Other blocks may lie in the same memory:
    /// a process that imports it can reach them too.
    ///
    /// # Errors
    /// Refused for a block that is not of this heap; unsupported for a heap that is not over pages.
    pub fn page_parts(&self, block: &DeviceBlock) -> Result<Vec<PagePart>> {
        let backing = self.exporting()?;
        let parts = match block.device_place() {
            None if block.is_empty() => Some(Vec::new()),
            place => place.and_then(|place| backing.parts(place, block.bytes())),
        };
        let foreign =
            || MemoryRefusal::Foreign { block: block.id(), owner: block.owner(), resource: self.key };
        parts.ok_or_else(|| ErrorKind::from(foreign()).into())
    }

    /// A descriptor of the physical memory that a part lies in, for another process to import. Each call makes a new one,
    /// which may be closed once it was imported.
    ///
    /// # Errors
    /// Unsupported unless [`HeapConfig::exportable`](super::HeapConfig::exportable) was set; what the driver answers.
    pub fn export_pages(&self, part: &PagePart) -> Result<OwnedFd> {
        self.exporting()?.export(part.pages)
    }

    fn exporting(&self) -> Result<&PageBacking> {
        let what = || format!("a heap over {} has no pages", self.backing.name());
        let refused = || MemoryRefusal::Unsupported { what: what(), next: "use a heap over pages" };
        self.backing.pages().ok_or_else(|| ErrorKind::from(refused()).into())
    }
}
