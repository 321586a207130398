//! Files that are cut, changed or made up. Nothing panics, and what is whole is read.

use std::io::Cursor;

use kiln_trace::{Explainer, FORMAT_VERSION, ReadError, RecordingReader, export_perfetto};
use proptest::prelude::*;

use crate::samples::{all_kinds, recorded};

/// Reads all of a file, going on behind damaged blocks: how many events, how many damaged blocks, whether it is cut.
fn read(bytes: &[u8]) -> Result<(usize, usize, bool), ReadError> {
    let mut reader = RecordingReader::new(bytes)?;
    let (mut events, mut damaged) = (0, 0);
    loop {
        match reader.next_event() {
            Ok(Some(_)) => events += 1,
            Ok(None) => return Ok((events, damaged, reader.is_cut())),
            Err(ReadError::Damaged { offset, .. }) => {
                assert!(offset >= 16 && offset < bytes.len() as u64, "{offset}");
                damaged += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Where the blocks of a file begin, and where it ends.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    let mut at = vec![16];
    while let Some(length) = bytes.get(at[at.len() - 1]..).and_then(|rest| rest.first_chunk::<4>()) {
        at.push(at[at.len() - 1] + 12 + u32::from_le_bytes(*length) as usize);
    }
    at
}

#[test]
fn every_start_of_a_file_is_readable_up_to_its_last_whole_block() {
    let per_block = 3;
    let bytes = recorded(&all_kinds(), per_block);
    let ends = blocks(&bytes);
    for cut in 0..=bytes.len() {
        match read(&bytes[..cut]) {
            Err(ReadError::Empty) => assert_eq!(cut, 0),
            Err(ReadError::CutStart) => assert!((1..16).contains(&cut)),
            Err(error) => panic!("{cut}: {error}"),
            Ok((events, damaged, is_cut)) => {
                let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
                assert_eq!(events, (whole * per_block).min(all_kinds().len()), "cut at {cut}");
                assert_eq!((damaged, is_cut), (0, !ends.contains(&cut)), "cut at {cut}");
            }
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let per_block = 3;
    let bytes = recorded(&all_kinds(), per_block);
    let starts = blocks(&bytes);
    let all = all_kinds().len();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            match read(&changed) {
                Err(ReadError::NoRecording) => assert!(at < 8),
                Err(ReadError::Damaged { offset: 0, .. }) => assert!((8..16).contains(&at)),
                Err(error) => panic!("{at}: {error}"),
                Ok((events, damaged, _)) => {
                    assert_eq!(damaged, 1, "byte {at}");
                    let block = starts.iter().filter(|start| **start <= at).count() - 1;
                    let lost = per_block.min(all - block * per_block);
                    assert_eq!(events, all - lost, "byte {at}");
                }
            }
        }
    }
}

#[test]
fn damaged_blocks_can_be_left_out() {
    let bytes = recorded(&all_kinds(), 3);
    let starts = blocks(&bytes);
    let mut changed = bytes.clone();
    changed[starts[1] + 20] ^= 4;
    let mut strict = RecordingReader::new(Cursor::new(changed.clone())).unwrap();
    let mut sink = Vec::new();
    let error = export_perfetto(&mut strict, &mut sink).unwrap_err();
    assert!(error.to_string().contains(&format!("the block at byte {}", starts[1])), "{error}");
    let mut reader = RecordingReader::new(Cursor::new(changed)).unwrap().skipping_damage();
    let summary = export_perfetto(&mut reader, &mut sink).unwrap();
    assert_eq!(summary.events as usize, all_kinds().len() - 3);
    assert_eq!(reader.damaged_blocks(), 1);
}

/// Events, left out places and left out bytes of a file that is read without its damage.
fn read_rest(bytes: &[u8]) -> (Vec<String>, u64, u64) {
    let mut reader = RecordingReader::new(Cursor::new(bytes)).unwrap().skipping_damage();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(format!("{event:?}"));
    }
    let first = (events, reader.damaged_blocks(), reader.skipped_bytes());
    reader.rewind().unwrap();
    let mut again = 0;
    while reader.next_event().unwrap().is_some() {
        again += 1;
    }
    assert_eq!((again, reader.damaged_blocks(), reader.skipped_bytes()), (first.0.len(), first.1, first.2));
    first
}

#[test]
fn behind_a_damaged_head_the_next_block_is_found() {
    let per_block = 3;
    let bytes = recorded(&all_kinds(), per_block);
    let starts = blocks(&bytes);
    let (all, none, nothing) = read_rest(&bytes);
    assert_eq!((none, nothing), (0, 0));
    for block in 0..starts.len() - 1 {
        let lost = block * per_block..all.len().min((block + 1) * per_block);
        let left: Vec<String> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| !lost.contains(at))
            .map(|(_, event)| event.clone())
            .collect();
        let skipped = (starts[block + 1] - starts[block]) as u64;
        for at in starts[block]..starts[block] + 12 {
            for change in 1..=255 {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert_eq!(read_rest(&changed), (left.clone(), 1, skipped), "byte {at} with {change}");
            }
        }
    }
}

#[test]
fn behind_bytes_that_are_missing_or_too_many_the_next_block_is_found() {
    let per_block = 3;
    let bytes = recorded(&all_kinds(), per_block);
    let starts = blocks(&bytes);
    let all = read_rest(&bytes).0;
    for at in starts[1]..starts[2] {
        let (mut fewer, mut more) = (bytes.clone(), bytes.clone());
        fewer.remove(at);
        more.splice(at..at, [0; 4096]);
        for (changed, length) in [(fewer, bytes.len() as u64 - 1), (more, bytes.len() as u64 + 4096)] {
            let (events, places, skipped) = read_rest(&changed);
            assert_eq!(
                (&events[..3], &events[events.len() - (all.len() - 6)..]),
                (&all[..3], &all[6..]),
                "byte {at}"
            );
            // Bytes that were put before the block leave it whole.
            let left =
                if events.len() == all.len() { bytes.len() } else { bytes.len() - (starts[2] - starts[1]) };
            assert_eq!((places, skipped), (1, length - left as u64), "byte {at}");
        }
    }
}

#[test]
fn a_file_that_ends_behind_damage_is_read_up_to_it() {
    let bytes = recorded(&all_kinds(), 3);
    let starts = blocks(&bytes);
    for cut in starts[1] + 12..bytes.len() {
        let mut changed = bytes[..cut].to_vec();
        changed[starts[1]] ^= 1;
        let mut reader = RecordingReader::new(Cursor::new(&changed)).unwrap().skipping_damage();
        let mut events = 0;
        while reader.next_event().unwrap().is_some() {
            events += 1;
        }
        let whole = starts.iter().skip(3).filter(|end| **end <= cut).count();
        assert_eq!(events, (3 + whole * 3).min(all_kinds().len() - 3), "cut at {cut}");
        assert_eq!(reader.damaged_blocks(), 1);
    }
}

#[test]
fn a_file_made_up_of_heads_is_read_in_time() {
    let head = [&[0xff, 0xff, 0x0f, 0, 1, 2, 3, 4][..], &sum(&[0xff, 0xff, 0x0f, 0, 1, 2, 3, 4])].concat();
    let good = recorded(&all_kinds(), 1000);
    let mut heads = head.repeat(100_000);
    // Without it, this would be the head of a block that has them as its contents.
    heads[0] ^= 1;
    let (events, places, skipped) = read_rest(&[&good[..], &heads, &good[16..]].concat());
    assert!(events.len() >= all_kinds().len() && places >= 1 && skipped >= heads.len() as u64 / 2);
}

/// Everything that is done with a recording, on any bytes.
fn use_all(bytes: &[u8]) {
    if let Ok(reader) = RecordingReader::new(Cursor::new(bytes)) {
        let mut reader = reader.skipping_damage();
        let mut explainer = Explainer::default();
        while let Ok(Some(event)) = reader.next_event() {
            explainer.add(&event);
        }
        let _ = explainer.finish().to_string();
        if reader.rewind().is_ok() {
            let _ = export_perfetto(&mut reader, std::io::sink());
        }
    }
}

/// The checksum of bytes.
fn sum(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    };
    (!bytes.iter().fold(u32::MAX, step)).to_le_bytes()
}

/// A block with any contents and the right checksums, so that they reach the decoder.
fn sealed(contents: &[u8]) -> Vec<u8> {
    let head = [(contents.len() as u32).to_le_bytes(), sum(contents)].concat();
    [recorded(&[], 1), head.clone(), sum(&head).to_vec(), contents.to_vec()].concat()
}

/// A whole recording of another version, whose checksum is right.
#[test]
fn another_version_is_told_with_both_numbers_and_is_not_read() {
    let bytes = recorded(&all_kinds(), 1000);
    for found in [FORMAT_VERSION - 1, FORMAT_VERSION + 1, 0, u32::MAX] {
        let start = [&bytes[..8], &found.to_le_bytes()].concat();
        let other = [&start[..], &sum(&start), &bytes[16..]].concat();
        let error = read(&other).unwrap_err();
        assert!(matches!(error, ReadError::OtherVersion { found: told } if told == found), "{error}");
        let said = error.to_string();
        assert!(
            said.contains(&format!("version {found} ")) && said.contains(&FORMAT_VERSION.to_string()),
            "{said}"
        );
        assert!(error.next_step().is_some_and(|step| step.contains("the kiln that recorded it")));
    }
    let same = [&bytes[..12], &sum(&bytes[..12]), &bytes[16..]].concat();
    assert_eq!(same, bytes, "the checksum is that of the format");
}

#[test]
fn a_block_sealed_by_hand_is_read() {
    let bytes = recorded(&all_kinds(), 1000);
    assert_eq!(sealed(&bytes[28..]), bytes);
}

#[test]
fn a_block_with_a_right_checksum_and_wrong_contents_is_left_out_and_counted() {
    let all = all_kinds();
    let good = recorded(&all, 1000);
    let contents = &good[28..];
    // Behind all events one of an unknown kind: those before it are of the same block.
    let behind = [contents, &[99]].concat();
    // A name that is not there, and an event that is cut off.
    let cut = &contents[..contents.len() - 1];
    for wrong in [&behind[..], cut, &[0, 99], &[0xff; 12]] {
        let file = [&good[..], &sealed(wrong)[16..], &good[16..], &sealed(wrong)[16..]].concat();
        let (strict, damaged, _) = read(&file).unwrap();
        assert!(strict >= 2 * all.len() && damaged == 2, "{strict} {damaged}");
        let mut reader = RecordingReader::new(Cursor::new(&file)).unwrap().skipping_damage();
        let mut events = 0;
        while reader.next_event().unwrap().is_some() {
            events += 1;
        }
        assert_eq!((events, reader.damaged_blocks()), (2 * all.len(), 2));
        reader.rewind().unwrap();
        let summary = export_perfetto(&mut reader, std::io::sink()).unwrap();
        assert_eq!((summary.events as usize, reader.damaged_blocks()), (2 * all.len(), 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_contents_of_a_block_are_read_without_a_panic(contents in proptest::collection::vec(any::<u8>(), 0..200)) {
        use_all(&sealed(&contents));
    }

    #[test]
    fn a_block_with_some_bytes_changed_is_read_without_a_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut contents = recorded(&all_kinds(), 1000).split_off(28);
        for (at, byte) in changes {
            let at = at.index(contents.len());
            contents[at] = byte;
        }
        use_all(&sealed(&contents));
    }

    #[test]
    fn any_file_is_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        keeps_start in any::<bool>(),
    ) {
        let start = if keeps_start { recorded(&[], 1) } else { Vec::new() };
        use_all(&[start, bytes].concat());
    }
}
