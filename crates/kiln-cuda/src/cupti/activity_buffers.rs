//! Memory that libcupti fills with records, a limited amount.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use super::CuptiAbsence;
use super::activity_log::ActivityLog;
use super::entry_points::EntryPoints;

/// Words of a buffer: records of some 250 kernels, so that they come soon.
const BUFFER_WORDS: usize = 8192;
const BUFFER_BYTES: usize = BUFFER_WORDS * 8;
/// Buffers that the library may hold at once; when it has none, it drops records and counts them.
const MAX_BUFFERS: usize = 64;

type Buffer = [u64; BUFFER_WORDS];

static API: AtomicPtr<EntryPoints> = AtomicPtr::new(std::ptr::null_mut());
static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers { lent: 0, idle: Vec::new() });

struct Buffers {
    lent: usize,
    idle: Vec<Box<Buffer>>,
}

/// Has the library ask here for buffers.
pub(super) fn serve(api: &'static EntryPoints) -> Result<(), CuptiAbsence> {
    API.store(std::ptr::from_ref(api).cast_mut(), Ordering::Release);
    // SAFETY: both functions have the types that the library calls, and live as long as the process.
    api.check("cuptiActivityRegisterCallbacks", unsafe { (api.register)(requested, completed) })
}

fn buffers() -> std::sync::MutexGuard<'static, Buffers> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library wants a buffer.
unsafe extern "C" fn requested(buffer: *mut *mut u8, bytes: *mut usize, records: *mut usize) {
    let lent = {
        let mut buffers = buffers();
        if buffers.lent < MAX_BUFFERS {
            buffers.lent += 1;
            Some(buffers.idle.pop().unwrap_or_else(|| Box::new([0; BUFFER_WORDS])))
        } else {
            None
        }
    };
    let (start, size) = match lent {
        Some(lent) => (Box::into_raw(lent).cast::<u8>(), BUFFER_BYTES),
        None => (std::ptr::null_mut(), 0),
    };
    // SAFETY: the library gives places for the three answers; as many records as fit.
    unsafe {
        buffer.write(start);
        bytes.write(size);
        records.write(0);
    }
}

/// The library is done with a buffer.
unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    let api = API.load(Ordering::Acquire);
    // SAFETY: null, or what `serve` put there, which lives for ever.
    if let Some(api) = unsafe { api.as_ref() }
        && valid > 0
    {
        // SAFETY: the library filled so many bytes of the buffer.
        unsafe { read(api, buffer, valid.min(BUFFER_BYTES)) };
    }
    // SAFETY: every buffer the library has is one that `requested` made of such a box, and it gives each back once.
    let buffer = unsafe { Box::from_raw(buffer.cast::<Buffer>()) };
    let mut buffers = buffers();
    buffers.lent = buffers.lent.saturating_sub(1);
    if buffers.idle.len() < MAX_BUFFERS {
        buffers.idle.push(buffer);
    }
}

/// Logs the records of a buffer.
///
/// # Safety
/// The library filled so many bytes.
unsafe fn read(api: &EntryPoints, buffer: *mut u8, valid: usize) {
    let mut log = ActivityLog::lock();
    let mut record = std::ptr::null_mut();
    // SAFETY: the buffer and its length, as the library gave them, and the last record it found; it answers with the next one or that there is none.
    while unsafe { (api.next_record)(buffer, valid, &raw mut record) } == 0 && !record.is_null() {
        // SAFETY: a record of the library, whole.
        unsafe { log.add_raw(record) };
    }
}
