//! Recordings, made by hand and at random.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_trace::{
    AllocationRecord, AwaitedBlock, CollectiveRecord, CommandRecord, DeviceRecord, EndRecord, FaultRecord,
    FindingRecord, FreeRecord, HeapChange, HeapRecord, HostWaitCause, HostWaitRecord, RecordingWriter,
    StartRecord, StreamRecord, StreamWaitRecord, SubmissionKind, SubmissionRecord, TakeoverPhase,
    TakeoverRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp, TraceStream,
};
use kiln_watch::WatchedRecording;

/// A file that goes away with the test.
pub(crate) struct Recording(pub(crate) PathBuf);

impl Recording {
    pub(crate) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("kiln-watch-{}-{number}.kiln", std::process::id())))
    }

    pub(crate) fn of(events: &[TraceEvent<'_>], per_block: usize) -> Self {
        let recording = Self::empty();
        std::fs::write(&recording.0, bytes(events, per_block)).unwrap();
        recording
    }

    /// Adds bytes at the end.
    pub(crate) fn append(&self, bytes: &[u8]) {
        File::options().append(true).create(true).open(&self.0).unwrap().write_all(bytes).unwrap();
    }

    /// All of it, read.
    pub(crate) fn read(&self) -> WatchedRecording {
        let watched = WatchedRecording::new(&self.0);
        watched.open().unwrap();
        watched.read_all().unwrap();
        watched
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A recording as bytes, with a block after every `per_block` events.
pub(crate) fn bytes(events: &[TraceEvent<'_>], per_block: usize) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for (count, event) in (1..).zip(events) {
        writer.push(event).unwrap();
        if count % per_block == 0 {
            writer.write_block().unwrap();
        }
    }
    writer.finish().unwrap()
}

pub(crate) fn stamp(stream: u32, number: u64) -> TraceStamp {
    TraceStamp { stream: TraceStream { device: 0, stream }, number }
}

pub(crate) fn line(line: u32) -> Option<TraceLine<'static>> {
    Some(TraceLine { file: "src/train.rs", line })
}

pub(crate) fn span(begin_ns: u64, end_ns: u64) -> TimeSpan {
    TimeSpan { begin_ns, end_ns }
}

/// A kernel that was submitted in the nanosecond before `queued` and ran in `ran`.
pub(crate) fn kernel(
    name: &'static str,
    at: TraceStamp,
    in_line: u32,
    queued: u64,
    ran: TimeSpan,
) -> TraceEvent<'static> {
    TraceEvent::Submission(SubmissionRecord {
        stamp: at,
        name,
        line: line(in_line),
        host: span(queued - 1, queued),
        device: Some(ran),
        ..SubmissionRecord::default()
    })
}

pub(crate) fn wait(
    waiter: TraceStamp,
    writer: TraceStamp,
    covers: u64,
    tag: &'static str,
) -> TraceEvent<'static> {
    TraceEvent::StreamWait(StreamWaitRecord {
        waiter,
        writer,
        covers,
        block: Some(AwaitedBlock { block: 12, tag }),
        ..StreamWaitRecord::default()
    })
}

pub(crate) fn allocated(block: u64, bytes: u64, tag: &'static str, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Allocation(AllocationRecord {
        device: 0,
        block,
        address: 0x7f00_0000_0000 + (block << 22),
        bytes,
        tag,
        line: line(9),
        time_ns,
    })
}

pub(crate) fn freed(block: u64, bytes: u64, tag: &'static str, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Free(FreeRecord { device: 0, block, bytes, tag, time_ns })
}

pub(crate) fn synchronized(thread: u32, at: u32, span: TimeSpan) -> TraceEvent<'static> {
    TraceEvent::HostWait(HostWaitRecord {
        thread,
        cause: HostWaitCause::Synchronize,
        line: line(at),
        span,
        ..HostWaitRecord::default()
    })
}

/// A race that was found in a work.
pub(crate) fn race(at: TraceStamp, message: &'static str) -> TraceEvent<'static> {
    TraceEvent::Finding(FindingRecord {
        rule: "race",
        kernel: "step",
        line: Some(TraceLine { file: "step.cu", line: 7 }),
        message,
        stamp: Some(at),
        submitted: line(40),
        time_ns: 140_000,
        ..FindingRecord::default()
    })
}

/// A small training step: a consumer that waits for unrelated work, a late host, memory, a fault, a takeover and a collective.
pub(crate) fn planted() -> Vec<TraceEvent<'static>> {
    vec![
        TraceEvent::Start(StartRecord { program: "train", process: 7, ..StartRecord::default() }),
        TraceEvent::Device(DeviceRecord { name: "simulated GPU", ..DeviceRecord::default() }),
        TraceEvent::Stream(StreamRecord { stream: stamp(0, 0).stream, name: "main" }),
        TraceEvent::Stream(StreamRecord { stream: stamp(1, 0).stream, name: "copies" }),
        allocated(12, 3 << 20, "activations", 500),
        allocated(13, 1 << 20, "weights", 600),
        kernel("produce", stamp(0, 1), 10, 900, span(10_000, 30_000)),
        kernel("unrelated", stamp(0, 2), 11, 950, span(30_000, 90_000)),
        wait(stamp(1, 1), stamp(0, 1), 2, "activations"),
        kernel("consume", stamp(1, 1), 20, 1_000, span(90_000, 95_000)),
        synchronized(0, 30, span(1_100, 96_000)),
        kernel("step", stamp(0, 3), 40, 120_000, span(120_500, 140_000)),
        freed(12, 3 << 20, "activations", 130_000),
        TraceEvent::Collective(CollectiveRecord {
            stamp: stamp(1, 2),
            name: "all_reduce",
            ranks: 4,
            bytes: 1 << 16,
            ..CollectiveRecord::default()
        }),
        TraceEvent::Submission(SubmissionRecord {
            stamp: stamp(1, 2),
            kind: SubmissionKind::Collective,
            name: "all_reduce",
            host: span(121_000, 122_000),
            device: Some(span(140_000, 150_000)),
            ..SubmissionRecord::default()
        }),
        TraceEvent::Fault(FaultRecord {
            device: 0,
            message: "an illegal address in step",
            stamp: Some(stamp(0, 3)),
            line: line(40),
            time_ns: 151_000,
        }),
        TraceEvent::Takeover(TakeoverRecord {
            device: 0,
            phase: TakeoverPhase::Rebuilding,
            span: span(151_000, 160_000),
        }),
    ]
}

pub(crate) const MIB: u64 = 1 << 20;
/// Where the heap of a device begins.
pub(crate) const HEAP: u64 = 0x7f00_0000_0000;

/// A block of some MiB at a MiB of the heap.
pub(crate) fn given(
    block: u64,
    at_mib: u64,
    mib: u64,
    tag: &'static str,
    time_ns: u64,
) -> TraceEvent<'static> {
    TraceEvent::Allocation(AllocationRecord {
        device: 0,
        block,
        address: HEAP + at_mib * MIB,
        bytes: mib * MIB,
        tag,
        line: line(9),
        time_ns,
    })
}

pub(crate) fn back(block: u64, mib: u64, tag: &'static str, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Free(FreeRecord { device: 0, block, bytes: mib * MIB, tag, time_ns })
}

/// A heap of 16 MiB with a hole of 4 MiB in the middle, in which 6 MiB are asked for.
pub(crate) fn holed() -> Vec<TraceEvent<'static>> {
    let word = |text| TraceEvent::Command(CommandRecord { text, ..CommandRecord::default() });
    vec![
        word("./train"),
        word("--steps"),
        word("10"),
        given(1, 0, 6, "weights", 1_000),
        given(2, 6, 4, "activations", 2_000),
        given(3, 10, 6, "gradients", 3_000),
        back(2, 4, "activations", 50_000),
        TraceEvent::Heap(HeapRecord {
            change: HeapChange::OutOfMemory,
            bytes: 6 * MIB,
            held_bytes: 16 * MIB,
            free_bytes: 4 * MIB,
            largest_free_bytes: 4 * MIB,
            line: line(77),
            time_ns: 80_000,
            ..HeapRecord::default()
        }),
        back(3, 6, "gradients", 90_000),
        given(4, 10, 2, "gradients", 95_000),
        TraceEvent::End(EndRecord { time_ns: 110_000 }),
    ]
}

/// A rank of a job that does two collectives, and comes late to the first by so much.
pub(crate) fn rank_events(rank: u32, ranks: u32, unix_ns: u64, late_ns: u64) -> Vec<TraceEvent<'static>> {
    let mut events = vec![
        TraceEvent::Start(StartRecord {
            program: "train",
            process: 100 + rank,
            unix_ns,
            ..StartRecord::default()
        }),
        TraceEvent::Device(DeviceRecord { name: "simulated GPU", ..DeviceRecord::default() }),
        TraceEvent::Stream(StreamRecord { stream: stamp(0, 0).stream, name: "main" }),
        kernel("gemm", stamp(0, 1), 10, 900, span(1_000_000, 2_000_000 + late_ns)),
    ];
    // All are done when the last has come.
    for (number, begin, end) in [(2, 2_000_000 + late_ns, 20_000_000), (3, 22_000_000, 24_000_000)] {
        let call = CollectiveRecord {
            stamp: stamp(0, number),
            name: "all_reduce",
            communicator: 42,
            rank,
            ranks,
            bytes: 1 << 16,
        };
        events.push(TraceEvent::Collective(call));
        events.push(TraceEvent::Submission(SubmissionRecord {
            stamp: call.stamp,
            kind: SubmissionKind::Collective,
            name: call.name,
            line: line(50),
            host: span(1_000, 2_000),
            device: Some(span(begin, end)),
            ..SubmissionRecord::default()
        }));
    }
    events
}

/// Random numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

const NAMES: [&str; 6] = ["gemm", "relu", "layer_norm", "copy", "all_reduce", "softmax"];

/// A recording of some streams and threads with so many works: gaps, waits, swapped neighbours, works without a measured time or length.
pub(crate) fn random_events(seed: u64, streams: u32, works: usize) -> Vec<TraceEvent<'static>> {
    let mut random = Random::new(seed);
    let mut events = Vec::with_capacity(works + works / 4);
    let mut clocks = vec![(1_000_u64, 0_u64); streams as usize];
    let mut thread_clock = 0;
    while events.len() < works {
        let stream = random.below(streams.into()) as u32;
        let (clock, number) = &mut clocks[stream as usize];
        *number += 1;
        let gap = if random.below(3) == 0 { random.below(20_000) } else { 0 };
        let begin = *clock + gap;
        let length = match random.below(10) {
            0 => 0,
            1 => random.below(200_000),
            _ => 1 + random.below(3_000),
        };
        *clock = begin + length;
        let at = stamp(stream, *number);
        if random.below(4) == 0 {
            events.push(wait(
                at,
                stamp(random.below(streams.into()) as u32, 1 + random.below(*number)),
                *number,
                "x",
            ));
        }
        let host = begin.saturating_sub(random.below(30_000)).max(1);
        let work = TraceEvent::Submission(SubmissionRecord {
            stamp: at,
            name: NAMES[random.below(6) as usize],
            host: span(host - 1, host),
            device: (random.below(50) != 0).then_some(span(begin, begin + length)),
            ..SubmissionRecord::default()
        });
        events.push(work);
        let last = events.len() - 1;
        if random.below(40) == 0 && last > 0 {
            events.swap(last, last - 1);
        }
        if random.below(20) == 0 {
            let begin = thread_clock + random.below(50_000);
            thread_clock = begin + random.below(100_000);
            events.push(synchronized(random.below(2) as u32, 30, span(begin, thread_clock)));
        }
    }
    events
}
