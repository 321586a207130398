//! When the device ran each piece of work, from NVIDIA's profiling interface (CUPTI), without events in the streams.
//!
//! libcupti is loaded when it is asked for and not before: as long as it watches, every launch costs the host a microsecond or two, and a program that
//! was watched once keeps a part of that. Only one tool of a process may watch. Where another one does, [`CuptiAbsence::Held`] says so, with its
//! name where the library tells it.
//!
//! The caller names what it submits: what a thread submits between [`CuptiSession::begin`] and [`CuptiSession::end`] has that number, and
//! [`CuptiSession::take`] gives the times of numbers that are over. Records wait in a limited number of buffers; what finds no room is counted.
//!
//! ```no_run
//! let session = kiln_cuda::cupti::CuptiSession::start()?;
//! session.begin(7);
//! // cuLaunchKernel and the like
//! session.end();
//! session.flush(true);
//! session.take(|time| println!("{} ran from {} to {}", time.number, time.begin_ns, time.end_ns));
//! # Ok::<(), kiln_cuda::cupti::CuptiAbsence>(())
//! ```

mod activity_buffers;
mod activity_log;
mod entry_points;

use std::sync::{Mutex, PoisonError};

use entry_points::EntryPoints;

pub use activity_log::DeviceTime;

use crate::graph::live_graphs;
use activity_log::ActivityLog;

/// Kinds of records: copies, fills, calls of the driver and of the runtime library, kernels, copies between devices, the numbers of callers. Nothing
/// reads the records of calls; but the library gives the caller's number only of calls that it records (seen with CUPTI 13.0). Libraries that
/// launch kernels call the runtime library.
const KINDS: [u32; 7] = [1, 2, 4, 5, 10, 22, 39];
/// A record for a whole graph in place of one for each of its nodes; where the library has that.
const GRAPHS: u32 = 51;
/// The kind of the numbers: one of those for callers.
const CALLERS: i32 = 3;
/// Another tool watches.
const MULTIPLE_SUBSCRIBERS: i32 = 39;
/// Buffers that are not complete are given, too.
const FORCED: u32 = 1;

/// The number of a caller's work: its own in the lower bits.
const NUMBER_BITS: u32 = 56;

/// Why the device's times cannot be had from CUPTI.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CuptiAbsence {
    /// The library is not there, or not whole.
    #[error("CUPTI is not there: {0}")]
    Library(String),
    /// Another tool of this process watches.
    #[error(
        "CUPTI is held by {}, and serves one tool of a process; end that tool, or use events",
        .by.as_deref().unwrap_or("another tool, such as Nsight, compute-sanitizer or PyTorch's profiler")
    )]
    Held {
        /// The tool, where the library tells its name.
        by: Option<String>,
    },
    /// There are graphs: replaying one that CUPTI did not see being built ends the process (seen with CUPTI 13.0).
    #[error(
        "CUPTI did not see {graphs} of the graphs of this process being built, and replaying one of them would end the process; begin the \
         recording before graphs are built, or use events"
    )]
    Graphs {
        /// How many there are.
        graphs: usize,
    },
    /// A call failed.
    #[error(
        "{call} answered {status} ({text}); a driver and a CUPTI of the same CUDA version are needed, and the right to profile"
    )]
    Call {
        /// Which.
        call: &'static str,
        /// What it answered.
        status: i32,
        /// The same in words.
        text: String,
    },
}

/// Who watches.
static WATCHING: Mutex<Watching> = Mutex::new(Watching { sessions: 0, next: 0, subscriber: 0 });

struct Watching {
    sessions: u32,
    next: u8,
    /// The handle of the subscription, as a number.
    subscriber: usize,
}

/// The times of one caller's work, for as long as it lives.
#[derive(Debug)]
pub struct CuptiSession {
    api: &'static EntryPoints,
    number: u8,
}

impl CuptiSession {
    /// Begins to watch.
    ///
    /// # Errors
    /// No library; another tool that watches; graphs that are there already; a driver that refuses.
    pub fn start() -> Result<Self, CuptiAbsence> {
        let api = EntryPoints::load()?;
        let mut watching = WATCHING.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.sessions == 0 {
            let graphs = live_graphs();
            if graphs > 0 {
                return Err(CuptiAbsence::Graphs { graphs });
            }
            watching.subscriber = api.subscribe()?;
            if let Err(absence) = Self::enable(api) {
                Self::disable(api, watching.subscriber);
                return Err(absence);
            }
        }
        watching.sessions += 1;
        watching.next = watching.next.wrapping_add(1);
        let number = watching.next;
        ActivityLog::open(number);
        Ok(Self { api, number })
    }

    fn enable(api: &'static EntryPoints) -> Result<(), CuptiAbsence> {
        activity_buffers::serve(api)?;
        for kind in KINDS {
            // SAFETY: the number is one of a kind of records.
            api.check("cuptiActivityEnable", unsafe { (api.enable)(kind) })?;
        }
        // SAFETY: as above; a library that does not know it has a record for each node.
        let _ = unsafe { (api.enable)(GRAPHS) };
        Ok(())
    }

    fn disable(api: &EntryPoints, subscriber: usize) {
        // SAFETY: numbers of kinds, and the handle of the subscription, which is not used again. What fails now changes nothing.
        unsafe {
            let _ = (api.flush_all)(FORCED);
            for kind in KINDS.into_iter().chain([GRAPHS]) {
                let _ = (api.disable)(kind);
            }
            let _ = (api.unsubscribe)(std::ptr::with_exposed_provenance_mut(subscriber));
        }
    }

    /// What this thread submits from here on has a number of the caller's, of at most 56 bits.
    pub fn begin(&self, number: u64) {
        let number = u64::from(self.number) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1);
        // SAFETY: a kind and a number.
        let _ = unsafe { (self.api.push_number)(CALLERS, number) };
    }

    /// The work with that number is submitted.
    pub fn end(&self) {
        let mut last = 0;
        // SAFETY: a kind, and a place for the number.
        let _ = unsafe { (self.api.pop_number)(CALLERS, &raw mut last) };
    }

    /// Has the records of all work that is over given out; if `whole`, those in buffers that are being filled, too.
    pub fn flush(&self, whole: bool) {
        // SAFETY: a flag.
        let _ = unsafe { (self.api.flush_all)(if whole { FORCED } else { 0 }) };
    }

    /// Gives the times that came since the last call. Work of several kernels may come in several parts.
    pub fn take(&self, mut each: impl FnMut(DeviceTime)) {
        for time in ActivityLog::take(self.number) {
            each(DeviceTime { number: time.number & ((1 << NUMBER_BITS) - 1), ..time });
        }
    }

    /// Records that found no room, of all callers.
    pub fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: no context asks for all of them; a place for the answer.
        let status = unsafe { (self.api.dropped)(std::ptr::null_mut(), 0, &raw mut dropped) };
        ActivityLog::dropped() + if status == 0 { dropped as u64 } else { 0 }
    }

    /// The time of now, as the times of work are given.
    pub fn now_ns(&self) -> u64 {
        let mut now = 0;
        // SAFETY: a place for the time.
        let _ = unsafe { (self.api.timestamp)(&raw mut now) };
        now
    }
}

impl Drop for CuptiSession {
    fn drop(&mut self) {
        let mut watching = WATCHING.lock().unwrap_or_else(PoisonError::into_inner);
        watching.sessions = watching.sessions.saturating_sub(1);
        if watching.sessions == 0 {
            Self::disable(self.api, watching.subscriber);
        }
        ActivityLog::close(self.number);
    }
}
