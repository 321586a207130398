//! Recordings of several ranks on one page.

use kiln_trace::{RecordingClock, StartRecord, TraceEvent};
use kiln_watch::{FilePattern, WatchOptions, WatchServer, WatchedFiles, WatchedJob, recordings_in};

use crate::samples::{Recording, bytes, rank_events};

/// Three ranks, of which the last comes 14 ms late to the first collective.
fn ranks(unix_ns: [u64; 3]) -> Vec<Recording> {
    let late = [0, 0, 14_000_000];
    let rank = |rank: usize| Recording::of(&rank_events(rank as u32, 3, unix_ns[rank], late[rank]), 3);
    (0..3).map(rank).collect()
}

fn job(recordings: &[Recording]) -> WatchedJob {
    let job = WatchedJob::new(WatchedFiles::Files(recordings.iter().map(|each| each.0.clone()).collect()));
    job.read_all().unwrap();
    job
}

#[test]
fn recordings_beyond_the_most_that_are_shown_are_counted() {
    let one = Recording::of(&rank_events(0, 3, 5_000_000_000, 0), 3);
    let folder = std::env::temp_dir().join(format!("kiln-watch-many-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files: Vec<_> = (0..67).map(|number| folder.join(format!("rank-{number}.kiln"))).collect();
    for file in &files {
        std::fs::copy(&one.0, file).unwrap();
    }
    let pattern = FilePattern::of(&folder.join("rank-%p.kiln")).unwrap();
    for given in [WatchedFiles::Files(files.clone()), WatchedFiles::Pattern { pattern, since: None }] {
        let state = WatchedJob::new(given).state();
        assert_eq!((state.recordings.len(), state.left_out), (64, 3));
        assert!(state.axis.ends_with(". 3 more are not shown."), "{}", state.axis);
    }
    let few = WatchedJob::new(WatchedFiles::Files(files[..65].to_vec())).state();
    assert!(few.axis.ends_with(" One more is not shown."), "{}", few.axis);
    assert_eq!(WatchedJob::new(WatchedFiles::Files(files[..64].to_vec())).state().left_out, 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn ranks_are_on_the_axis_of_the_wall_clock_and_the_late_one_is_named() {
    let recordings = ranks([5_000_000_000, 5_000_000_000, 5_001_000_000]);
    let job = job(&recordings);
    let state = job.state();
    assert!(state.clocks.contains("aligned by the wall clock"), "{}", state.clocks);
    assert!(
        state.axis.starts_with("3 recordings on one time axis: aligned by the wall clock"),
        "{}",
        state.axis
    );
    let known: Vec<_> = state.recordings.iter().map(|each| (each.ranks.clone(), each.offset_ns)).collect();
    assert_eq!(known, [(vec![0], 0), (vec![1], 0), (vec![2], 1_000_000)]);
    let worst = &state.late[0];
    assert!(worst.sentence.contains("rank 2 came 15.0 ms after the first, rank 0"), "{}", worst.sentence);
    assert!(state.late_ranks[0].starts_with("rank 2 came last"), "{:?}", state.late_ranks);
    assert_eq!(job.collectives(0, u64::MAX).len(), state.collectives);
    assert!(job.collectives(u64::MAX, u64::MAX).is_empty());
    let text = job.explain().unwrap();
    assert!(text.contains(&worst.sentence) && text.matches("Recording of train").count() == 3, "{text}");
}

#[test]
fn without_a_wall_clock_the_first_collective_aligns() {
    let recordings = ranks([0; 3]);
    let state = job(&recordings).state();
    assert!(state.clocks.contains("the first collective that all recordings have"), "{}", state.clocks);
    assert!(state.recordings.iter().all(|each| each.offset_ns == 0), "all were done at once");
}

#[test]
fn the_server_tells_recordings_apart() {
    let recordings = ranks([1; 3]);
    let files = recordings.iter().map(|each| each.0.clone()).collect();
    let server = WatchServer::start_job(WatchedFiles::Files(files), &WatchOptions::default()).unwrap();
    server.job().read_all().unwrap();
    let served = crate::client::Served::of(server);
    assert_eq!(served.ask("job").json()["recordings"].as_array().unwrap().len(), 3);
    for rank in 0..3 {
        let state = served.ask(&format!("state?r={rank}")).json();
        assert_eq!(state["collectives"][0]["rank"], rank);
    }
    assert_eq!(served.ask("state?r=3").status, 404);
    assert_eq!(served.ask("state?r=x").status, 400);
    let calls = served.ask("collectives?begin=0&end=99999999999").json();
    assert_eq!(calls[0]["parts"].as_array().unwrap().len(), 3);
    assert!(served.ask("explain").json()["text"].as_str().unwrap().contains("3 recordings of one job"));
}

#[test]
fn files_of_a_pattern_are_found_when_they_come() {
    let folder = std::env::temp_dir().join(format!("kiln-watch-pattern-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pattern = FilePattern::of(&folder.join("rank-%p.kiln")).unwrap();
    let job = WatchedJob::new(WatchedFiles::Pattern { pattern: pattern.clone(), since: None });
    assert!(job.recordings().is_empty() && job.recording(0).is_some() && job.recording(1).is_none());
    for (number, name) in [(0, "rank-7.kiln"), (1, "rank-11.kiln"), (2, "rank-x.kiln"), (2, "other.kiln")] {
        std::fs::write(folder.join(name), bytes(&rank_events(number, 2, 9, 0), 2)).unwrap();
    }
    std::fs::write(folder.join("rank-12.kiln"), "").unwrap();
    job.read_all().unwrap();
    let names: Vec<_> = pattern.files(None).iter().map(|path| pattern.number(path).unwrap()).collect();
    assert_eq!(names, [7, 11], "by number");
    assert_eq!((job.recordings().len(), job.state().collectives), (2, 2));
    assert_eq!(recordings_in(&folder).len(), 5, "with the empty one, which is told");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn recordings_that_cannot_be_compared_are_not_said_to_be_on_one_axis() {
    let virtual_rank = |rank: u32| {
        let mut events = rank_events(rank, 2, 0, 0);
        for event in &mut events {
            match event {
                TraceEvent::Start(start) => start.clock = RecordingClock::Virtual,
                TraceEvent::Device(device) => device.clock_kind = RecordingClock::Virtual,
                _ => {}
            }
        }
        Recording::of(&events, 3)
    };
    let state = job(&[virtual_rank(0), virtual_rank(1)]).state();
    assert!(state.axis.starts_with("2 recordings: not comparable, "), "{}", state.axis);
    // One of them says nothing of when it began, and has no collective.
    let bare = Recording::of(&[TraceEvent::Start(StartRecord::default())], 1);
    let state = job(&[Recording::of(&rank_events(0, 2, 7, 0), 3), bare]).state();
    assert!(state.axis.starts_with("2 recordings: not aligned, each begins at zero"), "{}", state.axis);
}
