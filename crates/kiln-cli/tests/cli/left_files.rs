//! What commands leave behind that are ended by signals, and how many documents of JSON they print.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kiln_trace::{RecordingWriter, SubmissionRecord, TimeSpan, TraceEvent, TraceStamp};
use rustix::process::{Pid, Signal, kill_process};

use crate::folder::Folder;
use crate::outcome::{command, run};
use crate::recordings::planted;

/// A recording that takes a while to convert.
fn long(folder: &Folder) -> String {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for number in 1..=1_500_000 {
        let stamp = TraceStamp { number, ..TraceStamp::default() };
        let host = TimeSpan::new(number * 10, number * 10 + 5);
        let work = SubmissionRecord { stamp, name: "k", host, ..SubmissionRecord::default() };
        writer.push(&TraceEvent::Submission(work)).unwrap();
    }
    folder.write("long.kiln", writer.finish().unwrap())
}

#[test]
fn a_conversion_that_a_signal_ends_leaves_nothing() {
    let folder = Folder::new();
    let (file, out) = (long(&folder), folder.path("out.pftrace"));
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        if crate::ignored_signals::is_ignored(signal) {
            continue;
        }
        let mut convert = command(&["trace", &file, "--perfetto", &out]);
        let mut child = convert.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // It has read the recording once when it opens the file that it writes: well before that, and well after.
        let is_writing = || {
            let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
            let names = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            names.filter(|name| name.starts_with(folder.path(""))).count() > 1
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_writing() {
            assert!(Instant::now() < deadline, "it does not write");
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!(folder.names(), ["long.kiln"], "{signal:?}, {ended:?}");
    }
}

#[test]
fn what_a_killed_command_left_is_removed_and_told() {
    let folder = Folder::new();
    let (file, out) = (folder.write("a.kiln", planted()), folder.path("out.pftrace"));
    // As it is on a file system on which every file has a name; no process has such a number.
    let left = folder.write(".out.pftrace.4194304000.part", "half");
    let other = folder.write(".else.pftrace.4194304000.part", "half");
    let outcome = run(command(&["trace", &file, "--perfetto", &out]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("{left}: note: removed")), "{}", outcome.stderr);
    assert!(!Path::new(&left).exists() && Path::new(&other).exists(), "{:?}", folder.names());
    // One of a process that lives may be its own.
    let living = folder.write(&format!(".out.pftrace.{}.part", std::process::id()), "half");
    let outcome = run(command(&["trace", &file, "--perfetto", &out]));
    assert!(outcome.stderr.contains(&living) && Path::new(&living).exists(), "{}", outcome.stderr);
}

#[test]
fn a_recording_that_a_killed_command_moved_aside_is_put_back() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    let aside = folder.write(".a.kiln.4194304000.earlier", planted());
    let outcome = run(command(&["trace", &file, "--", "true"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("{aside}: note: put back")), "{}", outcome.stderr);
    assert_eq!((std::fs::read(&file).unwrap(), folder.names()), (planted(), vec!["a.kiln".to_owned()]));
    // A command that reads it does the same.
    for words in [&["explain", &*file][..], &["explain", &*file, "--json"]] {
        std::fs::rename(&file, folder.path(".a.kiln.4194304000.earlier")).unwrap();
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(0), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("{aside}: note: put back")), "{}", outcome.stderr);
        assert_eq!(std::fs::read(&file).unwrap(), planted());
    }
    // Beside a later recording it is of no use.
    folder.write(".a.kiln.4194304000.earlier", "old");
    let outcome = run(command(&["trace", &file, "--", "true"]));
    assert!(outcome.stderr.contains(&format!("{aside}: note: removed")), "{}", outcome.stderr);
    assert_eq!((std::fs::read(&file).unwrap(), folder.names()), (planted(), vec!["a.kiln".to_owned()]));
}

#[test]
fn a_command_that_fails_prints_one_document_of_json() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    for (words, code) in [
        (&["watch", &*file, "--json", "--", "/nonexistent/program"][..], 3),
        (&["watch", &*file, "--json", "--", "true"], 0),
        (&["watch", "/nonexistent/a.kiln", "--json"], 2),
        (&["trace", &*file, "--json", "--", "/nonexistent/program"], 3),
        (&["trace", &*file, "--json", "--", "true"], 0),
        (&["trace", &*file, "--json", "--", "sh", "-c", "exit 7"], 7),
        (&["explain", "/nonexistent/a.kiln", "--json"], 2),
    ] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.json().is_object(), "{words:?}");
        let is_told = outcome.json().get("error").is_some() || !outcome.stderr.is_empty();
        assert!(is_told, "{words:?}: {}", outcome.stdout);
    }
}
