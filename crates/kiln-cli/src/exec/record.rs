//! What the processes of a run wrote down.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A line of a file. Its fields are those that kiln-shim writes.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record {
    Finding(Finding),
    Note { text: String },
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
}

/// What all runs wrote down; what differs in process and seed alone is kept once.
#[derive(Default)]
pub(super) struct Records {
    findings: Vec<Finding>,
    notes: Vec<String>,
    seen: BTreeSet<String>,
}

impl Records {
    /// Reads the files of a run.
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Failure> {
        let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
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
            Record::Finding(finding) => {
                let story = finding.text.split(" Repeat with").next().unwrap_or_default().to_owned();
                if self.seen.insert(story) {
                    self.findings.push(finding);
                }
            }
            Record::Note { text } => {
                if self.seen.insert(text.clone()) {
                    self.notes.push(text);
                }
            }
        }
    }

    /// All of it.
    pub(super) fn take(self) -> (Vec<Finding>, Vec<String>) {
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
