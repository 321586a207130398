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
    /// Parts of names of tests that are left out.
    skips: &'static [&'static str],
    /// Options of the interpreter beyond those of every part.
    pub(super) flags: &'static str,
}

impl Part {
    const fn lib(package: &'static str, filters: &'static [&'static str]) -> Self {
        Self { package, targets: &["--lib"], filters, skips: &[], flags: "" }
    }

    const fn tests(package: &'static str, targets: &'static [&'static str]) -> Self {
        Self { package, targets, filters: &[], skips: &[], flags: "" }
    }

    const fn only(self, filters: &'static [&'static str]) -> Self {
        Self { filters, ..self }
    }

    const fn without(self, skips: &'static [&'static str]) -> Self {
        Self { skips, ..self }
    }

    const fn with(self, flags: &'static str) -> Self {
        Self { flags, ..self }
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
        arguments.extend(self.skips.iter().flat_map(|name| ["--skip", name]));
        arguments
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.package, self.targets.join(", ").trim_start_matches('-'))?;
        if !self.filters.is_empty() {
            write!(f, ", {}", self.filters.join(" "))?;
        }
        if self.skips.is_empty() { Ok(()) } else { write!(f, ", without {}", self.skips.join(" ")) }
    }
}

/// AddressSanitizer: everything that has unsafe code above the driver, and the simulated device that all of it runs on. Tests of a model
/// checker stay out of this list and of the next: it changes stacks behind the tool's back, leaks its own, and has one thread only.
pub(super) const ADDRESS: &[Part] = &[
    Part::lib("kiln-sync", &[]),
    Part::lib("kiln-driver", &[]),
    Part::lib("kiln-mem", &[]),
    Part::tests("kiln-mem", &["simulated"]).only(&[
        "laws::",
        "ownership::",
        "reclaim::",
        "pages::",
        "model::",
    ]),
    Part::lib("kiln-ptx", &[]),
    Part::tests("kiln-ptx", &["suite"]).only(&[
        "parse::",
        "damage::",
        "exec_kernels::",
        "exec_damage::",
        "exec_threads::",
    ]),
    Part::lib("kiln-ir", &[]),
    Part::tests("kiln-ir", &["suite"]).only(&["text::", "verify::", "plan::"]),
    Part::lib("kiln-sim", &[]),
    Part::lib("kiln-isolate", &["ring", "progress_cells", "segment", "wire"]),
    Part::lib("kiln-order", &[]),
    Part::lib(
        "kiln-runtime",
        &["launch::", "signature::", "buffer::", "graph::", "completion::", "device_state::", "telemetry::"],
    ),
    Part::tests("kiln", &["suite"]).only(&[
        "counter_examples::",
        "fewest_waits::",
        "foreign_events::",
        "foreign_memory::",
        "foreign_work::",
        "handles::",
        "launches::",
        "order_threads::",
        "recording::",
        "refusals::",
        "streams_that_end::",
        "tickets::",
        "transfers::",
        "views::",
    ]),
];

/// ThreadSanitizer: what several threads do to the submission step, to memory and to the locks below them.
pub(super) const THREAD: &[Part] = &[
    Part::lib("kiln-sync", &[]),
    Part::lib("kiln-driver", &[]),
    Part::lib("kiln-mem", &[]),
    Part::tests("kiln-mem", &["simulated"]).only(&["ownership::", "handover::", "budget::"]),
    Part::lib("kiln-order", &[]),
    Part::lib("kiln-runtime", &["completion::", "device_state::"]),
    Part::tests("kiln", &["suite"]).only(&["order_threads::", "tickets::"]),
];

/// miri: pure parts. What maps files, starts processes or takes many minutes is left out, by name where its neighbours stay.
pub(super) const MIRI: &[Part] = &[
    Part::lib("kiln-sync", &[]),
    Part::lib("kiln-driver", &[]),
    // A table is filled beyond its bound, which is too large to be filled here.
    Part::lib("kiln-mem", &[]).without(&["what_is_remembered_is_bounded"]),
    Part::lib("kiln-probe", &[]),
    Part::lib("kiln-service", &[]),
    Part::lib("kiln-order", &[]),
    // As many launches are noted as an account remembers, which takes longer than all the rest.
    Part::lib(
        "kiln-runtime",
        &[
            "launch::",
            "signature::",
            "counters::",
            "runtime::extensions",
            "graph::",
            "device_state::",
            "telemetry::",
            "recovery::",
            "resubmission::",
            "completion::",
            "error::",
            "backend::buffer_pool",
            "code_cache::key",
            "code_cache::entry",
        ],
    )
    .without(&["more_than_can_be_remembered"]),
    // One test cuts every message everywhere. Stores that are seen late are not played out: the interpreter stops with an internal error
    // where bytes are written one at a time that were written as a word before.
    Part::lib(
        "kiln-isolate",
        &["ring::", "wire::", "restart_policy::", "submission_numbers::", "address_proposal::"],
    )
    .without(&["requests_arrive_as_they_were"])
    .with("-Zmiri-disable-weak-memory-emulation"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Every source file of a package: its path, and below it its text.
    fn sources(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *text += &format!("{}\n{}", path.display(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_filter_names_a_module_or_a_test() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for part in [ADDRESS, THREAD, MIRI].into_iter().flatten() {
            let mut text = String::new();
            sources(&crates.join(part.package), &mut text);
            for filter in part.filters.iter().chain(part.skips) {
                let module = filter.trim_end_matches("::");
                let file = format!("/{}.rs\n", module.replace("::", "/"));
                let test = format!("fn {filter}");
                assert!(text.contains(&file) || text.contains(&test), "{part} has no `{filter}`");
            }
        }
    }

    #[test]
    fn a_part_is_told_to_cargo_and_to_the_reader() {
        let part = Part::tests("kiln-mem", &["--lib", "simulated"]);
        assert_eq!(
            part.arguments(),
            ["--no-fail-fast", "--package", "kiln-mem", "--lib", "--test", "simulated", "--"]
        );
        assert_eq!(part.to_string(), "kiln-mem (lib, simulated)");
        let part = Part::tests("kiln-mem", &["simulated"]).only(&["laws::"]);
        assert!(part.arguments().ends_with(&["--test", "simulated", "--", "laws::"]));
        let part = Part::lib("kiln", &["order::"]);
        assert_eq!(part.arguments().last(), Some(&"order::"));
        assert_eq!(part.to_string(), "kiln (lib), order::");
        let part = part.without(&["slow"]);
        assert!(part.arguments().ends_with(&["--", "order::", "--skip", "slow"]));
        assert_eq!(part.to_string(), "kiln (lib), order::, without slow");
    }
}
