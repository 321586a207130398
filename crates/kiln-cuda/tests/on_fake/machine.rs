//! Machines for tests: which libcuda there is, and what goes wrong with it.
//!
//! A test built with [`on_machine!`] runs twice: in the test process it sets the machine up and starts the same
//! test again in a child, and in the child, which alone loads the library, it does its work.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const CHILD: &str = "KILN_CUDA_TEST_CHILD";
const LOG: &str = "FAKE_CUDA_LOG";
const LIBRARY: &str = "libcuda.so.1";

/// The sources of the library that stands in for the driver.
const SOURCES: [(&str, &str); 6] = [
    ("fake.h", include_str!("libcuda/fake.h")),
    ("start.c", include_str!("libcuda/start.c")),
    ("memory.c", include_str!("libcuda/memory.c")),
    ("streams.c", include_str!("libcuda/streams.c")),
    ("code.c", include_str!("libcuda/code.c")),
    ("graphs.c", include_str!("libcuda/graphs.c")),
];

/// What the library has in addition on machines that can capture.
const CAPTURE: (&str, &str) = ("capture.c", include_str!("libcuda/capture.c"));

/// A machine to be.
pub(crate) struct Machine {
    library: Libcuda,
    variables: Vec<(&'static str, OsString)>,
    others: Vec<(&'static str, &'static str)>,
    quiet: bool,
}

/// What stands where the driver's library would.
enum Libcuda {
    /// Nothing, and nothing else is looked for.
    Missing,
    /// A file with these bytes, found on the loader's path.
    File(Vec<u8>),
    /// A library compiled from this text.
    Compiled(&'static str),
    /// The library that stands in for the driver, with some of its sources left out.
    Fake { without: &'static [&'static str] },
    /// All of it, and capture.
    Capturing,
}

impl Machine {
    /// One without a driver.
    pub(crate) fn without_driver() -> Self {
        Self { library: Libcuda::Missing, variables: Vec::new(), others: Vec::new(), quiet: false }
    }

    /// One whose libcuda is this file.
    pub(crate) fn with_file(bytes: &[u8]) -> Self {
        Self {
            library: Libcuda::File(bytes.to_vec()),
            variables: Vec::new(),
            others: Vec::new(),
            quiet: false,
        }
    }

    /// One whose libcuda is compiled from this text.
    pub(crate) fn with_source(text: &'static str) -> Self {
        Self { library: Libcuda::Compiled(text), variables: Vec::new(), others: Vec::new(), quiet: false }
    }

    /// One with a driver that works.
    pub(crate) fn fake() -> Self {
        Self {
            library: Libcuda::Fake { without: &[] },
            variables: Vec::new(),
            others: Vec::new(),
            quiet: false,
        }
    }

    /// One whose driver lacks the entry points of some source files.
    pub(crate) fn fake_without(files: &'static [&'static str]) -> Self {
        Self {
            library: Libcuda::Fake { without: files },
            variables: Vec::new(),
            others: Vec::new(),
            quiet: false,
        }
    }

    /// One with a driver that works, and captures what libraries queue.
    pub(crate) fn fake_with_capture() -> Self {
        Self { library: Libcuda::Capturing, ..Self::fake() }
    }

    /// The same with a variable of the stand-in set.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The same with a variable that names a library compiled from this text, in the folder of this test alone.
    pub(crate) fn with_library(mut self, variable: &'static str, text: &'static str) -> Self {
        self.others.push((variable, text));
        self
    }

    /// The same with a plan of what calls answer.
    pub(crate) fn plan(self, plan: &str) -> Self {
        self.with("FAKE_CUDA_PLAN", plan)
    }

    /// The same without a log of calls, for tests that make very many.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// The same with so many devices.
    pub(crate) fn devices(self, count: u32) -> Self {
        self.with("FAKE_CUDA_DEVICES", count.to_string())
    }
}

/// Runs `body` in a child process on a machine; in the child, runs it here.
pub(crate) fn run(test: &str, machine: impl FnOnce() -> Machine, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    if Command::new("cc").arg("--version").output().is_err() {
        return skip(test, "there is no C compiler");
    }
    // The name of the crate is not part of the name of a test.
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    let folder =
        std::env::temp_dir().join(format!("kiln-cuda-{}-{}", std::process::id(), test.replace("::", "-")));
    std::fs::create_dir_all(&folder).unwrap();
    let outcome = start(test, machine(), &folder).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text =
        format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(
        outcome.status.success() && text.contains("1 passed"),
        "{} in the child:\n{text}",
        outcome.status
    );
    assert!(!text.contains("panicked"), "a panic in the child:\n{text}");
}

/// Counts a test that cannot run here, as a line in the log the test runner names.
fn skip(test: &str, reason: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{reason}");
    let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) else { return };
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    log.write_all(format!("{test}: {reason}\n").as_bytes()).unwrap();
}

/// The lines the stand-in wrote: process id, name and arguments of each call.
pub(crate) fn log() -> Vec<String> {
    let text = std::env::var(LOG).ok().and_then(|path| std::fs::read_to_string(path).ok());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The arguments of each call of one name, in order.
pub(crate) fn calls(name: &str) -> Vec<String> {
    log()
        .into_iter()
        .filter_map(|line| {
            let (_, call) = line.split_once(' ')?;
            let (called, arguments) = call.split_once(' ')?;
            (called == name).then(|| arguments.to_owned())
        })
        .collect()
}

fn start(test: &str, machine: Machine, folder: &Path) -> Command {
    let library = folder.join(LIBRARY);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    child.env(LOG, folder.join("log")).env_remove("KILN_LIBCUDA");
    if machine.quiet {
        child.env_remove(LOG);
    }
    match machine.library {
        Libcuda::Missing => {
            child.env("KILN_LIBCUDA", &library);
        }
        Libcuda::File(bytes) => std::fs::write(&library, bytes).unwrap(),
        Libcuda::Compiled(text) => {
            let source = folder.join("libcuda.c");
            std::fs::write(&source, text).unwrap();
            compile(&library, &[source]);
        }
        Libcuda::Fake { without: [] } => std::os::unix::fs::symlink(whole_fake(), &library).unwrap(),
        Libcuda::Fake { without } => compile_fake(folder, without, &[]),
        Libcuda::Capturing => compile_fake(folder, &[], &[CAPTURE]),
    }
    for (variable, text) in machine.others {
        let (source, library) = (folder.join(format!("{variable}.c")), folder.join(format!("{variable}.so")));
        std::fs::write(&source, text).unwrap();
        compile(&library, &[source]);
        child.env(variable, library);
    }
    child.env("LD_LIBRARY_PATH", folder).envs(machine.variables);
    child
}

/// The stand-in with all its entry points, compiled once and kept for as long as its sources stay the same.
fn whole_fake() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        SOURCES.hash(&mut hasher);
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let place =
            if std::fs::create_dir_all(place).is_ok() { place.to_owned() } else { std::env::temp_dir() };
        let kept = place.join(format!("fake-libcuda-{:x}", hasher.finish()));
        if !kept.exists() {
            let folder = place.join(format!("fake-libcuda-of-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            compile_fake(&folder, &[], &[]);
            // Moved into place whole; of two test processes at once, one finds the place taken.
            if std::fs::rename(&folder, &kept).is_err() {
                std::fs::remove_dir_all(folder).unwrap();
            }
        }
        kept.join(LIBRARY)
    })
}

fn compile_fake(folder: &Path, without: &[&str], with: &[(&str, &str)]) {
    let mut sources = Vec::new();
    for (name, text) in SOURCES.iter().chain(with) {
        let source = folder.join(name);
        std::fs::write(&source, text).unwrap();
        if name.ends_with(".c") && !without.contains(name) {
            sources.push(source);
        }
    }
    compile(&folder.join(LIBRARY), &sources);
}

fn compile(library: &Path, sources: &[PathBuf]) {
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(library)
        .args(sources)
        .arg("-lm")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A test on a machine: `on_machine! { fn name() on Machine::fake() { ... } }`.
macro_rules! on_machine {
    ($($(#[$attribute:meta])* fn $name:ident() on $machine:expr => $body:block)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            fn body() $body
            $crate::machine::run(concat!(module_path!(), "::", stringify!($name)), || $machine, body);
        }
    )*};
}
