//! Worker processes, post-mortems, launches with their shape, and what the first picture takes, in the browser.

use kiln_trace::{
    LaunchSize, PostMortemRecord, StreamWaitRecord, SubmissionRecord, TakeoverPhase, TakeoverRecord,
    TraceEvent, TraceLine, WaitReason, WorkerRecord,
};
use kiln_watch::{WatchOptions, WatchServer};

use crate::dev_tools::Page;
use crate::samples::{Recording, kernel, planted, random_events, span, stamp};

fn open(test: &str, recording: &Recording) -> Option<(Page, WatchServer)> {
    let server = WatchServer::start(&recording.0, &WatchOptions::default()).unwrap();
    server.recording().read_all().unwrap();
    Some((Page::open(test, server.url(), "light")?, server))
}

/// A device that changes its worker, with a large launch that waits because the program asked for that.
fn taken_over() -> Vec<TraceEvent<'static>> {
    let worker =
        |process, time_ns| TraceEvent::Worker(WorkerRecord { device: 0, process, name: "train", time_ns });
    let line =
        |line| TraceEvent::PostMortem(PostMortemRecord { device: 0, generation: 0, line, time_ns: 160_000 });
    let asked = TraceEvent::StreamWait(StreamWaitRecord {
        waiter: stamp(1, 3),
        writer: stamp(0, 3),
        covers: 3,
        reason: WaitReason::Asked,
        line: Some(TraceLine { file: "src/train.rs", line: 50 }),
        ..StreamWaitRecord::default()
    });
    let TraceEvent::Submission(work) = kernel("large", stamp(1, 3), 51, 121_000, span(150_000, 150_900))
    else {
        panic!("a launch")
    };
    let size = Some(LaunchSize { grid: [4096, 2, 1], block: [256, 1, 1], shared_bytes: 48 << 10 });
    let lost = TakeoverRecord { device: 0, phase: TakeoverPhase::Lost, span: span(151_000, 155_000) };
    let more = [
        worker(4_711, 0),
        asked,
        TraceEvent::Submission(SubmissionRecord { size, ..work }),
        TraceEvent::Takeover(lost),
        worker(4_712, 160_000),
        line("worker lost: killed"),
        line("  under way nothing"),
    ];
    [planted(), more.to_vec()].concat()
}

#[test]
fn worker_processes_are_rows_and_a_loss_has_its_post_mortem() {
    let recording = Recording::of(&taken_over(), 3);
    let test = "worker_processes_are_rows_and_a_loss_has_its_post_mortem";
    let Some((mut page, _server)) = open(test, &recording) else { return };
    let lanes = page.value("kilnWatch.lanes().map((lane) => lane.head || lane.label).slice(0, 4)");
    let expected = ["Device 0: simulated GPU", "process 4711", "process 4712", "main (stream 0)"];
    assert_eq!(lanes, serde_json::json!(expected));
    // The pointer on the row of a process says how long it had the device.
    let y = page.number("kilnWatch.lanes().find((lane) => lane.label === 'process 4711').y + 24 + 13");
    let (x, _) = page.place(0, 75_000.0);
    let top = page.number("document.getElementById('timeline').getBoundingClientRect().top");
    page.point(x, top + y);
    page.wait_until("document.getElementById('tip').textContent.includes('Process 4711 (train) had the device for 151.0 us')");
    page.press("4");
    let words = page.text("document.getElementById('view-findings').textContent");
    for part in
        ["Post-mortem of device 0, at 160.0 us", "worker lost: killed\n  under way nothing", "To repeat it: "]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    page.finish();
}

#[test]
fn a_launch_has_its_shape_and_a_wait_the_line_that_asked_for_it() {
    let recording = Recording::of(&taken_over(), 3);
    let test = "a_launch_has_its_shape_and_a_wait_the_line_that_asked_for_it";
    let Some((mut page, _server)) = open(test, &recording) else { return };
    let row = page.number("kilnWatch.state().rows.findIndex((row) => row.name === 'copies')") as usize;
    let (x, y) = page.place(row, 150_450.0);
    page.click(x, y);
    let shape = "grid 4096x2x1, block 256x1x1, 48.0 KiB of shared memory";
    page.wait_until(&format!("document.getElementById('details').textContent.includes('{shape}')"));
    let details = page.text("document.getElementById('details').textContent");
    let asked = "It waits because the program asked for that at src/train.rs:50: step (device 0, stream 0, number 3, src/train.rs:40)";
    assert!(details.contains(asked), "{details}");
    page.point(x, y);
    page.wait_until(&format!("document.getElementById('tip').textContent.includes('{shape}')"));
    page.finish();
}

#[test]
fn the_first_picture_takes_few_requests_and_bytes() {
    let recording = Recording::of(&random_events(5, 4, 60_000), 2_000);
    let Some((mut page, _server)) = open("the_first_picture_takes_few_requests_and_bytes", &recording) else {
        return;
    };
    page.settle();
    let counted = page.value(
        "(() => { const painted = performance.getEntriesByName('tiles-painted')[0].startTime;
           const before = performance.getEntriesByType('resource').filter((each) => each.startTime < painted);
           return [before.length, before.reduce((sum, each) => sum + each.encodedBodySize, 0)]; })()",
    );
    let [requests, bytes] = [&counted[0], &counted[1]].map(|number| number.as_u64().unwrap());
    println!("{requests} requests and {bytes} bytes before the first picture");
    assert!(
        (1..=12).contains(&requests) && (1..=1_500_000).contains(&bytes),
        "{requests} requests, {bytes} bytes"
    );
    page.finish();
}
