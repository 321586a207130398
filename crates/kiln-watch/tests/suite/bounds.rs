//! What the page costs, by counts: memory that is kept, and what is sent before the first picture. Neither may grow as the recording does.

use crate::client::Served;
use crate::counted_memory::most_bytes;
use crate::samples::{Recording, random_events};

/// Buckets of a tile, as the page asks for them.
const TILE: u64 = 512;
/// Pixels of the timeline in which the whole recording is first shown.
const PIXELS: u64 = 1_000;

/// A recording of so many works on six streams.
fn of(works: usize) -> Recording {
    Recording::of(&random_events(3, 6, works), 5_000)
}

/// Requests that the page makes before its first picture, and bytes of the answers.
fn first_picture(works: usize) -> (u64, u64) {
    let recording = of(works);
    let served = Served::new(&recording.0);
    let state = served.ask("state");
    let facts = state.json();
    let (begin, end) = (facts["begin_ns"].as_u64().unwrap(), facts["end_ns"].as_u64().unwrap());
    let level = ((end - begin) / PIXELS).max(1).ilog2();
    let width = TILE << level;
    let mut answers = vec![served.ask(""), served.ask("job"), state, served.ask("names?first=0")];
    for index in begin / width..=end / width {
        answers.push(served.ask(&format!("tile?level={level}&index={index}&first=0&rows=64")));
    }
    assert!(answers.iter().all(|answer| answer.status == 200));
    (answers.len() as u64, answers.iter().map(|answer| answer.body.len() as u64).sum())
}

#[test]
fn the_first_picture_takes_as_few_requests_and_bytes_of_a_long_recording_as_of_a_short_one() {
    let (short, long) = (first_picture(20_000), first_picture(160_000));
    println!("{short:?} of 20,000 works, {long:?} of 160,000: requests and bytes");
    for (requests, bytes) in [short, long] {
        assert!(requests <= 8, "{requests} requests");
        assert!(bytes <= 1_000_000, "{bytes} bytes");
    }
    assert!(long.1 * 10 <= short.1 * 13, "{} bytes of eight times as many works, and {}", long.1, short.1);
}

#[test]
fn what_is_kept_of_a_recording_grows_far_less_than_it() {
    let most = |works: usize| {
        let recording = of(works);
        most_bytes(|| recording.read())
    };
    let (one, two) = (most(80_000), most(320_000));
    println!("at most {one} bytes for 80,000 works, {two} for 320,000");
    // As the book says.
    assert!(two <= 200_000_000, "{two} bytes");
    assert!(two <= one * 2, "{two} bytes for four times as many works, and {one}");
}
