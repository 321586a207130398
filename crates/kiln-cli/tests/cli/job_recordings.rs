//! `kiln explain` with the recordings of several ranks.

use kiln_trace::{
    CollectiveRecord, RecordingWriter, StartRecord, SubmissionKind, SubmissionRecord, TimeSpan, TraceEvent,
    TraceStamp, TraceStream,
};

use crate::folder::Folder;
use crate::outcome::{command, run};

/// A rank that comes to its collective at some millisecond.
pub(crate) fn rank(rank: u32, came_ms: u64) -> Vec<u8> {
    rank_of("", rank, came_ms)
}

/// The same in a run.
fn rank_of(run: &str, rank: u32, came_ms: u64) -> Vec<u8> {
    let stamp = TraceStamp { stream: TraceStream { device: 0, stream: 0 }, number: 1 };
    let begin = came_ms * 1_000_000;
    let events = [
        TraceEvent::Start(StartRecord {
            program: "train",
            unix_ns: 7_000_000_000,
            run,
            ..StartRecord::default()
        }),
        TraceEvent::Collective(CollectiveRecord {
            stamp,
            name: "all_reduce",
            communicator: 42,
            rank,
            ranks: 2,
            bytes: 1024,
        }),
        TraceEvent::Submission(SubmissionRecord {
            stamp,
            kind: SubmissionKind::Collective,
            name: "all_reduce",
            device: Some(TimeSpan::new(begin, 20_000_000)),
            ..SubmissionRecord::default()
        }),
    ];
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    events.iter().for_each(|event| writer.push(event).unwrap());
    writer.finish().unwrap()
}

#[test]
fn ranks_of_a_job_are_explained_together() {
    let folder = Folder::new();
    let first = folder.write("rank-100.kiln", rank(0, 1));
    let second = folder.write("rank-101.kiln", rank(1, 15));
    let (pattern, here) = (folder.path("rank-%p.kiln"), folder.path(""));
    let said =
        "`all_reduce` number 1 (1.0 KiB, communicator 0000002a): rank 1 came 14.0 ms after the first, rank 0";
    for words in [&[&*first, &*second][..], &[&*pattern], &[&*here]] {
        let outcome = run(command(&[&["explain"], words].concat()));
        assert_eq!(outcome.code, Some(0), "{words:?}: {}", outcome.stderr);
        let text = &outcome.stdout;
        assert!(text.contains(said), "{words:?}: {text}");
        assert!(
            text.contains("2 recordings of one job") && text.contains("aligned by the wall clock"),
            "{text}"
        );
        assert!(text.contains("rank-100.kiln\nRecording of train"), "{text}");
    }
    let twice = run(command(&["explain", &first, &folder.path("./rank-100.kiln")]));
    assert!(!twice.stdout.contains("of one job"), "{}", twice.stdout);
    assert!(twice.stderr.contains("it is named more than once, and is read once"), "{}", twice.stderr);
    let json = run(command(&["explain", &first, &second, "--json"])).json();
    assert_eq!(json["job"]["collectives"][0]["parts"][1]["rank"], 1);
    assert_eq!(json["recordings"][1]["program"], "train");
    for (words, why) in [
        (&["explain", &*folder.path("other-%p.kiln")][..], "there is no recording with a number"),
        (&["watch", &*folder.path("other-%p.kiln")], "there is no recording with a number"),
        (&["watch", &*first, &*second, "--", "true"], "one file"),
    ] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(why), "{words:?}: {}", outcome.stderr);
    }
}

#[test]
fn recordings_of_different_runs_are_not_compared() {
    let folder = Folder::new();
    folder.write("a-0.kiln", rank_of("monday", 0, 1));
    folder.write("a-1.kiln", rank_of("monday", 1, 15));
    folder.write("b-0.kiln", rank_of("tuesday", 0, 12));
    folder.write("b-1.kiln", rank_of("tuesday", 1, 2));
    let outcome = run(command(&["explain", &folder.path("")]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (first, second) =
        outcome.stdout.split_once("Run 2 (tuesday)").unwrap_or_else(|| panic!("{}", outcome.stdout));
    assert!(first.contains("Run 1 (monday)") && first.contains("2 runs"), "{first}");
    assert!(first.contains("rank 1 came 14.0 ms after the first, rank 0"), "{first}");
    assert!(second.contains("rank 0 came 10.0 ms after the first, rank 1"), "{second}");
    let json = run(command(&["explain", &folder.path(""), "--json"])).json();
    assert_eq!(
        (&json["runs"][1]["run"], &json["runs"][1]["job"]["late"][0]["rank"]),
        (&"tuesday".into(), &0.into())
    );
}

#[test]
fn of_several_recordings_those_that_cannot_be_read_are_told_and_left_out() {
    let folder = Folder::new();
    let good = folder.write("a.kiln", rank(0, 1));
    folder.write("b.kiln", rank(1, 15));
    let foreign = folder.write("c.kiln", "{}");
    let mut newer = rank(2, 1);
    newer[8] = 99;
    folder.write("d.kiln", newer);
    let outcome = run(command(&["explain", &folder.path("")]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("rank 1 came 14.0 ms after the first, rank 0"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("c.kiln: it is no recording of kiln; give a file"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("d.kiln"), "{}", outcome.stderr);
    let json = run(command(&["explain", &folder.path(""), "--json"]));
    assert_eq!(json.code, Some(2), "{}", json.stderr);
    assert_eq!(json.json()["unreadable"].as_array().unwrap().len(), 2);
    let twice = run(command(&["explain", &good, &good])).stdout;
    assert!(twice.starts_with("Recording of train"), "{twice}");
    let none = run(command(&["explain", &foreign, &foreign]));
    assert_eq!((none.code, &*none.stdout), (Some(2), ""), "{}", none.stderr);
    let one = run(command(&["explain", &good, &foreign]));
    assert!(one.code == Some(2) && one.stdout.contains("a.kiln\nRecording of train"), "{}", one.stdout);
}
