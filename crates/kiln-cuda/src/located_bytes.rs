//! Locates the bytes a command names: a handle and an offset become an address, and the memory is held while it is used.

use kiln_driver::{
    Access, Base, DeviceKey, DevicePlace, Error, HostId, MemoryId, Pinned, Refusal, ReservationId, Result,
    kind,
};

use crate::device::CudaDevice;
use crate::host_memory::Host;
use crate::memory::Block;
use crate::reservation::Range;

/// Device bytes whose memory is held while this lives.
pub(crate) struct DeviceBytes<'a> {
    address: u64,
    _held: Held<'a>,
}

/// Host bytes whose memory is held while this lives.
pub(crate) struct HostBytes<'a> {
    start: *mut u8,
    _held: Pinned<'a, kind::Host, Host>,
}

/// What holds the memory; only its lifetime matters.
enum Held<'a> {
    Block { _pin: Pinned<'a, kind::Memory, Block> },
    Range { _pin: Pinned<'a, kind::Reservation, Range> },
}

impl CudaDevice {
    /// Finds device bytes, all of them inside of their block.
    pub(crate) fn locate(
        &self,
        call: &'static str,
        place: DevicePlace,
        bytes: u64,
        access: Access,
    ) -> Result<DeviceBytes<'_>> {
        match place.base {
            Base::Memory(id) => self.locate_block(call, id, place.offset, bytes),
            Base::Reservation(id) => self.locate_range(call, id, place.offset, bytes, access),
        }
    }

    /// Finds host bytes, all of them inside of their block.
    pub(crate) fn locate_host(
        &self,
        call: &'static str,
        id: HostId,
        offset: u64,
        bytes: u64,
    ) -> Result<HostBytes<'_>> {
        let host = self.hosts.pin(id).map_err(|error| error.seen_by(call))?;
        check_inside(call, id, offset, bytes, host.bytes().len() as u64)?;
        let start = host.bytes().as_ptr().wrapping_add(offset as usize);
        Ok(HostBytes { start, _held: host })
    }

    fn locate_block(
        &self,
        call: &'static str,
        id: MemoryId,
        offset: u64,
        bytes: u64,
    ) -> Result<DeviceBytes<'_>> {
        let block = self.memory.pin(id).map_err(|error| error.seen_by(call))?;
        check_inside(call, id, offset, bytes, block.bytes())?;
        Ok(DeviceBytes { address: block.address() + offset, _held: Held::Block { _pin: block } })
    }

    fn locate_range(
        &self,
        call: &'static str,
        id: ReservationId,
        offset: u64,
        bytes: u64,
        access: Access,
    ) -> Result<DeviceBytes<'_>> {
        let range = self.reservations.pin(id).map_err(|error| error.seen_by(call))?;
        check_inside(call, id, offset, bytes, range.bytes())?;
        range.check_access(call, id, offset, bytes, access)?;
        Ok(DeviceBytes { address: range.address() + offset, _held: Held::Range { _pin: range } })
    }
}

impl DeviceBytes<'_> {
    /// The first address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl HostBytes<'_> {
    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

/// The device whose memory a place lies in.
pub(crate) fn owner(place: DevicePlace) -> DeviceKey {
    match place.base {
        Base::Memory(id) => id.device(),
        Base::Reservation(id) => id.device(),
    }
}

fn check_inside(call: &'static str, handle: impl ToString, offset: u64, bytes: u64, size: u64) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(()),
        _ => {
            Err(Error::refused(call, Refusal::OutOfRange { handle: handle.to_string(), offset, bytes, size }))
        }
    }
}
