//! Physical memory of `cuMemCreate`: it lives as long as a handle or a mapping names it.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Driver, PagesId};

/// Memory without an address.
pub(crate) struct PhysicalMemory {
    pub(crate) device: u32,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) pages: PagesId,
    pub(crate) bytes: u64,
    /// What it can be exported as.
    pub(crate) handle_types: u32,
    uses: Mutex<Uses>,
}

struct Uses {
    /// How often it was created, imported and retained, less the releases.
    handles: usize,
    mappings: usize,
}

impl PhysicalMemory {
    /// Memory with one handle.
    pub(crate) fn new(
        device: u32,
        driver: Arc<dyn Driver>,
        pages: PagesId,
        bytes: u64,
        handle_types: u32,
    ) -> Self {
        let uses = Mutex::new(Uses { handles: 1, mappings: 0 });
        Self { device, driver, pages, bytes, handle_types, uses }
    }

    pub(crate) fn retain(&self) {
        self.change(|uses| uses.handles += 1);
    }

    /// Gives one handle back; whether it was the last.
    pub(crate) fn release(&self) -> bool {
        self.change(|uses| uses.handles = uses.handles.saturating_sub(1)) == 0
    }

    pub(crate) fn add_mapping(&self) {
        self.change(|uses| uses.mappings += 1);
    }

    pub(crate) fn remove_mapping(&self) {
        self.change(|uses| uses.mappings = uses.mappings.saturating_sub(1));
    }

    /// Changes the counts, frees the memory if nothing names it any more, and says how many handles there are.
    fn change(&self, change: impl FnOnce(&mut Uses)) -> usize {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut uses);
        if uses.handles == 0 && uses.mappings == 0 {
            // A lost device keeps nothing.
            let _ = self.driver.destroy(self.pages.into());
        }
        uses.handles
    }
}
