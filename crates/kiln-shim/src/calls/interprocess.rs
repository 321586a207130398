//! Memory and events of other processes of the run, by the handles of `cuIpc`.
//!
//! A handle says which descriptor of which process it is. Another process takes that descriptor from the system's list of the process's files, which the
//! system allows to processes of one user.

use std::ffi::c_uint;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Code, Driver, MemoryId, PagesId, Protection, Reservation, ReserveRequest};
use kiln_sim::Machine;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::events::{self, Event};
use crate::calls::interprocess_event::InterprocessEvent;
use crate::calls::memory::free_synchronously;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current};
use crate::handle_table::RawHandle;
use crate::{records, run_settings};

const MAGIC: [u8; 8] = *b"kiln ipc";
const MEMORY: u32 = 1;
const EVENT: u32 = 2;
const POOL_MEMORY: u32 = 3;
/// The only flag there is for memory: access of other devices.
const LAZY_PEER_ACCESS: c_uint = 1;

/// What the 64 bytes of a handle are.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedHandle {
    magic: [u8; 8],
    kind: u32,
    process: u32,
    descriptor: i32,
    device: u32,
    /// The file, so that a descriptor that was closed and is another one now is not taken for it.
    file: [u64; 2],
    bytes: u64,
    /// The run of `kiln exec`.
    run: u64,
    rest: u64,
}

const _: () = assert!(size_of::<SharedHandle>() == 64);

impl SharedHandle {
    fn new(kind: u32, descriptor: &OwnedFd, device: u32, bytes: u64) -> Answer<Self> {
        let file = fstat(descriptor).map_err(|_| Code::OPERATING_SYSTEM)?;
        Ok(Self {
            magic: MAGIC,
            kind,
            process: std::process::id(),
            descriptor: descriptor.as_raw_fd(),
            device,
            file: [file.st_dev, file.st_ino],
            bytes,
            run: run_settings::run_number(),
            rest: 0,
        })
    }

    /// Memory of a pool that other processes can have.
    pub(crate) fn of_pool(state: &ProcessState, allocation: &Allocation, memory: MemoryId) -> Answer<Self> {
        Ok(Self { kind: POOL_MEMORY, ..share(state, allocation, memory)? })
    }

    pub(crate) fn device(&self) -> u32 {
        self.device
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file of another process that it names.
    fn open(&self, kind: u32) -> Answer<OwnedFd> {
        if self.magic != MAGIC || self.kind != kind {
            return Err(Code::INVALID_VALUE);
        }
        if self.run != run_settings::run_number() {
            records::note_once(
                "another run",
                "a handle of cuIpc was opened that comes from another run of kiln exec; memory and events are shared by processes of one run",
            );
            return Err(Code::INVALID_VALUE);
        }
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let is_named = stat(&path).is_ok_and(|file| {
            FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
                && [file.st_dev, file.st_ino] == self.file
        });
        if !is_named {
            return Err(Code::INVALID_VALUE);
        }
        open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|_| Code::INVALID_VALUE)
    }
}

/// Memory of another process, mapped here.
pub(crate) struct ImportedMemory {
    pub(crate) reservation: Reservation,
    pages: PagesId,
    handle: SharedHandle,
    /// How often it was opened, less how often it was closed.
    opened: Mutex<usize>,
}

impl ImportedMemory {
    /// Memory of a pool.
    pub(crate) fn of_pool(driver: &dyn Driver, handle: SharedHandle) -> Answer<Self> {
        if handle.process == std::process::id() {
            // A process has its own memory already.
            return Err(Code::INVALID_VALUE);
        }
        Self::map(driver, handle, POOL_MEMORY)
    }

    /// Whether it was imported from a pool.
    pub(crate) fn is_of_pool(&self) -> bool {
        self.handle.kind == POOL_MEMORY
    }

    fn map(driver: &dyn Driver, handle: SharedHandle, kind: u32) -> Answer<Self> {
        let file = handle.open(kind)?;
        let bytes = Machine::exported_bytes(file.as_fd()).ok_or(Code::INVALID_VALUE)?;
        if handle.bytes == 0 || handle.bytes > bytes {
            return Err(Code::INVALID_VALUE);
        }
        let pages = driver.import_pages(file.as_fd(), bytes).or_code()?;
        let mapped = driver.reserve(ReserveRequest { bytes, at: None }).or_code().and_then(|reservation| {
            let mapped = driver.map(reservation.id, 0, &[pages], Protection::ReadWrite).or_code();
            if mapped.is_err() {
                let _ = driver.destroy(reservation.id.into());
            }
            mapped.map(|()| reservation)
        });
        match mapped {
            Ok(reservation) => Ok(Self { reservation, pages, handle, opened: Mutex::new(1) }),
            Err(code) => {
                let _ = driver.destroy(pages.into());
                Err(code)
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut usize)) -> usize {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut opened);
        *opened
    }

    /// Takes it away; the other process keeps it.
    pub(crate) fn free(&self, driver: &dyn Driver) -> Answer {
        driver.unmap(self.reservation.id, 0, self.reservation.bytes).or_code()?;
        driver.destroy(self.reservation.id.into()).or_code()?;
        driver.destroy(self.pages.into()).or_code()
    }
}

/// Memory that `cuMemAlloc` made, as a handle.
fn share(state: &ProcessState, allocation: &Allocation, memory: MemoryId) -> Answer<SharedHandle> {
    let descriptor = match allocation.exported.get() {
        Some(descriptor) => descriptor,
        None => {
            let machine = state.backend.machine("cuIpcGetMemHandle")?;
            let descriptor = machine.export_memory(allocation.device, memory).or_code()?;
            allocation.exported.get_or_init(|| descriptor)
        }
    };
    SharedHandle::new(MEMORY, descriptor, allocation.device, allocation.bytes)
}

driver_api! {
    fn cuIpcGetMemHandle(out: Out<SharedHandle>, address: u64) {
        let (state, _) = current()?;
        out.check()?;
        let (allocation, _) = state.memory.around(address).ok_or(Code::INVALID_VALUE)?;
        match allocation.backing {
            Backing::Direct(memory) => out.set(share(state, &allocation, memory)?),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuIpcOpenMemHandle_v2(out: Out<u64>, handle: SharedHandle, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        if flags != LAZY_PEER_ACCESS {
            return Err(Code::INVALID_VALUE);
        }
        if handle.magic == MAGIC && handle.process == std::process::id() {
            // A process has its own memory already.
            return Err(Code::INVALID_CONTEXT);
        }
        let same = state.memory.first(|allocation| match &allocation.backing {
            Backing::Imported(memory) => memory.handle == handle && allocation.context == context.number,
            _ => false,
        });
        if let Some(same) = same
            && let Backing::Imported(memory) = &same.backing
        {
            memory.change(|opened| *opened += 1);
            return out.set(same.address);
        }
        state.backend.machine("cuIpcOpenMemHandle")?;
        let device = state.device(handle.device as i32).map_err(|_| Code::INVALID_VALUE)?;
        let memory = ImportedMemory::map(&*device.driver, handle, MEMORY)?;
        let address = memory.reservation.address.0;
        state.memory.insert(Allocation::new(
            address,
            handle.bytes,
            handle.device,
            context.number,
            device.driver.clone(),
            Backing::Imported(memory),
        ));
        out.set(address)
    }

    fn cuIpcCloseMemHandle(address: u64) {
        let (state, _) = current()?;
        let is_meant = |backing: &Backing| matches!(backing, Backing::Imported(memory) if !memory.is_of_pool());
        let allocation = state.memory.beginning(address, is_meant)?;
        match &allocation.backing {
            Backing::Imported(memory) if memory.change(|opened| *opened = opened.saturating_sub(1)) > 0 => Ok(()),
            _ => free_synchronously(state, &allocation),
        }
    }

    fn cuIpcGetEventHandle(out: Out<SharedHandle>, handle: RawHandle) {
        let (state, _) = current()?;
        out.check()?;
        if handle == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let event = events::event(state, handle)?;
        let shared = event.shared.as_ref().ok_or(Code::INVALID_HANDLE)?;
        out.set(SharedHandle::new(EVENT, shared.descriptor(), event.device, 0)?)
    }

    fn cuIpcOpenEventHandle(out: Out<RawHandle>, handle: SharedHandle) {
        let (state, context) = current()?;
        out.check()?;
        if handle.magic == MAGIC && handle.process == std::process::id() {
            return Err(Code::INVALID_CONTEXT);
        }
        state.backend.machine("cuIpcOpenEventHandle")?;
        let shared = handle.open(EVENT).and_then(InterprocessEvent::open).map_err(|_| Code::MAP_FAILED)?;
        let event = Event::new(&context, false, Some(shared))?;
        out.set(state.events.insert(Arc::new(event)).ok_or(Code::OUT_OF_MEMORY)?)
    }
}
