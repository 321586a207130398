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
    /// Variables of the environment, with blanks between.
    pub(crate) settings: &'static str,
    /// The command as typed in the bundle's directory.
    pub(crate) command: &'static str,
}

/// The runs, in order.
pub(crate) const SANITIZED: &[Run] = &[
    Run {
        name: "kiln-ir-device",
        tool: "memcheck",
        seconds: 100,
        settings: "KILN_IR_PROGRAMS=400",
        command: "tests/kiln-ir-device gpu",
    },
    Run {
        name: "kiln-ir-device-races",
        tool: "racecheck",
        seconds: 80,
        settings: "KILN_IR_PROGRAMS=100",
        command: "tests/kiln-ir-device random_programs_give_the_same_on_a_gpu --exact",
    },
    Run {
        name: "kiln-programs",
        tool: "memcheck",
        seconds: 100,
        settings: "",
        command: "tests/kiln-programs",
    },
    Run {
        name: "kiln-kernels",
        tool: "memcheck",
        seconds: 120,
        settings: "",
        command: "tests/kiln-kernels every_kernel_agrees_with_its_oracle_and_the_simulator_on_a_gpu --exact",
    },
    Run {
        name: "kiln-conform-cuda",
        tool: "memcheck",
        seconds: 120,
        settings: "",
        command: "tests/kiln-conform-cuda --skip loss",
    },
    Run {
        name: "kiln-libs-operations",
        tool: "memcheck",
        seconds: 60,
        settings: "",
        command: "tests/kiln-libs-operations",
    },
    Run {
        name: "kiln-mem-cuda",
        tool: "memcheck",
        seconds: 60,
        settings: "",
        command: "tests/kiln-mem-cuda",
    },
    Run { name: "kiln-cudarc", tool: "memcheck", seconds: 40, settings: "", command: "tests/kiln-cudarc" },
    Run {
        name: "kiln-isolate-cuda-checksum",
        tool: "memcheck",
        seconds: 40,
        settings: "",
        command: "tests/kiln-isolate-cuda checksum",
    },
];

/// What is left out, and why: the binary, or a test of one.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    ("kiln-group-suite", "two of its tests use a GPU, for copies alone; the others use simulated devices"),
    ("kiln-recording", "CUPTI, whose times it compares, cannot be used under the tool"),
    ("kiln-isolated_cuda", "its kernels fault on purpose"),
    ("kiln-isolate-faults", "its kernels fault on purpose"),
    (
        "kiln-isolate-cuda laws",
        "the laws of kiln-conform-cuda again, with the device in another process, which is not watched",
    ),
    ("kiln-conform-cuda loss", "its kernels fault on purpose, in separate processes"),
    (
        "kiln-ir-device every_run_line_holds_on_a_gpu under racecheck",
        "one of its programs passes a value on by fences, which the tool takes for a race",
    ),
];

/// The runs as lines: name, tool, seconds, settings, command, with tabs between.
pub(crate) fn run_lines() -> String {
    let line = |run: &Run| {
        let Run { name, tool, seconds, settings, command } = run;
        format!("{name}\t{tool}\t{seconds}\t{settings}\t{command}\n")
    };
    SANITIZED.iter().map(line).collect()
}

/// What is left out as lines: name, a tab, the reason.
pub(crate) fn left_out_lines() -> String {
    LEFT_OUT.iter().map(|(name, reason)| format!("{name}\t{reason}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::contents::TESTS;
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
}
