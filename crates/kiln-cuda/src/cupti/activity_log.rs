//! What the records say, put together: which work ran when.
//!
//! A call of the driver has a number of the library's. One record says which number of the caller's it belongs to, others when the kernels, copies
//! and fills of the call ran. They come in any order, in different buffers. Only the fields at the start of a record are read, which
//! have stood where they are in every version of their layouts since CUDA 11.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const COPY: u32 = 1;
const FILL: u32 = 2;
const KERNEL: u32 = 3;
const CONCURRENT_KERNEL: u32 = 10;
const PEER_COPY: u32 = 22;
const CALLERS_NUMBER: u32 = 39;
const GRAPH: u32 = 51;

/// Calls, times and results that are kept, each; of more, the oldest go.
const MAX_KEPT: usize = 1 << 16;

/// When work ran, or a part of it, by the clock of [`CuptiSession::now_ns`](super::CuptiSession::now_ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceTime {
    /// The number that the caller gave it.
    pub number: u64,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What one record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Record {
    /// A call has a number of the caller's.
    Numbered { call: u32, number: u64 },
    /// Work of a call ran.
    Ran { call: u32, begin_ns: u64, end_ns: u64 },
}

/// What is known and not taken yet.
pub(super) struct ActivityLog {
    /// The callers' numbers of calls.
    numbers: BTreeMap<u32, u64>,
    /// Work of calls whose numbers did not come yet.
    early: BTreeMap<u32, (u64, u64)>,
    /// By caller.
    done: BTreeMap<u8, Vec<DeviceTime>>,
    dropped: u64,
}

static LOG: Mutex<ActivityLog> = Mutex::new(ActivityLog::new());

impl ActivityLog {
    const fn new() -> Self {
        Self { numbers: BTreeMap::new(), early: BTreeMap::new(), done: BTreeMap::new(), dropped: 0 }
    }

    pub(super) fn lock() -> MutexGuard<'static, Self> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the times of a caller.
    pub(super) fn open(caller: u8) {
        Self::lock().done.insert(caller, Vec::new());
    }

    /// Forgets them.
    pub(super) fn close(caller: u8) {
        Self::lock().done.remove(&caller);
    }

    /// The times of a caller.
    pub(super) fn take(caller: u8) -> Vec<DeviceTime> {
        Self::lock().done.get_mut(&caller).map(std::mem::take).unwrap_or_default()
    }

    /// Times that found no room here.
    pub(super) fn dropped() -> u64 {
        Self::lock().dropped
    }

    /// Adds a record as the library has it.
    ///
    /// # Safety
    /// It is whole.
    pub(super) unsafe fn add_raw(&mut self, record: *const u8) {
        // SAFETY: the caller vouches for the record, and every kind has these fields there.
        if let Some(record) = unsafe { Record::read(record) } {
            self.add(record);
        }
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Numbered { call, number } => {
                keep(&mut self.numbers, call, number);
                if let Some((begin_ns, end_ns)) = self.early.remove(&call) {
                    self.finish(DeviceTime { number, begin_ns, end_ns });
                }
            }
            Record::Ran { call, begin_ns, end_ns } => match self.numbers.get(&call) {
                Some(number) => self.finish(DeviceTime { number: *number, begin_ns, end_ns }),
                None => {
                    let (begin, end) = self.early.get(&call).copied().unwrap_or((begin_ns, end_ns));
                    keep(&mut self.early, call, (begin.min(begin_ns), end.max(end_ns)));
                }
            },
        }
    }

    fn finish(&mut self, time: DeviceTime) {
        let caller = (time.number >> super::NUMBER_BITS) as u8;
        let Some(done) = self.done.get_mut(&caller) else { return };
        let has_room = done.len() < MAX_KEPT;
        match done.last_mut() {
            // The kernels of one submission come one after the other.
            Some(last) if last.number == time.number => {
                last.begin_ns = last.begin_ns.min(time.begin_ns);
                last.end_ns = last.end_ns.max(time.end_ns);
            }
            _ if has_room => done.push(time),
            _ => self.dropped += 1,
        }
    }
}

/// Keeps something, and of too many not the oldest.
fn keep<T>(kept: &mut BTreeMap<u32, T>, call: u32, value: T) {
    kept.insert(call, value);
    if kept.len() > MAX_KEPT {
        kept.pop_first();
    }
}

impl Record {
    /// Reads the first fields; none for a kind that says nothing here, and for work without a time.
    ///
    /// # Safety
    /// The record is whole.
    unsafe fn read(record: *const u8) -> Option<Self> {
        // SAFETY: the caller vouches for the record; the offsets are those of the public layouts, within the smallest of each kind.
        let (word, long) = unsafe {
            (
                |at: usize| record.add(at).cast::<u32>().read_unaligned(),
                |at: usize| record.add(at).cast::<u64>().read_unaligned(),
            )
        };
        let (call, begin, end) = match word(0) {
            CALLERS_NUMBER => return Some(Self::Numbered { call: word(16), number: long(8) }),
            COPY | FILL => (44, 16, 24),
            KERNEL | CONCURRENT_KERNEL => (92, 16, 24),
            PEER_COPY => (60, 16, 24),
            GRAPH => (4, 8, 16),
            _ => return None,
        };
        let (call, begin_ns, end_ns) = (word(call), long(begin), long(end));
        if begin_ns == 0 || end_ns < begin_ns { None } else { Some(Self::Ran { call, begin_ns, end_ns }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> ActivityLog {
        let mut log = ActivityLog::new();
        log.done.insert(0, Vec::new());
        log
    }

    fn taken(log: &mut ActivityLog) -> Vec<(u64, u64, u64)> {
        let done = std::mem::take(log.done.get_mut(&0).unwrap());
        done.into_iter().map(|time| (time.number, time.begin_ns, time.end_ns)).collect()
    }

    #[test]
    fn times_find_their_numbers_whichever_comes_first() {
        let mut log = log();
        log.add(Record::Numbered { call: 5, number: 70 });
        log.add(Record::Ran { call: 6, begin_ns: 20, end_ns: 30 });
        log.add(Record::Ran { call: 6, begin_ns: 31, end_ns: 35 });
        log.add(Record::Ran { call: 5, begin_ns: 10, end_ns: 12 });
        log.add(Record::Ran { call: 5, begin_ns: 13, end_ns: 19 });
        assert_eq!(taken(&mut log), [(70, 10, 19)]);
        log.add(Record::Numbered { call: 6, number: 71 });
        assert_eq!(taken(&mut log), [(71, 20, 35)]);
        log.add(Record::Numbered { call: 7, number: 9 << super::super::NUMBER_BITS });
        log.add(Record::Ran { call: 7, begin_ns: 40, end_ns: 41 });
        assert_eq!(taken(&mut log), [], "of a caller that is gone");
    }

    #[test]
    fn what_is_kept_is_limited() {
        let mut log = log();
        let all = MAX_KEPT as u32 + 100;
        for call in 0..all {
            log.add(Record::Numbered { call, number: call.into() });
            log.add(Record::Ran { call: all + call, begin_ns: 1, end_ns: 2 });
        }
        assert_eq!((log.numbers.len(), log.early.len()), (MAX_KEPT, MAX_KEPT));
        for call in 100..all {
            log.add(Record::Ran { call, begin_ns: 1, end_ns: 2 });
        }
        assert_eq!((taken(&mut log).len(), log.dropped), (MAX_KEPT, 0));
        for number in 0..all {
            log.finish(DeviceTime { number: number.into(), begin_ns: 1, end_ns: 2 });
        }
        assert_eq!((taken(&mut log).len(), log.dropped), (MAX_KEPT, 100));
    }

    #[test]
    fn fields_are_read_where_the_layouts_have_them() {
        let read = |kind: u32, call: usize, begin: usize| {
            let mut record = [0_u8; 256];
            let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
            put(begin, &7_u64.to_ne_bytes());
            put(begin + 8, &9_u64.to_ne_bytes());
            put(call, &3_u32.to_ne_bytes());
            put(0, &kind.to_ne_bytes());
            // SAFETY: longer than any record.
            unsafe { Record::read(record.as_ptr()) }
        };
        let ran = Some(Record::Ran { call: 3, begin_ns: 7, end_ns: 9 });
        assert_eq!([read(CONCURRENT_KERNEL, 92, 16), read(KERNEL, 92, 16)], [ran; 2]);
        assert_eq!([read(COPY, 44, 16), read(FILL, 44, 16), read(PEER_COPY, 60, 16)], [ran; 3]);
        assert_eq!(read(GRAPH, 4, 8), ran);
        assert_eq!(read(CALLERS_NUMBER, 16, 8), Some(Record::Numbered { call: 3, number: 7 }));
        // Calls of the driver and of the runtime library, and a kind that is not known here.
        assert_eq!([read(4, 32, 8), read(5, 32, 8), read(200, 92, 16)], [None; 3]);
    }
}
