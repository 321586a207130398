//! A program that closes every descriptor above the standard streams, as daemons do, and opens its own files.

use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kiln::DeviceRuntime;
use kiln::trace::{RecordingFailure, SubmissionKind, TraceEvent};

use crate::Recorded;

/// Says what a child does, and in which folder.
const PLAN: &str = "KILN_TEST_CLOSED_FILES";
/// More than the recording's descriptor can have as its number.
const MANY: usize = 32;

unsafe extern "C" {
    fn close(descriptor: RawFd) -> i32;
}

fn fill(gpu: &DeviceRuntime) {
    let buffer = gpu.zeros::<u32>(64).unwrap();
    for value in 0..100 {
        buffer.fill(value).unwrap();
    }
    gpu.synchronize().unwrap();
}

/// What a child does, which a test below started.
#[test]
#[ignore = "helper process"]
fn child() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let (plan, folder) = plan.split_once(' ').unwrap();
    let path = Path::new(folder).join("run.kiln");
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&path).unwrap();
    fill(&gpu);
    let totals = gpu.flush_trace().unwrap();
    assert!(totals.failure.is_none() && totals.dropped == 0, "{totals:?}");
    for descriptor in 3..1024 {
        // SAFETY: the only descriptors of this process above the standard streams are that of the recording, which is what is tested, and such that
        // nothing uses from here on.
        unsafe { close(descriptor) };
    }
    let open = |number| {
        let mut file = File::create(Path::new(folder).join(format!("own-{number}"))).unwrap();
        file.write_all(b"mine").unwrap();
        file
    };
    let own: Vec<File> = if plan == "opens" { (0..MANY).map(open).collect() } else { Vec::new() };
    // Also where there is nothing to write.
    let check = || {
        let totals = gpu.flush_trace().unwrap();
        let failure = totals.failure.clone().unwrap_or_else(|| panic!("{totals:?}"));
        assert_eq!(failure, RecordingFailure::FileClosed { path: path.clone() });
        let said = failure.to_string();
        assert!(said.contains("run.kiln") && said.contains("leave descriptors open"), "{said}");
        totals
    };
    let written = check().written;
    fill(&gpu);
    let totals = check();
    assert!(totals.written == written && totals.dropped >= 100, "{totals:?}");
    drop(gpu);
    for mut file in own {
        file.write_all(b" still").unwrap();
    }
}

/// Runs a child; its folder.
fn run(plan: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kiln-closed-{plan}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "closed_files::child", "--nocapture", "--test-threads=1"]);
    command.env(PLAN, format!("{plan} {}", folder.display())).env_remove("KILN_TRACE").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{plan}: {}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn a_program_that_closes_the_descriptor_of_its_recording_is_told_and_its_own_files_stay_as_they_are() {
    for plan in ["opens", "closes"] {
        let folder = run(plan);
        let file = Recorded(folder.join("run.kiln"));
        let mut reader = file.reader();
        let mut fills = 0;
        while let Some(event) = reader.next_event().unwrap() {
            fills +=
                u32::from(matches!(event, TraceEvent::Submission(work) if work.kind == SubmissionKind::Fill));
        }
        assert!(!reader.is_cut() && !reader.has_end_mark(), "{plan}");
        assert!((100..=101).contains(&fills), "{plan}: what was written before is there: {fills}");
        let own = if plan == "opens" { MANY } else { 0 };
        for number in 0..own {
            let text = std::fs::read(folder.join(format!("own-{number}"))).unwrap();
            assert_eq!(String::from_utf8_lossy(&text), "mine still", "own-{number}");
        }
        drop(file);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
