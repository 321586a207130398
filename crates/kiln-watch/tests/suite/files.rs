//! Files that grow, are cut at any byte, damaged, replaced, of another version, or not there yet.

use kiln_trace::ReadError;
use kiln_watch::{ExpectedFile, TileRequest, WatchError, WatchOptions, WatchServer, WatchedRecording};

use crate::samples::{Recording, bytes, kernel, planted, random_events, span, stamp};

fn submissions(watched: &WatchedRecording) -> u64 {
    watched.state().devices.iter().map(|device| device.submissions).sum()
}

#[test]
fn while_a_file_is_read_it_is_known_how_much_of_it_was() {
    let events: Vec<_> = (1..=30_000)
        .map(|number| {
            kernel("step", stamp(0, number), 7, number * 100, span(number * 100, number * 100 + 50))
        })
        .collect();
    let whole = bytes(&events, 100);
    let recording = Recording::of(&events, 100);
    let watched = WatchedRecording::new(&recording.0);
    let mut known = Vec::new();
    while watched.read_more().unwrap() {
        known.push(watched.state().read_bytes);
    }
    let length = whole.len() as u64;
    assert!(known.len() > 4 && known.is_sorted() && known[0] < length / 2, "{known:?} of {length}");
    assert!(known[known.len() - 1] > length / 2, "{known:?} of {length}");
    assert_eq!((watched.state().read_bytes, submissions(&watched)), (length, 30_000));
}

#[test]
fn a_file_that_grows_byte_by_byte_is_followed() {
    let whole = bytes(&planted(), 2);
    let recording = Recording::empty();
    let watched = WatchedRecording::new(&recording.0);
    let (mut last, mut versions) = (0, 0);
    for byte in &whole {
        recording.append(&[*byte]);
        watched.read_all().unwrap();
        let state = watched.state();
        assert!(state.events >= last && state.version >= versions);
        (last, versions) = (state.events, state.version);
    }
    let state = watched.state();
    assert_eq!((state.events, state.is_cut, state.problem), (planted().len() as u64, false, None));
    assert_eq!(state.read_bytes, whole.len() as u64);
    assert!(state.damaged.is_empty());
    // It shows what a file shows that was whole from the beginning.
    let other = Recording::of(&planted(), 2);
    let at_once = other.read();
    let tile = |watched: &WatchedRecording| {
        watched.tile(TileRequest { level: 9, index: 0, first_row: 0, rows: 8 }).unwrap()
    };
    assert_eq!(tile(&watched), tile(&at_once));
    assert_eq!(watched.explain().unwrap(), at_once.explain().unwrap());
}

#[test]
fn every_cut_file_shows_its_whole_blocks() {
    let whole = bytes(&planted(), 3);
    for cut in (1..whole.len()).step_by(7) {
        let recording = Recording::empty();
        recording.append(&whole[..cut]);
        let watched = WatchedRecording::new(&recording.0);
        watched.read_all().unwrap();
        let state = watched.state();
        assert!(state.events < planted().len() as u64 && state.events.is_multiple_of(3), "{cut}");
        assert!(state.read_bytes <= cut as u64);
        if cut > 16 {
            assert_eq!(state.is_cut, state.read_bytes < cut as u64, "{cut}");
            assert!(watched.explain().is_ok());
        }
    }
}

#[test]
fn a_damaged_block_is_told_once_and_left_out() {
    let mut whole = bytes(&planted(), 3);
    let middle = whole.len() / 2;
    whole[middle] ^= 1;
    let recording = Recording::empty();
    recording.append(&whole);
    let watched = WatchedRecording::new(&recording.0);
    for _ in 0..3 {
        watched.read_all().unwrap();
    }
    let state = watched.state();
    assert_eq!(state.damaged.len(), 1, "{:?}", state.damaged);
    assert_eq!(state.events, planted().len() as u64 - 3);
    for level in 0..20 {
        watched.tile(TileRequest { level, index: 0, first_row: 0, rows: 8 }).unwrap();
    }
    assert!(watched.explain().is_ok());
}

#[test]
fn any_changed_byte_gives_no_panic() {
    let whole = bytes(&planted(), 4);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x15;
        let recording = Recording::empty();
        recording.append(&changed);
        let watched = WatchedRecording::new(&recording.0);
        match watched.read_all() {
            Ok(()) => {
                let _ = watched.tile(TileRequest { level: 8, index: 0, first_row: 0, rows: 8 });
                let _ = watched.work(0, 1);
                let _ = watched.explain();
            }
            Err(error) => assert!(at < 16, "{at}: {error}"),
        }
    }
}

#[test]
fn a_file_that_is_replaced_is_read_from_its_beginning() {
    let recording = Recording::of(&random_events(1, 2, 500), 50);
    let watched = recording.read();
    assert!(submissions(&watched) > 300);
    std::fs::write(&recording.0, bytes(&planted(), 3)).unwrap();
    watched.read_all().unwrap();
    let state = watched.state();
    assert_eq!((state.events, &*state.program), (planted().len() as u64, "train"));
    // In place, by a longer one.
    std::fs::write(&recording.0, bytes(&random_events(4, 2, 700), 50)).unwrap();
    watched.read_all().unwrap();
    assert!(submissions(&watched) > 400 && watched.state().program.is_empty());
    // By another file of the same name, and a longer one.
    let other = Recording::of(&random_events(2, 2, 900), 50);
    std::fs::rename(&other.0, &recording.0).unwrap();
    watched.read_all().unwrap();
    assert!(submissions(&watched) > 500 && watched.state().program.is_empty());
}

#[test]
fn another_version_and_other_files_are_typed_errors_with_a_next_step() {
    let mut newer = bytes(&planted(), 3);
    newer.truncate(16);
    let known = kiln_trace::FORMAT_VERSION.to_le_bytes();
    let at = newer.windows(4).position(|four| four == known).unwrap();
    for (contents, wanted) in [
        (b"PK\x03\x04 something else entirely".to_vec(), "no recording"),
        (Vec::new(), "it is empty"),
        (newer[..9].to_vec(), "within its first"),
    ] {
        let recording = Recording::empty();
        recording.append(&contents);
        let error = WatchServer::start(&recording.0, &WatchOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(error.next_step().is_some());
    }
    newer[at] ^= 0x40;
    let recording = Recording::empty();
    recording.append(&newer);
    let error = WatchedRecording::new(&recording.0).open().unwrap_err();
    let WatchError::File { error, .. } = error else { panic!("{error}") };
    assert!(
        matches!(error, ReadError::OtherVersion { .. } | ReadError::Damaged { offset: 0, .. }),
        "{error}"
    );
    let missing = WatchServer::start(&Recording::empty().0, &WatchOptions::default()).map(|_| ());
    assert!(matches!(missing, Err(WatchError::File { error: ReadError::Io(_), .. })));
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let recording = Recording::empty();
    let options = WatchOptions { file: ExpectedFile::Awaited, ..WatchOptions::default() };
    let server = WatchServer::start(&recording.0, &options).unwrap();
    let watched = server.recording();
    assert!(watched.explain().is_err());
    assert!(watched.state().rows.is_empty());
    std::fs::write(&recording.0, []).unwrap();
    let whole = bytes(&planted(), 3);
    recording.append(&whole[..40]);
    recording.append(&whole[40..]);
    for _ in 0..200 {
        if watched.state().events == planted().len() as u64 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("{:?}", watched.state());
}

#[test]
fn more_streams_and_names_than_are_shown_are_counted() {
    let names: Vec<&'static str> =
        (0..70_000).map(|name| &*Box::leak(format!("kernel {name}").into_boxed_str())).collect();
    let event = |at: u64| {
        let stream = (at % 2_000) as u32;
        kernel(names[at as usize], stamp(stream, at / 2_000 + 1), 1, 1 + at, span(at * 10, at * 10 + 5))
    };
    let events: Vec<_> = (0..70_000).map(event).collect();
    let watched = Recording::of(&events, 3_000).read();
    let state = watched.state();
    assert_eq!(state.rows.len(), 1024);
    assert!(state.hidden_events > 10_000 && state.names <= 65_537, "{} {}", state.hidden_events, state.names);
    assert_eq!(watched.find("(other names)").len(), 1);
    let tile = watched.tile(TileRequest { level: 12, index: 0, first_row: 0, rows: 2_000 }).unwrap();
    assert_eq!(tile.rows.len(), 256);
}
