//! Pools and their memory in other processes of the run.
//!
//! The file that stands for a pool says on which device it is. Memory of such a pool is allocated directly, so that it can be shared, and its pointers go to another
//! process as memory of `cuIpc` does.

use std::ffi::{c_uint, c_ulonglong, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::Code;
use rustix::fs::{MemfdFlags, Mode, SealFlags};

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::interprocess::{ImportedMemory, SharedHandle};
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::pools::{Pool, pool};
use crate::calls::process_state::{current, state};
use crate::handle_table::RawHandle;
use crate::run_settings;

pub(crate) const FILE_DESCRIPTOR: c_uint =
    sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 as c_uint;
const MAGIC: [u8; 8] = *b"kilnpool";
const FILE_BYTES: usize = 24;
const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::SEAL);

/// A file that stands for a pool: the magic, the run, the device.
fn file_of(pool: &Pool) -> Answer<OwnedFd> {
    let made = || -> rustix::io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("kiln-pool", flags)?;
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        let words = [u64::from_le_bytes(MAGIC), run_settings::run_number(), pool.device.into()];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        rustix::io::write(&file, &bytes)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Ok(file)
    };
    made().map_err(|_| Code::OPERATING_SYSTEM)
}

/// The device of the pool that a file stands for.
fn device_of(file: BorrowedFd<'_>) -> Answer<u32> {
    let mut bytes = [0; FILE_BYTES];
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| Code::INVALID_VALUE)?;
    let read = rustix::io::pread(file, &mut bytes, 0).map_err(|_| Code::INVALID_VALUE)?;
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let words: Vec<u64> = words.collect();
    match words.as_slice() {
        [magic, run, device]
            if read == FILE_BYTES
                && seals.contains(SEALS)
                && *magic == u64::from_le_bytes(MAGIC)
                && *run == run_settings::run_number() =>
        {
            Ok(*device as u32)
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

driver_api! {
    fn cuMemPoolExportToShareableHandle(out: *mut c_void, handle: RawHandle, kind: c_uint, flags: c_ulonglong) {
        let pool = pool(state()?, handle)?;
        if out.is_null() || flags != 0 || kind != FILE_DESCRIPTOR || pool.handle_types & kind == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Out::<RawFd>::at(out).set(file_of(&pool)?.into_raw_fd())
    }

    fn cuMemPoolImportFromShareableHandle(out: Out<RawHandle>, shared: usize, kind: c_uint, flags: c_ulonglong) {
        let state = state()?;
        out.check()?;
        let number = RawFd::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
        // SAFETY: the call looks for nothing but whether the number is a descriptor.
        if kind != FILE_DESCRIPTOR || flags != 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: it is an open descriptor, and the API requires that the program keeps it open during the call.
        let device = device_of(unsafe { BorrowedFd::borrow_raw(number) })?;
        state.device(device as i32).map_err(|_| Code::INVALID_VALUE)?;
        let pool = Arc::new(Pool::imported(device));
        out.set(state.pools.insert(pool).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuMemPoolExportPointer(out: Out<SharedHandle>, address: u64) {
        let (state, _) = current()?;
        out.check()?;
        let (allocation, _) = state.memory.around(address).ok_or(Code::INVALID_VALUE)?;
        match allocation.backing {
            Backing::SharedPool(memory, _) => out.set(SharedHandle::of_pool(state, &allocation, memory)?),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemPoolImportPointer(out: Out<u64>, handle: RawHandle, data: In<SharedHandle>) {
        let (state, context) = current()?;
        out.check()?;
        let pool = pool(state, handle)?;
        let shared = data.get()?;
        if !pool.is_imported || shared.device() != pool.device {
            return Err(Code::INVALID_VALUE);
        }
        let device = state.device(pool.device as i32)?;
        let memory = ImportedMemory::of_pool(&*device.driver, shared)?;
        let (address, driver) = (memory.reservation.address.0, device.driver.clone());
        let backing = Backing::Imported(memory);
        state.memory.insert(Allocation::new(address, shared.bytes(), pool.device, context.number, driver, backing));
        out.set(address)
    }
}
