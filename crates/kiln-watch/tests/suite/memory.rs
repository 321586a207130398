//! Memory by tag over time, against a plain sum.

use std::ops::Range;

use kiln_trace::{EndRecord, HeapChange, HeapRecord, TraceEvent};

use crate::samples::{Random, Recording, allocated, freed, holed, line, planted};

#[test]
fn the_command_that_repeats_a_recording_is_in_its_state() {
    let recording = Recording::of(&holed(), 3);
    let state = recording.read().state();
    let expected = format!("kiln watch {} -- ./train --steps 10", recording.0.display());
    assert_eq!((state.repeat, state.is_repeat_whole), (Some(expected), true));
    assert_eq!(Recording::of(&planted(), 3).read().state().repeat, None);
}

#[test]
fn amounts_at_the_end_of_each_step_are_exact() {
    let mut random = Random::new(8);
    let tags = ["weights", "activations", "gradients", ""];
    let (mut events, mut live): (Vec<TraceEvent<'static>>, Vec<(u64, u64, &'static str)>) =
        (Vec::new(), Vec::new());
    let mut changes: Vec<(u64, &str, i64)> = Vec::new();
    let mut time = 0;
    for block in 0..3_000 {
        time += random.below(40_000);
        if random.below(2) == 0 && !live.is_empty() {
            let (block, bytes, tag) = live.swap_remove(random.below(live.len() as u64) as usize);
            events.push(freed(block, bytes, tag, time));
            changes.push((time, tag, -(bytes as i64)));
        }
        let (bytes, tag) = (1 + random.below(1 << 20), tags[random.below(4) as usize]);
        events.push(allocated(block, bytes, tag, time));
        live.push((block, bytes, tag));
        changes.push((time, tag, bytes as i64));
    }
    // Given out before the recording began, so that it does not count.
    events.push(freed(999_999, 1 << 30, "weights", time));
    let watched = Recording::of(&events, 100).read();
    let names = watched.names(0);
    for points in [1, 16, 1024] {
        let [curve] = &*watched.memory(0, time, points) else { panic!() };
        assert!(curve.high.len() <= points);
        for step in 0..curve.high.len() {
            let end = curve.begin_ns + (step as u64 + 1) * curve.step_ns;
            for tag in &curve.tags {
                let name = &*names[tag.tag.unwrap() as usize];
                let of_tag = changes.iter().filter(|(when, known, _)| *when < end && *known == name);
                assert_eq!(tag.bytes[step], of_tag.map(|(.., bytes)| bytes).sum::<i64>(), "{name} at {end}");
            }
            let begin = curve.begin_ns + step as u64 * curve.step_ns;
            assert_eq!(
                curve.high[step],
                most(&changes, begin..end, None),
                "of all tags from {begin} to {end}"
            );
            assert_eq!(curve.high[step], curve.tags.iter().map(|tag| tag.at_high[step]).sum::<i64>());
        }
        for tag in &curve.tags {
            let name = &*names[tag.tag.unwrap() as usize];
            assert_eq!(tag.most, most(&changes, 0..u64::MAX, Some(name)), "most of {name}");
        }
        assert_eq!(curve.high.iter().max(), Some(&curve.peak_bytes));
    }
    // A part of the time begins with what was in use before it.
    let [part] = &*watched.memory(time / 2, time, 64) else { panic!() };
    assert!(part.tags.iter().all(|tag| tag.bytes[0] > 0));
    for tag in &part.tags {
        let name = &*names[tag.tag.unwrap() as usize];
        assert_eq!(tag.most, most(&changes, part.begin_ns..u64::MAX, Some(name)), "most of {name} in a part");
    }
}

/// The most bytes of a tag, or of all, at the beginning of some time or after a change in it.
fn most(changes: &[(u64, &str, i64)], time: Range<u64>, tag: Option<&str>) -> i64 {
    let (mut now, mut most) = (0, 0);
    for (when, _, bytes) in changes.iter().filter(|(_, known, _)| tag.is_none_or(|tag| tag == *known)) {
        if *when < time.start {
            now += bytes;
            most = now;
        } else if *when < time.end {
            now += bytes;
            most = most.max(now);
        }
    }
    most
}

#[test]
fn a_peak_that_is_shorter_than_a_step_is_in_it_with_its_tags() {
    let mut events = vec![allocated(0, 100, "weights", 10)];
    for block in 1..=15 {
        events.push(allocated(block, 2 << 20, "activations", 5_000_000 + block));
    }
    events.extend((1..=15).map(|block| freed(block, 2 << 20, "activations", 5_000_100 + block)));
    events.push(allocated(16, 50, "gradients", 10_000_000));
    let watched = Recording::of(&events, 5).read();
    let names = watched.names(0);
    for (begin, points) in [(0, 1), (0, 16), (0, 1024), (4_900_000, 64)] {
        let [curve] = &*watched.memory(begin, 10_000_000, points) else { panic!() };
        let of =
            |name: &str| curve.tags.iter().find(|tag| &*names[tag.tag.unwrap() as usize] == name).unwrap();
        let (weights, activations, gradients) = (of("weights"), of("activations"), of("gradients"));
        assert_eq!((weights.most, activations.most, gradients.most), (100, 30 << 20, 50), "{points} points");
        let step = curve.high.iter().position(|high| *high == 100 + (30 << 20)).unwrap();
        let then = [weights, activations, gradients].map(|tag| tag.at_high[step]);
        assert_eq!(then, [100, 30 << 20, 0]);
        assert_eq!(
            activations.bytes.iter().max(),
            Some(&0),
            "all of it was given back by the end of each step"
        );
    }
}

#[test]
fn devices_say_what_they_hold_and_in_which_state_they_ended() {
    let recording = Recording::of(&planted(), 4);
    let state = recording.read().state();
    let [device] = &*state.devices else { panic!() };
    assert_eq!((device.used_bytes, device.peak_bytes, device.faults), (1 << 20, 4 << 20, 1));
    assert_eq!((device.streams, device.submissions), (2, 5));
    assert_eq!(device.state, "being brought back (rebuilding)");
    let [collective] = &*state.collectives else { panic!() };
    assert_eq!((collective.rank, collective.ranks, collective.count), (0, 4, 1));
    assert_eq!((collective.bytes, collective.ns, collective.longest_ns), (1 << 16, 10_000, 10_000));
    let [fault] = &*state.faults else { panic!() };
    assert_eq!((&*fault.message, fault.work), ("an illegal address in step", Some((0, 3))));
    assert_eq!((state.takeovers.len(), state.begin_ns, state.end_ns), (1, 500, 160_000));
}

#[test]
fn many_tags_are_joined_and_nothing_is_lost() {
    let names: Vec<&'static str> =
        (0..200).map(|tag| &*Box::leak(format!("tag {tag}").into_boxed_str())).collect();
    let events: Vec<_> = (0..200).map(|block| allocated(block, 10, names[block as usize], block)).collect();
    let watched = Recording::of(&events, 9).read();
    let [curve] = &*watched.memory(0, 1_000, 4) else { panic!() };
    assert!(curve.tags.len() < 40);
    assert_eq!(curve.tags.iter().map(|tag| tag.bytes[0]).sum::<i64>(), 2_000);
    assert_eq!(curve.tags.iter().filter(|tag| tag.tag.is_none()).count(), 1);
}

#[test]
fn a_refused_allocation_names_who_held_most_and_the_heap_is_a_curve() {
    let heap = |change, bytes, held_bytes, time_ns| HeapRecord {
        change,
        bytes,
        held_bytes,
        time_ns,
        ..HeapRecord::default()
    };
    let events = [
        TraceEvent::Heap(heap(HeapChange::Grew, 8 << 20, 8 << 20, 100)),
        allocated(1, 5 << 20, "activations", 1_000),
        allocated(2, 2 << 20, "weights", 2_000),
        TraceEvent::Heap(HeapRecord {
            free_bytes: 1 << 20,
            largest_free_bytes: 512 << 10,
            line: line(77),
            ..heap(HeapChange::OutOfMemory, 4 << 20, 8 << 20, 9_000_000)
        }),
        TraceEvent::Heap(heap(HeapChange::Shrank, 6 << 20, 2 << 20, 20_000_000)),
    ];
    let recording = Recording::of(&events, 2);
    let watched = recording.read();
    let state = watched.state();
    let [refusal] = &*state.refusals else { panic!() };
    for said in [
        "4.0 MiB were asked for at src/train.rs:77",
        "1.0 MiB free",
        "512.0 KiB",
        "`activations` (5.0 MiB), `weights`",
    ] {
        assert!(refusal.message.contains(said), "{said}: {}", refusal.message);
    }
    assert!(watched.explain().unwrap().contains(&refusal.message), "{}", watched.explain().unwrap());
    let [curve] = &*watched.memory(0, 20_000_000, 64) else { panic!() };
    assert_eq!((curve.heap.first(), curve.heap.last()), (Some(&(8 << 20)), Some(&(2 << 20))));
    assert_eq!(state.devices[0].heap_bytes, Some(2 << 20));
    // It runs, or was killed, until there is an end mark.
    assert!(!state.has_end_mark);
    let ended =
        Recording::of(&[&events[..], &[TraceEvent::End(EndRecord { time_ns: 30_000_000 })]].concat(), 2);
    assert!(ended.read().state().has_end_mark && ended.read().state().end_ns == 30_000_000);
}
