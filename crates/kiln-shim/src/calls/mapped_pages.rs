//! Memory that the host and the device have at the same addresses: managed and pinned memory.
//!
//! The pages are created below, exported, and mapped into the process at the addresses that the device has for them. What the host does to them is not
//! seen by the checks, so all bytes count as written from the start.

use std::ffi::c_void;
use std::ptr;

use kiln_driver::{
    Code, Command, DevicePlace, Driver, DriverExt, Object, PageRequest, PagesId, Pattern, Protection,
    Reservation, ReservationId, ReserveRequest, StreamId,
};
use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::boundary::{Answer, OrCode};
use crate::calls::process_state::PAGE_BYTES;

/// Pages that both have.
pub(crate) struct MappedPages {
    reservation: Reservation,
    pages: PagesId,
}

impl MappedPages {
    /// Makes memory of at least so many bytes, which hold zeros. The stream is one that no work is queued on for long.
    pub(crate) fn new(driver: &dyn Driver, bytes: u64, stream: StreamId) -> Answer<Self> {
        let rounded = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(Code::OUT_OF_MEMORY)?;
        let pages = driver.create_pages(PageRequest { bytes: rounded, exportable: true }).or_code()?;
        let made = Self::map(driver, pages, rounded);
        let made = made.and_then(|made| made.fill(driver, stream).map(|()| made));
        if made.is_err() {
            let _ = driver.destroy(pages.into());
        }
        made
    }

    fn map(driver: &dyn Driver, pages: PagesId, bytes: u64) -> Answer<Self> {
        let descriptor = driver.export_pages(pages).or_code()?;
        let reservation = driver.reserve(ReserveRequest { bytes, at: None });
        let reservation = reservation.map_err(|error| error.code().unwrap_or(Code::OUT_OF_MEMORY))?;
        let mapped = driver.map(reservation.id, 0, &[pages], Protection::ReadWrite).or_code();
        let address = reservation.address.0 as usize as *mut c_void;
        let mapped = mapped.and_then(|()| {
            // The pages are the end of the file.
            let start = fstat(&descriptor).ok().and_then(|file| (file.st_size as u64).checked_sub(bytes));
            let start = start.ok_or(Code::OUT_OF_MEMORY)?;
            let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
            // SAFETY: with this flag the system refuses addresses that are in use, so no memory of the process is replaced; the descriptor is a
            // file that has `bytes` bytes from `start` on.
            let at = unsafe {
                mmap(address, bytes as usize, ProtFlags::READ | ProtFlags::WRITE, flags, &descriptor, start)
            };
            if at.is_ok_and(|at| ptr::eq(at, address)) { Ok(()) } else { Err(Code::OUT_OF_MEMORY) }
        });
        match mapped {
            Ok(()) => Ok(Self { reservation, pages }),
            Err(code) => {
                let _ = driver.unmap(reservation.id, 0, bytes);
                let _ = driver.destroy(Object::Reservation(reservation.id));
                Err(code)
            }
        }
    }

    /// Writes zeros, so that no byte counts as never written.
    fn fill(&self, driver: &dyn Driver, stream: StreamId) -> Answer {
        let to = DevicePlace::from(self.reservation.id);
        let fill = Command::Fill { to, pattern: Pattern::U8(0), count: self.reservation.bytes };
        driver.submit(stream, &fill).or_code()?;
        driver.synchronize(stream).or_code()
    }

    pub(crate) fn reservation(&self) -> ReservationId {
        self.reservation.id
    }

    /// The first address, for both.
    pub(crate) fn address(&self) -> u64 {
        self.reservation.address.0
    }

    /// Takes the memory away from both. No work uses it any more.
    pub(crate) fn free(&self, driver: &dyn Driver) -> Answer {
        let Reservation { id, address, bytes } = self.reservation;
        // SAFETY: `map` mapped exactly these pages, and the program gave them back.
        let _ = unsafe { munmap(address.0 as usize as *mut c_void, bytes as usize) };
        driver.unmap(id, 0, bytes).or_code()?;
        driver.destroy(id.into()).or_code()?;
        driver.destroy(self.pages.into()).or_code()
    }
}
