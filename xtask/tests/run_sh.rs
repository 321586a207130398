//! The script of the GPU bundle, run over stand-ins for test binaries.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A bundle with the real script and tests that are shell scripts.
struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-sh-{name}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("tests")).unwrap();
        let bundle = Self { directory };
        bundle.script("run.sh", include_str!("../src/gpu_bundle/run.sh"));
        bundle.file("MANIFEST", "commit  0123\nrustc   1\nhost    h\nglibc   2.1 or newer\n");
        bundle.file("commands", "");
        bundle.file("benchmarks", "");
        bundle.file("left-out", "hurt\tits kernels fault on purpose\n");
        bundle.script("sanitizer", SANITIZER);
        bundle
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.file(name, text);
        fs::set_permissions(self.directory.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A test binary that prints and exits like one.
    fn test(&self, name: &str, body: &str) {
        self.script(&format!("tests/{name}"), &format!("#!/bin/sh\n{body}\n"));
    }

    /// Puts the tests into the packed file.
    fn pack(&self) -> PathBuf {
        let packed = self.directory.join("packed.tar.xz");
        let mut tar = Command::new("tar");
        tar.arg("-cJf").arg(&packed).arg("-C").arg(&self.directory).arg("tests");
        assert!(tar.status().unwrap().success());
        fs::remove_dir_all(self.directory.join("tests")).unwrap();
        packed
    }

    /// The exit code, and everything printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        self.run_for("300", arguments)
    }

    fn run_for(&self, seconds: &str, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(self.directory.join("run.sh"));
        command.env("COMPUTE_SANITIZER", self.directory.join("sanitizer"));
        let output = command.args(arguments).env("TEST_SECONDS", seconds).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    }
}

/// A sanitizer that runs the command and reports as many errors as the file `report` says.
const SANITIZER: &str = r#"#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    [ "$1" = --log-file ] && log=$2
    shift 2
done
"$@"
code=$?
errors=$(cat report 2> /dev/null || echo 0)
echo "========= ERROR SUMMARY: $errors errors" > "$log"
[ "$errors" -eq 0 ] || exit 86
exit $code
"#;

const GOOD: &str =
    "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.1s'";

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn results_add_up_and_the_gpu_is_required() {
    let bundle = Bundle::new("good");
    bundle.test("a", GOOD);
    bundle.test("b", &format!("test \"$KILN_REQUIRE_GPU\" = 1 || exit 7\n{GOOD}"));
    let (code, text) = bundle.run(&[]);
    assert_eq!((code, last_line(&text)), (0, "6 passed, 0 failed"), "{text}");
    assert!(text.contains("commit  0123"), "{text}");
}

#[test]
fn what_is_packed_is_unpacked_once() {
    let bundle = Bundle::new("packed");
    bundle.test("a", GOOD);
    let packed = bundle.pack();
    for _ in 0..2 {
        let (code, text) = bundle.run(&[]);
        assert_eq!((code, last_line(&text)), (0, "3 passed, 0 failed"), "{text}");
    }
    assert!(!packed.exists());
    bundle.file("packed.tar.xz", "damaged");
    assert_ne!(bundle.run(&[]).0, 0);
}

#[test]
fn several_that_start_at_once_wait_for_the_one_that_unpacks() {
    let bundle = Bundle::new("at-once");
    bundle.test("a", GOOD);
    // Long enough that all of them see it.
    bundle.file("tests/b.data", &"all work and no play ".repeat(2_000_000));
    let packed = bundle.pack();
    let runs: Vec<_> = (0..5)
        .map(|run| {
            let mut command = Command::new(bundle.directory.join("run.sh"));
            let logs = bundle.directory.join(format!("logs-{run}"));
            command.args(["only", "a"]).env("LOGS", logs).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), last_line(&text)), (Some(0), "3 passed, 0 failed"), "{text}");
    }
    assert!(!packed.exists());
}

#[test]
fn a_failed_test_is_named_and_its_log_is_kept() {
    let bundle = Bundle::new("failed");
    bundle.test("a", GOOD);
    let bad = "echo 'test laws::copy ... FAILED'\n\
               echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out'\nexit 101";
    bundle.test("b", bad);
    let (code, text) = bundle.run(&[]);
    assert_eq!((code, last_line(&text)), (1, "4 passed, 2 failed"), "{text}");
    assert!(text.contains("failed: laws::copy"), "{text}");
    assert!(fs::read_to_string(bundle.directory.join("logs/b.log")).unwrap().contains("laws::copy"));
}

#[test]
fn a_binary_that_dies_or_hangs_fails() {
    let bundle = Bundle::new("died");
    bundle.test("a", "kill -9 $$");
    bundle.test("b", "sleep 60");
    let (code, text) = bundle.run_for("1", &[]);
    assert_eq!((code, last_line(&text)), (1, "0 passed, 2 failed"), "{text}");
    assert!(text.contains("stopped after 1 s"), "{text}");
}

#[test]
fn a_skipped_test_is_not_a_passed_one() {
    let bundle = Bundle::new("skipped");
    bundle.test("a", &format!("echo 'compiles: no NVRTC' >> \"$KILN_SKIP_LOG\"\n{GOOD}"));
    bundle.test("b", GOOD);
    let (code, text) = bundle.run(&[]);
    assert_eq!((code, last_line(&text)), (0, "5 passed, 0 failed"), "{text}");
    assert!(text.contains("skipped: compiles: no NVRTC"), "{text}");
}

#[test]
fn one_can_be_run_alone_and_an_unknown_name_is_refused() {
    let bundle = Bundle::new("only");
    bundle.test("a", "exit 1");
    bundle.test("b", GOOD);
    assert_eq!(last_line(&bundle.run(&["only", "b"]).1), "3 passed, 0 failed");
    let (code, text) = bundle.run(&["only", "c"]);
    assert!(code == 2 && text.contains("no `c`"), "{text}");
    assert_eq!(bundle.run(&["nonsense"]).0, 2);
    assert_eq!(bundle.run(&["list"]).1, "a\nb\n");
}

#[test]
fn commands_count_as_tests_and_benchmarks_wait_to_be_asked_for() {
    let bundle = Bundle::new("commands");
    bundle.test("a", GOOD);
    bundle.file("commands", "doctor\techo all well\ndemo\tfalse\n");
    bundle.file("benchmarks", "first\techo median 5\nsecond\tfalse\n");
    let (code, text) = bundle.run(&[]);
    assert_eq!((code, last_line(&text)), (1, "4 passed, 1 failed"), "{text}");
    assert!(text.contains("  all well\n") && text.contains("demo: failed (exit 1)"), "{text}");
    assert!(!text.contains("median"), "{text}");
    let (code, text) = bundle.run(&["bench"]);
    assert_eq!((code, last_line(&text)), (1, "1 passed, 1 failed"), "{text}");
    assert!(text.contains("  median 5\n"), "{text}");
    assert_eq!(bundle.run(&["only", "first"]).0, 0);
    assert_eq!(bundle.run(&["only", "demo"]).0, 1);
}

#[test]
fn what_runs_under_the_sanitizer_says_how_it_ended() {
    let bundle = Bundle::new("sanitize");
    bundle.test("good", GOOD);
    bundle.test("bad", "exit 101");
    bundle.test("slow", "exec sleep 60");
    bundle.file("sanitized", "good\tmemcheck\t20\t\ttests/good\n");
    let (code, text) = bundle.run(&["sanitize"]);
    assert!(text.contains("\nleft out: hurt: its kernels fault on purpose\n"), "{text}");
    assert!(text.contains("\ngood (memcheck): passed\n"), "{text}");
    assert_eq!((code, last_line(&text)), (0, "1 clean, 0 with reports, 0 failed, 0 timed out"), "{text}");

    // What is reported counts, whatever the tests say.
    bundle.file("report", "4");
    let (code, text) = bundle.run(&["sanitize"]);
    assert!(text.contains("\ngood (memcheck): 4 accesses reported\n"), "{text}");
    assert_eq!((code, last_line(&text)), (1, "0 clean, 1 with reports, 0 failed, 0 timed out"), "{text}");

    bundle.file("report", "0");
    let all = "good\tmemcheck\t20\tFEW=3 LITTLE=1\ttests/good\n\
               bad\tracecheck\t20\t\ttests/bad\nslow\tmemcheck\t1\t\ttests/slow\n";
    bundle.file("sanitized", all);
    bundle.test("good", "test \"$FEW$LITTLE\" = 31");
    let (code, text) = bundle.run(&["sanitize"]);
    assert!(text.contains("\nbad (racecheck): failed (exit 101), nothing reported\n"), "{text}");
    assert!(text.contains("\nslow (memcheck): timed out after 1 s\n"), "{text}");
    assert_eq!((code, last_line(&text)), (1, "1 clean, 0 with reports, 1 failed, 1 timed out"), "{text}");

    let (code, text) = bundle.run(&["sanitize", "only", "good"]);
    assert!(code == 0 && !text.contains("bad ("), "{text}");
    assert_eq!(bundle.run(&["sanitize", "only", "gone"]).0, 2);
    assert_eq!(bundle.run(&["sanitize", "nonsense"]).0, 2);
}
