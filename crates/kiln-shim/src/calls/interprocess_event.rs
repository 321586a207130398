//! Events that several processes have.
//!
//! Each is a page that the processes map: how often it was recorded, and how far those records are done. A record counts up when it is queued, and says that it is
//! done by a function of the host in the order of its stream, so that its device moves while another process waits. A stream of another process
//! waits until the page says so.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::Code;
use kiln_sim::LaunchReadiness;
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::boundary::Answer;

const PAGE_BYTES: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"kilnevt1");
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The events of this process, by the numbers that launches name them with. Work that is queued may look at one that the program destroyed, so
/// that it is kept until its newest record is done.
static EVENTS: Mutex<Events> = Mutex::new(Events { next: 0, events: BTreeMap::new() });
/// Set at the end of the process, which waits for no other one.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

struct Events {
    next: u64,
    events: BTreeMap<u64, KnownEvent>,
}

struct KnownEvent {
    event: Arc<InterprocessEvent>,
    is_destroyed: bool,
}

/// What the page has.
#[repr(C)]
struct Counters {
    magic: AtomicU64,
    /// How often it was recorded.
    recorded: AtomicU64,
    /// The newest record that is done.
    done: AtomicU64,
    /// The process of the newest record.
    recorder: AtomicU64,
}

/// An event that other processes can have.
pub(crate) struct InterprocessEvent {
    pub(crate) number: u64,
    descriptor: OwnedFd,
    page: NonNull<Counters>,
}

// SAFETY: the page holds atomics alone, and is unmapped when no thread has the event any more.
unsafe impl Send for InterprocessEvent {}
// SAFETY: as above.
unsafe impl Sync for InterprocessEvent {}

impl InterprocessEvent {
    /// A new one.
    pub(crate) fn create() -> Answer<Arc<Self>> {
        let made = || -> rustix::io::Result<OwnedFd> {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let descriptor = rustix::fs::memfd_create("kiln-event", flags)?;
            rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR)?;
            rustix::fs::ftruncate(&descriptor, PAGE_BYTES as u64)?;
            rustix::fs::fcntl_add_seals(&descriptor, SEALS)?;
            Ok(descriptor)
        };
        let event = Self::map(made().map_err(|_| Code::OPERATING_SYSTEM)?)?;
        event.counters().magic.store(MAGIC, Ordering::Release);
        Ok(event)
    }

    /// The one of another process.
    pub(crate) fn open(descriptor: OwnedFd) -> Answer<Arc<Self>> {
        let seals = rustix::fs::fcntl_get_seals(&descriptor).map_err(|_| Code::INVALID_VALUE)?;
        let size = rustix::fs::fstat(&descriptor).map_err(|_| Code::INVALID_VALUE)?.st_size;
        if !seals.contains(SEALS) || size != PAGE_BYTES as i64 {
            return Err(Code::INVALID_VALUE);
        }
        let event = Self::map(descriptor)?;
        let is_event = event.counters().magic.load(Ordering::Acquire) == MAGIC;
        if is_event { Ok(event) } else { Err(Code::INVALID_VALUE) }
    }

    fn map(descriptor: OwnedFd) -> Answer<Arc<Self>> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system picks replaces nothing; the file has a page, and its seals keep it so.
        let page = unsafe {
            mmap(std::ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, descriptor.as_fd(), 0)
        };
        let page = page.ok().and_then(|page| NonNull::new(page.cast::<Counters>()));
        let page = page.ok_or(Code::OPERATING_SYSTEM)?;
        let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = events.next;
        events.next += 1;
        let event = Arc::new(Self { number, descriptor, page });
        events.events.insert(number, KnownEvent { event: event.clone(), is_destroyed: false });
        Ok(event)
    }

    fn counters(&self) -> &Counters {
        // SAFETY: the page is mapped until this is dropped, is aligned, and holds atomics, for which all bytes are valid.
        unsafe { self.page.as_ref() }
    }

    /// The file behind it.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Counts a record of this process, and says its number.
    pub(crate) fn begin_record(&self) -> u64 {
        self.counters().recorder.store(std::process::id().into(), Ordering::Relaxed);
        self.counters().recorded.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The newest record; 0 if there is none.
    pub(crate) fn newest(&self) -> u64 {
        self.counters().recorded.load(Ordering::Acquire)
    }

    /// Whether a record is done.
    pub(crate) fn is_done(&self, record: u64) -> bool {
        self.counters().done.load(Ordering::Acquire) >= record
    }

    /// Whether this process made the newest record.
    pub(crate) fn is_ours(&self) -> bool {
        self.counters().recorder.load(Ordering::Relaxed) == u64::from(std::process::id())
    }

    /// Whether the process that made the newest record is there.
    pub(crate) fn has_recorder(&self) -> bool {
        let process = self.counters().recorder.load(Ordering::Relaxed) as libc::pid_t;
        // SAFETY: signal 0 asks whether the process is there, and sends nothing.
        let asked = unsafe { libc::kill(process, 0) };
        asked == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}

impl Drop for InterprocessEvent {
    fn drop(&mut self) {
        // SAFETY: `map` mapped this page, and the event, the only one who uses it, goes away.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}

fn event(number: u64) -> Option<Arc<InterprocessEvent>> {
    let events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    events.events.get(&number).map(|known| known.event.clone())
}

/// The program destroyed an event.
pub(crate) fn destroy(number: u64) {
    let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = events.events.get_mut(&number) {
        known.is_destroyed = true;
    }
    events.events.retain(|_, known| !known.is_destroyed || !known.event.is_done(known.event.newest()));
}

/// The process ends: its streams do not wait for other processes any more.
pub(crate) fn end() {
    HAS_ENDED.store(true, Ordering::Relaxed);
}

/// A record is done.
pub(crate) fn end_record(number: u64, record: u64) {
    if let Some(event) = event(number) {
        event.counters().done.fetch_max(record, Ordering::AcqRel);
    }
}

/// Whether a stream that waits for a record can go on.
pub(crate) fn readiness(number: u64, record: u64) -> LaunchReadiness {
    match event(number) {
        Some(event) if !event.is_done(record) && !HAS_ENDED.load(Ordering::Relaxed) => {
            let what = format!("it waits for record {record} of an event that processes share");
            if event.is_ours() || !event.has_recorder() {
                return LaunchReadiness::Waiting(what);
            }
            LaunchReadiness::OtherProcess(what)
        }
        _ => LaunchReadiness::Ready,
    }
}
