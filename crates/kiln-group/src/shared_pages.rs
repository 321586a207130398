//! Pages of one device that are mapped on others, too.

use kiln_driver::{Driver, PageRequest, PagesId, Protection, Reservation, ReserveRequest};
use kiln_runtime::{DeviceRuntime, Stream};

/// Pages that are mapped on one device. They are unmapped when this is dropped, after the work of their stream.
pub(crate) struct MappedPages {
    runtime: DeviceRuntime,
    /// The stream that waits for every use when the last handle goes away.
    home: Stream,
    reservation: Reservation,
    pages: PagesId,
}

type Answer<T> = Result<T, kiln_driver::Error>;

impl MappedPages {
    /// Creates pages on a device and maps them there.
    pub(crate) fn create(runtime: &DeviceRuntime, home: Stream, bytes: u64) -> Answer<Self> {
        let pages = runtime.driver().create_pages(PageRequest { bytes, exportable: true })?;
        Self::map(runtime, home, pages, bytes)
    }

    /// Maps the same pages on another device.
    pub(crate) fn map_on(&self, runtime: &DeviceRuntime, home: Stream) -> Answer<Self> {
        let descriptor = self.runtime.driver().export_pages(self.pages)?;
        let bytes = self.reservation.bytes;
        let pages = runtime.driver().import_pages(kiln_driver::fd::AsFd::as_fd(&descriptor), bytes)?;
        Self::map(runtime, home, pages, bytes)
    }

    pub(crate) fn home(&self) -> &Stream {
        &self.home
    }

    pub(crate) fn reservation(&self) -> Reservation {
        self.reservation
    }

    fn map(runtime: &DeviceRuntime, home: Stream, pages: PagesId, bytes: u64) -> Answer<Self> {
        let driver: &dyn Driver = &**runtime.driver();
        let reservation = match driver.reserve(ReserveRequest { bytes, at: None }) {
            Ok(reservation) => reservation,
            Err(error) => {
                let _ = driver.destroy(pages.into());
                return Err(error);
            }
        };
        if let Err(error) = driver.map(reservation.id, 0, &[pages], Protection::ReadWrite) {
            let _ = driver.destroy(reservation.id.into());
            let _ = driver.destroy(pages.into());
            return Err(error);
        }
        Ok(Self { runtime: runtime.clone(), home, reservation, pages })
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        let driver: &dyn Driver = &**self.runtime.driver();
        // A lost device has no mappings; otherwise the pages may go once no queued work uses them.
        if self.home.synchronize().is_ok() {
            let _ = driver.unmap(self.reservation.id, 0, self.reservation.bytes);
            let _ = driver.destroy(self.reservation.id.into());
        }
        let _ = driver.destroy(self.pages.into());
    }
}
