//! Reserved addresses and what is mapped into them.
//!
//! Two locks per reservation. `work` lets one thread at a time change mappings and is held over driver calls; nothing
//! but map, unmap and protect takes it. `table` is what copies look at; it is held for a lookup and never over a
//! driver call.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kiln_driver::{
    Access, Code, DeviceAddress, Error, PagesId, Pinned, Protection, Refusal, Reservation, ReservationId,
    ReserveRequest, Result, kind,
};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;
use crate::mapped_pages::{Mappings, Run, Unfit};
use crate::pages::Pages;

/// No device has more addresses; a size near 2^64 must not reach arithmetic in the driver.
const ADDRESS_SPACE_BYTES: u64 = 1 << 49;

/// The alignment that is asked for with an address, at most.
const MOST_ALIGNMENT_BYTES: u64 = 1 << 30;

/// A reservation as a handle finds it.
pub(crate) struct Range {
    address: u64,
    bytes: u64,
    work: Mutex<()>,
    table: RwLock<Mappings>,
    context: Arc<Context>,
}

impl CudaDevice {
    pub(crate) fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        const CALL: &str = "reserve";
        let api = self.context.enter(CALL)?;
        self.check_page_size(CALL, request.bytes)?;
        let size = usize::try_from(request.bytes)
            .ok()
            .filter(|_| request.bytes <= ADDRESS_SPACE_BYTES)
            .ok_or_else(|| Error::invalid(CALL, "more bytes than there are addresses", "reserve less"))?;
        let wanted = request.at.map_or(0, |at| at.0);
        // The driver takes addresses from the system in blocks of 32 MiB, and what fits into the rest of one goes there, whatever
        // the hint says. The rest of a block is not aligned as the hint is.
        let alignment = (wanted & wanted.wrapping_neg()).min(MOST_ALIGNMENT_BYTES) as usize;
        let mut address = 0;
        // SAFETY: the out-parameter is a live local and the context is current.
        let status = unsafe { (api.reserve)(&mut address, size, alignment, wanted, 0) };
        if Code(status) == Code::OUT_OF_MEMORY || Code(status) == Code::INVALID_VALUE {
            let what = format!("{size} bytes of addresses are not available ({})", Code(status));
            return Err(Error::invalid(CALL, what, "reserve less, or elsewhere"));
        }
        self.context.check(CALL, status)?;
        let range = Range {
            address,
            bytes: request.bytes,
            work: Mutex::new(()),
            table: RwLock::default(),
            context: self.context.clone(),
        };
        // The driver takes the address as a hint; another one is given back when `range` is dropped.
        if let Some(at) = request.at.filter(|at| at.0 != address) {
            return Err(Error::invalid(CALL, format!("the address {at} is taken"), "reserve elsewhere"));
        }
        let id = self.reservations.insert(range)?;
        Ok(Reservation { id, address: DeviceAddress(address), bytes: request.bytes })
    }

    pub(crate) fn map(
        &self,
        into: ReservationId,
        offset: u64,
        pages: &[PagesId],
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "map";
        let api = self.context.enter(CALL)?;
        let range = self.reservations.pin(into).map_err(|error| error.seen_by(CALL))?;
        let pages = self.pin_pages(CALL, pages)?;
        let bytes = pages.iter().try_fold(0u64, |sum, pages| sum.checked_add(pages.bytes()));
        let bytes = bytes.unwrap_or(u64::MAX);
        range.check_bounds(CALL, into, offset, bytes)?;
        self.check_page_offset(CALL, offset)?;

        let _work = range.work();
        range.table().check_free(offset, bytes).map_err(|unfit| refuse(CALL, into, unfit))?;
        range.map_all(CALL, api, offset, &pages)?;
        range.allow(CALL, api, Run { offset, bytes }, protection).inspect_err(|_| {
            range.unmap_quietly(api, Run { offset, bytes });
        })?;
        let mut table = range.table_mut();
        let mut at = offset;
        for pages in &pages {
            table.insert(at, pages.bytes(), protection);
            at += pages.bytes();
        }
        Ok(())
    }

    pub(crate) fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        const CALL: &str = "unmap";
        let api = self.context.enter(CALL)?;
        let range = self.reservations.pin(from).map_err(|error| error.seen_by(CALL))?;
        range.check_bounds(CALL, from, offset, bytes)?;
        let _work = range.work();
        let runs = range.table().runs(offset, bytes).map_err(|unfit| refuse(CALL, from, unfit))?;
        for run in runs {
            // Removed from the table first, so that no new copy is accepted while the driver works.
            let removed = range.table_mut().remove(run);
            // SAFETY: the run consists of whole mappings of this reservation, and the lock keeps others from it.
            let status = unsafe { (api.unmap)(range.address + run.offset, run.bytes as usize) };
            if status != 0 {
                let mut table = range.table_mut();
                removed.into_iter().for_each(|(at, bytes, protection)| table.insert(at, bytes, protection));
            }
            self.context.check(CALL, status)?;
        }
        Ok(())
    }

    pub(crate) fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        const CALL: &str = "protect";
        let api = self.context.enter(CALL)?;
        let range = self.reservations.pin(reservation).map_err(|error| error.seen_by(CALL))?;
        range.check_bounds(CALL, reservation, offset, bytes)?;
        let _work = range.work();
        range.table().check_whole(offset, bytes).map_err(|unfit| refuse(CALL, reservation, unfit))?;
        range.allow(CALL, api, Run { offset, bytes }, protection)?;
        range.table_mut().protect(offset, bytes, protection);
        Ok(())
    }

    pub(crate) fn destroy_reservation(&self, call: &'static str, id: ReservationId) -> Result<()> {
        let range = self.reservations.pin(id).map_err(|error| error.seen_by(call))?;
        {
            let _work = range.work();
            if !range.table_mut().close() {
                let why = "pages are mapped into it; unmap them first".into();
                return Err(Error::refused(call, Refusal::Busy { handle: id.to_string(), why }));
            }
        }
        drop(range);
        self.reservations.remove(id).map(drop).map_err(|error| error.seen_by(call))
    }

    fn pin_pages(
        &self,
        call: &'static str,
        pages: &[PagesId],
    ) -> Result<Vec<Pinned<'_, kind::Pages, Pages>>> {
        if pages.is_empty() {
            return Err(Error::invalid(call, "no pages to map", "name at least one"));
        }
        pages.iter().map(|id| self.pages.pin(*id).map_err(|error| error.seen_by(call))).collect()
    }
}

impl Range {
    /// The first address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Refuses a copy that would access an address without pages, or write to read-only pages; either would lose the device.
    pub(crate) fn check_access(
        &self,
        call: &'static str,
        id: ReservationId,
        offset: u64,
        bytes: u64,
        access: Access,
    ) -> Result<()> {
        self.table().check_access(offset, bytes, access.writes()).map_err(|unfit| refuse(call, id, unfit))
    }

    fn check_bounds(&self, call: &'static str, id: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes && bytes > 0 => Ok(()),
            Some(_) if bytes == 0 => Err(Error::invalid(call, "zero bytes", "name at least one page")),
            _ => {
                let handle = id.to_string();
                Err(Error::refused(call, Refusal::OutOfRange { handle, offset, bytes, size: self.bytes }))
            }
        }
    }

    /// Maps all or, if one fails, none.
    fn map_all(
        &self,
        call: &'static str,
        api: &Api,
        offset: u64,
        pages: &[Pinned<'_, kind::Pages, Pages>],
    ) -> Result<()> {
        let mut at = offset;
        for pages in pages {
            // SAFETY: the range lies inside the reservation and is free, as the caller checked under the lock; the
            // pages are pinned.
            let status = unsafe { (api.map)(self.address + at, pages.bytes() as usize, 0, pages.raw(), 0) };
            if status != 0 {
                self.unmap_quietly(api, Run { offset, bytes: at - offset });
                return Err(self.context.memory_failure(call, status, pages.bytes()));
            }
            at += pages.bytes();
        }
        Ok(())
    }

    fn allow(&self, call: &'static str, api: &Api, run: Run, protection: Protection) -> Result<()> {
        let access = convert::access(self.context.device(), protection);
        // SAFETY: the run is mapped without a gap, and the description is one live local, as the count says.
        let status = unsafe { (api.set_access)(self.address + run.offset, run.bytes as usize, &access, 1) };
        match Code(status) {
            Code::INVALID_VALUE | Code::NOT_SUPPORTED if protection == Protection::Read => {
                let why = format!("the driver does not protect its own device's memory ({})", Code(status));
                Err(Error::unsupported(call, "read-only pages", why))
            }
            _ => self.context.check(call, status),
        }
    }

    /// Unmaps what was just mapped and never used.
    fn unmap_quietly(&self, api: &Api, run: Run) {
        if run.bytes > 0 {
            // SAFETY: the caller mapped this run, and no other code has seen it.
            unsafe { (api.unmap)(self.address + run.offset, run.bytes as usize) };
        }
    }

    fn work(&self) -> std::sync::MutexGuard<'_, ()> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> RwLockReadGuard<'_, Mappings> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Mappings> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        let runs = self.table.get_mut().unwrap_or_else(PoisonError::into_inner).all();
        self.context.release(|api| {
            runs.into_iter().for_each(|run| self.unmap_quietly(api, run));
            // SAFETY: the driver gave this range out, and nothing is mapped in it any more.
            unsafe { (api.unreserve)(self.address, self.bytes as usize) }
        });
    }
}

fn refuse(call: &'static str, id: ReservationId, unfit: Unfit) -> Error {
    let next = match unfit {
        Unfit::Taken(_) => "unmap it first, or map elsewhere",
        Unfit::Cut(_) => "name whole mappings",
        Unfit::Hole(_) => "map pages there first",
        Unfit::ReadOnly(_) => "protect it as read-write first",
        Unfit::Closed => "reserve another range",
    };
    Error::invalid(call, format!("{id}: {unfit}"), next)
}
