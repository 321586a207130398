//! Programs that `kiln trace` and `kiln watch` run: signals, processes, places that are no files, and whose output is whose.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kiln_trace::{DropCause, DroppedRecord, RecordingWriter, TraceEvent};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};
use crate::recordings::planted;

/// How long a command may take that must not hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command that must not hang.
fn run_within(mut command: Command) -> Outcome {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn pipe(folder: &Folder, name: &str) -> String {
    let path = folder.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// A shell that records by copying a recording, says its number, and then sleeps.
fn sleeper(folder: &Folder) -> String {
    let source = folder.write("source.kiln", planted());
    format!("cp {source} \"$KILN_TRACE\"; echo $$ >&2; exec sleep 60")
}

/// The number that the program says on the standard error.
fn program_of(child: &mut Child) -> Pid {
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let number = lines.map(Result::unwrap).find_map(|line| line.trim().parse().ok()).unwrap();
    Pid::from_raw(number).unwrap()
}

fn is_gone(program: Pid) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while test_kill_process(program).is_ok() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn a_signal_is_passed_on_and_the_recording_is_finished() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        for verb in ["trace", "watch"] {
            if crate::ignored_signals::is_ignored(signal) {
                continue;
            }
            let folder = Folder::new();
            let (file, script) = (folder.path("a.kiln"), sleeper(&folder));
            let mut command = command(&[verb, &file, "--", "sh", "-c", &script]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let program = program_of(&mut child);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let ended = child.wait().unwrap();
            let gone = is_gone(program);
            if !gone {
                kill_process(program, Signal::KILL).unwrap();
            }
            assert!(gone, "{verb} with {signal:?} leaves the program running");
            assert_eq!(ended.code(), Some(code), "{verb} {signal:?}");
            assert_eq!(fs::read(&file).unwrap(), planted(), "what was recorded stays");
        }
    }
}

#[test]
fn a_program_that_ends_itself_after_a_signal_has_its_own_code() {
    let folder = Folder::new();
    let source = folder.write("source.kiln", planted());
    let script =
        format!("trap 'cp {source} \"$KILN_TRACE\"; exit 7' TERM; echo $$ >&2; while :; do sleep 0.05; done");
    let out = folder.path("a.pftrace");
    let words = ["trace", &folder.path("a.kiln"), "--perfetto", &out, "--", "sh", "-c", &script];
    let mut child = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    program_of(&mut child);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(said.contains("3 submissions") && Path::new(&out).is_file(), "{said}");
}

#[test]
fn each_process_is_recorded_by_its_number() {
    let folder = Folder::new();
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let (file, out) = (folder.path("run-%p.kiln"), folder.path("run-%p.pftrace"));
    let two = format!("{kiln} demo --device sim && {kiln} demo --device sim");
    let outcome = run(command(&["trace", &file, "--perfetto", &out, "--", "sh", "-c", &two]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let names: Vec<String> = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for ending in [".kiln", ".pftrace"] {
        let numbers = names.iter().filter_map(|name| name.strip_prefix("run-")?.strip_suffix(ending));
        assert_eq!(numbers.filter(|number| number.parse::<u32>().is_ok()).count(), 2, "{names:?}");
    }
    assert_eq!(outcome.stdout.matches("submissions").count(), 2, "{}", outcome.stdout);
    // Without a trace, the recordings are named.
    let outcome = run(command(&["trace", &file, "--", kiln, "demo", "--device", "sim"]));
    assert!(outcome.code == Some(0) && outcome.stderr.contains("recorded to "), "{}", outcome.stderr);
    // One trace cannot hold several processes, which is said before the program starts.
    let marker = folder.path("marker");
    let one = folder.path("one.pftrace");
    let outcome = run(command(&["trace", &file, "--perfetto", &one, "--", "touch", &marker]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("%p") && !Path::new(&marker).exists(), "{}", outcome.stderr);
}

#[test]
fn recordings_that_exist_are_converted_by_their_numbers() {
    let folder = Folder::new();
    let (file, out) = (folder.path("run-%p.kiln"), folder.path("run-%p.pftrace"));
    for number in [11, 12] {
        folder.write(&format!("run-{number}.kiln"), planted());
    }
    let outcome = run(command(&["trace", &file, "--perfetto", &out]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for number in [11, 12] {
        let trace = folder.path(&format!("run-{number}.pftrace"));
        assert!(outcome.stdout.contains(&format!("{trace}: 3 submissions")), "{}", outcome.stdout);
        assert!(Path::new(&trace).is_file());
    }
    let json = run(command(&["trace", &file, "--perfetto", &out, "--json"])).json();
    assert_eq!(json["traces"].as_array().map(Vec::len), Some(2), "{json}");
    for (words, said) in [
        (["trace", &file, "--perfetto", &folder.path("one.pftrace")], "put %p into the name of the trace"),
        (["trace", &folder.path("no-%p.kiln"), "--perfetto", &out], "no recording with a number"),
    ] {
        let outcome = run(command(&words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.replace('\n', " ").contains(said), "{words:?}: {}", outcome.stderr);
    }
}

#[test]
fn what_is_to_be_traced_is_asked_for_with_both_uses() {
    let folder = Folder::new();
    let good = folder.write("good.kiln", planted());
    let both = ["kiln trace -- PROGRAM", "kiln trace FILE --perfetto OUT"];
    for words in [&["trace"][..], &["trace", &good]] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
        assert!(both.iter().all(|said| outcome.stderr.contains(said)), "{words:?}: {}", outcome.stderr);
    }
    let help = run(command(&["trace", "--help"])).stdout;
    for said in ["Record a program", "-- <PROGRAM>...\n", "<FILE> --perfetto <OUT>\n"] {
        assert!(help.contains(said), "{said}: {help}");
    }
    for words in
        [&["trace", "", "--", "true"][..], &["trace", &good, "--perfetto", ""], &["watch", "", "--", "true"]]
    {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("the name of the file is empty"), "{words:?}: {}", outcome.stderr);
    }
    let mut command = command(&["trace", &good, "--perfetto", "-"]);
    command.current_dir(folder.path(""));
    let outcome = run(command);
    assert!(outcome.code == Some(2) && outcome.stderr.contains("./-"), "{}", outcome.stderr);
    assert!(!Path::new(&folder.path("-")).exists());
}

#[test]
fn pipes_and_devices_are_refused_with_words() {
    let folder = Folder::new();
    let (good, fifo) = (folder.write("good.kiln", planted()), pipe(&folder, "fifo"));
    let (marker, out) = (folder.path("marker"), folder.path("out.pftrace"));
    for (words, said) in [
        (&["explain", &*fifo][..], "it is a pipe"),
        (&["explain", "/dev/zero"], "it is a device"),
        (&["trace", &fifo, "--perfetto", &out], "it is a pipe"),
        (&["trace", &good, "--perfetto", &fifo], "it is a pipe"),
        (&["trace", &good, "--perfetto", "/dev/null"], "it is a device"),
        (&["watch", &fifo], "it is a pipe"),
        (&["watch", "--live", &fifo], "it is a pipe"),
        (&["trace", &fifo, "--", "touch", &marker], "it is a pipe"),
        (&["trace", "/dev/null", "--", "touch", &marker], "it is a device"),
        (&["trace", &folder.path("a.kiln"), "--perfetto", &fifo, "--", "touch", &marker], "it is a pipe"),
        (&["watch", &fifo, "--", "touch", &marker], "it is a pipe"),
    ] {
        let outcome = run_within(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{words:?}: {}", outcome.stderr);
        assert!(!Path::new(&marker).exists(), "{words:?} has started the program");
    }
}

/// What the shell printed before and prints after is in the file, and the file is the same one.
#[test]
fn the_file_behind_a_standard_stream_is_not_replaced() {
    let folder = Folder::new();
    let (good, log) = (folder.write("good.kiln", planted()), folder.path("log.txt"));
    let kiln = env!("CARGO_BIN_EXE_kiln");
    for (place, said) in [
        ("/dev/stdout", "it is the standard output"),
        ("/proc/self/fd/1", "it is the standard output"),
        ("/dev/fd/2", "it is the standard error"),
        (&log, "it is the standard output"),
        ("/proc/self/fd/3", "it is an open file of a process"),
    ] {
        for verb in
            ["trace \"$1\" --perfetto \"$2\"", "trace \"$2\" -- touch \"$4\"", "watch \"$2\" -- touch \"$4\""]
        {
            let third = folder.path("third");
            let errors = folder.path("errors.txt");
            let script =
                format!("(echo before; \"$0\" {verb}; echo \"ended $?\") > \"$3\" 2> \"$5\" 3> \"$6\"");
            let marker = folder.path("marker");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script, kiln, &good, place, &log, &marker, &errors, &third]);
            shell.env("COLUMNS", "400").stdin(Stdio::null());
            assert!(run_within(shell).code == Some(0), "{place} {verb}");
            let read = |file: &str| fs::read_to_string(file).unwrap();
            assert_eq!(read(&log), "before\nended 2\n", "{place} {verb}");
            assert!(read(&errors).contains(said), "{place} {verb}: {}", read(&errors));
            assert!(!Path::new(&marker).exists(), "{place} {verb} has started the program");
        }
    }
}

#[test]
fn a_place_that_cannot_be_recorded_to_is_refused_before_the_program_starts() {
    let folder = Folder::new();
    let (here, marker) = (folder.path(""), folder.path("marker"));
    let nowhere = folder.path("no/such/folder/a.kiln");
    for verb in ["trace", "watch"] {
        for (place, said) in [(&here, "is a folder"), (&nowhere, "there is no folder")] {
            let outcome = run_within(command(&[verb, place, "--", "touch", &marker]));
            assert_eq!(outcome.code, Some(2), "{verb} {place}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(said), "{verb} {place}: {}", outcome.stderr);
            assert!(!Path::new(&marker).exists(), "{verb} {place} has started the program");
        }
    }
}

#[test]
fn a_trace_in_a_folder_that_is_not_there_is_refused_before_the_program_starts() {
    let folder = Folder::new();
    let (file, marker, out) = (folder.path("a.kiln"), folder.path("marker"), folder.path("no/a.pftrace"));
    let outcome = run_within(command(&["trace", &file, "--perfetto", &out, "--", "touch", &marker]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("there is no folder"), "{}", outcome.stderr);
    assert!(!Path::new(&marker).exists(), "the program was started");
}

#[test]
fn a_recording_that_is_being_written_is_left_alone() {
    use rustix::fs::{FlockOperation, flock};
    let folder = Folder::new();
    let (file, marker) = (folder.write("a.kiln", planted()), folder.path("marker"));
    let writer = fs::File::open(&file).unwrap();
    flock(&writer, FlockOperation::NonBlockingLockExclusive).unwrap();
    for verb in ["trace", "watch"] {
        let outcome = run_within(command(&[verb, &file, "--", "touch", &marker]));
        assert_eq!(outcome.code, Some(2), "{verb}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("still runs is recorded to it; give another FILE"),
            "{}",
            outcome.stderr
        );
        assert!(!Path::new(&marker).exists(), "{verb} has started the program");
    }
    assert_eq!(fs::read(&file).unwrap(), planted());
    drop(writer);
    let outcome = run(command(&["trace", &file, "--", "cp", &folder.write("source.kiln", planted()), &file]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn json_is_alone_on_the_standard_output() {
    let folder = Folder::new();
    let (source, out) = (folder.write("source.kiln", planted()), folder.path("a.pftrace"));
    let script = format!("echo noise; cp {source} \"$KILN_TRACE\"");
    let file = folder.path("a.kiln");
    let outcome = run(command(&["trace", &file, "--perfetto", &out, "--json", "--", "sh", "-c", &script]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.json()["submissions"], 3);
    assert!(outcome.stderr.contains("noise"), "{}", outcome.stderr);
    let outcome = run(command(&["trace", &file, "--json", "--", "sh", "-c", &script]));
    assert_eq!(outcome.json()["recordings"][0], serde_json::json!(file));
    // The page's address is the first thing there, and what the program writes is elsewhere.
    let mut child =
        command(&["watch", &file, "--json", "--", "sh", "-c", &format!("{script}; echo $$ >&2; sleep 60")]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    program_of(&mut child);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(json["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{said}");
}

#[test]
fn an_empty_recording_is_explained() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    // As a program leaves it whose disk is full.
    let outcome = run(command(&["trace", &file, "--", "sh", "-c", ": > \"$KILN_TRACE\""]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("is empty") && outcome.stderr.contains("room"), "{}", outcome.stderr);
    let empty = folder.write("empty.kiln", "");
    let outcome = run(command(&["explain", &empty]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is empty") && outcome.stderr.contains("disk"), "{}", outcome.stderr);
    // In a folder, too, alone and beside a recording.
    let outcome = run(command(&["explain", &folder.path(".")]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("empty.kiln") && outcome.stderr.contains("it is empty"),
        "{}",
        outcome.stderr
    );
    let outcome = run(command(&["watch", &folder.path("."), "--json"]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
    folder.write("good.kiln", RecordingWriter::new(Vec::new()).unwrap().finish().unwrap());
    let outcome = run(command(&["explain", &folder.path(".")]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is empty") && !outcome.stdout.is_empty(), "{}", outcome.stderr);
}

#[test]
fn a_disk_that_became_full_is_told_at_the_end() {
    let folder = Folder::new();
    let dropped = DroppedRecord { events: 9, cause: DropCause::DiskFull, at_byte: 500, time_ns: 2_000 };
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    writer.push(&TraceEvent::Dropped(dropped)).unwrap();
    let source = folder.write("source.kiln", writer.finish().unwrap());
    let script = format!("cp {source} \"$KILN_TRACE\"");
    let outcome = run(command(&["trace", &folder.path("a.kiln"), "--", "sh", "-c", &script]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let said =
        "9 events are missing: the disk was full when the file had 500 bytes, 2.0 us after the beginning.";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn a_page_shows_a_program_that_is_recorded_by_number() {
    let folder = Folder::new();
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let file = folder.path("run-%p.kiln");
    let mut child = command(&["watch", &file, "--json", "--", kiln, "demo", "--device", "sim"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let stays = said.find(|line| line.contains("the page stays"));
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    assert!(began.elapsed() < PATIENCE && stays.is_some_and(|line| line.contains("ended with 0")));
}

#[test]
fn how_times_are_taken_is_told_to_the_program_and_a_wrong_way_is_refused() {
    let folder = Folder::new();
    let (file, source) = (folder.path("a.kiln"), folder.write("source.kiln", planted()));
    let script = format!("cp {source} \"$KILN_TRACE\"; echo \"times: $KILN_TRACE_TIMES\"");
    for (times, said) in
        [("events/16", "events/16"), ("cupti", "cupti"), ("events", "events"), ("host", "host")]
    {
        let outcome = run(command(&["trace", &file, "--times", times, "--", "sh", "-c", &script]));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stdout.contains(&format!("times: {said}\n")), "{}", outcome.stdout);
    }
    let mut plain = command(&["trace", &file, "--", "sh", "-c", &script]);
    let outcome = run({
        plain.env("KILN_TRACE_TIMES", "events/3");
        plain
    });
    assert!(outcome.stdout.contains("times: events/3\n"), "as the environment says: {}", outcome.stdout);
    for wrong in ["clock", "events/0", "events/", "events/-1"] {
        let outcome = run(command(&["trace", &file, "--times", wrong, "--", "sh", "-c", &script]));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(wrong) && outcome.stderr.contains("events/16"), "{}", outcome.stderr);
        assert!(!outcome.stdout.contains("times:"), "the program was not started: {}", outcome.stdout);
    }
    let outcome =
        run(command(&["trace", &file, "--perfetto", &folder.path("a.pftrace"), "--times", "events"]));
    assert_eq!(outcome.code, Some(2), "a recording that is there has its times: {}", outcome.stderr);
}

/// Events around no submission, which only the environment can ask for: the program is told, and records nothing.
#[test]
fn events_around_no_submission_are_refused_by_the_program_that_is_recorded() {
    let folder = Folder::new();
    let (kiln, file) = (env!("CARGO_BIN_EXE_kiln"), folder.path("a.kiln"));
    let mut command = command(&["trace", &file, "--", kiln, "demo", "--device", "sim"]);
    command.env("KILN_TRACE_TIMES", "events/0");
    let outcome = run_within(command);
    assert!(outcome.code.is_some_and(|code| code != 0), "{}", outcome.stderr);
    let said = &outcome.stderr;
    assert!(
        said.contains("KILN_TRACE_TIMES") && said.contains("events/0") && said.contains("events/16"),
        "{said}"
    );
}
