//! Memory by address: blocks where they were and when, holes, refusals, and what is kept of very many blocks.

use kiln_trace::{AllocationRecord, FreeRecord, TraceEvent};
use kiln_watch::{BlockPicture, BlockQuery, WatchedRecording};

use crate::client::Served;
use crate::samples::{HEAP, MIB, Random, Recording, given, holed};

fn picture(watched: &WatchedRecording, begin_ns: u64, end_ns: u64) -> BlockPicture {
    watched.blocks(BlockQuery { device: 0, begin_ns, end_ns, low: 0, high: 0 }).unwrap()
}

#[test]
fn blocks_are_where_and_when_they_were() {
    let recording = Recording::of(&holed(), 3);
    let watched = recording.read();
    let names = watched.names(0);
    let whole = picture(&watched, 0, 100_000);
    assert_eq!((whole.axis_bytes, whole.ranges.len()), (16 * MIB, 1));
    assert_eq!(whole.ranges[0].address, "0x7f0000000000");
    let seen: Vec<_> = whole
        .blocks
        .iter()
        .map(|block| {
            (
                block.block,
                block.position / MIB,
                block.bytes / MIB,
                block.begin_ns,
                block.end_ns,
                &*names[block.tag as usize],
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, 0, 6, 1_000, None, "weights"),
            (2, 6, 4, 2_000, Some(50_000), "activations"),
            (3, 10, 6, 3_000, Some(90_000), "gradients"),
            (4, 10, 2, 95_000, None, "gradients"),
        ]
    );
    assert_eq!(whole.blocks[1].line.as_deref(), Some("src/train.rs:9"));
    assert!(whole.cells.row.is_empty(), "few blocks need no cells");
    // A part of the time, and of the addresses.
    assert_eq!(picture(&watched, 60_000, 80_000).blocks.len(), 2);
    let part =
        watched.blocks(BlockQuery { device: 0, begin_ns: 0, end_ns: 100_000, low: 6 * MIB, high: 10 * MIB });
    let part = part.unwrap();
    assert_eq!((part.low, part.high, part.blocks.len()), (6 * MIB, 10 * MIB, 1));
}

#[test]
fn a_refused_allocation_has_the_largest_hole() {
    let recording = Recording::of(&holed(), 3);
    let watched = recording.read();
    let state = watched.state();
    let [refusal] = &*state.refusals else { panic!() };
    let hole = refusal.hole.as_ref().unwrap();
    assert_eq!((&*hole.address, hole.bytes, refusal.bytes), ("0x7f0000600000", 4 * MIB, 6 * MIB));
    assert_eq!(picture(&watched, 0, 100_000).holes, [(80_000, 6 * MIB, 4 * MIB, 6 * MIB)]);
}

#[test]
fn the_server_answers_with_blocks_and_without_addresses_says_so() {
    let recording = Recording::of(&holed(), 3);
    let served = Served::new(&recording.0);
    let blocks = served.ask("blocks?device=0&begin=0&end=100000&low=0&high=0").json();
    assert_eq!(blocks["blocks"].as_array().unwrap().len(), 4);
    assert_eq!(served.ask("state").json()["block_devices"], serde_json::json!([0]));
    for (status, what) in [
        (404, "blocks?device=7&begin=0&end=1&low=0&high=0"),
        (400, "blocks?device=0"),
        (404, "blocks?device=0&begin=0&end=1&low=0&high=0&r=9"),
        (200, "blocks?device=0&begin=18446744073709551615&end=0&low=18446744073709551615&high=1"),
    ] {
        assert_eq!(served.ask(what).status, status, "{what}");
    }
    let TraceEvent::Allocation(mut plain) = given(1, 0, 1, "x", 5) else { panic!() };
    plain.address = 0;
    let watched = Recording::of(&[TraceEvent::Allocation(plain)], 1).read();
    assert!(watched.state().has_memory && watched.state().block_devices.is_empty());
    assert!(watched.blocks(BlockQuery::default()).is_err());
}

#[test]
fn of_very_many_blocks_the_large_ones_stay_and_holes_stay_holes() {
    // Small blocks in the lower half of 64 MiB, all the time; one large block above; a hole between.
    let mut random = Random::new(3);
    let mut events = vec![given(1, 48, 16, "weights", 0)];
    let small = |block: u64, slot: u64, time_ns: u64| {
        TraceEvent::Allocation(AllocationRecord {
            device: 0,
            block,
            address: HEAP + slot * 4096,
            bytes: 4096,
            tag: "small",
            line: None,
            time_ns,
        })
    };
    let mut time = 0;
    for round in 0..300_000_u64 {
        let (block, slot) = (10 + round, random.below(8192));
        time += 100;
        events.push(small(block, slot, time));
        events.push(TraceEvent::Free(FreeRecord {
            device: 0,
            block,
            bytes: 4096,
            tag: "small",
            time_ns: time + 50 + random.below(200_000),
        }));
    }
    let watched = Recording::of(&events, 4_000).read();
    let names = watched.names(0);
    let whole = picture(&watched, 0, time);
    assert!(whole.added_up > 100_000, "{}", whole.added_up);
    assert!(whole.blocks.len() <= 1500 && whole.blocks.iter().any(|block| block.block == 1));
    let (columns, rows) = whole.size;
    let row_of = |mib: u64| (mib * MIB * rows as u64 / whole.axis_bytes) as u32;
    for (at, row) in whole.cells.row.iter().enumerate() {
        assert_eq!(names[whole.cells.tag[at] as usize], "small");
        assert!(*row <= row_of(32), "row {row} is a hole, or the large block");
        assert!(whole.cells.column[at] + whole.cells.length[at] <= columns as u32);
    }
    assert!(!whole.cells.row.is_empty());
}

#[test]
fn far_ranges_of_addresses_are_next_to_each_other() {
    let far = |block: u64, address: u64| {
        TraceEvent::Allocation(AllocationRecord {
            device: 0,
            block,
            address,
            bytes: MIB,
            ..AllocationRecord::default()
        })
    };
    let watched = Recording::of(&[far(1, 0x10_0000), far(2, 1 << 46)], 1).read();
    let whole = picture(&watched, 0, 10);
    assert_eq!((whole.axis_bytes, whole.ranges.len()), (2 * MIB, 2));
    assert_eq!(whole.blocks.iter().map(|block| block.position).collect::<Vec<_>>(), [0, MIB]);
}
