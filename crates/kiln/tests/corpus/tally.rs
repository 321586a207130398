//! Totals over all kernels of a corpus.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use kiln_ptx::EntryFacts;

use crate::trial::{Lines, Trial};

/// Counts of kernels and findings.
#[derive(Default)]
pub(crate) struct Tally {
    files: u64,
    unread: u64,
    clean: u64,
    /// Kernels whose findings are all known as mistakes of theirs.
    mistaken: u64,
    /// Kernels with other findings.
    with_findings: u64,
    /// Kernels that were not run, by reason.
    not_run: BTreeMap<String, u64>,
    /// Kernels by kind of finding.
    kinds: BTreeMap<String, u64>,
    /// Of the kernels that ran.
    lines: Lines,
    last_file: Option<PathBuf>,
}

impl Tally {
    /// Counts a kernel, and prints a line about it unless it is clean.
    pub(crate) fn add(&mut self, path: &Path, kernel: &EntryFacts, trial: Trial) {
        if self.last_file.as_deref() != Some(path) {
            self.files += 1;
            self.last_file = Some(path.to_owned());
        }
        let say = |what: &str| println!("{}: {}: {}", path.display(), kernel.name, what.replace('\n', " "));
        let reason = match trial {
            Trial::Ran(found, lines) => {
                self.lines.executed += lines.executed;
                self.lines.all += lines.all;
                match (found.is_empty(), found.iter().all(|found| found.is_known)) {
                    (true, _) => self.clean += 1,
                    (false, true) => self.mistaken += 1,
                    (false, false) => self.with_findings += 1,
                }
                for found in found {
                    *self.kinds.entry(found.kind).or_default() += 1;
                    let known = if found.is_known { "known mistake: " } else { "" };
                    say(&format!("{known}{}", found.text));
                }
                return;
            }
            Trial::Unsupported(instruction) => format!("has `{instruction}`, which is not executed"),
            Trial::Needs(what) => format!("needs {what}"),
            Trial::NotLaunched(why) => {
                say(&format!("not launched: {why}"));
                "was refused".to_owned()
            }
        };
        *self.not_run.entry(reason).or_default() += 1;
    }

    /// Counts a file that could not be read or compiled.
    pub(crate) fn add_unread(&mut self, path: &Path, why: &str) {
        self.unread += 1;
        println!("{}: {}", path.display(), why.lines().take(3).collect::<Vec<_>>().join(" "));
    }

    /// Whether nothing was found but known mistakes.
    pub(crate) fn is_as_known(&self) -> bool {
        self.with_findings == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, unread, clean, mistaken, with_findings, not_run, kinds, lines, .. } = self;
        let executed = clean + mistaken + with_findings;
        let kept_back: u64 = not_run.values().sum();
        writeln!(f, "{files} files with kernels, {unread} that do not compile")?;
        writeln!(f, "  executed: {} of {} lines of the kernels that ran", lines.executed, lines.all)?;
        for (kind, count) in kinds {
            writeln!(f, "  found: {kind}, {count} kernels")?;
        }
        for (reason, count) in not_run {
            writeln!(f, "  not run: {count} kernels, each {reason}")?;
        }
        write!(
            f,
            "{} kernels: {executed} executed, {clean} clean, {mistaken} with known mistakes, {with_findings} with other findings; {kept_back} not run",
            executed + kept_back
        )
    }
}
