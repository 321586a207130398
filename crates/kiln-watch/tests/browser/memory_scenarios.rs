//! Memory by address in the browser.

use kiln_trace::{HeapChange, HeapRecord, TraceEvent, TraceLine};
use kiln_watch::{WatchOptions, WatchServer};

use crate::dev_tools::Page;
use crate::samples::{Recording, holed};

const CANVAS: &str = "#view-memory canvas.blocks";

/// The page of a heap with a hole, with its memory shown.
fn open(test: &str, scheme: &str, recording: &Recording) -> Option<(Page, WatchServer)> {
    let server = WatchServer::start(&recording.0, &WatchOptions::default()).unwrap();
    server.recording().read_all().unwrap();
    let mut page = Page::open(test, server.url(), scheme)?;
    page.press("2");
    page.wait_until("document.querySelectorAll('#view-memory canvas.blocks').length === 1");
    page.settle();
    // The whole of it in sight.
    page.value(&format!("document.querySelector('{CANVAS}').scrollIntoView()"));
    Some((page, server))
}

/// Where on the page a time and a MiB of the 16 of the heap are.
fn place(page: &mut Page, ns: f64, mib: f64) -> (f64, f64) {
    let at = page.value(&format!(
        "(() => {{ const box = document.querySelector('{CANVAS}').getBoundingClientRect(), view = kilnWatch.view;
           return [box.left + 170 + ({ns} - view.begin) / (view.end - view.begin) * (box.width - 170), box.top + box.height * (1 - {mib} / 16)]; }})()"
    ));
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

fn colour(page: &mut Page, ns: f64, mib: f64) -> [u64; 3] {
    let (x, y) = place(page, ns, mib);
    page.pixel(CANVAS, x, y)
}

#[test]
fn blocks_are_drawn_by_address_with_their_holes() {
    let recording = Recording::of(&holed(), 3);
    let test = "blocks_are_drawn_by_address_with_their_holes";
    let Some((mut page, _server)) = open(test, "light", &recording) else { return };
    let (weights, activations, gradients) = (
        colour(&mut page, 30_000.0, 3.0),
        colour(&mut page, 30_000.0, 8.0),
        colour(&mut page, 30_000.0, 13.0),
    );
    assert!(weights != activations && activations != gradients && weights != gradients);
    // A block that was given back leaves a hole, and the others stay.
    let hole = colour(&mut page, 65_000.0, 8.0);
    assert_eq!(hole, [0xf1, 0xed, 0xe7], "the background of the picture");
    assert_eq!(colour(&mut page, 65_000.0, 3.0), weights);
    assert_eq!(colour(&mut page, 65_000.0, 13.0), gradients);
    assert_eq!(colour(&mut page, 93_000.0, 13.0), hole);
    let label = page.text(&format!("document.querySelector('{CANVAS}').getAttribute('aria-label')"));
    assert!(label.contains("4 blocks in view") && label.contains("16.0 MiB of addresses"), "{label}");
    page.press("t");
    page.settle();
    assert_eq!(colour(&mut page, 65_000.0, 8.0), [0x22, 0x1f, 0x1b], "dark");
    assert_ne!(colour(&mut page, 65_000.0, 3.0), weights);
    page.finish();
}

#[test]
fn a_block_is_selected_with_mouse_and_keys_and_told_in_words() {
    let recording = Recording::of(&holed(), 3);
    let test = "a_block_is_selected_with_mouse_and_keys_and_told_in_words";
    let Some((mut page, _server)) = open(test, "light", &recording) else { return };
    let (x, y) = place(&mut page, 30_000.0, 8.0);
    page.click(x, y);
    page.wait_until("document.querySelector('.block-words').textContent.startsWith('Block 2')");
    let words = page.text("document.querySelector('.block-words').textContent");
    for said in ["4.0 MiB of activations at 0x7f0000600000", "for 48.0 us", "src/train.rs:9"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert_eq!(page.text("document.getElementById('said').textContent"), words, "a screen reader hears it");
    page.press(".");
    page.wait_until("document.querySelector('.block-words').textContent.startsWith('Block 3')");
    page.press(",");
    page.press(",");
    page.wait_until("document.querySelector('.block-words').textContent.startsWith('Block 1')");
    assert!(page.text("document.querySelector('.block-words').textContent").contains("in use since"));
    // Addresses are zoomed and moved, and so is the time.
    let seen = "kilnWatch.blocks().get('0/0')";
    page.press("i");
    page.settle();
    page.wait_until(&format!("{seen}.picture.high - {seen}.picture.low < 10 * 2 ** 20"));
    let low = page.number(&format!("{seen}.low"));
    page.press("ArrowDown");
    page.wait_until(&format!("{seen}.low < {low}"));
    page.press("o");
    page.press("o");
    page.settle();
    page.wait_until(&format!("{seen}.picture.high - {seen}.picture.low === 16 * 2 ** 20"));
    let begin = page.number("kilnWatch.view.begin");
    page.press("+");
    page.wait_until(&format!("kilnWatch.view.begin > {begin}"));
    page.settle();
    let (x, y) = place(&mut page, 65_000.0, 8.0);
    page.click(x, y);
    page.wait_until("document.querySelector('.block-words').textContent.startsWith('No single block')");
    page.finish();
}

#[test]
fn a_refused_allocation_is_explained_by_the_largest_hole() {
    let recording = Recording::of(&holed(), 3);
    let test = "a_refused_allocation_is_explained_by_the_largest_hole";
    let Some((mut page, _server)) = open(test, "light", &recording) else { return };
    let words = page.text("document.querySelector('#view-memory .refusals').textContent");
    for said in [
        "6.0 MiB were asked for at src/train.rs:77",
        "most was held by `weights` (6.0 MiB), `gradients` (6.0 MiB)",
        "The largest hole between blocks was 4.0 MiB at 0x7f0000600000; 6.0 MiB were wanted.",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    // The moment is marked over all addresses.
    for mib in [1.0, 8.0, 15.0] {
        let [red, green, blue] = colour(&mut page, 80_000.0, mib);
        assert!(red > 150 && green < 80 && blue < 80, "{mib}: {red} {green} {blue}");
    }
    page.press("4");
    let repeat = page.text("document.getElementById('repeat').textContent");
    assert!(
        repeat.starts_with("To repeat it: kiln watch ") && repeat.ends_with(" -- ./train --steps 10"),
        "{repeat}"
    );
    page.finish();
}

#[test]
fn what_the_heap_did_is_said_with_tag_and_line() {
    let remapped = TraceEvent::Heap(HeapRecord {
        change: HeapChange::Remapped,
        bytes: 6 << 20,
        held_bytes: 16 << 20,
        tag: "weights",
        line: Some(TraceLine { file: "src/train.rs", line: 9 }),
        time_ns: 40_000,
        ..HeapRecord::default()
    });
    let recording = Recording::of(&[&holed()[..], &[remapped]].concat(), 3);
    let test = "what_the_heap_did_is_said_with_tag_and_line";
    let Some((mut page, _server)) = open(test, "light", &recording) else { return };
    page.wait_until("document.querySelector('#view-memory .heap-changes').textContent.includes('remapped')");
    let said = page.text("document.querySelector('#view-memory .heap-changes').textContent");
    assert!(said.contains("the heap remapped memory, 6.0 MiB, for `weights` at src/train.rs:9"), "{said}");
    page.finish();
}

#[test]
fn memory_of_the_drivers_pool_is_not_called_a_heap() {
    let pool = |change, bytes, held_bytes, time_ns| {
        TraceEvent::Heap(HeapRecord { change, bytes, held_bytes, time_ns, ..HeapRecord::default() })
    };
    let changes = [
        pool(HeapChange::PoolGrew, 24 << 20, 24 << 20, 20_000),
        pool(HeapChange::PoolTrimmed, 8 << 20, 16 << 20, 40_000),
    ];
    let events: Vec<_> = holed().into_iter().filter(|event| !matches!(event, TraceEvent::Heap(_))).collect();
    let recording = Recording::of(&[&events[..], &changes].concat(), 3);
    let test = "memory_of_the_drivers_pool_is_not_called_a_heap";
    let Some((mut page, _server)) = open(test, "light", &recording) else { return };
    page.wait_until("document.querySelector('#view-memory .heap-changes').textContent.includes('trimmed')");
    let said = page.text("document.querySelector('#view-memory .heap-changes').textContent");
    assert!(
        said.contains("the driver's pool grew, 24.0 MiB") && said.contains("was trimmed, 8.0 MiB"),
        "{said}"
    );
    let label = page.text("document.querySelector('#view-memory canvas.memory').getAttribute('aria-label')");
    assert!(label.ends_with("; driver's pool: 16.0 MiB (dashed)"), "{label}");
    page.press("3");
    page.wait_until("document.getElementById('view-devices').textContent.includes('16.0 MiB (driver')");
    page.finish();
}

/// The same numbers as in the test of the explanation (`a_half_is_rounded_up` in `quantity.rs`).
#[test]
fn numbers_have_the_words_of_the_explanation() {
    let recording = Recording::of(&holed(), 3);
    let Some((mut page, _server)) = open("numbers_have_the_words_of_the_explanation", "light", &recording)
    else {
        return;
    };
    for (bytes, words) in [
        (800_000, "781.3 KiB"),
        (1_088, "1.1 KiB"),
        (1_075, "1.0 KiB"),
        (1_310_720, "1.3 MiB"),
        (1_079_110_534, "1.01 GiB"),
        (1023, "1023 bytes"),
    ] {
        assert_eq!(page.text(&format!("kilnWatch.byteWords({bytes})")), words);
    }
    for (ns, words) in [
        (1_250, "1.3 us"),
        (1_450, "1.5 us"),
        (2_350_000, "2.4 ms"),
        (1_005_000_000, "1.01 s"),
        (999, "999 ns"),
    ] {
        assert_eq!(page.text(&format!("kilnWatch.timeWords({ns})")), words);
    }
    page.finish();
}
