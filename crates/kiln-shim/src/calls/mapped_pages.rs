//! Memory that the host and the device have at the same addresses: managed and pinned memory.
//!
//! On a simulated device the pages are created below, exported, and mapped into the process at the addresses that the device has for them. What the host does to them is not
//! seen by the checks, so all bytes count as written from the start. Any other device has pinned memory of the host for both.

use std::ffi::c_void;
use std::ptr;

use kiln_driver::{
    Code, Command, DevicePlace, Driver, DriverExt, HostBlock, Object, PageRequest, PagesId, Pattern,
    Protection, Reservation, ReserveRequest, StreamId,
};
use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::boundary::{Answer, OrCode};
use crate::calls::backend::PAGE_BYTES;

/// Pages that both have.
pub(crate) struct MappedPages {
    below: PagesBelow,
}

/// What they are below.
pub(crate) enum PagesBelow {
    /// Pages of a simulated device, at its addresses.
    Mapped(Reservation, PagesId),
    /// Host memory of another device, which has the host's addresses.
    Host(HostBlock),
}

impl MappedPages {
    /// Makes memory of at least so many bytes, which hold zeros. The stream is one that no work is queued on for long.
    pub(crate) fn new(driver: &dyn Driver, bytes: u64, stream: StreamId, is_simulated: bool) -> Answer<Self> {
        if !is_simulated {
            return Ok(Self { below: PagesBelow::Host(driver.allocate_host(bytes).or_code()?) });
        }
        let rounded = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(Code::OUT_OF_MEMORY)?;
        let pages = driver.create_pages(PageRequest { bytes: rounded, exportable: true }).or_code()?;
        let made = Self::map(driver, pages, rounded);
        let made = made.and_then(|reservation| {
            fill(driver, reservation, stream)?;
            Ok(Self { below: PagesBelow::Mapped(reservation, pages) })
        });
        if made.is_err() {
            let _ = driver.destroy(pages.into());
        }
        made
    }

    fn map(driver: &dyn Driver, pages: PagesId, bytes: u64) -> Answer<Reservation> {
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
            Ok(()) => Ok(reservation),
            Err(code) => {
                let _ = driver.unmap(reservation.id, 0, bytes);
                let _ = driver.destroy(Object::Reservation(reservation.id));
                Err(code)
            }
        }
    }

    pub(crate) fn below(&self) -> &PagesBelow {
        &self.below
    }

    /// The first address, for both.
    pub(crate) fn address(&self) -> u64 {
        match &self.below {
            PagesBelow::Mapped(reservation, _) => reservation.address.0,
            PagesBelow::Host(block) => block.bytes().as_ptr().addr() as u64,
        }
    }

    /// Takes the memory away from both. No work uses it any more.
    pub(crate) fn free(&self, driver: &dyn Driver) -> Answer {
        let (Reservation { id, address, bytes }, pages) = match &self.below {
            PagesBelow::Mapped(reservation, pages) => (*reservation, *pages),
            PagesBelow::Host(block) => return driver.destroy(block.id().into()).or_code(),
        };
        // SAFETY: `map` mapped exactly these pages, and the program gave them back.
        let _ = unsafe { munmap(address.0 as usize as *mut c_void, bytes as usize) };
        driver.unmap(id, 0, bytes).or_code()?;
        driver.destroy(id.into()).or_code()?;
        driver.destroy(pages.into()).or_code()
    }
}

/// Writes zeros, so that no byte counts as never written.
fn fill(driver: &dyn Driver, reservation: Reservation, stream: StreamId) -> Answer {
    let to = DevicePlace::from(reservation.id);
    let fill = Command::Fill { to, pattern: Pattern::U8(0), count: reservation.bytes };
    driver.submit(stream, &fill).or_code()?;
    driver.synchronize(stream).or_code()
}
