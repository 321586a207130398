//! The ranks of a job on one page.

use kiln_watch::{RepeatCommandText, WatchOptions, WatchServer, WatchedFiles};

use crate::dev_tools::Page;
use crate::samples::{Recording, rank_events};

/// Three ranks, of which the last began 1 ms later and came 14 ms late to its first collective.
fn open(test: &str, unix_ns: [u64; 3], recordings: &mut Vec<Recording>) -> Option<(Page, WatchServer)> {
    for (rank, late) in (0..).zip([0, 0, 13_000_000]) {
        recordings.push(Recording::of(&rank_events(rank, 3, unix_ns[rank as usize], late), 3));
    }
    let files = recordings.iter().map(|each| each.0.clone()).collect();
    let command = "kiln watch run-%p.kiln -- ./train".to_owned();
    let repeat = Some(RepeatCommandText { command, lacks: None });
    let options = WatchOptions { repeat, ..WatchOptions::default() };
    let server = WatchServer::start_job(WatchedFiles::Files(files), &options).unwrap();
    server.job().read_all().unwrap();
    Some((Page::open(test, server.url(), "light")?, server))
}

#[test]
fn ranks_are_groups_of_rows_on_one_time_axis() {
    let mut recordings = Vec::new();
    let test = "ranks_are_groups_of_rows_on_one_time_axis";
    let times = [9_000_000_000, 9_000_000_000, 9_001_000_000];
    let Some((mut page, _server)) = open(test, times, &mut recordings) else { return };
    let lanes = page.value("kilnWatch.lanes().map((lane) => lane.head || lane.label)");
    let head = |rank: u32| format!("Rank {rank}, device 0: simulated GPU");
    let wanted = [&*head(0), "main (stream 0)", &head(1), "main (stream 0)", &head(2), "main (stream 0)"];
    assert_eq!(lanes, serde_json::json!(wanted));
    // The work of the last rank is 1 ms later, as its clock says, and has the colour of the same work of the others.
    let rows: Vec<usize> = (0..3).collect();
    let (x, y) = page.place(rows[0], 1_500_000.0);
    let gemm = page.pixel("#timeline", x, y - 8.0);
    let (x, y) = page.place(rows[2], 1_500_000.0);
    assert_eq!(page.pixel("#timeline", x, y - 8.0), [0xfb, 0xfa, 0xf8], "not begun yet");
    let (x, y) = page.place(rows[2], 8_000_000.0);
    assert_eq!(page.pixel("#timeline", x, y - 8.0), gemm);
    page.click(x, y);
    page.wait_until("document.getElementById('details').textContent.startsWith('gemm')");
    let details = page.text("document.getElementById('details').textContent");
    assert!(details.contains("Rank 2, device 0") && details.contains("at 2.0 ms"), "{details}");
    // Searching goes through all ranks.
    page.press("/");
    page.enter("all_red");
    page.value("document.getElementById('search').requestSubmit()");
    page.wait_until("document.getElementById('found').textContent.includes('all_reduce')");
    assert!(
        page.text("document.getElementById('found').textContent").contains("all_reduce6"),
        "twice on each"
    );
    page.press("Escape");
    page.finish();
}

#[test]
fn a_late_rank_is_named_and_its_collective_is_shown() {
    let mut recordings = Vec::new();
    let test = "a_late_rank_is_named_and_its_collective_is_shown";
    let times = [9_000_000_000, 9_000_000_000, 9_001_000_000];
    let Some((mut page, server)) = open(test, times, &mut recordings) else { return };
    page.press("5");
    page.wait_until("document.querySelector('#view-ranks canvas.ranks') !== null");
    page.settle();
    let words = page.text("document.getElementById('view-ranks').textContent");
    let sentence = "rank 2 came 14.0 ms after the first, rank 0";
    for said in
        ["3 recordings on one time axis: aligned by the wall clock", sentence, "rank 2 came last 2 times"]
    {
        assert!(words.contains(said), "{said}: {words}");
    }
    let label = page.text("document.querySelector('#view-ranks canvas.ranks').getAttribute('aria-label')");
    assert!(label.contains("2 collectives of 3 ranks in view") && label.contains(sentence), "{label}");
    // Rank 0 waits for the last, in orange, and the last does not.
    let place = page.value(
        "(() => { const box = document.querySelector('#view-ranks canvas.ranks').getBoundingClientRect(), view = kilnWatch.view;
           return [box.left + 170 + (8e6 - view.begin) / (view.end - view.begin) * (box.width - 170), box.left + 170 + (18.5e6 - view.begin) / (view.end - view.begin) * (box.width - 170), box.top]; })()",
    );
    let at = |index: usize| place[index].as_f64().unwrap();
    let canvas = "#view-ranks canvas.ranks";
    let [red, green, blue] = page.pixel(canvas, at(0), at(2) + 24.0 + 13.0);
    assert!(red > 180 && (80..200).contains(&green) && blue < 90, "{red} {green} {blue}");
    let last = page.pixel(canvas, at(1), at(2) + 24.0 + 2.0 * 26.0 + 13.0);
    assert_ne!(last, [red, green, blue]);
    // The explanation says the same.
    assert!(server.job().explain().unwrap().contains(sentence));
    page.press("6");
    page.wait_until(&format!("document.getElementById('view-explain').textContent.includes('{sentence}')"));
    page.press("5");
    page.value("document.querySelector('#view-ranks button').click()");
    page.wait_until(
        "kilnWatch.view.name === 'timeline' && kilnWatch.view.begin > -5e6 && kilnWatch.view.end < 30e6",
    );
    page.finish();
}

#[test]
fn without_a_wall_clock_the_page_says_how_clocks_are_aligned() {
    let mut recordings = Vec::new();
    let test = "without_a_wall_clock_the_page_says_how_clocks_are_aligned";
    let Some((mut page, _server)) = open(test, [0; 3], &mut recordings) else { return };
    page.press("5");
    page.wait_until("document.getElementById('clocks') !== null");
    let words = page.text("document.getElementById('clocks').textContent");
    assert!(words.contains("aligned by the end of `all_reduce` number 1, the first collective"), "{words}");
    page.finish();
}
