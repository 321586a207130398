//! How recordings end: cleanly, with a program that is killed, with a full disk; and two that want one file.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kiln::error::{ErrorKind, RecordingError};
use kiln::group::DeviceGroup;
use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::telemetry::DeviceTimes;
use kiln::trace::TraceEvent;
use kiln::{DeviceRuntime, RuntimeConfig};

use crate::Recorded;

/// Names what this binary does when it is started as a child.
const ROLE: &str = "KILN_TEST_ROLE";
const TRACE: &str = "KILN_TRACE";

/// What a child does, which a test below started.
#[test]
#[ignore = "helper process"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "lasting" {
        // Nothing drops this runtime, and nothing flushes its recording.
        let gpu = DeviceRuntime::auto().unwrap();
        assert_eq!(gpu.upload(&[1_u32, 2, 3]).unwrap().download().unwrap(), [1, 2, 3]);
        return;
    }
    if role == "one machine" {
        let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
        let machine = Machine::new(config);
        let drivers = [0, 1].map(|device| machine.device(device).unwrap());
        DeviceGroup::over(drivers, &RuntimeConfig::default()).unwrap();
        return;
    }
    let gpu = DeviceRuntime::simulated(1).unwrap();
    if role == "recorded already" {
        // Which file the environment has it recorded to, and not the one that is asked for now.
        let (own, asked) = (PathBuf::from(std::env::var_os(TRACE).unwrap()), Recorded::new());
        let error = gpu.trace(&asked).unwrap_err();
        let ErrorKind::Trace(RecordingError::AlreadyRecorded { path }) = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((path, asked.0.exists(), gpu.trace_path()), (&own, false, Some(own.clone())));
        let said = error.to_string();
        assert!(said.contains(&own.display().to_string()) && said.contains("unset KILN_TRACE"), "{said}");
    }
    if role == "many fills" {
        let buffer = gpu.zeros::<u32>(64).unwrap();
        for value in 0..2000 {
            buffer.fill(value).unwrap();
        }
        gpu.synchronize().unwrap();
        assert_eq!(buffer.download().unwrap(), [1999; 64]);
    }
    let _second =
        (role == "two runtimes" || role == "many fills").then(|| DeviceRuntime::simulated(2).unwrap());
    let buffer = gpu.upload(&[1_u32, 2, 3]).unwrap();
    assert_eq!(buffer.download().unwrap(), [1, 2, 3]);
    if role == "abort at once" {
        std::process::abort();
    }
    gpu.flush_trace();
    match &*role {
        "abort" => std::process::abort(),
        // Until the test has seen all of them.
        "wait" => {
            std::io::stdout().write_all(b"\nready\n").unwrap();
            let _ = std::io::stdin().read(&mut [0]);
        }
        _ => {}
    }
}

/// A child that plays a role.
pub(crate) fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "ends::child", "--nocapture"]).env(ROLE, role).env_remove(TRACE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn start(role: &str, trace: &Path) -> Child {
    command(role).env(TRACE, trace).spawn().unwrap()
}

#[test]
fn a_second_runtime_does_not_write_into_the_file_of_a_first() {
    let file = Recorded::new();
    let (first, second) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    first.trace(&file).unwrap();
    let error = second.trace(&file).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Trace(RecordingError::InUse { path }) if path == &file.0),
        "{error}"
    );
    assert!(error.to_string().contains("another file"), "{error}");
    assert_eq!(second.upload(&[4_u32]).unwrap().download().unwrap(), [4], "it goes on without");
    assert_eq!(first.upload(&[5_u32]).unwrap().download().unwrap(), [5]);
    drop((first, second));
    let explained = file.explained();
    assert!(explained.is_whole && explained.devices.len() == 1, "{explained}");
    let third = DeviceRuntime::simulated(3).unwrap();
    third.trace(&file).unwrap();
    drop(third);
    assert!(file.explained().is_whole, "a file that is not written any more is overwritten");
}

#[test]
fn devices_of_one_simulated_machine_have_one_clock_and_others_have_their_own() {
    for (role, clocks) in [("two runtimes", [0, 1]), ("one machine", [0, 0])] {
        let file = Recorded::new();
        assert!(start(role, &file.0).wait().unwrap().success(), "{role}");
        let mut found = Vec::new();
        file.each(|event| {
            if let TraceEvent::Device(device) = event {
                found.push(device.clock);
            }
        });
        assert_eq!(found, clocks, "{role}");
    }
}

#[test]
fn a_program_that_was_killed_left_what_it_did_and_no_end_mark() {
    let file = Recorded::new();
    assert!(!start("abort", &file.0).wait().unwrap().success());
    let (mut submissions, mut ends) = (0, 0);
    file.each(|event| match event {
        TraceEvent::Submission(_) => submissions += 1,
        TraceEvent::End(_) => ends += 1,
        _ => {}
    });
    assert_eq!((submissions, ends), (2, 0));
    let explained = file.explained();
    assert!(!explained.is_whole, "{explained}");
    let text = explained.to_string();
    assert!(text.contains("ended without an end mark") && text.contains("killed or crashed"), "{text}");
    assert!(text.contains("Held when the recording stops"), "{text}");
    assert!(start("end", &file.0).wait().unwrap().success());
    let text = file.explained().to_string();
    assert!(!text.contains("end mark"), "{text}");
}

#[test]
fn a_program_that_crashes_at_once_left_what_it_is() {
    for _ in 0..5 {
        let file = Recorded::new();
        assert!(!start("abort at once", &file.0).wait().unwrap().success());
        let explained = file.explained();
        assert!(!explained.is_whole && explained.repeat.is_some(), "{explained}");
        assert!(!explained.program.is_empty(), "{explained}");
        let mut devices = 0;
        file.each(|event| devices += usize::from(matches!(event, TraceEvent::Device(_))));
        assert_eq!(devices, 1);
    }
}

#[test]
#[cfg(unix)]
fn the_environment_does_not_have_a_device_recorded_to() {
    let mut child = command("end").env(TRACE, "/dev/null").stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(
        !child.wait().unwrap().success() && said.contains("/dev/null cannot be written: it is a device"),
        "{said}"
    );
}

#[test]
fn a_runtime_that_was_shut_down_is_not_recorded() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    assert!(gpu.shutdown(std::time::Duration::from_secs(5)).unwrap());
    let error = gpu.trace(&file).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Stale(kiln::buffer::Stale::ShuttingDown)), "{error}");
    assert!(!file.0.exists(), "nothing was created");
}

#[test]
fn a_wrong_word_for_times_leaves_the_file_that_is_there() {
    let file = Recorded::new();
    std::fs::write(&file, "what was recorded before").unwrap();
    assert!(
        !command("end")
            .env(TRACE, &file.0)
            .env("KILN_TRACE_TIMES", "foo")
            .spawn()
            .unwrap()
            .wait()
            .unwrap()
            .success()
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"what was recorded before");
}

#[test]
fn a_recording_has_the_command_that_repeats_it_and_no_secret() {
    let file = Recorded::new();
    let mut program = command("end");
    // Where libraries are told by variables, these belong to the command.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KILN_") || name == "CUDA_VISIBLE_DEVICES" {
            program.env_remove(&name);
        }
    }
    program.env(ROLE, "end").env(TRACE, &file.0).env("KILN_SIM_SEED", "7").env("KILN_POLICY", "simulate");
    program.env("KILN_JOB_TOKEN", "s3cret").env("HF_TOKEN", "s3cret");
    // Filters of the test harness, as words of a program.
    program.args(["--skip", "it's", "--skip", "hf_token=s3cret"]);
    assert!(program.spawn().unwrap().wait().unwrap().success());
    let explained = file.explained();
    let repeat = explained.repeat.clone().unwrap();
    let own = std::env::current_exe().unwrap();
    assert_eq!(
        repeat,
        format!(
            "KILN_POLICY=simulate KILN_SIM_SEED=7 kiln trace -- {} --ignored --exact ends::child --nocapture --skip 'it'\\''s' --skip hf_token=...",
            own.display()
        )
    );
    let text = explained.to_string();
    assert!(
        text.contains(&format!("To repeat it: {repeat}\n")) && text.contains("look like secrets"),
        "{text}"
    );
    let bytes = std::fs::read(&file.0).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"s3cret"), "no token leaves the program");
}

#[test]
fn no_secret_of_the_command_line_is_in_the_file() {
    let file = Recorded::new();
    let mut program = command("end");
    program.env(TRACE, &file.0).env("KILN_POLICY", "simulate").env("AWS_SECRET_ACCESS_KEY", "s3cret");
    // Filters of the test harness that fit no test, as words of a program.
    program.args(["--", "--token", "-s3cret", "--private-key", "s3cret", "--pass", "s3cret", "--pwd=s3cret"]);
    program.args([
        "--bearer",
        "--s3cret",
        "--header",
        "Authorization: Bearer s3cret",
        "-H",
        "X-Api-Key:s3cret",
    ]);
    program.args(["https://me:s3cret@host/data", "s3://bucket/file?X-Amz-Signature=s3cret&part=7"]);
    program.args(["AWS_SECRET_ACCESS_KEY=s3cret", "--env", "PGPASSWORD=s3cret", r#"{"api_key": "s3cret"}"#]);
    program.args(["--auth", "--password", "s3cret", "--steps", "10"]);
    assert!(program.spawn().unwrap().wait().unwrap().success());
    let mut words = Vec::new();
    file.each(|event| {
        let text = format!("{event:?}");
        assert!(!text.contains("s3cret"), "{text}");
        if let TraceEvent::Command(word) = event {
            assert!(word.lacks.has(kiln_trace::CommandGaps::SECRETS));
            words.push(word.text.to_owned());
        }
    });
    let bytes = std::fs::read(&file.0).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"s3cret"), "no secret leaves the program");
    for kept in ["--token", "--private-key", "Authorization: ...", "https://...@host/data", "--steps", "10"] {
        assert!(words.iter().any(|word| word == kept), "{kept}: {words:?}");
    }
    let explained = file.explained();
    let text = explained.to_string();
    assert!(!explained.is_repeat_whole && text.contains("&part=7") && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_runtime_that_the_environment_has_recorded_says_to_which_file() {
    let file = Recorded::new();
    let output = command("recorded already").env(TRACE, &file.0).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let explained = file.explained();
    assert!(explained.is_whole && explained.devices[0].submissions == 2, "{explained}");
}

#[test]
fn a_runtime_that_lives_as_long_as_its_process_is_recorded_to_the_end() {
    let file = Recorded::new();
    let output = command("lasting").env(TRACE, &file.0).env("KILN_POLICY", "simulate").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let explained = file.explained();
    assert!(explained.is_whole && explained.devices.len() == 1, "{explained}");
    assert_eq!(explained.devices[0].submissions, 2, "{explained}");
}

#[test]
fn events_around_no_submission_are_refused() {
    let (file, gpu) = (Recorded::new(), DeviceRuntime::simulated(1).unwrap());
    let error = gpu.trace_with(&file, DeviceTimes::Events { every: 0 }).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Trace(RecordingError::NoSubmissions)), "{error}");
    assert!(!file.0.exists() && gpu.trace_times().is_none());
    gpu.trace(&file).unwrap();
}

#[test]
fn processes_that_share_the_variable_have_a_file_each() {
    let folder = std::env::temp_dir().join(format!("kiln-recording-shared-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut children: Vec<Child> = (0..3).map(|_| start("wait", &folder.join("run.kiln"))).collect();
    for child in &mut children {
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"));
    }
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let processes: Vec<u32> = children.iter().map(Child::id).collect();
    for mut child in children {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    let mut recorded: Vec<u32> = Vec::new();
    for name in names {
        let file = Recorded(name);
        assert!(file.explained().is_whole);
        file.each(|event| {
            if let TraceEvent::Start(start) = event {
                let own = file.0.to_string_lossy().ends_with(&format!("run.{}.kiln", start.process));
                assert!(own || file.0.ends_with("run.kiln"), "{file:?}", file = file.0);
                recorded.push(start.process);
            }
        });
    }
    recorded.sort_unstable();
    let mut processes = processes;
    processes.sort_unstable();
    assert_eq!(recorded, processes);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_place_that_cannot_be_recorded_to_is_told_and_the_program_goes_on() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let error = gpu.trace("/dev/full").unwrap_err().to_string();
    assert!(error.contains("/dev/full cannot be written: it is a device"), "{error}");
    assert_eq!(gpu.upload(&[6_u32]).unwrap().download().unwrap(), [6]);
}

/// A child behind some words of a shell; whether it ended well, and what it said on the standard error.
#[cfg(target_os = "linux")]
fn run_behind(words: &str, role: &str, trace: &Path) -> (bool, String) {
    let plain = command(role);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{words}; exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .args(plain.get_args());
    shell.env(ROLE, role).env(TRACE, trace).env_remove("KILN_TRACE_TIMES");
    let output = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

/// What the library said of the recording that the environment asks for.
#[cfg(target_os = "linux")]
fn told(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("kiln: KILN_TRACE: ")).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_finds_no_room_for_its_recording_says_so_once_and_goes_on() {
    let file = Recorded::new();
    for role in ["end", "two runtimes"] {
        let (is_well, said) = run_behind("ulimit -f 0", role, &file.0);
        assert!(is_well && !file.0.exists(), "{role}: {said}");
        let [line] = told(&said)[..] else { panic!("{role}: {said}") };
        let beginning = format!(
            "kiln: KILN_TRACE: this program goes on without a recording: the recording {} cannot be written: ",
            file.0.display()
        );
        assert!(line.starts_with(&beginning) && line.contains("ulimit -f"), "{line}");
    }
    // A place that is wrong is another matter.
    let nowhere = Path::new("/nonexistent/run.kiln");
    let (is_well, said) = run_behind("ulimit -f 0", "end", nowhere);
    assert!(!is_well && told(&said).is_empty() && said.contains("make the folder"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_whose_recording_grows_too_large_goes_on_and_says_what_is_missing() {
    let file = Recorded::new();
    let (is_well, said) = run_behind("ulimit -f 8", "many fills", &file.0);
    assert!(is_well, "{said}");
    let [line] = told(&said)[..] else { panic!("{said}") };
    let missing: u64 = line.split(' ').nth(2).unwrap().parse().unwrap();
    let end = format!(" events are missing from the recording {}: File too large", file.0.display());
    assert!(line.contains(&end) && line.contains("ulimit -f"), "{line}");
    let explained = file.explained();
    assert!(explained.is_whole && explained.missing_events == missing && missing > 100, "{explained}");
}

/// A disk of a few KiB, which is full, becomes full, or has no room for another file.
#[test]
#[cfg(target_os = "linux")]
fn a_program_on_a_full_disk_goes_on() {
    let test = "a_program_on_a_full_disk_goes_on";
    let folder = std::env::temp_dir().join(format!("kiln-full-disk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mount = |disk: &str, then: &str| {
        let script = format!("mount -t tmpfs -o {disk} none {0} && cd {0} && {then}", folder.display());
        let plain = command("many fills");
        let mut program = Command::new("unshare");
        program.args(["-rm", "sh", "-c", &script]).arg(plain.get_program()).args(plain.get_args());
        program.env(ROLE, "many fills").env(TRACE, folder.join("run.kiln")).env_remove("KILN_TRACE_TIMES");
        program.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap()
    };
    if !mount("size=8k", "true").status.success() {
        std::fs::remove_dir(&folder).unwrap();
        return crate::skip::note(test, "no file system can be mounted here");
    }
    let run = "\"$0\" \"$@\" > /dev/null";
    let (full, no_place, small) = (
        mount("size=8k", &format!("head -c 8192 /dev/zero > other; {run}")),
        mount("size=1m,nr_inodes=2", &format!("touch other; {run}")),
        mount("size=8k", &format!("{run} && cat run.kiln")),
    );
    std::fs::remove_dir(&folder).unwrap();
    for output in [full, no_place] {
        let said = String::from_utf8(output.stderr).unwrap();
        let [line] = told(&said)[..] else { panic!("{said}") };
        let words = ["goes on without a recording", "run.kiln", "No space left on device", "make room"];
        assert!(output.status.success() && words.iter().all(|word| line.contains(word)), "{said}");
    }
    let said = String::from_utf8(small.stderr).unwrap();
    let [line] = told(&said)[..] else { panic!("{said}") };
    assert!(
        small.status.success() && line.contains("events are missing") && line.contains("make room"),
        "{said}"
    );
    let kept = Recorded::new();
    std::fs::write(&kept, small.stdout).unwrap();
    let explained = kept.explained();
    assert!(
        explained.is_whole && line.contains(&format!(": {} events", explained.missing_events)),
        "{explained}"
    );
}
