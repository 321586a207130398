//! Memory that another interface shares by a file, and semaphores, which none here can share.
//!
//! A file is that of memory of a simulated device, as `cuMemExportToShareableHandle` gives it. A buffer is a separate mapping: it stays when the memory is
//! destroyed, until the program frees it.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Code, Driver, PagesId, Protection, Reservation, ReserveRequest};
use kiln_sim::Machine;

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::context::Context;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current, state};
use crate::handle_table::RawHandle;
use crate::records;

/// The kinds of both that are files; the others are those of other systems.
const OPAQUE_FILE: c_uint = 1;
const TIMELINE_FILE: c_uint = 9;
const LAST_MEMORY_KIND: c_uint = 9;
const LAST_SEMAPHORE_KIND: c_uint = 10;
/// The flag of memory that another interface made for this use alone.
const DEDICATED: c_uint = 1;

/// The structure `CUDA_EXTERNAL_MEMORY_HANDLE_DESC`, with its union as words.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryDescription {
    kind: c_uint,
    padding: c_uint,
    file: c_int,
    words: [u32; 3],
    bytes: c_ulonglong,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// The structure `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
struct BufferDescription {
    offset: c_ulonglong,
    bytes: c_ulonglong,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// The structure `CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC`, with its union as words.
#[repr(C)]
#[derive(Clone, Copy)]
struct SemaphoreDescription {
    kind: c_uint,
    padding: c_uint,
    words: [u64; 2],
    flags: c_uint,
    reserved: [c_uint; 16],
}

const _: () = assert!(size_of::<MemoryDescription>() == size_of::<sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC>());
const _: () = assert!(size_of::<BufferDescription>() == size_of::<sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC>());
const _: () =
    assert!(size_of::<SemaphoreDescription>() == size_of::<sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>());

/// Pages of a file; they go when nothing names them any more.
struct ImportedPages {
    driver: Arc<dyn Driver>,
    pages: PagesId,
    bytes: u64,
}

impl Drop for ImportedPages {
    fn drop(&mut self) {
        // A lost device keeps nothing.
        let _ = self.driver.destroy(self.pages.into());
    }
}

/// Memory of a file, without an address.
pub(crate) struct ExternalMemory {
    device: u32,
    pages: Arc<ImportedPages>,
}

/// A mapping of it.
pub(crate) struct ExternalBuffer {
    pub(crate) reservation: Reservation,
    /// Where the buffer begins in the mapping.
    pub(crate) offset: u64,
    pages: Arc<ImportedPages>,
}

impl ExternalBuffer {
    /// Takes the mapping away; no work uses it any more.
    pub(crate) fn free(&self) -> Answer {
        let driver = &*self.pages.driver;
        driver.unmap(self.reservation.id, 0, self.reservation.bytes).or_code()?;
        driver.destroy(self.reservation.id.into()).or_code()
    }
}

/// The memory of a file. What is no file, or that of other memory, the driver does not know either.
fn import(state: &ProcessState, context: &Context, number: RawFd) -> Answer<ExternalMemory> {
    // SAFETY: the call looks for nothing but whether the number is a descriptor.
    if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(Code::UNKNOWN);
    }
    state.backend.machine("cuImportExternalMemory")?;
    // SAFETY: it is an open descriptor, and the API requires that the program leaves it open during the call.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    let Some(bytes) = Machine::exported_bytes(file) else {
        records::note_once(
            "external memory",
            "a file was given to cuImportExternalMemory that is not memory of a simulated device, as cuMemExportToShareableHandle makes it; \
             kiln has no other",
        );
        return Err(Code::UNKNOWN);
    };
    let pages = context.driver.import_pages(file, bytes).or_code()?;
    let pages = Arc::new(ImportedPages { driver: context.driver.clone(), pages, bytes });
    // SAFETY: the API gives the descriptor to the library when the import has worked, and the program must not use it again.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(ExternalMemory { device: context.device, pages })
}

/// Maps all of it, of which a buffer is a part.
fn map(memory: &ExternalMemory, offset: u64) -> Answer<ExternalBuffer> {
    let pages = memory.pages.clone();
    let driver = &*pages.driver;
    let reservation = driver.reserve(ReserveRequest { bytes: pages.bytes, at: None }).or_code()?;
    if let Err(error) = driver.map(reservation.id, 0, &[pages.pages], Protection::ReadWrite) {
        let _ = driver.destroy(reservation.id.into());
        return Err(error).or_code();
    }
    Ok(ExternalBuffer { reservation, offset, pages })
}

/// What every call answers that names a semaphore: there are none.
fn no_semaphore() -> Answer {
    state()?;
    Err(Code::INVALID_VALUE)
}

fn no_semaphore_node(given: usize) -> Answer {
    state()?;
    if given == 0 {
        return Err(Code::INVALID_VALUE);
    }
    records::note_once(
        "semaphore nodes",
        "a node for semaphores was added to a graph; kiln has no semaphores",
    );
    Err(Code::NOT_SUPPORTED)
}

driver_api! {
    fn cuImportExternalMemory(out: Out<RawHandle>, given: In<MemoryDescription>) {
        let (state, context) = current()?;
        let given = given.get()?;
        out.check()?;
        match given.kind {
            OPAQUE_FILE => {}
            0 => return Err(Code::INVALID_VALUE),
            kind if kind <= LAST_MEMORY_KIND => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_VALUE),
        }
        if given.bytes == 0 || given.flags & !DEDICATED != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = import(state, &context, given.file)?;
        out.set(state.external.insert(Arc::new(memory)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuExternalMemoryGetMappedBuffer(out: Out<u64>, handle: RawHandle, given: In<BufferDescription>) {
        let (state, context) = current()?;
        let given = given.get()?;
        out.check()?;
        let memory = state.external.get(handle).ok_or(Code::INVALID_VALUE)?;
        let ends = given.offset.checked_add(given.bytes).is_some_and(|end| end <= memory.pages.bytes);
        if !ends || given.bytes == 0 || given.flags != 0 || context.device != memory.device {
            return Err(Code::INVALID_VALUE);
        }
        let buffer = map(&memory, given.offset)?;
        let address = buffer.reservation.address.0 + given.offset;
        let (device, driver) = (memory.device, memory.pages.driver.clone());
        let backing = Backing::External(buffer);
        state.memory.insert(Allocation::new(address, given.bytes, device, context.number, driver, backing));
        out.set(address)
    }

    fn cuExternalMemoryGetMappedMipmappedArray(_out: Out<RawHandle>, handle: RawHandle, given: In<u64>) {
        let (state, _) = current()?;
        if state.external.get(handle).is_none() || given.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        records::note_once("external arrays", "an array of external memory was asked for, which kiln does not have");
        Err(Code::NOT_SUPPORTED)
    }

    fn cuDestroyExternalMemory(handle: RawHandle) {
        state()?.external.remove(handle).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuImportExternalSemaphore(out: Out<RawHandle>, given: In<SemaphoreDescription>) {
        current()?;
        let given = given.get()?;
        out.check()?;
        match given.kind {
            OPAQUE_FILE | TIMELINE_FILE if given.flags != 0 => Err(Code::INVALID_VALUE),
            OPAQUE_FILE | TIMELINE_FILE => {
                records::note_once(
                    "external semaphores",
                    "a semaphore of another interface was given to cuImportExternalSemaphore; no device of kiln can make one",
                );
                Err(Code::UNKNOWN)
            }
            kind if (1..=LAST_SEMAPHORE_KIND).contains(&kind) => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuDestroyExternalSemaphore(_semaphore: RawHandle) {
        no_semaphore()
    }

    fn cuSignalExternalSemaphoresAsync(
        _semaphores: In<RawHandle>, _uses: *const c_void, _count: c_uint, _stream: RawHandle
    ) {
        no_semaphore()
    }

    fn cuWaitExternalSemaphoresAsync(
        _semaphores: In<RawHandle>, _uses: *const c_void, _count: c_uint, _stream: RawHandle
    ) {
        no_semaphore()
    }

    fn cuGraphAddExternalSemaphoresSignalNode(
        _out: Out<RawHandle>, _graph: RawHandle, _after: In<RawHandle>, _count: usize, given: usize
    ) {
        no_semaphore_node(given)
    }

    fn cuGraphAddExternalSemaphoresWaitNode(
        _out: Out<RawHandle>, _graph: RawHandle, _after: In<RawHandle>, _count: usize, given: usize
    ) {
        no_semaphore_node(given)
    }

    fn cuGraphExternalSemaphoresSignalNodeGetParams(_node: RawHandle, _out: *mut c_void) {
        no_semaphore()
    }

    fn cuGraphExternalSemaphoresSignalNodeSetParams(_node: RawHandle, _given: *const c_void) {
        no_semaphore()
    }

    fn cuGraphExternalSemaphoresWaitNodeGetParams(_node: RawHandle, _out: *mut c_void) {
        no_semaphore()
    }

    fn cuGraphExternalSemaphoresWaitNodeSetParams(_node: RawHandle, _given: *const c_void) {
        no_semaphore()
    }

    fn cuGraphExecExternalSemaphoresSignalNodeSetParams(_exec: RawHandle, _node: RawHandle, _given: *const c_void) {
        no_semaphore()
    }

    fn cuGraphExecExternalSemaphoresWaitNodeSetParams(_exec: RawHandle, _node: RawHandle, _given: *const c_void) {
        no_semaphore()
    }
}
