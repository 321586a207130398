//! What the processes of a run wrote down.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::demangled_name::with_readable_names;
use crate::failure::Failure;
use crate::plural::counted;

/// A file that a process removes when it could not write what it found.
const COMPLETE: &str = "complete";

/// What a finding says of a kernel that was stopped at a limit, and what it says here, where the limit is a flag.
const LIMIT: &str = "raise it if the kernel is that long";
const LIMIT_BY_FLAG: &str = "raise it with --step-limit if the kernel is that long";
/// Waits of the driver API have no limit of time.
const WAIT_LIMIT: &str = "give the wait a timeout";
const WAIT_WITHOUT_LIMIT: &str = "let it end, or let what it waits for be done before the host waits";

/// A line of a file. Its fields are those that kiln-shim writes.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record {
    Finding(Finding),
    Note { text: String },
    Statistics(Statistics),
}

/// What the library itself did in a process.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Statistics {
    process: u32,
    seed: u64,
    stack_walks: u64,
    staging_blocks: u64,
    staging_bytes: u64,
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (walks, blocks) = (counted(self.stack_walks, "stack"), counted(self.staging_blocks, "block"));
        let Self { process, staging_bytes, .. } = self;
        write!(
            f,
            "process {process}: walked {walks} for lines of the program; made {blocks} of pinned memory, {staging_bytes} bytes, for copies of pageable memory"
        )
    }
}

/// Something that was found.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Finding {
    pub(super) process: u32,
    pub(super) seed: u64,
    rule: String,
    kernel: Option<String>,
    line: Option<String>,
    fatal: bool,
    pub(super) text: String,
    /// The lines of the program that queued the work.
    #[serde(default)]
    queued_at: Vec<String>,
}

/// What all runs wrote down; what differs in process and seed alone is kept once.
#[derive(Default)]
pub(super) struct Records {
    findings: Vec<Finding>,
    notes: Vec<String>,
    statistics: Vec<Statistics>,
    seen: BTreeSet<String>,
    /// Whether a process could not write what it found.
    has_lost: bool,
}

impl Records {
    /// Puts a file into the folder of a run that is there as long as all findings could be written.
    pub(super) fn expect(folder: &Path) -> Result<(), Failure> {
        let path = folder.join(COMPLETE);
        let next = "set TMPDIR to a folder with room for what the program finds";
        let text = "All findings of this run were written.\n";
        std::fs::write(&path, text).map_err(|error| Failure::file(&path, error).next(next))
    }

    /// Reads the files of a run.
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Failure> {
        self.has_lost |= !folder.join(COMPLETE).exists();
        let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl") && path.is_file());
        paths.sort();
        for path in paths {
            let text = std::fs::read(&path).map_err(|error| Failure::file(&path, error))?;
            // A process that was killed may have left half a line.
            let lines = String::from_utf8_lossy(&text);
            lines
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .for_each(|record| self.add(record));
        }
        Ok(())
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Finding(mut finding) => {
                finding.text = with_readable_names(&finding.text)
                    .replace(LIMIT, LIMIT_BY_FLAG)
                    .replace(WAIT_LIMIT, WAIT_WITHOUT_LIMIT);
                let story = finding.text.split(" Repeat with").next().unwrap_or_default().to_owned();
                if self.seen.insert(story) {
                    self.findings.push(finding);
                }
            }
            Record::Note { text } => self.note(with_readable_names(&text)),
            Record::Statistics(statistics) => self.statistics.push(statistics),
        }
    }

    /// Keeps a sentence, once.
    pub(super) fn note(&mut self, text: String) {
        if self.seen.insert(text.clone()) {
            self.notes.push(text);
        }
    }

    /// What the library did, process by process.
    pub(super) fn take_statistics(&mut self) -> Vec<Statistics> {
        std::mem::take(&mut self.statistics)
    }

    /// Whether there are findings, read or not.
    pub(super) fn has_findings(&self) -> bool {
        self.has_lost || !self.findings.is_empty()
    }

    /// All of it.
    pub(super) fn take(mut self) -> (Vec<Finding>, Vec<String>) {
        if self.has_lost {
            let text = "findings of a process could not be written; read them in what it printed, or set TMPDIR to a folder with room";
            self.notes.push(text.to_owned());
        }
        (self.findings, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_two_seeds_is_one_and_half_a_line_is_left_out() {
        let folder = std::env::temp_dir().join(format!("kiln-exec-record-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Records::expect(&folder).unwrap();
        let finding = |seed: u64| {
            format!(
                r#"{{"kind":"finding","process":1,"seed":{seed},"rule":"Race","kernel":null,"line":null,"fatal":false,"text":"two writes. Repeat with seed {seed}."}}"#
            )
        };
        let text = format!(
            "{}\n{}\n{{\"kind\":\"note\",\"process\":1,\"text\":\"n\"}}\n{{\"kind\":\"fin",
            finding(0),
            finding(1)
        );
        std::fs::write(folder.join("process-1.jsonl"), text).unwrap();
        let mut records = Records::default();
        records.read(&folder).unwrap();
        let (findings, notes) = records.take();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((findings.len(), notes.as_slice()), (1, ["n".to_owned()].as_slice()));
    }
}
