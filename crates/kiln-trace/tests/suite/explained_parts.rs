//! Long recordings, which are explained in parts: the same is said as of all at once, and memory does not grow.

use kiln_trace::{
    AllocationRecord, AwaitedBlock, CollectiveRecord, Explainer, Explanation, FreeRecord, HostWaitCause,
    HostWaitRecord, StreamWaitRecord, SubmissionKind, SubmissionRecord, TimeSpan, TraceEvent, TraceLine,
    TraceStamp, TraceStream, WaitReason,
};

use crate::counted_memory::most_bytes;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const NAMES: [&str; 5] = ["gemm", "relu", "copy", "reduce", "norm"];

/// A program as it goes on: work on two devices with three streams each, waits for other streams, collectives, waits of two threads, and memory.
struct Program {
    random: Random,
    numbers: [[u64; 3]; 2],
    free_at: [[u64; 3]; 2],
    host: u64,
}

fn stamp(device: usize, stream: usize, number: u64) -> TraceStamp {
    TraceStamp { stream: TraceStream { device: device as u32, stream: stream as u32 }, number }
}

fn line(line: u64) -> Option<TraceLine<'static>> {
    Some(TraceLine { file: "src/train.rs", line: line as u32 })
}

impl Program {
    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(5) as usize]
    }

    fn submit(&mut self, at: u64, (device, stream): (usize, usize), each: &mut impl FnMut(&TraceEvent<'_>)) {
        self.numbers[device][stream] += 1;
        let own = stamp(device, stream, self.numbers[device][stream]);
        let mut begin = (self.host + 400).max(self.free_at[device][stream]);
        let (other_device, other) = (self.random.below(2) as usize, self.random.below(3) as usize);
        let covers = self.numbers[other_device][other];
        if self.random.below(3) == 0 && covers > 1 && (other_device, other) != (device, stream) {
            let writer = stamp(other_device, other, covers - self.random.below(2));
            begin = begin.max(self.free_at[other_device][other]);
            let block = Some(AwaitedBlock { block: at, tag: self.name() });
            let (reason, time_ns) = (WaitReason::ReadAfterWrite, self.host);
            let wait = StreamWaitRecord { waiter: own, writer, covers, reason, block, line: None, time_ns };
            each(&TraceEvent::StreamWait(wait));
        }
        let end = begin + 1_000 + self.random.below(5_000);
        self.free_at[device][stream] = end;
        let kind = if at % 50 == 7 { SubmissionKind::Collective } else { SubmissionKind::Kernel };
        if kind == SubmissionKind::Collective {
            let (name, rank) = ("all_reduce", device as u32);
            let call = CollectiveRecord { stamp: own, name, communicator: 3, rank, ranks: 2, bytes: 100 };
            each(&TraceEvent::Collective(call));
        }
        each(&TraceEvent::Submission(SubmissionRecord {
            stamp: own,
            kind,
            name: self.name(),
            line: line(1 + self.random.below(40)),
            host: TimeSpan::new(self.host, self.host + 300),
            device: Some(TimeSpan::new(begin, end)),
            ..SubmissionRecord::default()
        }));
    }

    fn memory(&mut self, at: u64, device: u32, each: &mut impl FnMut(&TraceEvent<'_>)) {
        let (time_ns, tag, bytes) = (self.host, self.name(), 1 + self.random.below(4096));
        if at.is_multiple_of(9) {
            let (address, line) = (at << 12, line(7));
            let block = AllocationRecord { device, block: at, address, bytes, tag, line, time_ns };
            each(&TraceEvent::Allocation(block));
        }
        if at > 900 && at % 9 == 1 {
            for device in 0..2 {
                each(&TraceEvent::Free(FreeRecord { device, block: at - 901, bytes, tag, time_ns }));
            }
        }
    }

    fn wait(&mut self, (device, stream): (usize, usize), each: &mut impl FnMut(&TraceEvent<'_>)) {
        let until = self.free_at[device][stream].max(self.host);
        each(&TraceEvent::HostWait(HostWaitRecord {
            device: device as u32,
            thread: self.random.below(2) as u32,
            cause: HostWaitCause::Synchronize,
            awaited: Some(stamp(device, stream, self.numbers[device][stream])),
            line: line(80 + self.random.below(5)),
            span: TimeSpan::new(self.host, until),
        }));
        self.host = until + self.random.below(3_000);
    }
}

/// What a program with so many submissions records.
fn events(count: u64, seed: u64, mut each: impl FnMut(&TraceEvent<'_>)) {
    let random = Random(seed * 2 + 1);
    let mut program = Program { random, numbers: [[0; 3]; 2], free_at: [[0; 3]; 2], host: 1_000 };
    for at in 0..count {
        let place = (program.random.below(2) as usize, program.random.below(3) as usize);
        program.submit(at, place, &mut each);
        program.memory(at, place.0 as u32, &mut each);
        program.host += 500;
        if program.random.below(20) == 0 {
            program.wait(place, &mut each);
        }
    }
}

fn explained(mut explainer: Explainer, count: u64, seed: u64) -> Explanation {
    events(count, seed, |event| explainer.add(event));
    explainer.finish()
}

#[test]
fn a_recording_that_is_explained_in_parts_says_the_same() {
    for seed in 1..=20 {
        let whole = explained(Explainer::default(), 6_000, seed);
        assert!(whole.devices.iter().all(|device| device.stalls.len() == 3 && device.idle.len() == 3));
        assert!(whole.host_waits[0].awaited.as_ref().is_some_and(|work| !work.name.is_empty()), "{whole}");
        assert!(whole.collectives[0].ns.is_some(), "{whole}");
        for limit in [500, 777, 2_000] {
            let parts = explained(Explainer::looking_at(limit), 6_000, seed);
            assert_eq!(parts, whole, "seed {seed}, parts of {limit}");
        }
    }
}

#[test]
fn the_memory_of_an_explanation_does_not_grow_with_the_recording() {
    let most = |count| most_bytes(|| explained(Explainer::default(), count, 3).devices.len());
    let (half, whole) = (most(1_000_000), most(2_000_000));
    println!("at most {half} bytes for 10^6 submissions, {whole} for twice as many");
    assert!(whole <= half + half / 8, "{half} bytes become {whole}");
    assert!(whole <= 96 << 20, "{whole} bytes");
}

#[test]
fn work_that_all_began_at_once_and_waits_without_work_do_not_stop_it() {
    let mut explainer = Explainer::looking_at(100);
    for number in 1..=5_000 {
        let stamp = TraceStamp { number, ..TraceStamp::default() };
        explainer.add(&TraceEvent::Submission(SubmissionRecord { stamp, ..SubmissionRecord::default() }));
        let waiter = TraceStamp { stream: TraceStream { device: 7, stream: 7 }, number };
        explainer.add(&TraceEvent::StreamWait(StreamWaitRecord { waiter, ..StreamWaitRecord::default() }));
        explainer.add(&TraceEvent::HostWait(HostWaitRecord::default()));
    }
    assert_eq!(explainer.finish().devices[0].submissions, 5_000);
}

#[test]
fn a_trace_needs_little_more_memory_than_twelve_bytes_for_each_wait() {
    let mut writer = kiln_trace::RecordingWriter::new(Vec::new()).unwrap();
    events(1_000_000, 5, |event| writer.push(event).unwrap());
    let file = writer.finish().unwrap();
    let mut arrows = 0;
    let most = most_bytes(|| {
        let mut reader = kiln_trace::RecordingReader::new(std::io::Cursor::new(&file)).unwrap();
        arrows = kiln_trace::export_perfetto(&mut reader, std::io::sink()).unwrap().arrows;
    });
    println!("{most} bytes for {arrows} arrows");
    assert!(arrows > 200_000 && most <= arrows * 14 + (4 << 20), "{most} bytes for {arrows} arrows");
}
