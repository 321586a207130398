//! How large recordings and traces are.

use std::io::{Cursor, Write};

use kiln_trace::{
    AllocationRecord, AwaitedBlock, FreeRecord, LaunchSize, RecordingReader, RecordingWriter,
    StreamWaitRecord, SubmissionRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp, TraceStream,
    export_perfetto,
};

/// The shape of a kernel, of which each name has one.
fn size(name: u64) -> Option<LaunchSize> {
    Some(LaunchSize { grid: [64 + name as u32, 8, 1], block: [256, 1, 1], shared_bytes: 49_152 })
}

/// Kernels of 5 to 20 us on four streams, 40 names, lines and shapes, as a training step has.
fn many(count: u64) -> Vec<u8> {
    let names: Vec<String> =
        (0..40).map(|number| format!("void cutlass::gemm_{number}<float>(Params)")).collect();
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for at in 0..count {
        let name = &names[(at * 7 % 40) as usize];
        let begin_ns = at * 4_000 + (at * at) % 1_000;
        let work = SubmissionRecord {
            stamp: TraceStamp {
                stream: TraceStream { device: 0, stream: (at % 4) as u32 },
                number: at / 4 + 1,
            },
            name,
            line: Some(TraceLine { file: "src/model/layers.rs", line: 100 + (at * 7 % 40) as u32 }),
            size: size(at * 7 % 40),
            host: TimeSpan::new(at * 4_000, at * 4_000 + 3_100),
            device: Some(TimeSpan::new(begin_ns + 9_000, begin_ns + 14_000 + (at * 977) % 1_900)),
            ..SubmissionRecord::default()
        };
        writer.push(&TraceEvent::Submission(work)).unwrap();
    }
    writer.finish().unwrap()
}

/// Counts bytes.
#[derive(Default)]
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_kernel_with_its_shape_takes_at_most_44_bytes_of_a_trace() {
    let count = 200_000;
    let file = many(count);
    let mut length = Length::default();
    let mut reader = RecordingReader::new(Cursor::new(&file)).unwrap();
    let summary = export_perfetto(&mut reader, &mut length).unwrap();
    let (traced, recorded) = (length.0 as f64 / count as f64, file.len() as f64 / count as f64);
    println!("{recorded:.1} bytes of the recording and {traced:.1} of the trace for a kernel");
    assert_eq!((summary.submissions, summary.bytes), (count, length.0));
    assert!(traced <= 44.0, "{traced} bytes");
    assert!(recorded <= 32.0, "{recorded} bytes");
}

/// Of 16 events, ten are kernels, four are waits when they are wanted, and one each an allocation and what is given back. Numbers are those of the
/// middle of a recording of 10^7 events.
fn with_waits(steps: u64, has_waits: bool) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    let stamp =
        |stream: u64, number| TraceStamp { stream: TraceStream { device: 0, stream: stream as u32 }, number };
    let (mut numbers, mut time_ns) = ([1_500_000_u64; 4], 20_000_000_000);
    let names: Vec<String> = (0..40).map(|number| format!("gemm_{number}")).collect();
    for step in 300_000..300_000 + steps {
        let (block, tag) = (step, "activations");
        for at in 0..10 {
            let stream = at % 4;
            if has_waits && stream >= 2 && at < 8 {
                let writer_stamp = stamp(stream - 2, numbers[stream as usize - 2]);
                let event = TraceEvent::StreamWait(StreamWaitRecord {
                    waiter: stamp(stream, numbers[stream as usize] + 1),
                    writer: writer_stamp,
                    covers: writer_stamp.number,
                    block: Some(AwaitedBlock { block, tag }),
                    time_ns,
                    ..StreamWaitRecord::default()
                });
                writer.push(&event).unwrap();
            }
            numbers[stream as usize] += 1;
            let name = &names[(step as usize * 7 + at as usize) % 40];
            let event = TraceEvent::Submission(SubmissionRecord {
                stamp: stamp(stream, numbers[stream as usize]),
                name,
                line: Some(TraceLine {
                    file: "src/model/layers.rs",
                    line: 100 + (step * 7 + at) as u32 % 40,
                }),
                size: size((step * 7 + at) % 40),
                host: TimeSpan::new(time_ns, time_ns + 3_100),
                device: Some(TimeSpan::new(time_ns + 9_000, time_ns + 12_000 + step * 977 % 1_900)),
                ..SubmissionRecord::default()
            });
            writer.push(&event).unwrap();
            time_ns += 4_000;
        }
        let allocated =
            AllocationRecord { block, bytes: 1 << 20, tag, time_ns, ..AllocationRecord::default() };
        writer.push(&TraceEvent::Allocation(allocated)).unwrap();
        let freed = FreeRecord { block, bytes: 1 << 20, tag, time_ns: time_ns + 9, ..FreeRecord::default() };
        writer.push(&TraceEvent::Free(freed)).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_wait_takes_at_most_46_bytes_of_a_trace_and_an_event_40() {
    let steps = 10_000;
    let traced = |has_waits| {
        let mut reader = RecordingReader::new(Cursor::new(with_waits(steps, has_waits))).unwrap();
        export_perfetto(&mut reader, std::io::sink()).unwrap()
    };
    let (with, without) = (traced(true), traced(false));
    assert_eq!((with.arrows, with.arrows_left_out), (4 * steps, 0));
    let wait = (with.bytes - without.bytes) as f64 / (4 * steps) as f64;
    let event = with.bytes as f64 / with.events as f64;
    println!("{wait:.1} bytes of the trace for a wait, {event:.1} for an event");
    assert!(wait <= 46.0, "{wait} bytes for a wait");
    // 10^7 events in at most 400 MB.
    assert!(event <= 40.0, "{event} bytes for an event");
}
