//! `cargo xtask numba-suite`: the tests of numba-cuda, each file in a separate process of one environment of Python.
//!
//! The package `nvidia-nvjitlink` is left out: numba links with the driver then, whose result is PTX here. With that package it makes machine code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::suites::exec_run::{ExecRun, Ran};
use crate::suites::known_results::KnownResults;
use crate::suites::python_packages;
use crate::suites::tally::{Outcome, Tally};
use crate::workspace::Workspace;

/// The packages, with those that its tests import.
const PACKAGES: [&str; 18] = [
    "numba-cuda==0.30.4",
    "numba==0.68.1",
    "numpy==2.4.6",
    "cuda-bindings==13.0.3",
    "cuda-core==1.2.2",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-curand==10.4.0.35",
    "nvidia-nvvm==13.0.88",
    "cffi==2.1.1",
    "filecheck==1.0.6",
    "ml-dtypes==0.6.0",
    "psutil==7.2.2",
    "pytest==8.4.2",
    "pytest-benchmark==5.3.1",
    "setuptools==65.5.0",
];
/// The module of tests.
const TESTS: &str = "site-packages/numba_cuda/numba/cuda/tests";
/// A setting that numba's sources keep beside the package, and some tests look for.
const PLUGIN: &str = "import pytest


@pytest.fixture(scope=\"class\")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
";

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Runs with the library of the development profile
    #[arg(long)]
    debug: bool,
    /// How many processes run at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds that a file of tests has; give more on a machine that does other work
    #[arg(long, default_value_t = 1200)]
    limit: u64,
    /// Files to run, by a part of their path; all if none is named
    files: Vec<String>,
}

/// Installs and builds everything, and runs the suite.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let home = workspace.target.join("numba-suite");
    let known = KnownResults::parse(include_str!("numba.txt"))?.for_profile(!arguments.debug);
    let limit = Duration::from_secs(arguments.limit);
    let exec = ExecRun::build(workspace, !arguments.debug, 1, limit)?;
    let python = python_packages::environment(&home.join("python"), &PACKAGES)?;
    let plugin = home.join("kiln_suite_plugin.py");
    fs::write(&plugin, PLUGIN).map_err(|error| Failure::file("write", &plugin, &error))?;
    let mut files = test_files(&home)?;
    let is_whole = arguments.files.is_empty();
    files.retain(|file| {
        is_whole || arguments.files.iter().any(|part| file.to_string_lossy().contains(part.as_str()))
    });
    let suite = Suite { exec, python, home, known };
    let (queue, tally) = (Mutex::new(files.into_iter()), Mutex::new(Tally::default()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        let work = || {
            while let Some(file) = next() {
                suite.run_file(&file, &tally)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let ended =
            workers.into_iter().map(|worker| worker.join().map_err(|_| Failure::new("a worker panicked"))?);
        ended.collect::<Result>()
    })?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.judge(&suite.known, is_whole)
}

struct Suite {
    exec: ExecRun,
    python: PathBuf,
    home: PathBuf,
    known: KnownResults,
}

impl Suite {
    /// Runs the tests of a file; those that failed once more, each alone.
    fn run_file(&self, file: &Path, tally: &Mutex<Tally>) -> Result {
        let ran = self.pytest(&file.to_string_lossy())?;
        let mut results = read(&ran.printed);
        if ran.is_late || !results.is_complete {
            results
                .outcomes
                .insert(format!("{} as a whole", short(&file.to_string_lossy())), Outcome::Failed);
        }
        let failed: Vec<String> = results
            .outcomes
            .iter()
            .filter(|(_, outcome)| **outcome == Outcome::Failed)
            .map(|(name, _)| name.clone())
            .collect();
        let mut findings = ran.findings;
        for name in failed {
            let Some(path) =
                file.to_str().and_then(|file| Some(format!("{}{name}", file.strip_suffix(short(file))?)))
            else {
                continue;
            };
            let ran = self.pytest(&path)?;
            findings.extend(ran.findings);
            if read(&ran.printed).outcomes.get(&name) == Some(&Outcome::Passed) {
                results.outcomes.insert(name, Outcome::Passed);
            }
        }
        let counted = |is_meant: fn(&Outcome) -> bool| {
            results.outcomes.values().filter(|outcome| is_meant(outcome)).count()
        };
        println!(
            "{}: {} passed, {} failed",
            short(&file.to_string_lossy()),
            counted(|outcome| *outcome == Outcome::Passed),
            counted(|outcome| *outcome == Outcome::Failed)
        );
        self.print_unknown(&results, &findings);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, outcome) in results.outcomes {
            tally.add(&name, outcome);
        }
        for (reason, count) in results.skipped {
            tally.add_skipped(&reason, count);
        }
        tally.add_findings(findings);
        Ok(())
    }

    /// Prints what the list does not know, at once: the whole suite takes long.
    fn print_unknown(&self, results: &FileResults, findings: &[String]) {
        let failed = results.outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed);
        for (name, _) in failed.filter(|(name, _)| self.known.why_failed(name).is_none()) {
            println!("  failed: {name}");
        }
        for text in findings.iter().filter(|text| self.known.why_found(text).is_none()) {
            println!("  found: {text}");
        }
    }

    fn pytest(&self, what: &str) -> Result<Ran> {
        let mut command = self.exec.command(&self.python);
        command.args([
            "-m",
            "pytest",
            "-p",
            "kiln_suite_plugin",
            "-p",
            "no:cacheprovider",
            "--benchmark-disable",
        ]);
        command.args(["-o", "consider_namespace_packages=true", "--tb=short", "-q", "-rA", what]);
        command.env("PYTHONPATH", &self.home).current_dir(&self.home);
        self.exec.run(&mut command)
    }
}

/// The files with tests, in order.
fn test_files(home: &Path) -> Result<Vec<PathBuf>> {
    let lib = home.join("python/lib");
    let versions = fs::read_dir(&lib).map_err(|error| Failure::file("read", &lib, &error))?;
    let tests = versions.flatten().map(|version| version.path().join(TESTS)).find(|path| path.is_dir());
    let tests = tests.ok_or_else(|| Failure::new(format!("there is no {TESTS} below {}", lib.display())))?;
    let mut files = Vec::new();
    for folder in fs::read_dir(&tests).map_err(|error| Failure::file("read", &tests, &error))?.flatten() {
        let Ok(entries) = fs::read_dir(folder.path()) else { continue };
        files.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("test_") && name.ends_with(".py")
        }));
    }
    files.sort();
    Ok(files)
}

/// A test's name from its file in the module of tests on.
fn short(path: &str) -> &str {
    path.rsplit_once("numba/cuda/tests/").map_or(path, |(_, rest)| rest)
}

/// What a file came to.
#[derive(Default)]
struct FileResults {
    outcomes: BTreeMap<String, Outcome>,
    skipped: BTreeMap<String, u64>,
    /// Whether pytest came to its last line.
    is_complete: bool,
}

/// Reads the summary of pytest.
fn read(text: &str) -> FileResults {
    let mut results = FileResults::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or_default();
        let name = || short(rest.split(" - ").next().unwrap_or_default()).to_owned();
        match word {
            "PASSED" | "XFAIL" if rest.contains(".py::") => {
                drop(results.outcomes.insert(name(), Outcome::Passed))
            }
            "FAILED" | "XPASS" if rest.contains(".py::") => {
                drop(results.outcomes.insert(name(), Outcome::Failed))
            }
            "ERROR"
                if rest.contains(".py")
                    && !rest.contains("collecting")
                    && !rest.contains(".py:") | rest.contains(".py::") =>
            {
                results.outcomes.insert(name(), Outcome::Failed);
            }
            "SKIPPED" => {
                let count = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                if let Some((count, rest)) = count {
                    let reason = rest.split_once(": ").map_or("no reason", |(_, reason)| reason);
                    *results.skipped.entry(reason.to_owned()).or_default() += count.parse().unwrap_or(1);
                }
            }
            _ => {}
        }
        let is_end = line.contains(" in ")
            && line.contains('s')
            && [" passed", " failed", " skipped", " error", "no tests"]
                .iter()
                .any(|word| line.contains(word));
        results.is_complete |=
            is_end && line.starts_with(|first: char| first.is_ascii_digit() || first == 'n');
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let text = "F.s\n=== short test summary info ===\n\
            PASSED python/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudapy/test_ipc.py::TestIpc::test_a\n\
            XFAIL numba/cuda/tests/cudapy/test_ipc.py::TestIpc::test_x - not yet\n\
            SKIPPED [2] numba/cuda/tests/support.py:3: Requires nvJitLink\n\
            FAILED numba/cuda/tests/cudapy/test_ipc.py::TestIpc::test_b - AssertionError: 1 - 2\n\
            ERROR    numba.cuda.cudadrv.driver:driver.py:371 Call to cuMemcpyDtoH results in\n\
            1 failed, 2 passed, 2 skipped in 3.10s\n";
        let results = read(text);
        let outcomes: Vec<_> =
            results.outcomes.iter().map(|(name, outcome)| (name.as_str(), outcome.clone())).collect();
        let name = "cudapy/test_ipc.py::TestIpc::test_";
        let (a, b, x) = (format!("{name}a"), format!("{name}b"), format!("{name}x"));
        let expected =
            [(a.as_str(), Outcome::Passed), (b.as_str(), Outcome::Failed), (x.as_str(), Outcome::Passed)];
        assert_eq!(outcomes, expected);
        assert_eq!(results.skipped.get("Requires nvJitLink"), Some(&2));
        assert!(results.is_complete && !read("Fatal Python error: Segmentation fault\n").is_complete);
    }
}
