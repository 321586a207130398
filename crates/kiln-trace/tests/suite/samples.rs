//! Hand-made recordings.

use kiln_trace::{
    AllocationRecord, AwaitedBlock, CollectiveRecord, CommandGaps, CommandPart, CommandRecord, DeviceRecord,
    DropCause, DroppedRecord, EarlierRecord, EndRecord, FaultRecord, FindingRecord, FreeRecord, HeapChange,
    HeapRecord, HostWaitCause, HostWaitRecord, LaunchSize, PostMortemRecord, RecordingClock, RecordingWriter,
    StartRecord, StreamRecord, StreamWaitRecord, SubmissionKind, SubmissionRecord, TakeoverPhase,
    TakeoverRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp, TraceStream, WaitReason, WorkerRecord,
};

/// A submission on stream `stream` of device 0.
pub(crate) fn stamp(stream: u32, number: u64) -> TraceStamp {
    TraceStamp { stream: TraceStream { device: 0, stream }, number }
}

pub(crate) fn span(begin_ns: u64, end_ns: u64) -> TimeSpan {
    TimeSpan { begin_ns, end_ns }
}

pub(crate) fn line(line: u32) -> Option<TraceLine<'static>> {
    Some(TraceLine { file: "src/train.rs", line })
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
        size: Some(LaunchSize { grid: [64, 1, 1], block: [256, 1, 1], shared_bytes: 0 }),
        host: span(queued - 1, queued),
        device: Some(ran),
        ..SubmissionRecord::default()
    })
}

/// A wait for a block that another stream writes; the event covers submissions up to `covers`.
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
        reason: WaitReason::ReadAfterWrite,
        block: Some(AwaitedBlock { block: 12, tag }),
        line: None,
        time_ns: 5,
    })
}

pub(crate) fn allocated(
    block: u64,
    bytes: u64,
    tag: &'static str,
    at: u64,
    time_ns: u64,
) -> TraceEvent<'static> {
    let line = line(at as u32);
    TraceEvent::Allocation(AllocationRecord {
        device: 0,
        block,
        address: block << 20,
        bytes,
        tag,
        line,
        time_ns,
    })
}

pub(crate) fn freed(block: u64, bytes: u64, tag: &'static str, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Free(FreeRecord { device: 0, block, bytes, tag, time_ns })
}

pub(crate) fn synchronized(at: u32, span: TimeSpan) -> TraceEvent<'static> {
    TraceEvent::HostWait(HostWaitRecord {
        cause: HostWaitCause::Synchronize,
        line: line(at),
        span,
        ..HostWaitRecord::default()
    })
}

/// A wait that line 40 of the program asked for.
pub(crate) fn asked(waiter: TraceStamp, writer: TraceStamp) -> TraceEvent<'static> {
    TraceEvent::StreamWait(StreamWaitRecord {
        waiter,
        writer,
        covers: writer.number,
        reason: WaitReason::Asked,
        block: None,
        line: line(40),
        time_ns: 5,
    })
}

/// One event of each kind, and two of some.
pub(crate) fn all_kinds() -> Vec<TraceEvent<'static>> {
    let work = vec![
        TraceEvent::Start(StartRecord {
            program: "train",
            process: 77,
            clock: RecordingClock::Wall,
            unix_ns: 1_700_000_000_000_000_000,
            run: "monday",
        }),
        TraceEvent::Command(CommandRecord {
            part: CommandPart::Variable,
            name: "KILN_SIM_SEED",
            text: "7",
            lacks: CommandGaps::LATER_WORDS,
            ..CommandRecord::default()
        }),
        TraceEvent::Command(CommandRecord {
            text: "./tr\\303n",
            is_escaped: true,
            records_itself: true,
            ..CommandRecord::default()
        }),
        TraceEvent::Device(DeviceRecord { name: "simulated GPU", ..DeviceRecord::default() }),
        TraceEvent::Stream(StreamRecord { stream: stamp(0, 0).stream, name: "main" }),
        TraceEvent::Earlier(EarlierRecord { stamp: stamp(2, 7), until_ns: None }),
        TraceEvent::Earlier(EarlierRecord { stamp: stamp(2, 7), until_ns: Some(150) }),
        kernel("gemm", stamp(0, 1), 10, 100, span(200, 900)),
        wait(stamp(1, 1), stamp(0, 1), 1, "activations"),
        kernel("relu", stamp(1, 1), 11, 150, span(900, 1_000)),
        TraceEvent::Submission(SubmissionRecord {
            stamp: stamp(1, 2),
            kind: SubmissionKind::Copy,
            name: "download",
            bytes: 4096,
            host: span(1_100, 1_200),
            ..SubmissionRecord::default()
        }),
        TraceEvent::Collective(CollectiveRecord {
            stamp: stamp(1, 3),
            name: "all_reduce",
            communicator: 0xabc,
            rank: 1,
            ranks: 8,
            bytes: 1 << 20,
        }),
        TraceEvent::Submission(SubmissionRecord {
            stamp: stamp(1, 3),
            kind: SubmissionKind::Collective,
            name: "all_reduce",
            host: span(1_300, 1_310),
            device: Some(span(1_400, 1_800)),
            ..SubmissionRecord::default()
        }),
        synchronized(20, span(1_350, 1_900)),
        TraceEvent::HostWait(HostWaitRecord {
            device: 0,
            thread: 3,
            cause: HostWaitCause::Download,
            awaited: Some(stamp(1, 2)),
            line: None,
            span: span(1_200, 1_400),
        }),
    ];
    [work, memory_and_faults()].concat()
}

/// A race in a kernel.
pub(crate) fn finding() -> TraceEvent<'static> {
    TraceEvent::Finding(FindingRecord {
        device: 0,
        rule: "race",
        kernel: "relu",
        line: Some(TraceLine { file: "relu.cu", line: 7 }),
        message: "thread 3 writes what thread 4 reads. Repeat with seed 7.",
        stamp: Some(stamp(1, 1)),
        submitted: line(11),
        time_ns: 1_000,
        more: 0,
    })
}

/// A worker process that has device 0 from then on.
pub(crate) fn worker(process: u32, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Worker(WorkerRecord { device: 0, process, name: "train", time_ns })
}

/// A line of the post-mortem of device 0.
pub(crate) fn post_mortem(line: &'static str) -> TraceEvent<'static> {
    TraceEvent::PostMortem(PostMortemRecord { device: 0, generation: 0, line, time_ns: 3_000 })
}

fn memory_and_faults() -> Vec<TraceEvent<'static>> {
    vec![
        allocated(12, 1 << 20, "activations", 9, 50),
        TraceEvent::Heap(HeapRecord {
            device: 0,
            change: HeapChange::Grew,
            bytes: 2 << 20,
            held_bytes: 2 << 20,
            tag: "activations",
            line: line(9),
            time_ns: 45,
            ..HeapRecord::default()
        }),
        TraceEvent::Heap(HeapRecord {
            change: HeapChange::Remapped,
            bytes: 6 << 20,
            held_bytes: 2 << 20,
            tag: "activations",
            time_ns: 48,
            ..HeapRecord::default()
        }),
        TraceEvent::Heap(HeapRecord {
            device: 0,
            change: HeapChange::OutOfMemory,
            bytes: 8 << 20,
            held_bytes: 2 << 20,
            free_bytes: 1 << 20,
            largest_free_bytes: 1 << 19,
            limit_bytes: 4 << 20,
            tag: "history",
            line: line(33),
            time_ns: 1_940,
        }),
        freed(12, 1 << 20, "activations", 1_950),
        TraceEvent::Fault(FaultRecord {
            device: 0,
            message: "an illegal address in gemm",
            stamp: Some(stamp(0, 1)),
            line: line(10),
            time_ns: 2_000,
        }),
        worker(4_711, 100),
        finding(),
        TraceEvent::Finding(FindingRecord { more: 2, time_ns: 2_050, ..FindingRecord::default() }),
        TraceEvent::Takeover(TakeoverRecord {
            device: 0,
            phase: TakeoverPhase::Lost,
            span: span(2_000, 2_100),
        }),
        TraceEvent::Takeover(TakeoverRecord {
            device: 0,
            phase: TakeoverPhase::Rebuilding,
            span: span(2_100, 3_000),
        }),
        worker(4_712, 3_000),
        post_mortem("worker lost: killed"),
        post_mortem("  under way s0#1 launch gemm"),
        TraceEvent::Dropped(DroppedRecord {
            events: 4,
            cause: DropCause::DiskFull,
            at_byte: 9_000,
            time_ns: 3_100,
        }),
        TraceEvent::End(EndRecord { time_ns: 3_200 }),
    ]
}

/// A recording as bytes, with a block after every `per_block` events.
pub(crate) fn recorded(events: &[TraceEvent<'_>], per_block: usize) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for (count, event) in (1..).zip(events) {
        writer.push(event).unwrap();
        if count % per_block == 0 {
            writer.write_block().unwrap();
        }
    }
    writer.finish().unwrap()
}
