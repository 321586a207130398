//! Recordings of programs: one for each process, which the other commands read.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kiln_trace::{RecordingClock, RecordingReader, SubmissionKind, TraceEvent, TraceLine};

use super::{compiled, folder, gpu, kiln, text};

/// What a recording has.
#[derive(Default, Debug)]
struct Contents {
    clock: Option<RecordingClock>,
    kernels: Vec<String>,
    copies: u64,
    fills: u64,
    graphs: u64,
    measured: u64,
    stream_waits: u64,
    /// File and line of what was asked for: waits of streams, waits of the host, work, and memory.
    asked: Vec<(String, u32)>,
    waited: Vec<(String, u32)>,
    queued: Vec<(String, u32)>,
    made: Vec<(String, u32)>,
    host_waits: u64,
    allocated: Vec<String>,
    freed: u64,
    findings: Vec<String>,
    faults: u64,
    words: Vec<String>,
    has_end: bool,
}

fn contents(file: &Path) -> Contents {
    let mut reader = RecordingReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut contents = Contents::default();
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            TraceEvent::Start(start) => contents.clock = Some(start.clock),
            TraceEvent::Submission(work) => {
                contents.queued.extend(work.line.map(place_of));
                contents.measured += u64::from(work.device.is_some());
                match work.kind {
                    SubmissionKind::Kernel => contents.kernels.push(work.name.to_owned()),
                    SubmissionKind::Copy => contents.copies += 1,
                    SubmissionKind::Fill => contents.fills += 1,
                    SubmissionKind::Graph => contents.graphs += 1,
                    _ => {}
                }
            }
            TraceEvent::StreamWait(wait) => {
                contents.stream_waits += 1;
                contents.asked.extend(wait.line.map(place_of));
            }
            TraceEvent::HostWait(wait) => {
                contents.host_waits += 1;
                contents.waited.extend(wait.line.map(place_of));
            }
            TraceEvent::Allocation(block) => {
                contents.allocated.push(block.tag.to_owned());
                contents.made.extend(block.line.map(place_of));
            }
            TraceEvent::Free(_) => contents.freed += 1,
            TraceEvent::Finding(found) => contents.findings.push(found.message.to_owned()),
            TraceEvent::Fault(_) => contents.faults += 1,
            TraceEvent::Command(word) => contents.words.push(word.text.to_owned()),
            _ => {}
        }
    }
    contents.has_end = reader.has_end_mark();
    contents
}

fn place_of(line: TraceLine<'_>) -> (String, u32) {
    let name = Path::new(line.file).file_name().unwrap_or_default();
    (name.to_string_lossy().into_owned(), line.line)
}

/// The lines of the program for GPUs that have a text.
fn lines_of(words: &str) -> Vec<(String, u32)> {
    let lines = include_str!("gpu.c").lines().zip(1..).filter(|(line, _)| line.contains(words));
    lines.map(|(_, number)| ("gpu.c".to_owned(), number)).collect()
}

fn place(name: &str) -> PathBuf {
    folder().join(name)
}

/// Runs a case of the program for GPUs on the simulated device, recorded.
fn record(file: &Path, program: &Path, words: &[&str]) -> Output {
    kiln(&["--seed", "3", "--trace", file.to_str().unwrap()], program, words)
}

fn command(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kiln")).args(words).output().unwrap()
}

#[test]
fn a_recording_has_what_the_program_did_and_other_commands_read_it() {
    let Some(program) = compiled("gpu") else { return };
    let file = place("recorded right.kiln");
    let output = record(&file, &program, &["right"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("recorded to ") && told.contains("right.kiln"), "{told}");
    let found = contents(&file);
    assert_eq!(found.clock, Some(RecordingClock::Virtual));
    assert_eq!(found.kernels, ["set"; 3], "{found:?}");
    assert!(
        found.copies >= 3 && found.fills >= 1 && found.stream_waits >= 1 && found.host_waits >= 1,
        "{found:?}"
    );
    // All work of the program ran, and it is known when.
    assert!(found.measured >= 7, "{found:?}");
    for tag in ["device", "pool", "managed", "pinned"] {
        assert!(found.allocated.iter().any(|other| other == tag), "{tag}: {found:?}");
    }
    assert_eq!((found.freed, found.has_end), (found.allocated.len() as u64, true), "{found:?}");
    assert!(found.words.iter().any(|word| word == "--seed"), "{found:?}");
    let file = file.to_str().unwrap();
    let explained = text(&command(&["explain", file]).stdout);
    assert!(explained.contains("set") && explained.contains("exec --library"), "{explained}");
    let traced = place("right.pftrace");
    let output = command(&["trace", file, "--perfetto", traced.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(traced.metadata().unwrap().len() > 500);
}

#[test]
fn waits_work_and_memory_of_a_recording_have_the_lines_of_the_program() {
    let Some(program) = compiled("gpu") else { return };
    let file = place("recorded lines.kiln");
    let output = record(&file, &program, &["right"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = contents(&file);
    let has = |all: &[(String, u32)], words: &str| lines_of(words).iter().any(|line| all.contains(line));
    assert!(has(&found.asked, "OK(cuStreamWaitEvent(second, event, 0));"), "{found:?}");
    assert!(has(&found.waited, "OK(cuStreamSynchronize(second));"), "{found:?}");
    assert!(has(&found.queued, "OK(cuMemcpyDtoHAsync_v2(pinned, p, 4 * N, second));"), "{found:?}");
    assert!(has(&found.queued, "return cuLaunchKernel(set_words,"), "{found:?}");
    for words in ["OK(cuMemAlloc_v2(&p, 4 * N));", "OK(cuMemAllocAsync(&pool, 4 * N, first));"] {
        assert!(has(&found.made, words), "{words}: {found:?}");
    }
    let explained = text(&command(&["explain", file.to_str().unwrap()]).stdout);
    assert!(explained.contains("gpu.c:"), "{explained}");
}

#[test]
fn a_recording_on_a_gpu_has_the_lines_of_the_program() {
    let Some(program) = compiled("gpu") else { return };
    let file = place("lines on a gpu.kiln");
    let flags = ["--trace", file.to_str().unwrap()];
    let Some(mut command) = gpu::command_of(&flags, &program, &["right"]) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = contents(&file);
    let wait = lines_of("OK(cuStreamWaitEvent(second, event, 0));");
    assert!(wait.iter().any(|line| found.asked.contains(line)), "{found:?}");
}

#[test]
fn each_process_of_a_run_has_its_recording() {
    let Some(program) = compiled("gpu") else { return };
    let file = place("several.kiln");
    let program = program.display();
    let lines = format!("{program} right; {program} right & {program} copies; wait");
    let output = record(&file, Path::new("sh"), &["-c", &lines]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    let names = |prefix: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder()).unwrap().flatten().map(|entry| entry.path());
        let is_meant = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
        entries
            .filter(|path| is_meant(path) && path.extension().is_some_and(|ending| ending == "kiln"))
            .collect()
    };
    let all: Vec<Contents> = names("several.").iter().map(|file| contents(file)).collect();
    assert_eq!((all.len(), told.matches("recorded to ").count()), (3, 3), "{told}");
    assert!(all.iter().all(|contents| contents.has_end));
    // What was found is in the recording of the process.
    let found: Vec<&String> = all.iter().flat_map(|contents| &contents.findings).collect();
    assert!(found.len() == 1 && found[0].contains("nothing orders"), "{found:?}");
    // With %p each has its number.
    let file = place("number-%p.kiln");
    let output = record(&file, Path::new("sh"), &["-c", &format!("{program} right; {program} right")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(names("number-").len(), 2);
}

#[test]
fn a_recording_of_a_program_that_is_killed_is_readable() {
    let Some(program) = compiled("mistakes") else { return };
    let file = place("killed.kiln");
    let output = record(&file, &program, &["killed"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert!(!contents(&file).has_end);
}

#[test]
fn what_cannot_be_recorded_is_told() {
    let output = record(&place("nothing.kiln"), Path::new("true"), &[]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(0) && told.contains("nothing is recorded"), "{told}");
    let wrong = [
        (&["--trace", "/nonexistent/run.kiln"][..], "there is no folder"),
        (&["--trace", "a.kiln", "--seeds", "2"], "--trace records one run"),
        (&["--trace", "/dev/null"], "not written to"),
    ];
    for (flags, why) in wrong {
        let output = kiln(flags, Path::new("echo"), &["ran"]);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{told}");
        assert!(told.contains(why), "{told}");
    }
}
