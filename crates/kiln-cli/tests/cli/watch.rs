//! `kiln watch`: the address it prints answers, and what cannot be watched is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kiln_trace::{RecordingWriter, StartRecord, TraceEvent};

use crate::folder::Folder;
use crate::outcome::{command, run};

/// The command while it runs, and the address it printed.
struct Running {
    child: Child,
    address: String,
    /// The page ends when nothing reads what it prints.
    _output: Box<dyn BufRead>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the command; the address is on its standard output, or error.
    fn start(words: &[&str], is_in_stderr: bool) -> Self {
        let mut command = command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // From here on a test that stops ends it.
        let output = Box::new(std::io::empty());
        let mut running = Self { child: command.spawn().unwrap(), address: String::new(), _output: output };
        let child = &mut running.child;
        let mut from: Box<dyn BufRead> = match is_in_stderr {
            true => Box::new(BufReader::new(child.stderr.take().unwrap())),
            false => Box::new(BufReader::new(child.stdout.take().unwrap())),
        };
        let mut lines = from.by_ref().lines().map(Result::unwrap);
        let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned()));
        let address = address.unwrap();
        running.address = address.split(['"', ' ']).next().unwrap().to_owned();
        running._output = from;
        running
    }

    /// Asks for something below the address.
    fn ask(&self, what: &str) -> String {
        let (host, token) = self.address.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!("GET /{token}{what} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        answer
    }

    /// Asks for the state until it has a text.
    fn await_state(&self, wanted: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.ask("state").contains(wanted) {
            assert!(Instant::now() < deadline, "{}", self.ask("state"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn recorded(program: &'static str) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    writer.push(&TraceEvent::Start(StartRecord { program, ..StartRecord::default() })).unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_page_of_a_file_is_served() {
    let folder = Folder::new();
    let file = folder.write("train.kiln", recorded("train"));
    let running = Running::start(&["watch", &file], false);
    assert!(running.ask("").contains("<title>kiln watch</title>"));
    running.await_state("\"program\":\"train\"");
    let json = Running::start(&["watch", &file, "--json"], false);
    json.await_state("\"events\":1");
}

#[test]
fn a_recording_that_a_killed_command_moved_aside_is_put_back_and_shown() {
    let folder = Folder::new();
    let file = folder.path("train.kiln");
    folder.write(".train.kiln.4194304000.earlier", recorded("train"));
    let running = Running::start(&["watch", &file], false);
    running.await_state("\"program\":\"train\"");
    assert_eq!(folder.names(), ["train.kiln"]);
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let folder = Folder::new();
    let file = folder.path("late.kiln");
    // Not that of an earlier run.
    folder.write(".late.kiln.4194304000.earlier", recorded("early"));
    let running = Running::start(&["watch", "--live", &file], false);
    running.await_state("\"events\":0");
    folder.write("late.kiln", recorded("late"));
    running.await_state("\"program\":\"late\"");
}

#[test]
fn a_program_is_recorded_and_shown() {
    let folder = Folder::new();
    let file = folder.write("demo.kiln", "an earlier file that is no recording");
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let running = Running::start(&["watch", &file, "--", kiln, "demo", "--device", "sim"], true);
    running.await_state("\"is_virtual\":true");
    running.await_state("\"kind\":\"stream\"");
    assert!(running.ask("explain").contains("submissions in"));
}

#[test]
fn of_several_runs_in_a_folder_the_latest_is_shown() {
    let folder = Folder::new();
    for (run, name) in [("monday", "z-1.kiln"), ("tuesday", "a-1.kiln"), ("tuesday", "a-2.kiln")] {
        let mut writer = RecordingWriter::new(Vec::new()).unwrap();
        writer
            .push(&TraceEvent::Start(StartRecord { program: name, run, ..StartRecord::default() }))
            .unwrap();
        let file = folder.write(name, writer.finish().unwrap());
        if run == "monday" {
            let before = std::time::SystemTime::now() - Duration::from_secs(3600);
            std::fs::File::open(&file).unwrap().set_modified(before).unwrap();
        }
    }
    let running = Running::start(&["watch", &folder.path("")], false);
    let job = running.ask("job");
    assert!(job.contains("a-1.kiln") && job.contains("a-2.kiln") && !job.contains("z-1.kiln"), "{job}");
    let named = Running::start(&["watch", &folder.path("z-1.kiln")], false);
    named.await_state("\"program\":\"z-1.kiln\"");
}

#[test]
fn recordings_of_several_ranks_are_one_page() {
    let folder = Folder::new();
    let first = folder.write("rank-100.kiln", crate::job_recordings::rank(0, 1));
    let second = folder.write("rank-101.kiln", crate::job_recordings::rank(1, 15));
    for words in [&[&*first, &*second][..], &[&*folder.path("rank-%p.kiln")], &[&*folder.path("")]] {
        let running = Running::start(&[&["watch"], words].concat(), false);
        let deadline = Instant::now() + Duration::from_secs(30);
        while !running.ask("job").contains("rank 1 came 14.0 ms after the first, rank 0") {
            assert!(Instant::now() < deadline, "{}", running.ask("job"));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(running.ask("state?r=1").contains("rank-101.kiln"));
    }
}

#[test]
fn what_cannot_be_watched_is_told_with_the_next_step() {
    let folder = Folder::new();
    let (file, other) = (folder.write("a.kiln", recorded("a")), folder.write("b.txt", "something else"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (words, code, said) in [
        (&["watch", &*file, "--port", &*port][..], 3, "is in use; give another with --port"),
        (&["watch", &*other], 2, "it is no recording of kiln"),
        (&["watch", "--live", &*other], 2, "it is no recording of kiln"),
        (&["watch", "/nonexistent/a.kiln"], 2, "/nonexistent/a.kiln"),
        (&["watch"], 2, "FILE"),
        (&["watch", &*file, "--port", "99999"], 2, "99999"),
        (&["watch", &*folder.path("c.kiln"), "--", "/nonexistent/program"], 3, "cannot be started"),
    ] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{words:?}: {}", outcome.stderr);
    }
}

#[test]
fn no_address_is_printed_for_a_program_that_cannot_be_started() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    for program in ["/nonexistent/program", "no-such-program-of-any-folder"] {
        for words in [&["watch", &*file, "--", program][..], &["watch", "--json", &file, "--", program]] {
            let outcome = run(command(words));
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.code, Some(3), "{words:?}: {said}");
            assert!(said.contains("cannot be started") && !said.contains("http"), "{words:?}: {said}");
        }
    }
}

#[test]
fn a_program_that_recorded_nothing_ends_the_page_with_its_own_code() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        for verb in ["watch", "trace"] {
            let outcome = run(command(&[verb, &file, "--", "sh", "-c", script]));
            assert_eq!(outcome.code, Some(code), "{verb} {script}: {}", outcome.stderr);
            let why = "`sh` recorded nothing: no kiln runtime began to write ";
            assert!(outcome.stderr.contains(&format!("kiln {verb}: {why}")), "{}", outcome.stderr);
            assert!(
                outcome.stderr.contains("run a program that makes a kiln::DeviceRuntime"),
                "{}",
                outcome.stderr
            );
            let ends = outcome.stderr.contains("nothing was recorded, so the page has ended");
            assert_eq!(ends, verb == "watch", "{}", outcome.stderr);
        }
        let out = folder.path("a.pftrace");
        let outcome = run(command(&["trace", &file, "--json", "--perfetto", &out, "--", "sh", "-c", script]));
        assert_eq!((outcome.code, outcome.json()), (Some(code), serde_json::json!({ "recordings": [] })));
        assert!(outcome.stderr.contains("a.pftrace is not written"), "{}", outcome.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_address_that_cannot_be_said_ends_the_command() {
    let folder = Folder::new();
    let file = folder.write("train.kiln", recorded("train"));
    for words in [&["watch", &*file][..], &["watch", "--json", &file]] {
        let mut command = command(words);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Ended already, or it hangs.
        let _ = child.kill();
        let outcome = child.wait_with_output().unwrap();
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("the output could not be written"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn the_page_ends_when_what_reads_the_output_leaves() {
    let folder = Folder::new();
    let file = folder.write("train.kiln", recorded("train"));
    for words in [&["watch", &*file][..], &["watch", "--json", &file]] {
        let mut command = command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        // It stays as long as the pipe is open.
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none());
        drop(output);
        let deadline = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            let is_late = Instant::now() > deadline;
            if is_late {
                child.kill().unwrap();
            }
            assert!(!is_late, "{words:?} hangs");
            std::thread::sleep(Duration::from_millis(20));
        }
        let outcome = child.wait_with_output().unwrap();
        let said = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{said}");
        assert!(said.contains("nothing reads the standard output any more"), "{said}");
    }
}
