//! Virtual memory management: reserves addresses, creates pages, maps and protects them.

use kiln_driver::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use kiln_driver::{
    Code, DeviceAddress, Error, PageRequest, PagesId, Protection, Refusal, Reservation, ReservationId,
    ReserveRequest, Result,
};

use crate::check::access_origin::Action;
use crate::check::byte_shadow::Shadow;
use crate::check::checker::Stretch;
use crate::device::objects::{Objects, Pages, ReservedRange};
use crate::memory::address_map::Segment;
use crate::memory::address_space::AddressSpace;
use crate::memory::host_backing;
use crate::memory::memory_identity::{Region, RegionName};
use crate::memory::page_file::PageFile;
use crate::memory::page_file_error::RejectedPages;
use crate::memory::physical_memory::{Charge, Physical};
use crate::schedule::machine_core::Core;

impl Core {
    pub(crate) fn reserve(&self, objects: &Objects, request: ReserveRequest) -> Result<Reservation> {
        const CALL: &str = "reserve";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        need_pages(CALL, objects)?;
        let ReserveRequest { bytes, at } = request;
        let granularity = need_granularity(CALL, objects, bytes)?;
        let address = match at {
            None => match state.addresses.reserve(bytes, granularity) {
                Some(address) => address,
                None => return Err(no_addresses(CALL, bytes, &state.addresses)),
            },
            Some(DeviceAddress(at)) => {
                if !at.is_multiple_of(granularity) || !state.addresses.reserve_at(at, bytes) {
                    let what = format!("{bytes} bytes at {at:#x} are not free to be reserved");
                    return Err(Error::invalid(CALL, what, "choose other addresses, or none"));
                }
                at
            }
        };
        let made = objects.reservations.insert(|id| ReservedRange { id, address, bytes });
        let (id, _) = made.inspect_err(|_| state.addresses.release(address))?;
        Ok(Reservation { id, address: DeviceAddress(address), bytes })
    }

    pub(crate) fn create_pages(&self, objects: &Objects, request: PageRequest) -> Result<PagesId> {
        const CALL: &str = "create_pages";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        need_pages(CALL, objects)?;
        let PageRequest { bytes, exportable } = request;
        need_granularity(CALL, objects, bytes)?;
        if exportable && !objects.info.features.page_export {
            return Err(Error::unsupported(CALL, "exportable pages", "this device cannot export"));
        }
        state.count_allocation(CALL, device, bytes)?;
        let free_bytes = state.device(device).free_bytes();
        let oom = || Error::out_of_memory(CALL, bytes, Some(free_bytes));
        if bytes > free_bytes {
            return Err(oom());
        }
        let file = exportable.then(|| PageFile::create(bytes)).transpose().map_err(|_| oom())?;
        let backing =
            file.as_ref().map_or_else(|| host_backing::zeroed(bytes), PageFile::map).map_err(|_| oom())?;
        let charge = Charge::new(&state.device(device).used_bytes, bytes);
        let mut physical = Physical::new(Arc::new(backing), Shadow::new(false), Some(charge));
        if let Some(file) = file {
            physical = physical.with_file(file);
        }
        let physical = Arc::new(physical);
        objects.pages.insert(|_| Pages { physical, bytes }).map(|(id, _)| id)
    }

    pub(crate) fn map(
        &self,
        objects: &Objects,
        into: ReservationId,
        offset: u64,
        pages: &[PagesId],
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "map";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let reservation = objects.reservations.find(CALL, into)?;
        let pages: Vec<_> = pages.iter().map(|id| objects.pages.find(CALL, *id)).collect::<Result<_>>()?;
        let bytes =
            pages.iter().try_fold(0u64, |sum, pages| sum.checked_add(pages.bytes)).unwrap_or(u64::MAX);
        let start = reservation.check_range(CALL, offset, bytes)?;
        let granularity = objects.info.limits.page_granularity_bytes.max(1);
        if pages.is_empty() || !offset.is_multiple_of(granularity) {
            let what = format!("{} pages at offset {offset}", pages.len());
            return Err(Error::invalid(
                CALL,
                what,
                "map at least one, at a multiple of the page granularity",
            ));
        }
        if let Some(taken) = state.device(device).map.overlapping(start..start + bytes).first() {
            let why = format!("{} lie there", taken.region.name);
            return Err(Error::refused(CALL, Refusal::Busy { handle: into.to_string(), why }));
        }
        let born = state.host_mark(device, Action::Map);
        let (mut at, mut row) = (start, Vec::with_capacity(pages.len()));
        for pages in pages {
            let name = RegionName::Mapping(into, at - reservation.address);
            let (address, bytes, born) = (at, pages.bytes, born.clone());
            row.push(Segment {
                start: at,
                end: at + pages.bytes,
                physical: pages.physical.clone(),
                offset: 0,
                protection,
                region: Arc::new(Region { name, device, address, bytes, born }),
            });
            at += pages.bytes;
        }
        let state = state.device(device);
        state.parts.forget(start..start + bytes);
        Arc::make_mut(&mut state.map).insert_row(row);
        Ok(())
    }

    pub(crate) fn unmap(
        &self,
        objects: &Objects,
        from: ReservationId,
        offset: u64,
        bytes: u64,
    ) -> Result<()> {
        const CALL: &str = "unmap";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let reservation = objects.reservations.find(CALL, from)?;
        let start = reservation.check_range(CALL, offset, bytes)?;
        let range = start..start + bytes;
        let segments = state.device(device).map.overlapping(range.clone()).to_vec();
        if segments.is_empty() || cuts(&segments, range.clone()) {
            let what = format!("bytes {offset}..{} of {from} are not whole mappings", offset + bytes);
            return Err(Error::invalid(CALL, what, "unmap what was mapped"));
        }
        let death = state.host_mark(device, Action::Unmap);
        Arc::make_mut(&mut state.device(device).map).remove(range);
        for segment in segments {
            // The history of pages does not say through which of several mappings they were used.
            if !state.device(device).map.has(&segment.physical) {
                let whole = 0..segment.end - segment.start;
                state.check_end(&Stretch::of_segment(&segment, whole), &death);
            }
            state.device(device).graveyard.bury(&segment.region, &death);
        }
        Ok(())
    }

    pub(crate) fn protect(
        &self,
        objects: &Objects,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "protect";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let reserved = objects.reservations.find(CALL, reservation)?;
        let start = reserved.check_range(CALL, offset, bytes)?;
        let range = start..start + bytes;
        let map = &state.device(device).map;
        if range.is_empty()
            || !map.covers(range.clone())
            || cuts(map.overlapping(range.clone()), range.clone())
        {
            let what = format!("bytes {offset}..{} of {reservation} are not whole mappings", offset + bytes);
            return Err(Error::invalid(CALL, what, "protect what was mapped"));
        }
        let segments = Arc::make_mut(&mut state.device(device).map).overlapping_mut(range);
        segments.iter_mut().for_each(|segment| segment.protection = protection);
        Ok(())
    }

    pub(crate) fn export_pages(&self, objects: &Objects, pages: PagesId) -> Result<OwnedFd> {
        const CALL: &str = "export_pages";
        let _state = self.enter(objects.info.ordinal, CALL)?;
        let found = objects.pages.find(CALL, pages)?;
        let Some(file) = &found.physical.file else {
            let what = format!("{pages} were not created to be exported");
            return Err(Error::invalid(CALL, what, "create them with `exportable`"));
        };
        file.share().map_err(|_| Error::refused(CALL, Refusal::Driver(Code::OPERATING_SYSTEM)))
    }

    pub(crate) fn import_pages(
        &self,
        objects: &Objects,
        descriptor: BorrowedFd<'_>,
        bytes: u64,
    ) -> Result<PagesId> {
        const CALL: &str = "import_pages";
        let _state = self.enter(objects.info.ordinal, CALL)?;
        if !objects.info.features.page_export {
            return Err(Error::unsupported(CALL, "imported pages", "this device cannot import"));
        }
        need_granularity(CALL, objects, bytes)?;
        let refuse = |_| Error::refused(CALL, Refusal::Driver(Code::OPERATING_SYSTEM));
        let file = PageFile::import(descriptor, bytes).map_err(|rejected| match rejected {
            RejectedPages::NotPages => Error::invalid(
                CALL,
                "the descriptor is not exported memory",
                "pass one that export_pages gave",
            ),
            RejectedPages::Size(size) => {
                let what = format!("the descriptor has {size} bytes, not {bytes}");
                Error::invalid(CALL, what, "ask for the size it was created with")
            }
            RejectedPages::System(error) => refuse(error),
        })?;
        let physical = match self.find_file(&file) {
            Some(physical) => physical,
            None => {
                let backing = file.map().map_err(refuse)?;
                Arc::new(Physical::new(Arc::new(backing), Shadow::new(true), None).with_file(file))
            }
        };
        objects.pages.insert(|_| Pages { physical, bytes }).map(|(id, _)| id)
    }

    /// The memory behind a file, if some device of this machine has it: then its history is kept in one place.
    fn find_file(&self, file: &PageFile) -> Option<Arc<Physical>> {
        let identity = file.identity().ok()?;
        let is_same = |physical: &Arc<Physical>| {
            physical.file.as_ref().and_then(|file| file.identity().ok()) == Some(identity)
        };
        self.devices.iter().find_map(|objects| {
            let pages = objects.pages.handles().into_iter().filter_map(|id| objects.pages.find("", id).ok());
            pages.map(|pages| pages.physical.clone()).find(is_same)
        })
    }
}

impl ReservedRange {
    /// The address at an offset, if so many bytes lie inside from there on.
    pub(crate) fn check_range(&self, call: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(self.address + offset);
        }
        let (handle, size) = (self.id.to_string(), self.bytes);
        Err(Error::refused(call, Refusal::OutOfRange { handle, offset, bytes, size }))
    }
}

/// Whether a range begins or ends inside of a mapping.
fn cuts(segments: &[Segment], range: std::ops::Range<u64>) -> bool {
    segments.iter().any(|segment| segment.start < range.start || segment.end > range.end)
}

fn need_pages(call: &'static str, objects: &Objects) -> Result<()> {
    if objects.info.features.pages {
        return Ok(());
    }
    Err(Error::unsupported(call, "memory by pages", "this device has none; allocate directly"))
}

/// The addresses that all devices of a machine share are short.
fn no_addresses(call: &'static str, bytes: u64, addresses: &AddressSpace) -> Error {
    let (all, free) = addresses.free_bytes();
    let what = format!(
        "{bytes} bytes of addresses in a row are not free: the devices of this machine share {all} bytes of them, of which {free} are not reserved"
    );
    Error::invalid(call, what, "reserve less, or give the machine fewer devices")
}

fn need_granularity(call: &'static str, objects: &Objects, bytes: u64) -> Result<u64> {
    let granularity = objects.info.limits.page_granularity_bytes.max(1);
    if bytes == 0 || !bytes.is_multiple_of(granularity) {
        let what = format!("{bytes} bytes are no multiple of {granularity}");
        return Err(Error::invalid(call, what, "round up to the page granularity"));
    }
    Ok(granularity)
}
