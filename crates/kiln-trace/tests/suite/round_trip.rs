//! What is written is read.

use std::io::{Cursor, Write};

use kiln_trace::{
    LaunchSize, MAX_NAME_BYTES, ReadError, RecordingReader, RecordingWriter, SubmissionRecord, TimeSpan,
    TraceEvent, TraceLine, TraceStamp, TraceStream,
};
use proptest::prelude::*;

use crate::samples::{all_kinds, asked, recorded, stamp};

#[test]
fn every_kind_of_event_comes_back() {
    let events = [all_kinds(), vec![asked(stamp(1, 4), stamp(0, 1))]].concat();
    for per_block in [1, 3, 1000] {
        let mut reader = RecordingReader::new(Cursor::new(recorded(&events, per_block))).unwrap();
        for expected in &events {
            assert_eq!(reader.next_event().unwrap(), Some(*expected));
        }
        assert_eq!(reader.next_event().unwrap(), None);
        assert!(!reader.is_cut());
        reader.rewind().unwrap();
        assert_eq!(reader.next_event().unwrap(), Some(all_kinds()[0]), "a second time");
    }
}

#[test]
fn a_name_that_is_too_long_is_cut_and_the_rest_of_the_event_stays() {
    let name = "é".repeat(MAX_NAME_BYTES);
    let event = SubmissionRecord { name: &name, bytes: 7, ..SubmissionRecord::default() };
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    writer.push(&TraceEvent::Submission(event)).unwrap();
    let file = writer.finish().unwrap();
    let mut reader = RecordingReader::new(&*file).unwrap();
    let Some(TraceEvent::Submission(read)) = reader.next_event().unwrap() else { panic!("a submission") };
    assert_eq!((read.name, read.bytes), (&name[..MAX_NAME_BYTES], 7));
}

#[test]
fn other_files_are_told_apart() {
    let of = |bytes: &[u8]| RecordingReader::new(Cursor::new(bytes.to_vec())).err().unwrap();
    assert!(matches!(of(b""), ReadError::Empty));
    assert!(matches!(of(b"{\"traceEvents\": []}"), ReadError::NoRecording));
    assert!(matches!(of(b"KILN"), ReadError::CutStart));
    let mut start = recorded(&[], 1);
    start[13] ^= 1;
    assert!(matches!(of(&start), ReadError::Damaged { offset: 0, .. }));
}

/// A disk that is full after so many bytes.
struct Disk {
    left: usize,
    bytes: Vec<u8>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_what_was_written_before_is_readable() {
    let whole = recorded(&all_kinds(), 4);
    for left in 16..whole.len() {
        let mut disk = Disk { left, bytes: Vec::new() };
        let mut writer = RecordingWriter::new(&mut disk).unwrap();
        let mut failed = false;
        for (count, event) in (1..).zip(&all_kinds()) {
            failed |= writer.push(event).is_err();
            failed |= count % 4 == 0 && writer.write_block().is_err();
            if failed {
                break;
            }
        }
        failed |= writer.write_block().is_err();
        assert!(failed);
        let mut reader = RecordingReader::new(&*disk.bytes).unwrap();
        let mut events = 0;
        while reader.next_event().unwrap().is_some() {
            events += 1;
        }
        assert_eq!(events % 4, 0, "whole blocks");
    }
}

fn name() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect())
}

fn time_span() -> impl Strategy<Value = TimeSpan> {
    (any::<u64>(), any::<u64>()).prop_map(|(begin, end)| TimeSpan::new(begin, end))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_submission_comes_back(
        (name, file, line) in (name(), name(), any::<u32>()),
        (device, stream, number, bytes) in any::<(u32, u32, u64, u64)>(),
        (host, ran) in (time_span(), proptest::option::of(time_span())),
        size in proptest::option::of(any::<([u32; 3], [u32; 3], u32)>()),
    ) {
        let event = TraceEvent::Submission(SubmissionRecord {
            stamp: TraceStamp { stream: TraceStream { device, stream }, number },
            name: &name,
            line: (!file.is_empty()).then_some(TraceLine { file: &file, line }),
            size: size.map(|(grid, block, shared_bytes)| LaunchSize { grid, block, shared_bytes }),
            bytes,
            host,
            device: ran,
            ..SubmissionRecord::default()
        });
        let file = recorded(&[event, event], 1000);
        let mut reader = RecordingReader::new(&*file).unwrap();
        prop_assert_eq!(reader.next_event().unwrap(), Some(event));
        prop_assert_eq!(reader.next_event().unwrap(), Some(event));
        prop_assert_eq!(reader.next_event().unwrap(), None);
    }
}

#[test]
fn the_end_mark_is_known_at_the_end_and_again_after_a_rewind() {
    let all = all_kinds();
    for (events, has_mark) in [(&all[..], true), (&all[..all.len() - 1], false)] {
        let mut reader = RecordingReader::new(Cursor::new(recorded(events, 4))).unwrap();
        for _ in 0..2 {
            assert!(!reader.has_end_mark());
            while reader.next_event().unwrap().is_some() {}
            assert_eq!((reader.has_end_mark(), reader.is_cut()), (has_mark, false));
            reader.rewind().unwrap();
        }
    }
}
