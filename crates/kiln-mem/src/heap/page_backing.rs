//! Addresses with pages behind them: one reserved window, physical frames created as they are needed.
//!
//! The driver is called while no lock is held: addresses are set aside in the [`FrameTable`] first, then frames are created
//! and mapped, then they are entered. If something fails on the way, everything is undone in reverse.

use kiln_driver::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Base, DeviceAddress, DevicePlace, Driver, Object, PageRequest, PagesId, Place, Protection, Reservation,
    ReserveRequest,
};

use super::arena::Placement;
use super::backing::{Extent, GrowError, Growth};
use super::config::HeapConfig;
use super::mapping_limit::MappingLimit;
use super::physical_page_selection::PAGE_UNITS;
use super::physical_pages::{FrameTable, GrowthSite, PageRun};
use super::remap_table::RemapRef;
use super::size_class::UNIT_BYTES;
use crate::budget::Budget;
use crate::error::{ErrorKind, MemoryRefusal, Result};
use crate::exported_pages::{PagePart, parts_of};

/// Bytes of a page: what physical memory is made in multiples of.
pub const PAGE_BYTES: u64 = PAGE_UNITS * UNIT_BYTES;
/// The smallest window, as a multiple of the device's memory: room for all of it, and for remaps.
const LEAST_WINDOW: u64 = 2;
/// The window that is reserved, with room for many remaps; half of it, and half again, if the driver has no addresses for it. A process
/// has 128 TiB of addresses, of which driver 580 gives out about 110, and may have several heaps.
const WINDOW_BYTES: u64 = 32 << 40;
/// Where the driver has no window of this size, addresses are short: a heap takes a part of what there is, and leaves the rest to heaps of other devices.
const PLENTY_BYTES: u64 = 8 << 40;
/// That part.
const SHORT_PART: u64 = 16;
/// The frame a small request makes the heap grow by is this part of what its arena has, so that growing many times
/// costs few frames and at most this part is not needed.
const SMALL_GROWTH_PART: u64 = 32;
/// A large request is made of about this many frames, so that they can be remapped again in other ways.
const FRAMES_OF_REQUEST: u64 = 8;
/// Frames are no larger than this, except for requests that would need too many.
const FRAME_PAGES: u64 = 32;
/// A request is made of no more frames than this; it gets larger ones.
const FRAMES_AT_MOST: u64 = 64;
/// A frame is no larger than this part of what may still be taken. One block keeps its whole frame from being remapped, so
/// the last of a budget is made of small frames, of which few bytes are lost that way; the first of it, where there is
/// room, of large ones, which are fewer to map and to export. A budget of 16 GiB is about 1,500 frames.
const FRAME_PART_OF_ROOM: u64 = 512;

/// A window of addresses and the frames in it.
pub(crate) struct PageBacking {
    driver: Arc<dyn Driver>,
    window: Reservation,
    exportable: bool,
    mapping_limit: MappingLimit,
    device_bytes: u64,
    budget: Option<Budget>,
    frame_table: Mutex<FrameTable>,
    reserved_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

impl PageBacking {
    pub(crate) fn new(driver: Arc<dyn Driver>, config: &HeapConfig) -> Result<Self> {
        let window = reserve_window(&*driver, WINDOW_BYTES)?;
        let device_bytes = driver.info().total_memory_bytes;
        let device_pages = device_bytes.div_ceil(PAGE_BYTES);
        let frame_table = FrameTable::new((window.bytes / PAGE_BYTES) as u32, device_pages as u32);
        Ok(Self {
            driver,
            window,
            exportable: config.exportable,
            mapping_limit: MappingLimit::new(config.mapping_host_bytes, device_bytes),
            device_bytes,
            budget: config.budget.clone(),
            frame_table: Mutex::new(frame_table),
            reserved_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        })
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    #[inline]
    pub(crate) fn locate(&self, start: u64) -> Option<(Place, DeviceAddress)> {
        let offset = start * UNIT_BYTES;
        let place = DevicePlace { base: Base::Reservation(self.window.id), offset };
        Some((Place::Device(place), DeviceAddress(self.window.address.0 + offset)))
    }

    pub(crate) fn frame_table(&self) -> MutexGuard<'_, FrameTable> {
        self.frame_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The physical memory behind a range of the window; none if a part of the range has no memory.
    pub(crate) fn parts(&self, place: DevicePlace, bytes: u64) -> Option<Vec<PagePart>> {
        if place.base != Base::Reservation(self.window.id) {
            return None;
        }
        let end = place.offset.checked_add(bytes)?.div_ceil(PAGE_BYTES);
        let (from, end) = (u32::try_from(place.offset / PAGE_BYTES).ok()?, u32::try_from(end).ok()?);
        let frames = self.frame_table().located(from, end);
        parts_of(place.offset, bytes, frames)
    }

    /// A descriptor of physical memory.
    pub(crate) fn export(&self, pages: PagesId) -> Result<OwnedFd> {
        if !self.exportable {
            return Err(not_exportable("this heap's pages").into());
        }
        Ok(self.driver.export_pages(pages)?)
    }

    /// How many frames may be kept mapped in remaps.
    pub(crate) fn mapping_limit(&self) -> MappingLimit {
        self.mapping_limit
    }

    pub(crate) fn window_pages(&self) -> u64 {
        self.window.bytes / PAGE_BYTES
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Creates and maps frames for at least so many units.
    pub(crate) fn grow(&self, growth: Growth) -> std::result::Result<Extent, GrowError> {
        let needed = growth.missing_units.div_ceil(PAGE_UNITS).max(1);
        let frame = frame_pages(growth, self.room_pages());
        let wanted = needed.next_multiple_of(frame);
        match self.grow_by(growth.arena, wanted, frame) {
            // There is not enough for a frame of the usual size; there may be for what is needed.
            Err(refused) if refused.is_shortage() && (wanted > needed || frame > 1) => {
                self.grow_by(growth.arena, needed, 1)
            }
            grown => grown,
        }
    }

    /// Maps frames one after the other into a remap.
    pub(crate) fn map_remap(&self, new: RemapRef, frames: &[PagesId]) -> kiln_driver::Result<()> {
        self.map(new.run, frames)
    }

    /// Takes mappings out.
    pub(crate) fn unmap(&self, run: PageRun) -> kiln_driver::Result<()> {
        self.driver.unmap(self.window.id, run.offset(), run.bytes())
    }

    /// Destroys a frame that is mapped nowhere any more.
    pub(crate) fn destroy(&self, handle: PagesId, bytes: u64) -> kiln_driver::Result<()> {
        self.driver.destroy(Object::Pages(handle))?;
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.refund(bytes);
        }
        Ok(())
    }

    /// What is added to an address, in units, before it is aligned.
    pub(crate) fn phase(&self) -> u64 {
        self.window.address.0 / UNIT_BYTES
    }

    /// Frees everything that the driver lets it free; nothing is used any more.
    pub(crate) fn release_all(&self) {
        // The whole window at once: there may be a hundred thousand remaps in it.
        let _ = self.driver.unmap(self.window.id, 0, self.window.bytes);
        let handles = self.frame_table().handles();
        for handle in handles {
            let _ = self.driver.destroy(Object::Pages(handle));
        }
        let _ = self.driver.destroy(Object::Reservation(self.window.id));
        if let Some(budget) = &self.budget {
            budget.refund(self.reserved_bytes());
        }
        self.reserved_bytes.store(0, Ordering::Relaxed);
    }

    /// Pages that may still be taken, as far as is known: other programs use the device too.
    pub(crate) fn room_pages(&self) -> u64 {
        let left = self.device_bytes.saturating_sub(self.reserved_bytes());
        self.budget.as_ref().map_or(left, |budget| left.min(budget.room_bytes())) / PAGE_BYTES
    }

    fn grow_by(&self, arena: u32, pages: u64, frame: u64) -> std::result::Result<Extent, GrowError> {
        let too_large = || GrowError::Window { bytes: pages.saturating_mul(PAGE_BYTES) };
        let count = u32::try_from(pages).map_err(|_| too_large())?;
        let bytes = pages * PAGE_BYTES;
        if let Some(budget) = &self.budget {
            budget.charge(bytes).map_err(GrowError::Budget)?;
        }
        let room = self.frame_table().try_grow(arena, pages.div_ceil(frame), count);
        let site = room
            .map_err(GrowError::Host)
            .and_then(|()| self.frame_table().site(arena, count).ok_or_else(too_large));
        let grown = site.and_then(|site| {
            self.fill(arena, site, frame as u32).inspect_err(|_| self.frame_table().return_site(site))?;
            Ok(site)
        });
        match (grown, &self.budget) {
            (Ok(site), _) => {
                let reserved = self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
                self.peak_bytes.fetch_max(reserved, Ordering::Relaxed);
                Ok(extent_of(site))
            }
            (Err(error), Some(budget)) => {
                budget.refund(bytes);
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Creates frames for a site, maps and enters them.
    fn fill(&self, arena: u32, site: GrowthSite, frame: u32) -> std::result::Result<(), GrowError> {
        let mut frames: Vec<(PagesId, u32)> = Vec::new();
        let mut left = site.run.pages;
        let mut made = Ok(());
        while left > 0 && made.is_ok() {
            let pages = frame.min(left);
            let request = PageRequest { bytes: u64::from(pages) * PAGE_BYTES, exportable: self.exportable };
            made = self.driver.create_pages(request).map(|handle| frames.push((handle, pages)));
            left -= pages;
        }
        let handles: Vec<PagesId> = frames.iter().map(|(handle, _)| *handle).collect();
        match made.and_then(|()| self.map(site.run, &handles)) {
            Ok(()) => {
                self.frame_table().enter(arena, site.run.first_page, &frames);
                Ok(())
            }
            Err(error) => {
                for handle in handles {
                    // What was created a moment ago and never mapped cannot be in use; if it cannot be destroyed, the
                    // device is lost and with it the memory.
                    let _ = self.driver.destroy(Object::Pages(handle));
                }
                Err(GrowError::Driver(error))
            }
        }
    }

    fn map(&self, run: PageRun, handles: &[PagesId]) -> kiln_driver::Result<()> {
        self.driver.map(self.window.id, run.offset(), handles, Protection::ReadWrite)
    }
}

/// Pages that were not made to be handed to another process.
pub(crate) fn not_exportable(what: &str) -> ErrorKind {
    let what = format!("{what} cannot be handed to another process");
    MemoryRefusal::Unsupported { what, next: "set `exportable` in the configuration" }.into()
}

/// Pages of the frames for a request, if `room` pages may still be taken.
fn frame_pages(growth: Growth, room: u64) -> u64 {
    let request = growth.request_units / PAGE_UNITS;
    let usual = if request == 0 {
        power_below(growth.owned_units / PAGE_UNITS / SMALL_GROWTH_PART).min(FRAME_PAGES)
    } else {
        let usual = power_below(request / FRAMES_OF_REQUEST).min(FRAME_PAGES);
        usual.max(power_below(request / FRAMES_AT_MOST))
    };
    usual.min(power_below(room / FRAME_PART_OF_ROOM))
}

/// The largest power of two that is not larger, and 1 for 0.
fn power_below(pages: u64) -> u64 {
    1 << pages.max(1).ilog2()
}

fn extent_of(site: GrowthSite) -> Extent {
    Extent {
        start: u64::from(site.run.first_page) * PAGE_UNITS,
        units: u64::from(site.run.pages) * PAGE_UNITS,
        edge: if site.in_region { Placement::RegionEnd } else { Placement::Elsewhere },
    }
}

/// A window of `wanted_bytes`, or smaller if the driver has no addresses for it, but always larger than the device's memory.
pub(crate) fn reserve_window(driver: &dyn Driver, wanted_bytes: u64) -> Result<Reservation> {
    let info = driver.info();
    let granularity = info.limits.page_granularity_bytes;
    if !info.features.pages || granularity == 0 || !PAGE_BYTES.is_multiple_of(granularity) {
        let what = format!("{} has no pages of {PAGE_BYTES} bytes", info.name);
        let next = "use a heap over chunks";
        return Err(ErrorKind::from(MemoryRefusal::Unsupported { what, next }).into());
    }
    let device_bytes = info.total_memory_bytes;
    let least_bytes = device_bytes.next_multiple_of(PAGE_BYTES).saturating_mul(LEAST_WINDOW);
    let mut bytes = wanted_bytes.max(least_bytes);
    loop {
        match driver.reserve(ReserveRequest { bytes, at: None }) {
            Ok(window) if bytes >= PLENTY_BYTES.min(wanted_bytes) => return Ok(window),
            Ok(window) => {
                let part_bytes = (bytes / SHORT_PART).next_multiple_of(PAGE_BYTES).max(least_bytes);
                driver.destroy(window.id.into())?;
                return Ok(driver.reserve(ReserveRequest { bytes: part_bytes, at: None })?);
            }
            Err(error) if error.is_sticky() => return Err(error.into()),
            Err(error) if bytes == least_bytes => {
                let told = error.to_string();
                let refusal = MemoryRefusal::Addresses { needed_bytes: least_bytes, device_bytes, told };
                return Err(ErrorKind::from(refusal).into());
            }
            Err(_) => bytes = (bytes / 2).next_multiple_of(PAGE_BYTES).max(least_bytes),
        }
    }
}
