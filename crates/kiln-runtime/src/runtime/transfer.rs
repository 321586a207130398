//! Copies between host and device through pinned memory.
//!
//! The driver copies pageable memory slowly, through its pinned memory. Here the host side is done by several threads, a
//! chunk each, while the device copies chunks that are ready. Small transfers use one block and no thread. When an upload returns,
//! the caller's bytes are no longer needed; when a download returns, they are there.
//!
//! A transfer is one submission: its stamp is published for all bytes at once, so that no other work sees half of it.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Command, DevicePlace, Driver, Error, HostBlock, Place, StreamId, Timeout, WaitTarget};
use kiln_order::{EventLease, Stamp, Stamps, StreamCount, StreamState, Use};
use kiln_trace::SubmissionKind;

use super::inner::Inner;
use super::recording::WorkLabel;
use super::ticket::Ticket;
use crate::error::{OutOfHostMemory, Result};
use crate::tracing_span;

/// The smallest chunk; below this the calls cost more than the copy.
const MIN_CHUNK_BYTES: usize = 64 << 10;
/// Below this, one thread is faster than starting several.
const PARALLEL_FROM_BYTES: usize = 16 << 20;
/// Chunks each thread keeps under way, so that it fills one while the device copies the other.
const CHUNKS_PER_THREAD: usize = 2;

/// Copies host bytes to a place. None as the place: nothing to copy.
pub(crate) fn upload(
    runtime: &Arc<Inner>,
    lane: &StreamState,
    uses: &mut [Use<'_>],
    to: Option<DevicePlace>,
    data: &[u8],
) -> Result<Ticket> {
    let Some(to) = to else { return runtime.submit_command(lane, uses, None) };
    let _span = tracing_span::transfer(lane.stream, "to device", data.len());
    let size = chunk_bytes(runtime);
    let chunks = Mutex::new(data.chunks(size).enumerate());
    // A function, so that the lock is let go before the chunk is copied.
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    run(runtime, lane, uses, ("upload", data.len()), |worker| {
        while let Some((at, chunk)) = next() {
            worker.upload(chunk, to.plus((at * size) as u64))?;
        }
        Ok(())
    })
}

/// Copies bytes from a place to the host, and waits for them.
pub(crate) fn download(
    runtime: &Arc<Inner>,
    lane: &StreamState,
    uses: &mut [Use<'_>],
    from: Option<DevicePlace>,
    into: &mut [u8],
) -> Result<()> {
    let Some(from) = from else { return runtime.submit_command(lane, uses, None)?.wait() };
    let bytes = into.len();
    let _span = tracing_span::transfer(lane.stream, "to host", bytes);
    let size = chunk_bytes(runtime);
    let chunks = Mutex::new(into.chunks_mut(size).enumerate());
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let ticket = run(runtime, lane, uses, ("download", bytes), |worker| {
        let mut under_way: Option<(usize, &mut [u8])> = None;
        while let Some((at, chunk)) = next() {
            let slot = worker.start_download(from.plus((at * size) as u64), chunk.len())?;
            if let Some((before, chunk)) = under_way.replace((slot, chunk)) {
                worker.finish_download(before, chunk)?;
            }
        }
        match under_way {
            Some((last, chunk)) => worker.finish_download(last, chunk),
            None => Ok(()),
        }
    })?;
    ticket.wait()
}

/// Repeats some bytes from a place on, until so many are written. None as the place: nothing to write.
///
/// The first of them come from the host; then the device copies what is there behind itself, twice as much each time.
pub(crate) fn repeat(
    runtime: &Arc<Inner>,
    lane: &StreamState,
    uses: &mut [Use<'_>],
    to: Option<DevicePlace>,
    unit: &[u8],
    bytes: u64,
) -> Result<Ticket> {
    let Some(to) = to else { return runtime.submit_command(lane, uses, None) };
    let units = (MIN_CHUNK_BYTES / unit.len().max(1)).max(1);
    let whole = units.saturating_mul(unit.len()).min(usize::try_from(bytes).unwrap_or(usize::MAX));
    let mut first = Vec::new();
    let what = "the first elements of a fill";
    first.try_reserve_exact(whole).map_err(|_| OutOfHostMemory { bytes: whole as u64, what })?;
    first.extend(unit.iter().copied().cycle().take(whole));
    run(runtime, lane, uses, ("fill", first.len()), |worker| {
        worker.upload(&first, to)?;
        let mut written = first.len() as u64;
        while written < bytes {
            let more = written.min(bytes - written);
            worker.copy_behind(to, written, more)?;
            written += more;
        }
        Ok(())
    })
}

/// Bytes of a chunk.
fn chunk_bytes(runtime: &Inner) -> usize {
    runtime.config().transfer_chunk_bytes.max(MIN_CHUNK_BYTES)
}

/// Runs one body per thread inside one submission.
fn run(
    runtime: &Arc<Inner>,
    lane: &StreamState,
    uses: &mut [Use<'_>],
    (name, bytes): (&'static str, usize),
    body: impl Fn(&mut TransferWorker<'_>) -> std::result::Result<(), Error> + Sync,
) -> Result<Ticket> {
    let chunks = bytes.div_ceil(chunk_bytes(runtime)).max(1);
    let threads =
        if bytes < PARALLEL_FROM_BYTES { 1 } else { runtime.config().transfer_threads.clamp(1, chunks) };
    let used = Mutex::new(Vec::with_capacity(CHUNKS_PER_THREAD));
    let label = || Some(WorkLabel::named(SubmissionKind::Copy, name, bytes as u64));
    let stamp = runtime.submit_as(lane, uses, label, |driver, stream| {
        let work = || {
            let mut worker = TransferWorker { runtime, driver, lane, stream, slots: Vec::new(), next: 0 };
            // The program asked for a transfer, and not for the blocks and copies that it is made of.
            let result = body(&mut worker)
                .map_err(|error| if error.is_sticky() { error.seen_by(name) } else { error });
            used.lock().unwrap_or_else(PoisonError::into_inner).append(&mut worker.slots);
            result
        };
        if threads == 1 {
            return work();
        }
        std::thread::scope(|scope| {
            // This thread is one of them. A system that has no thread to spare leaves more to the others.
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..threads).map_while(start).collect();
            let own = work();
            // Every worker is waited for, whatever the first of them says.
            let ended: Vec<_> = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| Err(worker_died())))
                .collect();
            ended.into_iter().fold(own, std::result::Result::and)
        })
    });
    let after = match &stamp {
        Ok(stamp) => *stamp,
        // Whatever was queued before the failure is on this stream, so its latest number covers it.
        Err(_) => Stamp { stream: lane.key, number: lane.submitted() },
    };
    for slot in used.into_inner().unwrap_or_else(PoisonError::into_inner) {
        runtime.staging().put_back(slot.block, Stamps::from(after), runtime.tracker());
    }
    Ok(Ticket::new(runtime, stamp?))
}

/// One thread's share of a transfer: its pinned blocks, used in turn.
struct TransferWorker<'a> {
    runtime: &'a Inner,
    driver: &'a dyn Driver,
    lane: &'a StreamState,
    stream: StreamId,
    slots: Vec<Slot>,
    next: usize,
}

struct Slot {
    block: HostBlock,
    /// Done when the last copy that used the block is.
    busy: Option<EventLease>,
}

impl TransferWorker<'_> {
    fn upload(&mut self, chunk: &[u8], to: DevicePlace) -> std::result::Result<(), Error> {
        let slot = self.free_slot(chunk.len())?;
        let block = &self.slots[slot].block;
        if !block.write(0, chunk) {
            return Err(outside(block, chunk.len()));
        }
        let from = Place::Host { block: block.id(), offset: 0 };
        self.copy(slot, Command::Copy { from, to: Place::Device(to), bytes: chunk.len() as u64 })
    }

    /// Copies the first bytes at a place behind those that are written.
    fn copy_behind(
        &mut self,
        start: DevicePlace,
        written: u64,
        bytes: u64,
    ) -> std::result::Result<(), Error> {
        let (from, to) = (Place::Device(start), Place::Device(start.plus(written)));
        self.driver.submit(self.stream, &Command::Copy { from, to, bytes })?;
        self.lane.counters().note_copy(&from, &to, bytes);
        Ok(())
    }

    fn start_download(&mut self, from: DevicePlace, bytes: usize) -> std::result::Result<usize, Error> {
        let slot = self.free_slot(bytes)?;
        let to = Place::Host { block: self.slots[slot].block.id(), offset: 0 };
        self.copy(slot, Command::Copy { from: Place::Device(from), to, bytes: bytes as u64 })?;
        if self.slots[slot].busy.is_none() {
            self.signal(slot)?;
        }
        Ok(slot)
    }

    fn finish_download(&mut self, slot: usize, into: &mut [u8]) -> std::result::Result<(), Error> {
        self.await_slot(slot)?;
        let block = &self.slots[slot].block;
        if block.read(0, into) { Ok(()) } else { Err(outside(block, into.len())) }
    }

    /// A block no copy uses, waiting for the one that was used longest ago if all are under way.
    fn free_slot(&mut self, bytes: usize) -> std::result::Result<usize, Error> {
        if self.slots.len() < CHUNKS_PER_THREAD {
            let block = self.runtime.staging().take(bytes as u64, self.runtime.tracker())?;
            self.slots.push(Slot { block, busy: None });
            return Ok(self.slots.len() - 1);
        }
        let slot = self.next;
        self.next = (self.next + 1) % CHUNKS_PER_THREAD;
        if self.slots[slot].busy.is_none() {
            self.signal(slot)?;
        }
        self.await_slot(slot)?;
        Ok(slot)
    }

    fn copy(&mut self, slot: usize, command: Command<'_>) -> std::result::Result<(), Error> {
        self.driver.submit(self.stream, &command)?;
        if let Command::Copy { from, to, bytes } = &command {
            self.lane.counters().note_copy(from, to, *bytes);
        }
        self.slots[slot].busy = None;
        // A later chunk of this thread will want this block again; a transfer of few chunks never asks.
        if self.slots.len() == CHUNKS_PER_THREAD { self.signal(slot) } else { Ok(()) }
    }

    fn signal(&mut self, slot: usize) -> std::result::Result<(), Error> {
        let event = match self.runtime.tracker().take_event() {
            Ok(event) => event,
            Err(error) if error.is_sticky() => return Err(error),
            // Without an event the stream is waited for, and then no copy uses the block.
            Err(_) => {
                self.lane.counters().add(StreamCount::HostWaits, 1);
                return self.driver.wait(WaitTarget::Stream(self.stream), Timeout::Never).map(|_| ());
            }
        };
        self.driver.submit(self.stream, &Command::Signal(event.event()))?;
        self.lane.counters().add(StreamCount::Signals, 1);
        self.slots[slot].busy = Some(event);
        Ok(())
    }

    fn await_slot(&mut self, slot: usize) -> std::result::Result<(), Error> {
        if let Some(event) = self.slots[slot].busy.take() {
            self.lane.counters().add(StreamCount::HostWaits, 1);
            let _ = self.driver.wait(WaitTarget::Event(event.event()), Timeout::Never)?;
        }
        Ok(())
    }
}

fn outside(block: &HostBlock, bytes: usize) -> Error {
    let refusal = kiln_driver::Refusal::OutOfRange {
        handle: block.id().to_string(),
        offset: 0,
        bytes: bytes as u64,
        size: block.len() as u64,
    };
    Error::refused("transfer", refusal)
}

fn worker_died() -> Error {
    Error::invalid(
        "transfer",
        "a thread that copied a chunk did not end well",
        "report this with the log above",
    )
}
