//! A recording that begins while its device works.

use kiln_trace::{EarlierRecord, Explainer, Explanation, TraceEvent};

use crate::samples::{kernel, span, stamp};

fn explained(events: &[TraceEvent<'_>]) -> Explanation {
    let mut explainer = Explainer::default();
    events.iter().for_each(|event| explainer.add(event));
    explainer.finish()
}

fn earlier(stream: u32, until_ns: Option<u64>) -> TraceEvent<'static> {
    TraceEvent::Earlier(EarlierRecord { stamp: stamp(stream, 3), until_ns })
}

const SAID: &str = "it still had work that was submitted before the recording began";

#[test]
fn a_device_that_has_work_from_before_the_recording_is_not_called_idle() {
    // Stream 1 works until 5,000 on what is not recorded; what follows on stream 0 is queued at 100 and begins behind it, at 5,500.
    let work = kernel("gemm", stamp(0, 4), 10, 100, span(5_500, 6_000));
    for end_comes_first in [true, false] {
        let mut events = vec![earlier(1, None), earlier(1, Some(5_000)), work];
        if !end_comes_first {
            events.swap(1, 2);
        }
        let explained = explained(&events);
        let [device] = &*explained.devices else { panic!("{explained}") };
        assert_eq!((device.span_ns, device.busy_ns), (5_901, Some(500)), "{explained}");
        assert_eq!((device.earlier_ns, device.unknown_ns), (4_901, 4_901), "{explained}");
        assert_eq!(device.idle.iter().map(|idle| idle.ns).sum::<u64>(), 500, "{explained}");
        let text = explained.to_string();
        assert!(text.contains("idle 500 ns") && text.contains(&format!("4.9 us: {SAID}")), "{text}");
    }
}

#[test]
fn without_its_end_earlier_work_ends_where_the_next_of_its_stream_begins() {
    let events = [
        earlier(0, None),
        kernel("gemm", stamp(0, 4), 10, 100, span(5_500, 6_000)),
        kernel("relu", stamp(0, 5), 11, 7_000, span(7_100, 7_200)),
    ];
    let explained = explained(&events);
    let [device] = &*explained.devices else { panic!("{explained}") };
    assert_eq!((device.earlier_ns, device.busy_ns), (5_401, Some(600)), "{explained}");
    assert_eq!(device.idle.iter().map(|idle| idle.ns).sum::<u64>(), 1_100, "{explained}");
}

#[test]
fn earlier_work_alone_is_no_work_of_the_recording() {
    let text = explained(&[earlier(0, None), earlier(1, Some(700))]).to_string();
    assert!(!text.contains("0 submissions"), "{text}");
}
