//! What runs under the tools: tests that load no driver and start no process.

use std::fmt;

/// Tests of a package.
#[derive(Debug)]
pub(super) struct Part {
    /// The package.
    pub(super) package: &'static str,
    /// What cargo is told to build: `--lib`, or tests by name.
    targets: &'static [&'static str],
    /// Parts of names of tests; all tests if there is none.
    filters: &'static [&'static str],
}

impl Part {
    const fn lib(package: &'static str, filters: &'static [&'static str]) -> Self {
        Self { package, targets: &["--lib"], filters }
    }

    const fn tests(package: &'static str, targets: &'static [&'static str]) -> Self {
        Self { package, targets, filters: &[] }
    }

    /// What follows `cargo test` or `cargo miri test`, up to what the test binaries are told.
    pub(super) fn arguments(&self) -> Vec<&'static str> {
        let targets = self.targets.iter().flat_map(|target| match *target {
            "--lib" => vec!["--lib"],
            name => vec!["--test", name],
        });
        let mut arguments = vec!["--no-fail-fast", "--package", self.package];
        arguments.extend(targets);
        arguments.push("--");
        arguments.extend(self.filters);
        arguments
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.package, self.targets.join(", ").trim_start_matches('-'))?;
        if self.filters.is_empty() { Ok(()) } else { write!(f, ", {}", self.filters.join(" ")) }
    }
}

/// AddressSanitizer: everything that has unsafe code above the driver, and the simulated device that all of it runs on.
pub(super) const ADDRESS: &[Part] = &[
    Part::lib("kiln-driver", &[]),
    Part::tests("kiln-mem", &["--lib", "laws", "ownership", "interleavings", "ladder", "pages", "model"]),
    Part::tests("kiln-ptx", &["--lib", "parse", "damage", "exec_kernels", "exec_damage", "exec_threads"]),
    Part::tests("kiln-ir", &["--lib", "text", "verify", "plan"]),
    Part::lib("kiln-sim", &[]),
    Part::lib("kiln-isolate", &["ring", "cells", "area", "wire"]),
    Part::lib(
        "kiln",
        &["order::", "launch::", "buffer::", "graph::", "completion::", "state::", "telemetry::"],
    ),
    Part::tests(
        "kiln",
        &[
            "counter_examples",
            "fewest_waits",
            "foreign_events",
            "foreign_memory",
            "foreign_work",
            "handles",
            "launches",
            "order_threads",
            "recording",
            "refusals",
            "streams_that_end",
            "tickets",
            "transfers",
            "views",
        ],
    ),
];

/// ThreadSanitizer: what several threads do to the submission step, to memory and to the locks below them.
pub(super) const THREAD: &[Part] = &[
    Part::lib("kiln-driver", &[]),
    Part::tests("kiln-mem", &["interleavings"]),
    Part::lib("kiln", &["order::", "completion::", "state::"]),
    Part::tests("kiln", &["order_threads", "tickets"]),
];

/// miri: pure parts, with a simulated device where it is quick enough.
pub(super) const MIRI: &[Part] = &[
    Part::lib("kiln-driver", &[]),
    Part::lib("kiln-mem", &[]),
    Part::lib("kiln", &["order::", "launch::"]),
    Part::lib("kiln-isolate", &["ring", "cells"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_to_cargo_and_to_the_reader() {
        let part = Part::tests("kiln-mem", &["--lib", "laws"]);
        assert_eq!(
            part.arguments(),
            ["--no-fail-fast", "--package", "kiln-mem", "--lib", "--test", "laws", "--"]
        );
        assert_eq!(part.to_string(), "kiln-mem (lib, laws)");
        let part = Part::lib("kiln", &["order::"]);
        assert_eq!(part.arguments().last(), Some(&"order::"));
        assert_eq!(part.to_string(), "kiln (lib), order::");
    }
}
