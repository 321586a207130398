//! What `kiln top` sees of a program.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::ends;

/// What an entry says sooner or later.
const WORDS: [&str; 6] = [
    "\"format\":1",
    "--ignored --exact ends::child --nocapture\"",
    "\"kind\":\"simulated\"",
    "\"state\":\"ready\"",
    "\"live_bytes\":12,\"peak_bytes\":12",
    "\"streams\":1",
];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kiln-published-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_program_publishes_when_it_is_asked_to_and_takes_it_back_at_the_end() {
    let runtime_folder = folder("asked");
    for (asked, is_published) in [("1", true), ("0", false)] {
        let mut child = ends::command("wait")
            .env("KILN_TOP", asked)
            .env("XDG_RUNTIME_DIR", &runtime_folder)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"));
        let folder = runtime_folder.join("kiln");
        let entry = folder.join(format!("{}.json", child.id()));
        let began = Instant::now();
        let mut text = String::new();
        while is_published && !WORDS.iter().all(|word| text.contains(word)) {
            assert!(began.elapsed() < Duration::from_secs(30), "{text}");
            std::thread::sleep(Duration::from_millis(20));
            text = std::fs::read_to_string(&entry).unwrap_or_default();
        }
        if is_published {
            assert_eq!((mode(&folder), mode(&entry)), (0o700, 0o600));
        } else {
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(!entry.exists(), "it goes with the last runtime");
    }
    std::fs::remove_dir_all(runtime_folder).unwrap();
}

#[test]
fn a_folder_of_others_is_not_used_and_the_program_runs_on() {
    let runtime_folder = folder("others");
    let open = runtime_folder.join("kiln");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = ends::command("two runtimes");
    command.env("KILN_TOP", "on").env("XDG_RUNTIME_DIR", &runtime_folder).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
    // Once, however many runtimes there are.
    let told = "kiln: KILN_TOP: `kiln top` does not see this program: ";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(
        said.contains(&format!(
            "{} is not a folder of this user alone; set its mode to 0700",
            open.display()
        )),
        "{said}"
    );
    std::fs::remove_dir_all(runtime_folder).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_what_to_do() {
    let mut command = ends::command("two runtimes");
    command.env("KILN_TOP", "1").env("XDG_RUNTIME_DIR", "/no/such").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.contains("/no/such/kiln cannot be made: ") && said.contains("or unset it"), "{said}");
}

#[test]
fn a_runtime_that_allocated_nothing_has_no_peak() {
    use kiln::telemetry::Gauge;
    let gpu = kiln::DeviceRuntime::simulated(1).unwrap();
    let peak = || gpu.telemetry().snapshot().gauge(Gauge::PeakLiveBytes);
    assert_eq!(peak(), 0);
    drop(gpu.zeros::<u8>(1).unwrap());
    assert_eq!(peak(), 1);
}
