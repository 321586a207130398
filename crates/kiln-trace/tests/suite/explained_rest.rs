//! What is said of reasons, waits, lines and collectives beyond those that are named.

use kiln_trace::{CollectiveRecord, TraceEvent};

use crate::explain::explained;
use crate::samples::{allocated, kernel, span, stamp, synchronized, wait};

#[test]
fn what_is_not_among_the_first_three_is_counted_with_its_time() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let mut events = Vec::new();
    for (number, name) in (1..).zip(NAMES) {
        // Before each kernel the program was late by 100, 200, ... 600 ns, and each runs for 1,000.
        let begin = number * 2_000 + number * (number - 1) / 2 * 100;
        events.push(kernel(name, stamp(0, number), number as u32, begin, span(begin, begin + 2_000 - 100)));
        events.push(synchronized(100 + number as u32, span(50_000 + number * 10, 50_000 + number * 20)));
        events.push(TraceEvent::Collective(CollectiveRecord {
            name,
            stamp: stamp(0, number),
            communicator: 7,
            ranks: 2,
            bytes: number,
            ..CollectiveRecord::default()
        }));
    }
    let found = explained(&events);
    let device = &found.devices[0];
    // From a kernel to the next there are 2,000 ns more and 100 for each before it; 1,900 of them it ran.
    let gaps: Vec<u64> = (2..=6).map(|number| 100 + (number - 1) * 100).collect();
    let shown: Vec<u64> = device.idle.iter().map(|reason| reason.ns).collect();
    assert_eq!(shown, [600, 500, 400], "{found}");
    // With the time in which the first was submitted.
    assert_eq!((device.more_idle.count, device.more_idle.ns), (3, 300 + 200 + 1));
    assert_eq!(device.not_submitted_ns, gaps.iter().sum::<u64>() + 1);
    let waits: Vec<u64> = found.host_waits.iter().map(|wait| wait.ns).collect();
    assert_eq!(waits, [60, 50, 40]);
    let [more] = &*found.more_host_waits else { panic!("{found}") };
    assert_eq!((more.left_out.count, more.left_out.ns), (3, 30 + 20 + 10));
    assert_eq!((found.collectives.len(), found.more_collectives.count), (3, 3));
    assert_eq!(found.more_collectives.ns, 3 * 1_900);
    let text = found.to_string();
    for said in [
        "  and 3 more reasons, together 501 ns\n",
        "  2.0 us of all that: the program had not submitted the next work, whatever that was\n",
        "  and 3 more lines, together 60 ns\n",
        "  and 3 more kinds, communicators or ranks, together 5.7 us\n",
    ] {
        assert!(text.contains(said), "{said}{text}");
    }
}

#[test]
fn waits_of_streams_beyond_the_first_three_are_counted() {
    let mut events = vec![kernel("produce", stamp(0, 1), 10, 100, span(1_000, 2_000))];
    for stream in 1..=5 {
        events.push(wait(stamp(stream, 1), stamp(0, 1), 1, "activations"));
        let begin = 2_000 + u64::from(stream) * 10;
        events.push(kernel("consume", stamp(stream, 1), 20 + stream, 120, span(begin, begin + 500)));
    }
    let found = explained(&events);
    let device = &found.devices[0];
    assert_eq!((device.stalls.len(), device.more_stalls.count), (3, 2), "{found}");
    assert!(found.to_string().contains("    and 2 more waits, together "), "{found}");
}

#[test]
fn tags_of_leaks_beyond_the_first_three_are_counted_with_their_bytes() {
    let tags = ["a", "b", "c", "d", "e"];
    let leaks = |count: u64| -> Vec<_> {
        (1..).zip(tags).take(count as usize).map(|(at, tag)| allocated(at, at << 20, tag, 9, at)).collect()
    };
    // The largest are named: of 1 to 5 MiB, 1 and 2 are left.
    let text = explained(&leaks(5)).to_string();
    assert!(text.contains("3.0 MiB in 1 block of `c`") && !text.contains("in 1 block of `b`"), "{text}");
    assert!(text.contains("\n    and 2 more tags: 3.0 MiB altogether\n"), "{text}");
    let text = explained(&leaks(4)).to_string();
    assert!(text.contains("\n    and 1 more tag: 1.0 MiB\n"), "{text}");
    assert!(!explained(&leaks(3)).to_string().contains("more tag"));
}
