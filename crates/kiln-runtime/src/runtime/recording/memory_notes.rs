//! Writes down what the heap, or the driver's pool, takes from the device, gives back, remaps and refuses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_mem::{DriverPool, Exhausted, Heap, MemoryResourceExt, PoolActivity};
use kiln_trace::{HeapChange, HeapRecord, RecordingLane, TraceEvent, TraceLine};

use super::stream_lanes::StreamLanes;
use super::work_context;
use crate::runtime::inner::Inner;

/// What the memory of one device did, as of the last look.
pub(super) struct MemoryNotes {
    lanes: Arc<StreamLanes>,
    host: Arc<RecordingLane>,
    held_bytes: AtomicU64,
    remapped_bytes: AtomicU64,
    pool: Mutex<PoolActivity>,
}

impl MemoryNotes {
    /// One that notes what is held when the recording begins. What was remapped and trimmed before is not told.
    pub(super) fn begin(runtime: &Inner, lanes: Arc<StreamLanes>, host: Arc<RecordingLane>) -> Self {
        let remapped = runtime.memory().find::<Heap>().map_or(0, Heap::remapped_bytes);
        let pool = runtime.memory().find::<DriverPool>().map(DriverPool::activity).unwrap_or_default();
        // As if all that it holds had come at once.
        let pool = PoolActivity { grown_bytes: pool.trimmed_bytes, ..pool };
        let notes = Self {
            lanes,
            host,
            held_bytes: AtomicU64::new(0),
            remapped_bytes: AtomicU64::new(remapped),
            pool: Mutex::new(pool),
        };
        notes.look(runtime, "");
        notes
    }

    /// Records what changed since the last look, for an allocation with this tag.
    pub(super) fn look(&self, runtime: &Inner, tag: &'static str) {
        if let Some(heap) = runtime.memory().find::<Heap>() {
            self.look_at_heap(heap, tag);
        } else if let Some(pool) = runtime.memory().find::<DriverPool>() {
            self.look_at_pool(pool, tag);
        }
    }

    fn look_at_heap(&self, heap: &Heap, tag: &'static str) {
        let held_bytes = heap.held_bytes();
        let before = self.held_bytes.swap(held_bytes, Ordering::Relaxed);
        if held_bytes > before {
            self.push(HeapRecord { bytes: held_bytes - before, held_bytes, ..caused(HeapChange::Grew, tag) });
        } else if held_bytes < before {
            let bytes = before - held_bytes;
            self.push(HeapRecord { change: HeapChange::Shrank, bytes, held_bytes, ..HeapRecord::default() });
        }
        let remapped = heap.remapped_bytes();
        let bytes = remapped.saturating_sub(self.remapped_bytes.fetch_max(remapped, Ordering::Relaxed));
        if bytes > 0 {
            self.push(HeapRecord { bytes, held_bytes, ..caused(HeapChange::Remapped, tag) });
        }
    }

    fn look_at_pool(&self, pool: &DriverPool, tag: &'static str) {
        let now = pool.activity();
        let before = std::mem::replace(&mut *self.pool.lock().unwrap_or_else(PoisonError::into_inner), now);
        let PoolActivity { grown_bytes, unseen_bytes, trims, trimmed_bytes } = now;
        let unseen = unseen_bytes.saturating_sub(before.unseen_bytes);
        let grown = grown_bytes.saturating_sub(before.grown_bytes).saturating_sub(unseen);
        let trimmed = trimmed_bytes.saturating_sub(before.trimmed_bytes);
        if unseen > 0 {
            // Which allocations that was for is not known.
            let held_bytes = before.held_bytes().saturating_add(unseen);
            self.push(HeapRecord { bytes: unseen, held_bytes, ..caused(HeapChange::PoolGrew, "") });
        }
        if trims > before.trims {
            let held_bytes = now.held_bytes().saturating_sub(grown);
            self.push(HeapRecord { bytes: trimmed, held_bytes, ..caused(HeapChange::PoolTrimmed, "") });
        }
        if grown > 0 {
            let held_bytes = now.held_bytes();
            self.push(HeapRecord { bytes: grown, held_bytes, ..caused(HeapChange::PoolGrew, tag) });
        }
    }

    /// An allocation was refused.
    pub(super) fn refused(&self, runtime: &Inner, exhausted: &Exhausted, tag: &'static str) {
        // What was tried to meet it comes first.
        self.look(runtime, "");
        let pool = runtime.memory().find::<DriverPool>();
        self.push(HeapRecord {
            bytes: exhausted.requested_bytes,
            held_bytes: pool.map_or(exhausted.reserved_bytes, |pool| pool.activity().held_bytes()),
            free_bytes: exhausted.free_bytes,
            largest_free_bytes: exhausted.largest_free_bytes,
            limit_bytes: exhausted.limit_bytes.unwrap_or(0),
            ..caused(HeapChange::OutOfMemory, tag)
        });
    }

    /// An allocation was refused that is larger than any block can be.
    pub(super) fn refused_size(&self, runtime: &Inner, bytes: u64, tag: &'static str) {
        let held_bytes = match runtime.memory().find::<Heap>() {
            Some(heap) => heap.held_bytes(),
            None => runtime.memory().find::<DriverPool>().map_or(0, |pool| pool.activity().held_bytes()),
        };
        self.push(HeapRecord { bytes, held_bytes, ..caused(HeapChange::TooLarge, tag) });
    }

    fn push(&self, record: HeapRecord<'static>) {
        let (device, time_ns) = (self.lanes.device(), self.lanes.now());
        self.host.push(TraceEvent::Heap(HeapRecord { device, time_ns, ..record }));
    }
}

/// What happened because of an allocation with this tag, which the thread makes.
fn caused(change: HeapChange, tag: &'static str) -> HeapRecord<'static> {
    // What changed since an earlier look belongs to no allocation.
    let line = if tag.is_empty() { None } else { work_line() };
    HeapRecord { change, tag, line, ..HeapRecord::default() }
}

/// The line of the program that this thread works for, if a call noted it.
pub(super) fn work_line() -> Option<TraceLine<'static>> {
    work_context::line().map(|line| TraceLine { file: line.file(), line: line.line() })
}
