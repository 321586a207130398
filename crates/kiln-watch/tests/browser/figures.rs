//! Figures and a picture, made when a variable asks for them.
//!
//! `KILN_WATCH_FIGURES=1 cargo test --release --test browser figures -- --nocapture` prints when a page is first painted and how many
//! frames a second panning has; `KILN_WATCH_PICTURE=docs/book/src/watch.png cargo test --test browser the_picture_of_the_book` makes
//! the first picture of the book, and `KILN_WATCH_PICTURES=docs/book/src cargo test --test browser the_pictures_of_memory_and_ranks` the
//! others.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use kiln_trace::{
    AllocationRecord, DeviceRecord, FreeRecord, RecordingWriter, StartRecord, StreamRecord, SubmissionRecord,
    TraceEvent, TraceLine,
};
use kiln_watch::{BlockQuery, WatchOptions, WatchServer, WatchedFiles};
use serde_json::json;

use crate::dev_tools::Page;
use crate::samples::{HEAP, Random, Recording, holed, planted, rank_events, span, stamp, wait};

const STREAMS: u32 = 8;

/// A recording of so many works on eight streams.
fn large(works: u64) -> Recording {
    let recording = Recording::empty();
    let mut writer = RecordingWriter::new(BufWriter::new(File::create(&recording.0).unwrap())).unwrap();
    writer.push(&TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() })).unwrap();
    writer.push(&TraceEvent::Device(DeviceRecord { name: "GPU", ..DeviceRecord::default() })).unwrap();
    let names = ["gemm", "relu", "norm", "copy", "softmax", "adam"];
    let mut random = Random::new(1);
    let mut clocks = [0_u64; STREAMS as usize];
    for stream in 0..STREAMS {
        writer.push(&TraceEvent::Stream(StreamRecord { stream: stamp(stream, 0).stream, name: "" })).unwrap();
    }
    for work in 0..works {
        let (stream, number) = ((work % u64::from(STREAMS)) as u32, work / u64::from(STREAMS) + 1);
        let clock = &mut clocks[stream as usize];
        let begin = *clock + if random.below(8) == 0 { random.below(4_000) } else { 0 };
        *clock = begin + 500 + random.below(9_000);
        if random.below(16) == 0 {
            writer
                .push(&wait(stamp(stream, number), stamp((stream + 1) % STREAMS, number), number, "x"))
                .unwrap();
        }
        writer
            .push(&TraceEvent::Submission(SubmissionRecord {
                stamp: stamp(stream, number),
                name: names[random.below(6) as usize],
                line: Some(TraceLine { file: "src/train.rs", line: 10 }),
                host: span(begin.saturating_sub(900), begin.saturating_sub(600)),
                device: Some(span(begin, *clock)),
                ..SubmissionRecord::default()
            }))
            .unwrap();
    }
    writer.finish().unwrap();
    recording
}

/// Moves in one direction for two seconds, 12 pixels a frame; frames a second, and the share of frames in which something was missing.
const PAN: &str = "new Promise((done) => {
  let frames = 0, holes = 0;
  const begun = performance.now();
  const step = (now) => {
    frames += 1;
    if (kilnWatch.missing()) holes += 1;
    kilnWatch.pan(12);
    if (now - begun < 2000) requestAnimationFrame(step);
    else done([1000 * frames / (now - begun), 100 * holes / frames]);
  };
  requestAnimationFrame(step);
})";

/// The most memory that this process had, the server among it, in MB.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
}

#[test]
fn figures() {
    if std::env::var_os("KILN_WATCH_FIGURES").is_none() {
        return;
    }
    for works in [1_000_000, 10_000_000] {
        let recording = large(works);
        let begun = Instant::now();
        let server = WatchServer::start(&recording.0, &WatchOptions::default()).unwrap();
        server.recording().read_all().unwrap();
        let read = begun.elapsed();
        drop(server);
        let server = WatchServer::start(&recording.0, &WatchOptions::default()).unwrap();
        let Some(mut page) = Page::open("figures", server.url(), "light") else { return };
        let painted = page.number("performance.getEntriesByName('tiles-painted')[0].startTime");
        page.wait_until("kilnWatch.isSettled() && kilnWatch.state().is_at_end");
        let whole = page.number("performance.now()");
        let memory = most_memory();
        assert!(works > 1_000_000 || painted <= 1_000.0, "first painted after {painted:.0} ms");
        println!(
            "{works} works: read in {read:?}, first painted after {painted:.0} ms, all of it before {whole:.0} ms, {memory} MB"
        );
        for zooms in [0, 8, 8, 8] {
            for _ in 0..zooms {
                page.press("+");
            }
            page.settle();
            let pan = page.value(PAN);
            let (frames, holes) = (pan[0].as_f64().unwrap(), pan[1].as_f64().unwrap());
            assert!(frames >= 30.0, "{frames:.0} frames a second");
            let seen = page.number("kilnWatch.view.end - kilnWatch.view.begin") / 1e6;
            println!(
                "  panning with {seen:.3} ms in view: {frames:.0} frames a second, {holes:.0} % with something missing"
            );
        }
        page.finish();
    }
}

/// A recording of so many blocks that are given out and back: few that are large and stay for long, and many that are small.
fn many_blocks(blocks: u64) -> Recording {
    let recording = Recording::empty();
    let mut writer = RecordingWriter::new(BufWriter::new(File::create(&recording.0).unwrap())).unwrap();
    let tags = ["weights", "activations", "gradients", "workspace"];
    let mut random = Random::new(5);
    let mut live: VecDeque<(u64, u64, &str)> = VecDeque::new();
    for block in 1..=blocks {
        let bytes = if random.below(1000) == 0 { 1 << 24 } else { 512 << random.below(8) };
        let (tag, time_ns) = (tags[random.below(4) as usize], block * 200);
        let address = HEAP + random.below(1 << 22) * 8192;
        let given = AllocationRecord { device: 0, block, address, bytes, tag, line: None, time_ns };
        writer.push(&TraceEvent::Allocation(given)).unwrap();
        live.push_back((block, bytes, tag));
        if live.len() > 4096 {
            let (block, bytes, tag) = live.pop_front().unwrap();
            let back = FreeRecord { device: 0, block, bytes, tag, time_ns: time_ns + 100 };
            writer.push(&TraceEvent::Free(back)).unwrap();
        }
    }
    writer.finish().unwrap();
    recording
}

#[test]
fn figures_of_memory_by_address() {
    if std::env::var_os("KILN_WATCH_FIGURES").is_none() {
        return;
    }
    let blocks = 5_000_000;
    let recording = many_blocks(blocks);
    let before = most_memory();
    let begun = Instant::now();
    let watched = recording.read();
    let read = begun.elapsed();
    println!("{blocks} blocks: read in {read:?}, {} MB more", most_memory() - before);
    for part in [1, 10, 1000] {
        let end_ns = blocks * 200 / part;
        let begun = Instant::now();
        let picture = watched.blocks(BlockQuery { end_ns, ..BlockQuery::default() }).unwrap();
        let (made, runs) = (begun.elapsed(), picture.cells.row.len());
        println!(
            "  a picture of {end_ns} ns: {made:?}, {} blocks, {runs} runs of cells",
            picture.blocks.len()
        );
    }
}

#[test]
fn the_picture_of_the_book() {
    let Some(path) = std::env::var_os("KILN_WATCH_PICTURE") else { return };
    let recording = Recording::of(&planted(), 3);
    let server = WatchServer::start(&recording.0, &WatchOptions::default()).unwrap();
    let Some(mut page) = Page::open("the_picture_of_the_book", server.url(), "light") else { return };
    let size = json!({ "width": 1000, "height": 560, "deviceScaleFactor": 1, "mobile": false });
    page.call("Emulation.setDeviceMetricsOverride", &size);
    page.settle();
    let (x, y) = page.place(1, 92_000.0);
    page.click(x, y);
    page.wait_until("document.getElementById('details').textContent.startsWith('consume')");
    page.value("document.getElementById('facts').textContent = 'train.kiln: 17 events, 159.5 us'");
    let (x, y) = page.place(1, 50_000.0);
    page.point(x, y);
    page.wait_until("document.getElementById('tip').textContent.includes('written by')");
    std::fs::write(path, page.picture()).unwrap();
}

/// A page of some recordings, small enough for a book.
fn book_page(test: &str, recordings: &[Recording]) -> Option<(Page, WatchServer)> {
    let files = recordings.iter().map(|each| each.0.clone()).collect();
    let server = WatchServer::start_job(WatchedFiles::Files(files), &WatchOptions::default()).unwrap();
    server.job().read_all().unwrap();
    let mut page = Page::open(test, server.url(), "light")?;
    let size = json!({ "width": 1000, "height": 640, "deviceScaleFactor": 1, "mobile": false });
    page.call("Emulation.setDeviceMetricsOverride", &size);
    page.settle();
    Some((page, server))
}

#[test]
fn the_pictures_of_memory_and_ranks() {
    let Some(folder) = std::env::var_os("KILN_WATCH_PICTURES") else { return };
    let folder = std::path::PathBuf::from(folder);
    let test = "the_pictures_of_memory_and_ranks";
    let memory = [Recording::of(&holed(), 3)];
    let Some((mut page, _server)) = book_page(test, &memory) else { return };
    page.press("2");
    page.wait_until("document.querySelectorAll('#view-memory canvas.blocks').length === 1");
    page.settle();
    page.value("document.querySelector('#view-memory h3').scrollIntoView()");
    page.value("document.querySelector('#view-memory canvas.blocks').focus()");
    page.press(".");
    page.press(".");
    page.settle();
    page.value("document.getElementById('facts').textContent = 'train.kiln: 8 events, 109.0 us'");
    std::fs::write(folder.join("watch-memory.png"), page.picture()).unwrap();
    let late = [0, 0, 13_000_000];
    let times = [9_000_000_000, 9_000_000_000, 9_001_000_000];
    let ranks = (0..3_u32).map(|rank| rank_events(rank, 3, times[rank as usize], late[rank as usize]));
    let ranks: Vec<Recording> = ranks.map(|events| Recording::of(&events, 3)).collect();
    let Some((mut page, _server)) = book_page(test, &ranks) else { return };
    page.press("5");
    page.wait_until("document.querySelector('#view-ranks canvas.ranks') !== null");
    page.settle();
    page.value("document.querySelectorAll('#view-ranks table:first-of-type tr').forEach((row, at) => { if (at) row.children[1].textContent = `rank-${at - 1}.kiln`; })");
    std::fs::write(folder.join("watch-ranks.png"), page.picture()).unwrap();
}
