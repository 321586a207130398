//! Tiles against the brute-force count.

use kiln_trace::TraceStream;
use kiln_watch::{MAX_TILE_WORKS, RowKind, TileContent, TileRequest, WatchError, WatchedRecording};

use crate::oracle::{Oracle, Row};
use crate::samples::{Random, Recording, bytes, kernel, random_events, span, stamp};

fn row_of(kind: RowKind) -> Row {
    match kind {
        RowKind::Stream { device, stream } => Row::Stream(TraceStream { device, stream }),
        RowKind::Thread { thread, .. } => Row::Thread(thread),
    }
}

/// Asks for tiles of random levels and places; how many rows came as works and as sums.
fn compare(watched: &WatchedRecording, oracle: &Oracle, seed: u64, tiles: usize) -> (usize, usize) {
    let mut random = Random::new(seed);
    let (state, names) = (watched.state(), watched.names(0));
    assert_eq!(state.rows.len(), oracle.rows.len());
    let (mut works, mut sums) = (0, 0);
    for _ in 0..tiles {
        let level = random.below(30) as u32;
        let index = random.below((state.end_ns >> level >> 9) + 2);
        let tile = watched.tile(TileRequest { level, index, first_row: 0, rows: 64 }).unwrap();
        for row in &tile.rows {
            match &row.content {
                TileContent::Works(content) => {
                    assert!(content.number.len() <= MAX_TILE_WORKS);
                    works += 1;
                }
                TileContent::Sums(content) => {
                    assert!(content.at.len() <= 512);
                    sums += 1;
                }
            }
        }
        for (number, row) in (0..).zip(&state.rows) {
            let what = format!("seed {seed}, level {level}, tile {index}, row {number}");
            oracle.check(row_of(row.kind), &tile, number, &names, &what);
        }
    }
    (works, sums)
}

#[test]
fn tiles_of_small_recordings_are_what_was_recorded() {
    for seed in 0..20 {
        let events = random_events(seed, 1 + (seed % 5) as u32, 3_000);
        let recording = Recording::of(&events, 1 + (seed as usize * 37) % 500);
        let (works, sums) = compare(&recording.read(), &Oracle::of(&events), seed, 40);
        assert!(works > 20, "{works}, {sums}");
    }
}

#[test]
fn tiles_of_large_recordings_are_sums_of_what_was_recorded() {
    let events = random_events(77, 3, 240_000);
    let recording = Recording::of(&events, 5_000);
    let (works, sums) = compare(&recording.read(), &Oracle::of(&events), 77, 16);
    assert!(works > 4 && sums > 4, "{works}, {sums}");
}

#[test]
fn a_recording_reads_the_same_however_it_is_cut_into_blocks() {
    let events = random_events(5, 3, 2_000);
    let recordings = [1, 7, 10_000].map(|per_block| Recording::of(&events, per_block));
    let tiles = recordings.each_ref().map(|recording| {
        let watched = recording.read();
        let tile = |index| watched.tile(TileRequest { level: 14, index, first_row: 0, rows: 9 }).unwrap();
        [0, 1, 2].map(tile)
    });
    assert!(tiles[0] == tiles[1] && tiles[1] == tiles[2]);
    assert!(!tiles[0][0].rows.is_empty());
}

#[test]
fn times_far_apart_stay_bounded() {
    let far = u64::MAX - 5;
    let recording = Recording::of(
        &[
            kernel("a", stamp(0, 1), 1, 5, span(10, 20)),
            kernel("b", stamp(0, 2), 2, far - 9, span(far - 5, far)),
        ],
        1,
    );
    let watched = recording.read();
    assert_eq!(watched.state().end_ns, far);
    for level in 0..54 {
        for index in [0, (far >> level) >> 9] {
            let _ = watched.tile(TileRequest { level, index, first_row: 0, rows: 1 });
        }
    }
    for (level, index) in [(55, 0), (64, 0), (54, 2), (u32::MAX, u64::MAX), (0, u64::MAX)] {
        let asked = watched.tile(TileRequest { level, index, first_row: 0, rows: u32::MAX });
        assert!(matches!(asked, Err(WatchError::Unknown(_))), "{level} {index}");
    }
}

#[test]
fn work_is_found_by_name_in_both_directions() {
    let events = random_events(9, 3, 40_000);
    let recording = Recording::of(&events, 900);
    let (watched, oracle) = (recording.read(), Oracle::of(&events));
    let found = watched.find("SOFT");
    assert_eq!(found.len(), 1);
    let state = watched.state();
    let all = || {
        (0..).zip(&state.rows).flat_map(|(number, row)| {
            oracle.rows[&row_of(row.kind)].iter().map(move |work| (work.begin, number, work.number, work))
        })
    };
    let softmax = || all().filter(|(.., work)| work.name == "softmax");
    assert_eq!(found[0].totals.count, softmax().count() as u64);
    assert_eq!(found[0].totals.total_ns, softmax().map(|(.., work)| work.end - work.begin).sum::<u64>());
    let mut random = Random::new(3);
    for _ in 0..60 {
        let from = random.below(state.end_ns);
        let place = |found: Option<kiln_watch::WorkPlace>| {
            found.map(|found| (found.begin_ns, found.row, found.number))
        };
        let plain =
            |found: Option<(u64, u32, u64, &crate::oracle::Work)>| found.map(|(a, b, c, _)| (a, b, c));
        let next = softmax().filter(|(begin, ..)| *begin > from).min_by_key(|(a, b, c, _)| (*a, *b, *c));
        assert_eq!(place(watched.next("softmax", from, false).unwrap()), plain(next));
        let last = softmax().filter(|(begin, ..)| *begin < from).max_by_key(|(a, b, c, _)| (*a, *b, *c));
        assert_eq!(place(watched.next("softmax", from, true).unwrap()), plain(last));
    }
    assert_eq!(watched.next("no such name", 0, false).unwrap(), None);
    assert!(watched.find("no such name").is_empty());
    assert!(bytes(&events, 900).len() > 300_000);
}
