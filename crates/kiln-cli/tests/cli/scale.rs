//! `kiln scale`: estimates of recorded collectives on many ranks. Expected times are computed by hand.

use kiln_trace::{
    CollectiveRecord, RecordingWriter, StartRecord, SubmissionKind, SubmissionRecord, TimeSpan, TraceEvent,
    TraceStamp, TraceStream,
};

use crate::folder::Folder;
use crate::outcome::{command, run};

/// 100 bytes and 10 bytes in a nanosecond.
const TOPOLOGY: &str = "4x nvlink(100GB/s, 1us) per host, 1 host over 80Gb/s, 5us";

#[test]
fn the_curve_follows_the_formulas() {
    let folder = Folder::new();
    let file = folder.write("t", "# kiln collectives 1\nall_reduce bytes=16MB count=10 compute=3ms\n");
    let words = ["scale", &file, "--topology", TOPOLOGY, "--ranks", "1,4,16", "--json"];
    let outcome = run(command(&words));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let points = &outcome.json()["points"];
    // None; 6 steps of 1 us and 40 us; hierarchical over 4 hosts.
    let expected = [0_u64, 10 * 6 * 41_000, 10 * 2 * (3 * 41_000 + 3 * 405_000)];
    for (at, ns) in expected.into_iter().enumerate() {
        assert_eq!(points[at]["communication_ns"], ns, "{points}");
        assert_eq!(points[at]["compute_ns"], 30_000_000);
        let efficiency = 30e6 / (30e6 + ns as f64);
        assert!((points[at]["efficiency"].as_f64().unwrap() - efficiency).abs() < 1e-9);
    }
    assert_eq!((&points[2]["hosts"], &points[2]["algorithm"]), (&4.into(), &"hierarchical".into()));
    let json = folder
        .write("j", r#" [{"kind": "all_reduce", "bytes": 16000000, "count": 10, "compute_ns": 3000000}]"#);
    let same = run(command(&["scale", &json, "--topology", TOPOLOGY, "--ranks", "1,4,16", "--json"]));
    assert_eq!(same.stdout, outcome.stdout);
}

#[test]
fn a_thousand_ranks_are_a_table_and_a_picture() {
    let folder = Folder::new();
    let file = folder.write("t", "all_reduce bytes=100MB compute=50ms\nall_gather bytes=1MiB count=3\n");
    let picture = folder.path("curve.svg");
    let outcome = run(command(&["scale", &file, "--svg", &picture]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> =
        outcome.stdout.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 8);
    assert_eq!((rows[0][0], rows[7][0], rows[7][1]), ("8", "1024", "128"));
    let efficiency = |row: &Vec<&str>| row[8].parse::<f64>().unwrap();
    assert!(rows.windows(2).all(|pair| efficiency(&pair[1]) <= efficiency(&pair[0])), "{}", outcome.stdout);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.matches("<circle").count() == 8);
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let folder = Folder::new();
    let good = folder.write("good", "barrier\n");
    let lines = |name: &str, text: &str| folder.write(name, text);
    for (words, code, what) in [
        (vec![lines("a", "barrier\nall_reduce\n")], 2, "a:2: `all_reduce` has no bytes="),
        (vec![lines("b", "reduce_all bytes=1\n")], 2, "b:1: `reduce_all` is no collective"),
        (vec![lines("c", "all_reduce bytes=1 count=0\n")], 2, "`count=0`"),
        (vec![lines("d", "all_reduce bytes=-1\n")], 2, "`bytes=-1`"),
        (vec![lines("h", "all_reduce bytes=1 bytes=2\n")], 2, "h:1: `bytes` comes twice"),
        (vec![lines("i", "all_reduce bytes=1 overlap overlap\n")], 2, "`overlap` comes twice"),
        (vec![lines("k", "all_reduce bytes=1 overlap=no\n")], 2, "`overlap=no` is no"),
        (
            vec![lines("p", "all_reduce bytes=1 overlap compute=1ms\n")],
            2,
            "p:1: `overlap` comes before `compute=1ms`, and belongs at the end of the line",
        ),
        (
            vec![lines("l", "[{\"kind\": \"barrier\", \"count\": 1, \"count\": 2}]")],
            2,
            "duplicate field `count`",
        ),
        (
            vec![lines("m", "all_reduce bytes=1GB count=18446744073709551615 compute=1s\n")],
            2,
            "on 8 ranks these collectives take longer than 584 years",
        ),
        (vec![lines("e", "# nothing\n")], 2, "it has no collective"),
        (vec![lines("f", "[{\"kind\": \"none\"}]")], 2, "step 0 is `none`"),
        (
            vec![lines("n", "[{\"kind\": \"all_reduce\", \"bytes\": 1, \"count\": 0}]")],
            2,
            "step 0 has the count 0",
        ),
        (
            vec![lines("o", "[{\"kind\": \"barrier\"}, {\"kind\": \"all_reduce\"}]")],
            2,
            "step 1, `all_reduce`, has no bytes",
        ),
        (vec![lines("g", "[{")], 2, "g:1:2"),
        (vec!["/nonexistent".into()], 2, "No such file"),
        (vec!["/nonexistent".into()], 2, "CollectiveTrace`, or write lines such as `all_reduce bytes=4MB"),
        (vec![good.clone(), "--topology".into(), "8x string".into()], 2, "column 4"),
        (vec![good.clone(), "--ranks".into(), "12".into()], 3, "12 ranks"),
        (vec![good.clone(), "--ranks".into(), "0".into()], 3, "0 ranks"),
        (vec![good.clone(), "--topology".into(), "8x nvlink".into()], 3, "no network"),
        (vec![good, "--svg".into(), "/nonexistent/x.svg".into()], 2, "No such file"),
    ] {
        let words: Vec<&str> = std::iter::once("scale").chain(words.iter().map(String::as_str)).collect();
        let outcome = run(command(&words));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(what), "{words:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_picture_does_not_overwrite_what_is_read() {
    let folder = Folder::new();
    let text = "all_reduce bytes=16MB count=10 compute=3ms\n";
    let file = folder.write("train.collectives", text);
    for svg in [file.clone(), format!("{file}/../train.collectives").replace("train.collectives/../", "./")] {
        let outcome = run(command(&["scale", &file, "--topology", TOPOLOGY, "--ranks", "4", "--svg", &svg]));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
        assert!(outcome.stderr.contains("would overwrite"), "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn communication_behind_computing_is_not_seen() {
    let folder = Folder::new();
    let text = "all_reduce bytes=16MB count=10 compute=3ms";
    let (plain, marked) = (folder.write("p", text), folder.write("m", format!("{text} overlap\n")));
    let json = folder.write(
        "j",
        r#"[{"kind": "all_reduce", "bytes": 16000000, "count": 10, "compute_ns": 3000000, "overlap": true}]"#,
    );
    let words =
        |file: &str| ["scale", file, "--topology", TOPOLOGY, "--ranks", "4", "--json"].map(str::to_owned);
    let outcomes = [
        (words(&plain).to_vec(), 10 * 246_000),
        ([words(&plain).to_vec(), vec!["--overlap".into()]].concat(), 246_000),
        (words(&marked).to_vec(), 246_000),
        (words(&json).to_vec(), 246_000),
    ];
    for (words, exposed_ns) in outcomes {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = run(command(&words));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let point = &outcome.json()["points"][0];
        assert_eq!(
            (&point["exposed_ns"], &point["communication_ns"]),
            (&exposed_ns.into(), &2_460_000.into()),
            "{words:?}"
        );
        let efficiency = 30e6 / (30e6 + f64::from(exposed_ns));
        assert!((point["efficiency"].as_f64().unwrap() - efficiency).abs() < 1e-9);
    }
}

/// A recording of two ranks with these collectives of 16 MB, and kernels of the first one: when each begins and ends, in microseconds.
fn recording(collectives: &[(u64, u64)], kernels: &[(u64, u64)]) -> Vec<u8> {
    let stamp = |device, stream, number| TraceStamp { stream: TraceStream { device, stream }, number };
    let span = |(begin, end): (u64, u64)| Some(TimeSpan::new(1_000 * begin, 1_000 * end));
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    let mut push = |event: TraceEvent<'_>| writer.push(&event).unwrap();
    push(TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() }));
    for (number, times) in (1..).zip(collectives) {
        let (name, communicator, ranks, bytes) = ("all_reduce", 42, 2, 16_000_000);
        for rank in [1, 0] {
            let stamp = stamp(rank, 0, number);
            push(TraceEvent::Collective(CollectiveRecord { stamp, name, communicator, rank, ranks, bytes }));
            let (kind, device) = (SubmissionKind::Collective, span(*times));
            push(TraceEvent::Submission(SubmissionRecord {
                stamp,
                kind,
                name,
                device,
                ..Default::default()
            }));
        }
    }
    for (number, times) in (1..).zip(kernels) {
        let (stamp, name, device) = (stamp(0, 1, number), "step", span(*times));
        push(TraceEvent::Submission(SubmissionRecord { stamp, name, device, ..Default::default() }));
    }
    writer.finish().unwrap()
}

#[test]
fn the_collectives_of_a_recording_are_those_of_a_trace_by_hand() {
    let folder = Folder::new();
    let flags = ["--topology", TOPOLOGY, "--ranks", "1,4,16", "--json"];
    let scaled = |file: &str| {
        let outcome = run(command(&[&["scale", file][..], &flags].concat()));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome.json()["points"].clone()
    };
    // Kernels of 3 ms and of 2 ms, of which two run at the same time, before two collectives, and one of 1 ms after them.
    let apart = recording(
        &[(3_000, 4_000), (6_000, 7_000)],
        &[(0, 3_000), (4_000, 5_500), (4_500, 6_000), (7_000, 8_000)],
    );
    let by_hand = "all_reduce bytes=16MB compute=3ms\nall_reduce bytes=16MB compute=2ms\ncompute=1ms\n";
    assert_eq!(scaled(&folder.write("apart.kiln", apart)), scaled(&folder.write("apart", by_hand)));
    // The device computes while the first collective runs.
    let hidden = recording(&[(3_000, 4_000), (5_000, 6_000)], &[(0, 3_000), (3_000, 5_000)]);
    let by_hand = "all_reduce bytes=16MB compute=3ms overlap\nall_reduce bytes=16MB compute=2ms\n";
    assert_eq!(scaled(&folder.write("hidden.kiln", hidden)), scaled(&folder.write("hidden", by_hand)));
}

#[test]
fn a_recording_without_collectives_is_told() {
    let folder = Folder::new();
    let outcome = run(command(&["scale", &folder.write("none.kiln", recording(&[], &[(0, 1)]))]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("none.kiln: the recording has no collective"), "{}", outcome.stderr);
}
