//! What `run.sh sanitize` runs under compute-sanitizer, and what it does not, as data.
//!
//! A run is a binary of the bundle with a tool, a limit, and settings that make it short: all of them together stay under eight minutes.

/// One run under compute-sanitizer.
pub(crate) struct Run {
    /// Its name in the script; its first part is the binary's.
    pub(crate) name: &'static str,
    /// The tool.
    pub(crate) tool: &'static str,
    /// Seconds after which it is stopped.
    pub(crate) seconds: u32,
    /// The command as typed in the bundle's directory.
    pub(crate) command: &'static str,
}

/// The runs, in order.
pub(crate) const SANITIZED: &[Run] = &[
    Run {
        name: "kiln-ir-device",
        tool: "memcheck",
        seconds: 100,
        command: "env KILN_IR_PROGRAMS=400 tests/kiln-ir-device gpu",
    },
    Run {
        name: "kiln-ir-device-races",
        tool: "racecheck",
        seconds: 80,
        command: "env KILN_IR_PROGRAMS=100 tests/kiln-ir-device random_programs_give_the_same_on_a_gpu --exact",
    },
    Run { name: "kiln-programs", tool: "memcheck", seconds: 100, command: "tests/kiln-programs" },
    Run {
        name: "kiln-kernels",
        tool: "memcheck",
        seconds: 120,
        command: "tests/kiln-kernels every_kernel_agrees_with_its_oracle_and_the_simulator_on_a_gpu --exact",
    },
    Run {
        name: "kiln-conform-cuda",
        tool: "memcheck",
        seconds: 120,
        command: "tests/kiln-conform-cuda --skip loss",
    },
    Run { name: "kiln-mem-cuda", tool: "memcheck", seconds: 60, command: "tests/kiln-mem-cuda" },
    Run { name: "kiln-cudarc", tool: "memcheck", seconds: 40, command: "tests/kiln-cudarc" },
    Run {
        name: "kiln-isolate-checksum",
        tool: "memcheck",
        seconds: 40,
        command: "tests/kiln-isolate-checksum",
    },
];

/// What is left out, and why: the binary, or a test of one.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    ("kiln-isolated_cuda", "its kernels fault on purpose"),
    ("kiln-isolate-faults", "its kernels fault on purpose"),
    (
        "kiln-isolate-cuda",
        "the laws of kiln-conform-cuda again, with the device in another process, which is not watched",
    ),
    ("kiln-conform-cuda loss", "its kernels fault on purpose, in processes of their own"),
    (
        "kiln-ir-device every_run_line_holds_on_a_gpu under racecheck",
        "one of its programs passes a value on by fences, which the tool takes for a race",
    ),
];

/// The runs as lines: name, tool, seconds, command, with tabs between.
pub(crate) fn run_lines() -> String {
    let line = |run: &Run| format!("{}\t{}\t{}\t{}\n", run.name, run.tool, run.seconds, run.command);
    SANITIZED.iter().map(line).collect()
}

/// What is left out as lines: name, a tab, the reason.
pub(crate) fn left_out_lines() -> String {
    LEFT_OUT.iter().map(|(name, reason)| format!("{name}\t{reason}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::super::contents::TESTS;
    use super::super::{RUN, write};
    use super::*;

    #[test]
    fn every_test_binary_is_either_run_or_left_out_with_a_reason() {
        for test in TESTS {
            let file = test.file_name();
            let is_run = SANITIZED
                .iter()
                .any(|run| run.command.split(' ').any(|word| word == format!("tests/{file}")));
            let is_left_out = LEFT_OUT.iter().any(|(name, _)| *name == file);
            assert!(is_run != is_left_out, "{file}");
        }
    }

    #[test]
    fn every_run_is_of_a_binary_there_is_and_names_are_unique() {
        for (at, run) in SANITIZED.iter().enumerate() {
            let binary = run.command.split(' ').find_map(|word| word.strip_prefix("tests/")).unwrap();
            assert!(TESTS.iter().any(|test| test.file_name() == binary), "{binary}");
            assert!(run.name.starts_with(binary), "{}", run.name);
            assert!(!SANITIZED[..at].iter().any(|other| other.name == run.name), "{}", run.name);
        }
    }

    /// A bundle of shell scripts, and a sanitizer that is one, too: it runs the command and reports what the command asks it to.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kiln-sanitize-{name}-{}", std::process::id()));
            let fake = Self(folder);
            fake.add("run.sh", RUN);
            fake.add("MANIFEST", "commit none\n");
            fake.add("commands", "");
            fake.add("benchmarks", "");
            fake.add("left-out", "hurt\tits kernels fault on purpose\n");
            fake.add(
                "sanitizer",
                "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do\n    [ \"$1\" = --log-file ] && log=$2\n    shift 2\ndone\n\"$@\"\n\
                 code=$?\necho \"========= ERROR SUMMARY: ${REPORT:-0} errors\" > \"$log\"\n[ \"${REPORT:-0}\" -eq 0 ] || exit 86\nexit $code\n",
            );
            fake
        }

        fn add(&self, name: &str, text: &str) {
            write(&self.0.join(name), text, true).unwrap();
        }

        /// What the script prints, and whether it ends well.
        fn run(&self, arguments: &[&str], report: &str) -> (String, bool) {
            let mut command = Command::new("sh");
            command.arg(self.0.join("run.sh")).arg("sanitize").args(arguments);
            command.env("COMPUTE_SANITIZER", self.0.join("sanitizer")).env("REPORT", report);
            let output = command.output().unwrap();
            (String::from_utf8(output.stdout).unwrap(), output.status.success())
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_script_says_of_each_run_how_it_ended() {
        let fake = Fake::new("ends");
        fake.add("tests/good", "#!/bin/sh\necho 'test result: ok. 3 passed; 0 failed'\n");
        fake.add("tests/bad", "#!/bin/sh\necho 'test result: FAILED. 1 passed; 2 failed'\nexit 101\n");
        fake.add("tests/slow", "#!/bin/sh\nexec sleep 30\n");
        fake.add("sanitized", "good\tmemcheck\t20\ttests/good\n");
        let (text, ended_well) = fake.run(&[], "0");
        assert!(text.contains("\nleft out: hurt: its kernels fault on purpose\n"), "{text}");
        assert!(text.contains("\ngood (memcheck): passed\n"), "{text}");
        assert!(text.ends_with("1 clean, 0 with reports, 0 failed, 0 timed out\n") && ended_well, "{text}");
        // What the tool reports counts, whatever the tests say.
        let (text, ended_well) = fake.run(&[], "4");
        assert!(text.contains("\ngood (memcheck): 4 accesses reported\n") && !ended_well, "{text}");
        fake.add(
            "sanitized",
            "good\tmemcheck\t20\ttests/good\nbad\tracecheck\t20\ttests/bad\nslow\tmemcheck\t1\ttests/slow\n",
        );
        let (text, ended_well) = fake.run(&[], "0");
        assert!(text.contains("\nbad (racecheck): failed (exit 101), nothing reported\n"), "{text}");
        assert!(text.contains("\nslow (memcheck): timed out after 1 s\n"), "{text}");
        assert!(text.ends_with("1 clean, 0 with reports, 1 failed, 1 timed out\n") && !ended_well, "{text}");
    }

    #[test]
    fn the_script_runs_one_alone_and_refuses_what_is_not_there() {
        let fake = Fake::new("only");
        fake.add("tests/good", "#!/bin/sh\nexit 0\n");
        fake.add("sanitized", "good\tmemcheck\t20\ttests/good\nother\tmemcheck\t20\ttests/good\n");
        let (text, ended_well) = fake.run(&["only", "other"], "0");
        assert!(text.contains("other (memcheck): passed") && !text.contains("good ("), "{text}");
        assert!(ended_well);
        assert!(!fake.run(&["only", "gone"], "0").1);
    }
}
