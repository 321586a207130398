//! How large recordings and traces are.

use std::io::{Cursor, Write};

use kiln_trace::{
    RecordingReader, RecordingWriter, SubmissionRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp,
    TraceStream, export_perfetto,
};

/// Kernels of 5 to 20 us on four streams, 40 names and lines, as a training step has.
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
fn a_kernel_takes_at_most_40_bytes_of_a_trace() {
    let count = 200_000;
    let file = many(count);
    let mut length = Length::default();
    let mut reader = RecordingReader::new(Cursor::new(&file)).unwrap();
    let summary = export_perfetto(&mut reader, &mut length).unwrap();
    let (traced, recorded) = (length.0 as f64 / count as f64, file.len() as f64 / count as f64);
    println!("{recorded:.1} bytes of the recording and {traced:.1} of the trace for a kernel");
    assert_eq!((summary.submissions, summary.bytes), (count, length.0));
    assert!(traced <= 40.0, "{traced} bytes");
    assert!(recorded <= 32.0, "{recorded} bytes");
}
