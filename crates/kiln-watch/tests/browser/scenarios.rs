//! Eight things that people do with the page.

use std::path::Path;

use kiln_trace::{RecordingWriter, StreamRecord, SubmissionRecord, TraceEvent};
use kiln_watch::{WatchOptions, WatchServer};
use serde_json::json;

use crate::dev_tools::Page;
use crate::samples::{Recording, bytes, kernel, planted, race, random_events, span, stamp};

/// A page of a file, and its server.
fn open(test: &str, file: &Path, scheme: &str) -> Option<(Page, WatchServer)> {
    let server = WatchServer::start(file, &WatchOptions::default()).unwrap();
    server.recording().read_all().unwrap();
    Some((Page::open(test, server.url(), scheme)?, server))
}

/// The row of a stream.
fn row(page: &mut Page, name: &str) -> usize {
    page.number(&format!("kilnWatch.state().rows.findIndex((row) => row.name === '{name}')")) as usize
}

fn is_orange([red, green, blue]: [u64; 3]) -> bool {
    red > 180 && (80..200).contains(&green) && blue < 90
}

#[test]
fn a_file_is_opened_and_painted() {
    let recording = Recording::of(&planted(), 3);
    let Some((mut page, _server)) = open("a_file_is_opened_and_painted", &recording.0, "light") else {
        return;
    };
    assert_eq!(page.text("document.title"), "kiln watch: train");
    let facts = page.text("document.getElementById('facts').textContent");
    assert!(facts.contains("17 events"), "{facts}");
    let main = row(&mut page, "main");
    // The middle of a work is its colour, and that of another work another; below the rows is the background.
    let (x, y) = page.place(main, 20_000.0);
    let produce = page.pixel("#timeline", x, y - 8.0);
    let (x, y) = page.place(main, 60_000.0);
    let unrelated = page.pixel("#timeline", x, y - 8.0);
    let (x, y) = page.place(main, 105_000.0);
    let gap = page.pixel("#timeline", x, y - 8.0);
    assert!(produce != unrelated && produce != gap && unrelated != gap, "{produce:?} {unrelated:?} {gap:?}");
    assert_eq!(gap, [0xfb, 0xfa, 0xf8]);
    // The device, its two streams and the thread.
    let lanes = page.value("kilnWatch.lanes().map((lane) => lane.head || lane.label)");
    assert_eq!(
        lanes,
        serde_json::json!([
            "Device 0: simulated GPU",
            "main (stream 0)",
            "copies (stream 1)",
            "Waits of the program",
            "thread 0"
        ])
    );
    page.finish();
}

#[test]
fn keys_and_mouse_zoom_and_move() {
    let recording = Recording::of(&random_events(6, 4, 60_000), 2_000);
    let Some((mut page, _server)) = open("keys_and_mouse_zoom_and_move", &recording.0, "light") else {
        return;
    };
    let span = "kilnWatch.view.end - kilnWatch.view.begin";
    let (whole, begin) = (page.number(span), page.number("kilnWatch.view.begin"));
    for _ in 0..4 {
        page.press("+");
    }
    page.settle();
    let near = page.number(span);
    assert!((near / whole - 0.6_f64.powi(4)).abs() < 1e-6, "{near} {whole}");
    page.press("ArrowRight");
    let moved = page.number("kilnWatch.view.begin");
    page.press("d");
    assert!(page.number("kilnWatch.view.begin") > moved && moved > begin);
    page.press("ArrowLeft");
    page.press("a");
    page.settle();
    // The time below the pointer stays there.
    let ns = page.number("kilnWatch.view.begin + 0.25 * (kilnWatch.view.end - kilnWatch.view.begin)");
    let (x, y) = page.place(0, ns);
    page.wheel(x, y, -300.0);
    page.wait_until(&format!("kilnWatch.view.end - kilnWatch.view.begin < {near} * 0.9"));
    let (after, _) = page.place(0, ns);
    assert!((after - x).abs() < 1.5, "{after} {x}");
    // Dragging moves by as much.
    page.mouse("mousePressed", x, y);
    page.mouse("mouseMoved", x + 60.0, y);
    page.mouse("mouseMoved", x + 120.0, y);
    page.mouse("mouseReleased", x + 120.0, y);
    let (dragged, _) = page.place(0, ns);
    assert!((dragged - after - 120.0).abs() < 4.0, "{dragged} {after}");
    page.settle();
    page.press("0");
    assert!((page.number(span) - whole).abs() < 1.0);
    page.press("?");
    assert!(page.value("document.getElementById('help').open") == true);
    let keys = page.text("document.getElementById('help').textContent");
    assert!(keys.contains("the next or last work of the row"), "{keys}");
    page.value("document.getElementById('help').close()");
    page.finish();
}

#[test]
fn a_gap_says_why_the_stream_waited() {
    let recording = Recording::of(&planted(), 3);
    let Some((mut page, _server)) = open("a_gap_says_why_the_stream_waited", &recording.0, "light") else {
        return;
    };
    let copies = row(&mut page, "copies");
    let (x, y) = page.place(copies, 50_000.0);
    let colour = page.pixel("#timeline", x, y);
    assert!(is_orange(colour), "{colour:?}");
    page.point(x, y);
    page.wait_until("document.getElementById('tip').textContent.includes('written by')");
    let tip = page.text("document.getElementById('tip').textContent");
    for said in [
        "Waited for another stream before consume",
        "`activations` (block 12)",
        "`produce` (src/train.rs:10, stream 0",
        "unrelated work, up to `unrelated`",
    ] {
        assert!(tip.contains(said), "{said}: {tip}");
    }
    page.click(x, y);
    page.wait_until("document.getElementById('details').textContent.includes('consume')");
    let details = page.text("document.getElementById('details').textContent");
    assert!(
        details.contains("src/train.rs:20") && details.contains("reads what the other writes"),
        "{details}"
    );
    // A screen reader hears it, too, and the keys lead from work to work.
    assert!(page.text("document.getElementById('said').textContent").contains("written by `produce`"));
    page.value("[...document.querySelectorAll('#details button')].find((each) => each.textContent === 'Go to it').click()");
    page.wait_until("document.getElementById('details').textContent.startsWith('produce')");
    page.value("document.getElementById('timeline').focus()");
    page.press(".");
    page.wait_until("document.getElementById('details').textContent.startsWith('unrelated')");
    page.press(".");
    page.wait_until("document.getElementById('details').textContent.includes('the program was in `synchronize` at src/train.rs:30')");
    page.finish();
}

#[test]
fn a_kernel_is_found_by_name() {
    let recording = Recording::of(&random_events(12, 3, 90_000), 3_000);
    let Some((mut page, server)) = open("a_kernel_is_found_by_name", &recording.0, "light") else { return };
    page.press("/");
    page.wait_until("document.activeElement.id === 'query'");
    page.enter("SOFTM");
    page.press("Enter");
    page.value("document.getElementById('search').requestSubmit()");
    page.wait_until("kilnWatch.view.selected !== null");
    let found = page.text("document.getElementById('found').textContent");
    assert!(found.contains("softmax") && !found.contains("gemm"), "{found}");
    let first = server.recording().next("softmax", 0, false).unwrap().unwrap();
    page.wait_until(&format!("kilnWatch.view.selected.span[0] >= {}", first.begin_ns));
    let at = page.number("kilnWatch.view.selected.span[0]");
    page.value("document.getElementById('timeline').focus()");
    page.press("n");
    page.wait_until(&format!("kilnWatch.view.selected.span[0] > {at}"));
    let next = server.recording().next("softmax", at as u64, false).unwrap().unwrap();
    assert_eq!(page.number("kilnWatch.view.selected.span[0]") as u64, next.begin_ns);
    page.press("N");
    page.wait_until(&format!("kilnWatch.view.selected.span[0] === {at}"));
    assert!(page.text("document.getElementById('details').textContent").starts_with("softmax"));
    page.press("Escape");
    page.wait_until("document.getElementById('found').hidden");
    page.value("document.getElementById('query').focus()");
    page.enter("no such kernel");
    page.value("document.getElementById('search').requestSubmit()");
    page.wait_until("document.getElementById('found').textContent.includes('No work has')");
    page.finish();
}

#[test]
fn dark_is_what_the_system_prefers_and_can_be_switched() {
    let recording = Recording::of(&planted(), 3);
    let test = "dark_is_what_the_system_prefers_and_can_be_switched";
    let Some((mut page, _server)) = open(test, &recording.0, "dark") else { return };
    assert_eq!(page.text("document.documentElement.dataset.theme"), "dark");
    let main = row(&mut page, "main");
    let (x, y) = page.place(main, 105_000.0);
    assert_eq!(page.pixel("#timeline", x, y - 8.0), [0x17, 0x15, 0x13]);
    let (x, y) = page.place(main, 20_000.0);
    let dark = page.pixel("#timeline", x, y - 8.0);
    page.press("t");
    page.settle();
    assert_ne!(page.pixel("#timeline", x, y - 8.0), dark);
    let back = page.text("getComputedStyle(document.body).backgroundColor");
    assert_eq!(back, "rgb(251, 250, 248)");
    page.value("document.getElementById('theme').click()");
    page.settle();
    assert_eq!(page.pixel("#timeline", x, y - 8.0), dark);
    page.finish();
}

#[test]
fn a_narrow_window_shows_every_view_and_button() {
    let recording = Recording::of(&planted(), 3);
    let test = "a_narrow_window_shows_every_view_and_button";
    let Some((mut page, _server)) = open(test, &recording.0, "light") else { return };
    let narrow = json!({ "width": 380, "height": 640, "deviceScaleFactor": 1, "mobile": false });
    page.call("Emulation.setDeviceMetricsOverride", &narrow);
    page.settle();
    assert_eq!(page.number("document.documentElement.scrollWidth"), 380.0);
    let right = "Math.max(...[...document.querySelectorAll('header button, header input, nav button')].map(e => e.getBoundingClientRect().right))";
    assert!(page.number(right) <= 380.0);
    page.finish();
}

#[test]
fn a_row_without_times_says_so_however_long_its_name_is() {
    let at = stamp(0, 1);
    let mut events: Vec<TraceEvent<'static>> = planted().into_iter().take(2).collect();
    events.push(TraceEvent::Stream(StreamRecord { stream: at.stream, name: "uploads of all weights" }));
    let host = span(1_000, 2_000);
    events.push(TraceEvent::Submission(SubmissionRecord { stamp: at, host, ..SubmissionRecord::default() }));
    let recording = Recording::of(&events, 3);
    let test = "a_row_without_times_says_so_however_long_its_name_is";
    let Some((mut page, _server)) = open(test, &recording.0, "light") else { return };
    // What is written on the canvas from now on.
    let listen = "(() => { globalThis.kilnSaid = []; const ink = CanvasRenderingContext2D.prototype, write = ink.fillText; \
        ink.fillText = function (text, ...at) { kilnSaid.push(text); write.call(this, text, ...at); }; return 0; })()";
    page.value(listen);
    page.press("t");
    page.settle();
    let said = page.text("kilnSaid.join('|')");
    assert!(said.contains("|uploads of … (submitted)|"), "{said}");
    page.finish();
}

#[test]
fn memory_is_shown_by_tag() {
    let recording = Recording::of(&planted(), 3);
    let Some((mut page, _server)) = open("memory_is_shown_by_tag", &recording.0, "light") else { return };
    page.press("2");
    page.wait_until("document.querySelectorAll('#view-memory canvas.memory').length === 1");
    page.settle();
    let words = page.text("document.getElementById('view-memory').textContent");
    for said in ["Device 0: simulated GPU", "activations", "3.0 MiB", "weights", "1.0 MiB"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let label = page.text("document.querySelector('#view-memory canvas').getAttribute('aria-label')");
    assert!(label.contains("at most 4.0 MiB"), "{label}");
    // Activations are given back at 130 us: there the upper part of the picture becomes empty, and the lower does not.
    let place = page.value(
        "(() => { const box = document.querySelector('#view-memory canvas').getBoundingClientRect();
           return [box.left + 170, box.top, box.width - 170, box.height, kilnWatch.view.begin, kilnWatch.view.end]; })()",
    );
    let at = |index: usize| place[index].as_f64().unwrap();
    let x = |ns: f64| at(0) + (ns - at(4)) / (at(5) - at(4)) * at(2);
    let (high, low) = (at(1) + at(3) * 0.4, at(1) + at(3) * 0.93);
    let canvas = "#view-memory canvas";
    let before = (page.pixel(canvas, x(80_000.0), high), page.pixel(canvas, x(80_000.0), low));
    let after = (page.pixel(canvas, x(145_000.0), high), page.pixel(canvas, x(145_000.0), low));
    assert!(before.0 != after.0 && before.1 == after.1 && before.0 != before.1, "{before:?} {after:?}");
    page.finish();
}

#[test]
fn a_file_that_grows_is_followed() {
    let recording = Recording::of(&planted(), 3);
    let Some((mut page, _server)) = open("a_file_that_grows_is_followed", &recording.0, "light") else {
        return;
    };
    let end = page.number("kilnWatch.state().end_ns");
    assert_eq!(end, 160_000.0);
    // More of the program's blocks: those of a whole recording behind its start.
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    writer.push(&kernel("grown", stamp(0, 4), 50, 300_000, span(300_000, 400_000))).unwrap();
    let more = writer.finish().unwrap();
    let start = bytes(&[], 1).len();
    let (first, second) = more[start..].split_at(20);
    recording.append(first);
    page.wait_until("kilnWatch.state().is_cut");
    page.press("4");
    page.wait_until("document.getElementById('view-findings').textContent.includes('ends within a block')");
    recording.append(second);
    page.wait_until("kilnWatch.state().end_ns === 400000 && !kilnWatch.state().is_cut");
    page.press("1");
    page.settle();
    // The whole of it is in view again, and the new work is painted.
    assert!(page.number("kilnWatch.view.end") > 400_000.0);
    let main = row(&mut page, "main");
    let (x, y) = page.place(main, 350_000.0);
    let grown = page.pixel("#timeline", x, y - 8.0);
    let (x, y) = page.place(main, 250_000.0);
    assert_ne!(grown, page.pixel("#timeline", x, y - 8.0));
    // A program that begins again replaces the file.
    std::fs::write(&recording.0, bytes(&random_events(1, 2, 300), 10)).unwrap();
    page.wait_until("kilnWatch.state().program === '' && kilnWatch.state().rows.length > 2");
    page.finish();
}

#[test]
fn faults_devices_ranks_and_the_explanation_are_in_words() {
    let recording = Recording::of(&planted(), 3);
    let test = "faults_devices_ranks_and_the_explanation_are_in_words";
    let Some((mut page, server)) = open(test, &recording.0, "light") else { return };
    assert_eq!(page.text("document.getElementById('tab-findings').textContent"), "4 Faults (1)");
    page.press("3");
    let devices = page.text("document.getElementById('view-devices').textContent");
    assert!(
        devices.contains("simulated GPU") && devices.contains("being brought back (rebuilding)"),
        "{devices}"
    );
    page.press("5");
    let ranks = page.text("document.getElementById('view-ranks').textContent");
    assert!(
        ranks.contains("all_reduce") && ranks.contains("0 of 4") && ranks.contains("64.0 KiB"),
        "{ranks}"
    );
    page.press("6");
    page.wait_until("document.querySelector('#view-explain pre') !== null");
    assert_eq!(
        page.text("document.querySelector('#view-explain pre').textContent"),
        server.recording().explain().unwrap()
    );
    page.press("4");
    let faults = page.text("document.getElementById('view-findings').textContent");
    assert!(faults.contains("an illegal address in step") && faults.contains("src/train.rs:40"), "{faults}");
    page.value("document.querySelector('#view-findings button').click()");
    page.wait_until("kilnWatch.view.name === 'timeline' && document.getElementById('details').textContent.startsWith('step')");
    page.press("0");
    page.settle();
    // The fault and the takeover are on the head of the device.
    let (x, y) = page.place(0, 151_000.0);
    let [red, green, blue] = page.pixel("#timeline", x, y - 24.0);
    assert!(red > 150 && green < 80 && blue < 80, "{red} {green} {blue}");
    page.finish();
}

#[test]
fn findings_are_marked_and_listed_with_the_line_of_the_kernel() {
    let said = "thread 3 writes what thread 4 reads. Repeat with seed 7.";
    let events = [&planted()[..], &[race(stamp(0, 3), said)]].concat();
    let recording = Recording::of(&events, 3);
    let test = "findings_are_marked_and_listed_with_the_line_of_the_kernel";
    let Some((mut page, _server)) = open(test, &recording.0, "light") else { return };
    assert_eq!(
        page.text("document.getElementById('tab-findings').textContent"),
        "4 Faults (1), findings (1)"
    );
    // On the head of the device, which stands above its first row.
    let (x, y) = page.place(0, 140_000.0);
    let [red, green, blue] = page.pixel("#timeline", x, y - 24.0);
    assert!(red > 150 && green < 60 && blue > 80, "{red} {green} {blue}");
    page.press("4");
    let words = page.text("document.getElementById('view-findings').textContent");
    for part in ["1 finding of the checks", "race: ", said, "step.cu:7", "src/train.rs:40", "To repeat it: "]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    page.value(
        "[...document.querySelectorAll('#view-findings table')].at(-2).querySelector('button').click()",
    );
    page.wait_until("kilnWatch.view.name === 'timeline' && document.getElementById('details').textContent.startsWith('step')");
    page.finish();
}

#[test]
fn the_browser_leaves_nothing_in_the_sources() {
    let recording = Recording::of(&planted(), 3);
    let test = "the_browser_leaves_nothing_in_the_sources";
    let Some((page, _server)) = open(test, &recording.0, "light") else { return };
    page.finish();
    let left = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut names: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["Cargo.toml", "src", "tests"]);
}
