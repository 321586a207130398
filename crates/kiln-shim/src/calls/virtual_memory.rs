//! Virtual memory management: addresses, physical memory, and mappings of one to the other.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Code, DeviceAddress, PageRequest, Protection, ReserveRequest};
use kiln_sim::Machine;

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::address_range::AddressRange;
use crate::calls::backend::PAGE_BYTES;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::physical_memory::PhysicalMemory;
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;
use crate::records;

/// Physical memory and its mappings are multiples of this.
const GRANULARITY: u64 = 2 << 20;
const ON_DEVICE: c_uint = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as c_uint;
const PINNED: c_uint = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as c_uint;
const FILE_DESCRIPTOR: c_uint =
    sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 as c_uint;
/// No context owns such memory.
const NO_CONTEXT: u64 = 0;

/// The structure `CUmemAllocationProp`, with its kinds as numbers: a program may give any.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    security: usize,
    flags: [u8; 8],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_uint,
    number: c_int,
}

/// The structure `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AccessOf {
    location: Location,
    flags: c_uint,
}

const _: () = assert!(size_of::<Properties>() == size_of::<sys::CUmemAllocationProp>());
const _: () = assert!(size_of::<AccessOf>() == size_of::<sys::CUmemAccessDesc>());

impl Properties {
    /// The device, if memory with these properties can be made.
    fn device(&self, state: &ProcessState) -> Answer<u32> {
        if self.kind != PINNED {
            return Err(Code::INVALID_VALUE);
        }
        if self.location.kind != ON_DEVICE || self.handle_types & !FILE_DESCRIPTOR != 0 {
            records::note_once(
                "memory properties",
                "cuMemCreate was asked for memory that is not on a device, or for handles that are no file descriptors; kiln has neither",
            );
            return Err(Code::NOT_SUPPORTED);
        }
        state.device(self.location.number)?;
        Ok(self.location.number as u32)
    }
}

/// What a number of the API allows.
fn access(flags: c_uint) -> Answer<Option<Protection>> {
    use sys::CUmemAccess_flags as F;
    match flags {
        f if f == F::CU_MEM_ACCESS_FLAGS_PROT_NONE as c_uint => Ok(None),
        f if f == F::CU_MEM_ACCESS_FLAGS_PROT_READ as c_uint => Ok(Some(Protection::Read)),
        f if f == F::CU_MEM_ACCESS_FLAGS_PROT_READWRITE as c_uint => Ok(Some(Protection::ReadWrite)),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// The reserved addresses around one, and the offset in them.
fn range(state: &ProcessState, address: u64) -> Answer<(Arc<Allocation>, Arc<AddressRange>, u64)> {
    let (allocation, offset) = state.memory.around(address).ok_or(Code::INVALID_VALUE)?;
    match &allocation.backing {
        Backing::Reserved(range) => {
            let range = range.clone();
            Ok((allocation, range, offset))
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Puts addresses into the map.
fn insert(state: &ProcessState, device: u32, request: ReserveRequest) -> Answer<Arc<AddressRange>> {
    let driver = state.device(device as c_int)?.driver.clone();
    let range = AddressRange::new(driver.reserve(request).or_code()?);
    let (address, bytes) = (range.reservation.address.0, range.reservation.bytes);
    let backing = Backing::Reserved(range.clone());
    state.memory.insert(Allocation::new(address, bytes, device, NO_CONTEXT, driver, backing));
    Ok(range)
}

/// The range on the device of some memory: addresses without mappings go to the first device that maps.
fn on_device(state: &ProcessState, address: u64, device: u32) -> Answer<(Arc<AddressRange>, u64)> {
    let (allocation, range, offset) = range(state, address)?;
    if allocation.device == device {
        return Ok((range, offset));
    }
    if !range.is_empty() {
        records::note_once(
            "two devices",
            "memory of two devices was mapped into one reserved range, which kiln does not have; reserve a range for each device",
        );
        return Err(Code::NOT_SUPPORTED);
    }
    let request = ReserveRequest { bytes: allocation.bytes, at: Some(DeviceAddress(allocation.address)) };
    allocation.driver.destroy(range.id().into()).or_code()?;
    Ok((insert(state, device, request)?, offset))
}

fn physical(state: &ProcessState, handle: RawHandle) -> Answer<Arc<PhysicalMemory>> {
    state.physical.get(handle).ok_or(Code::INVALID_VALUE)
}

driver_api! {
    fn cuMemGetAllocationGranularity(out: Out<usize>, properties: In<Properties>, option: c_uint) {
        let state = state()?;
        out.check()?;
        // The number of the device is not looked at, as with the driver.
        if let Err(code) = properties.get()?.device(state)
            && code != Code::INVALID_DEVICE
        {
            return Err(code);
        }
        if option > sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED as c_uint {
            return Err(Code::INVALID_VALUE);
        }
        out.set(GRANULARITY as usize)
    }

    fn cuMemAddressReserve(out: Out<u64>, bytes: usize, alignment: usize, wanted: u64, flags: c_ulonglong) {
        let state = state()?;
        out.check()?;
        let bytes = bytes as u64;
        let is_aligned = alignment == 0 || alignment.is_power_of_two();
        if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || !is_aligned || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // A wanted address is a hint. Ranges begin at multiples of the granularity, and larger alignments take room for it.
        let alignment = (alignment as u64).max(GRANULARITY);
        if wanted != 0 && wanted.is_multiple_of(alignment) {
            let request = ReserveRequest { bytes, at: Some(DeviceAddress(wanted)) };
            let is_taken = wanted.checked_add(bytes).is_none() || state.memory.overlaps(wanted, bytes);
            if !is_taken && let Ok(range) = insert(state, 0, request) {
                return out.set(range.reservation.address.0);
            }
        }
        let driver = &state.device(0)?.driver;
        let room = bytes.checked_add(alignment).ok_or(Code::OUT_OF_MEMORY)?;
        let larger = driver.reserve(ReserveRequest { bytes: room, at: None });
        // What is refused here are more addresses than there are.
        let larger = larger.map_err(|error| error.code().unwrap_or(Code::OUT_OF_MEMORY))?;
        let at = larger.address.0.next_multiple_of(alignment);
        driver.destroy(larger.id.into()).or_code()?;
        let range = insert(state, 0, ReserveRequest { bytes, at: Some(DeviceAddress(at)) })?;
        out.set(range.reservation.address.0)
    }

    fn cuMemAddressFree(address: u64, bytes: usize) {
        let state = state()?;
        let (allocation, range, offset) = range(state, address)?;
        if offset != 0 || bytes as u64 != allocation.bytes || !range.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        state.memory.remove(address)?;
        allocation.driver.destroy(range.id().into()).or_code()
    }

    fn cuMemCreate(out: Out<RawHandle>, bytes: usize, properties: In<Properties>, flags: c_ulonglong) {
        let state = state()?;
        out.check()?;
        let properties = properties.get()?;
        let device = properties.device(state)?;
        let bytes = bytes as u64;
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let driver = state.device(device as c_int)?.driver.clone();
        let exportable = properties.handle_types & FILE_DESCRIPTOR != 0;
        let pages = driver.create_pages(PageRequest { bytes, exportable }).or_code()?;
        let memory = PhysicalMemory::new(device, driver, pages, bytes, properties.handle_types);
        out.set(state.physical.insert(Arc::new(memory)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuMemRelease(handle: RawHandle) {
        let state = state()?;
        if physical(state, handle)?.release() {
            state.physical.remove(handle);
        }
        Ok(())
    }

    fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: RawHandle, flags: c_ulonglong) {
        let state = state()?;
        let memory = physical(state, handle)?;
        let is_whole = [address, bytes as u64].iter().all(|number| number.is_multiple_of(GRANULARITY));
        if !is_whole || bytes == 0 || offset != 0 || flags != 0 || bytes as u64 > memory.bytes {
            return Err(Code::INVALID_VALUE);
        }
        if (bytes as u64) < memory.bytes {
            records::note_once("part", "cuMemMap was asked for a part of physical memory; kiln maps all of it or nothing");
            return Err(Code::NOT_SUPPORTED);
        }
        let (range, offset) = on_device(state, address, memory.device)?;
        range.map(offset, &memory)
    }

    fn cuMemUnmap(address: u64, bytes: usize) {
        let (_, range, offset) = range(state()?, address)?;
        range.unmap(offset, bytes as u64)
    }

    fn cuMemSetAccess(address: u64, bytes: usize, wanted: In<AccessOf>, count: usize) {
        let state = state()?;
        if count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (allocation, range, offset) = range(state, address)?;
        let mut ours = None;
        for index in 0..count {
            let AccessOf { location, flags } = wanted.at(index)?;
            let flags = access(flags)?;
            if location.kind != ON_DEVICE {
                return Err(Code::INVALID_VALUE);
            }
            state.device(location.number)?;
            if location.number as u32 == allocation.device {
                ours = Some(flags);
            } else if flags.is_some() {
                records::note_once("access of another device", "cuMemSetAccess was asked for access of another device, which kernels do not have here");
                return Err(Code::NOT_SUPPORTED);
            }
        }
        match ours {
            Some(access) => range.set_access(offset, bytes as u64, access),
            None => Ok(()),
        }
    }

    fn cuMemGetAccess(out: Out<c_ulonglong>, location: In<Location>, address: u64) {
        let state = state()?;
        out.check()?;
        let location = location.get()?;
        let (allocation, range, offset) = range(state, address)?;
        let (_, access) = range.at(offset).ok_or(Code::INVALID_VALUE)?;
        if location.kind != ON_DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        state.device(location.number)?;
        let access = access.filter(|_| location.number as u32 == allocation.device);
        out.set(match access {
            None => 0,
            Some(Protection::Read) => sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ as c_ulonglong,
            Some(Protection::ReadWrite) => {
                sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE as c_ulonglong
            }
        })
    }

    fn cuMemGetAllocationPropertiesFromHandle(out: Out<Properties>, handle: RawHandle) {
        let memory = physical(state()?, handle)?;
        out.set(Properties {
            kind: PINNED,
            handle_types: memory.handle_types,
            location: Location { kind: ON_DEVICE, number: memory.device as c_int },
            security: 0,
            flags: [0; 8],
        })
    }

    fn cuMemRetainAllocationHandle(out: Out<RawHandle>, address: u64) {
        let state = state()?;
        out.check()?;
        let (_, range, offset) = range(state, address)?;
        let (memory, _) = range.at(offset).ok_or(Code::INVALID_VALUE)?;
        memory.retain();
        let known = state.physical.find(|other| std::ptr::eq(other, &*memory));
        out.set(known.or_else(|| state.physical.insert(memory.clone())).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuMemExportToShareableHandle(out: *mut c_void, handle: RawHandle, kind: c_uint, flags: c_ulonglong) {
        let memory = physical(state()?, handle)?;
        if out.is_null() || flags != 0 || kind != FILE_DESCRIPTOR || memory.handle_types & kind == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let descriptor = memory.driver.export_pages(memory.pages).or_code()?;
        Out::<RawFd>::at(out).set(descriptor.into_raw_fd())
    }

    fn cuMemImportFromShareableHandle(out: Out<RawHandle>, shared: usize, kind: c_uint) {
        let state = state()?;
        out.check()?;
        let number = RawFd::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: the call looks for nothing but whether the number is a descriptor.
        if kind != FILE_DESCRIPTOR || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: it is an open descriptor, and the API requires that the program keeps it open during the call.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        state.backend.machine("cuMemImportFromShareableHandle")?;
        let bytes = Machine::exported_bytes(descriptor).ok_or(Code::INVALID_VALUE)?;
        // The file does not say on which device it was made; the first is what processes of one device have.
        let driver = state.device(0)?.driver.clone();
        let pages = driver.import_pages(descriptor, bytes).or_code()?;
        let memory = PhysicalMemory::new(0, driver, pages, bytes, FILE_DESCRIPTOR);
        out.set(state.physical.insert(Arc::new(memory)).ok_or(Code::OUT_OF_MEMORY)?)
    }
}
