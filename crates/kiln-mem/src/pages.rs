//! Whole pages for each block, in one window of addresses.
//!
//! Physical allocations of 2 to 64 MiB are mapped lowest address first and stay mapped when the blocks in them are gone:
//! the next block that fits gets them without a driver call. They are unmapped under pressure and on trim. A block is
//! handed on only when all work that may use it is done.

mod page_map;
mod page_shortage;

use kiln_driver::fd::OwnedFd;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Base, DeviceAddress, DevicePlace, Driver, Object, PageRequest, PagesId, Place, Protection, Reservation,
    Timeout,
};

use crate::block::{BlockToken, DeviceBlock, ResourceKey};
use crate::error::{ErrorKind, FreeError, MemoryRefusal, Result};
use crate::exported_pages::{PagePart, parts_of};
use crate::heap::{GrowError, HeapConfig, PAGE_BYTES, PageRun, not_exportable, reserve_window};
use crate::last_use::{Stamp, Stamps, StreamKey};
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::stream_order::Order;
use page_map::PageMap;

/// Physical allocations are no larger.
const FRAME_PAGES: u32 = 32;

/// Blocks of whole pages: for large buffers that are shared with other processes, or that must not share a page.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{DriverOrder, HeapConfig, MemoryResource, MemoryResourceExt, Pages, AllocationRequest};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let pages = Pages::new(driver, order, HeapConfig::default())?;
/// let block = pages.allocate(&AllocationRequest::new(3 << 20, stream))?;
/// assert_eq!(pages.accounting().reserved_bytes, 4 << 20, "two pages of 2 MiB");
/// pages.free(block)?;
/// assert_eq!(pages.accounting().reserved_bytes, 4 << 20, "which stay mapped");
/// assert_eq!(pages.trim()?.released_bytes, 4 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pages {
    key: ResourceKey,
    driver: Arc<dyn Driver>,
    order: Arc<dyn Order>,
    config: HeapConfig,
    window: Reservation,
    state: Mutex<PageState>,
}

/// What the lock protects.
struct PageState {
    map: PageMap,
    pending: VecDeque<Pending>,
    counted: Accounting,
    /// Streams that blocks were for.
    streams: BTreeSet<StreamKey>,
}

/// A freed block that work may still use.
struct Pending {
    run: PageRun,
    bytes: u64,
    uses: Stamps,
    /// The last submission of the block's own stream.
    own: Stamp,
}

impl Pending {
    /// Everything it waits for.
    fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        self.uses.iter().chain([self.own]).filter(|stamp| stamp.number > 0)
    }
}

impl Pages {
    /// Pages of a driver.
    ///
    /// # Errors
    /// Unsupported where the device has no pages; what the driver answers to reserving addresses.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Result<Self> {
        // Nothing is mapped twice, so several times the device's memory will do.
        let window = reserve_window(&*driver, 0)?;
        let map = PageMap::new(u32::try_from(window.bytes / PAGE_BYTES).unwrap_or(u32::MAX));
        let state = PageState {
            map,
            pending: VecDeque::new(),
            counted: Accounting::default(),
            streams: BTreeSet::new(),
        };
        Ok(Self { key: ResourceKey::fresh(), driver, order, config, window, state: Mutex::new(state) })
    }

    /// The physical memory that a block lies in. A block that passed through layers will do.
    ///
    /// # Errors
    /// Refused for a block that is not of these pages.
    pub fn page_parts(&self, block: &DeviceBlock) -> Result<Vec<PagePart>> {
        let parts = match block.device_place() {
            None if block.is_empty() => Some(Vec::new()),
            Some(DevicePlace { base, offset }) if base == Base::Reservation(self.window.id) => {
                let state = self.state();
                parts_of(offset, block.bytes(), state.map.located(offset))
            }
            _ => None,
        };
        let foreign =
            || MemoryRefusal::Foreign { block: block.id(), owner: block.owner(), resource: self.key };
        parts.ok_or_else(|| ErrorKind::from(foreign()).into())
    }

    /// A descriptor of the physical memory that a part lies in, for another process to import.
    ///
    /// # Errors
    /// Unsupported unless the configuration asked for pages that can be exported; what the driver answers.
    pub fn export_pages(&self, part: &PagePart) -> Result<OwnedFd> {
        if !self.config.exportable {
            return Err(not_exportable("these pages").into());
        }
        Ok(self.driver.export_pages(part.pages)?)
    }

    fn state(&self) -> MutexGuard<'_, PageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, pending: &Pending) -> bool {
        pending.stamps().all(|stamp| self.order.is_complete(stamp))
    }

    /// Makes pending pages free that are known not to be used any more; returns the bytes.
    fn settle(&self, state: &mut PageState) -> u64 {
        let mut freed = 0;
        for _ in 0..state.pending.len() {
            let Some(pending) = state.pending.pop_front() else { break };
            if self.is_done(&pending) {
                state.map.give(pending.run);
                state.counted.pending_bytes -= pending.bytes;
                freed += pending.bytes;
            } else {
                state.pending.push_back(pending);
            }
        }
        freed
    }

    /// Takes a run and maps what is not mapped of it.
    fn obtain(&self, pages: u32) -> std::result::Result<PageRun, GrowError> {
        let site = {
            let mut state = self.state();
            self.settle(&mut state);
            state.map.take(pages)
        };
        let site = site.ok_or(GrowError::Window { bytes: u64::from(pages) * PAGE_BYTES })?;
        self.fill(&site.holes).inspect_err(|_| self.state().map.give(site.run))?;
        Ok(site.run)
    }

    /// Maps memory where there is none, all of it or nothing: a request that is refused leaves memory and budget to others.
    fn fill(&self, holes: &[PageRun]) -> std::result::Result<(), GrowError> {
        let bytes: u64 = holes.iter().map(|hole| hole.bytes()).sum();
        if bytes > self.driver.info().total_memory_bytes {
            // Not tried: others would be out of memory until it fails.
            return Err(GrowError::Driver(kiln_driver::Error::out_of_memory("create_pages", bytes, None)));
        }
        if let Some(budget) = self.config.budget.as_ref().filter(|_| bytes > 0) {
            budget.charge(bytes).map_err(GrowError::Budget)?;
        }
        let mut filled = Vec::new();
        for run in holes.iter().flat_map(|hole| frames_of(*hole)) {
            match self.map(run) {
                Ok(handle) => filled.push((run, handle)),
                Err(error) => {
                    filled.iter().for_each(|(run, handle)| self.take_down(*run, *handle));
                    self.refund(bytes);
                    return Err(GrowError::Driver(error));
                }
            }
        }
        let mut state = self.state();
        filled.iter().for_each(|(run, handle)| state.map.enter(*run, *handle));
        let Accounting { reserved_bytes, peak_reserved_bytes, .. } = &mut state.counted;
        *reserved_bytes += bytes;
        *peak_reserved_bytes = (*peak_reserved_bytes).max(*reserved_bytes);
        Ok(())
    }

    fn map(&self, run: PageRun) -> kiln_driver::Result<PagesId> {
        let request = PageRequest { bytes: run.bytes(), exportable: self.config.exportable };
        let handle = self.driver.create_pages(request)?;
        let mapped = self.driver.map(self.window.id, run.offset(), &[handle], Protection::ReadWrite);
        mapped.map(|()| handle).inspect_err(|_| {
            // It was never mapped, so nothing can use it; if it cannot be destroyed, the device is lost.
            let _ = self.driver.destroy(Object::Pages(handle));
        })
    }

    /// Removes memory that was never used. If it cannot be removed, the device is lost.
    fn take_down(&self, run: PageRun, handle: PagesId) {
        let _ = self.driver.unmap(self.window.id, run.offset(), run.bytes());
        let _ = self.driver.destroy(Object::Pages(handle));
    }

    fn refund(&self, bytes: u64) {
        if let Some(budget) = &self.config.budget {
            budget.refund(bytes);
        }
    }
}

/// A run in allocations as large as they can be.
fn frames_of(run: PageRun) -> impl Iterator<Item = PageRun> {
    let mut left = run;
    std::iter::from_fn(move || {
        let pages = (1 << left.pages.checked_ilog2()?).min(FRAME_PAGES);
        let frame = PageRun { pages, ..left };
        left = PageRun { first_page: frame.end(), pages: left.pages - pages };
        Some(frame)
    })
}

#[deny(clippy::missing_trait_methods)]
impl MemoryResource for Pages {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let AllocationRequest { bytes, align, stream, tag, .. } = *request;
        if !align.is_power_of_two() || align > PAGE_BYTES {
            return Err(ErrorKind::from(MemoryRefusal::Alignment { align, most: PAGE_BYTES }).into());
        }
        let pages = u32::try_from(bytes.div_ceil(PAGE_BYTES))
            .map_err(|_| ErrorKind::from(MemoryRefusal::Size(bytes)))?;
        let mut block = DeviceBlock::vacant(self.key, request)?;
        let run = match pages {
            0 => None,
            _ => Some(self.obtain(pages).or_else(|refused| self.reclaim_for(request, pages, refused))?),
        };
        let mut state = self.state();
        if let Some(run) = run {
            state.map.hand_out(run, tag, bytes);
            state.streams.insert(stream.key());
            let place = DevicePlace { base: Base::Reservation(self.window.id), offset: run.offset() };
            let address = DeviceAddress(self.window.address.0 + run.offset());
            let token = BlockToken { first: u64::from(run.first_page), second: u64::from(run.pages) };
            block = block.placed(Place::Device(place), address, token);
        }
        let counted = &mut state.counted;
        counted.live_blocks += 1;
        counted.live_bytes += bytes;
        counted.peak_live_bytes = counted.peak_live_bytes.max(counted.live_bytes);
        Ok(block)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        let bytes = block.bytes();
        let mut state = self.state();
        if block.place().is_some() {
            let token = block.token();
            let run = PageRun { first_page: token.first as u32, pages: token.second as u32 };
            if !state.map.take_back(run) {
                return Err(FreeError::stale(block));
            }
            let own = Stamp { stream: block.stream(), number: self.order.latest(block.stream()) };
            let pending = Pending { run, bytes, uses: uses.clone(), own };
            if self.is_done(&pending) {
                state.map.give(run);
            } else {
                state.counted.pending_bytes += bytes;
                state.pending.push_back(pending);
            }
        }
        state.counted.live_bytes -= bytes;
        state.counted.live_blocks -= 1;
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        let state = self.state();
        let largest_free_bytes = u64::from(state.map.largest_free()) * PAGE_BYTES;
        Accounting { largest_free_bytes, ..state.counted }
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.take_step(step, 0)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::base().showing(self)
    }
}

impl Drop for Pages {
    /// Waits for what is pending and gives everything back. With a block that is still live, and work on a stream that had one, everything
    /// is left to the device, because it is not known what uses it.
    fn drop(&mut self) {
        let mut state = self.state();
        let pending = std::mem::take(&mut state.pending);
        let mut stamps = pending.iter().flat_map(Pending::stamps);
        let done = stamps.all(|stamp| self.order.wait(stamp, Timeout::Never).is_ok());
        let is_used = || state.map.has_live() && !state.streams.iter().all(|key| self.order.is_idle(*key));
        if !done || is_used() {
            return;
        }
        let _ = self.driver.unmap(self.window.id, 0, self.window.bytes);
        for handle in state.map.handles() {
            let _ = self.driver.destroy(Object::Pages(handle));
        }
        let _ = self.driver.destroy(Object::Reservation(self.window.id));
        self.refund(state.counted.reserved_bytes);
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pages")
    }
}
