//! What the simulated devices of the ranks of a job found.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::job_folder::JobFolder;
use crate::console::complain;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::plural::counted;

/// What the name of a file ends with that a rank removes when it could not write a finding.
const COMPLETE: &str = ".complete";
/// What stands in such a file, so that a full disk is known before the ranks start.
const COMPLETE_TEXT: &str = "All findings of this rank were written.\n";
/// Findings of a rank that are printed; the others are counted.
const MAX_PRINTED: usize = 100;

/// The files that ranks write their findings to.
pub(super) struct RankFindings {
    folder: PathBuf,
}

impl RankFindings {
    /// Findings of so many ranks go to files of this folder.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn new(folder: &JobFolder, ranks: u32) -> Result<Self, Failure> {
        let findings = Self { folder: folder.path().to_owned() };
        for path in (0..ranks).map(|rank| findings.complete(rank)) {
            let next = "set TMPDIR to a folder with room for what the ranks find";
            fs::write(&path, COMPLETE_TEXT).map_err(|error| Failure::file(&path, error).next(next))?;
        }
        Ok(findings)
    }

    /// What a rank is told: use simulated devices, go on after a finding, and where to write it.
    pub(super) fn variables(&self, rank: u32) -> [(&'static str, String); 3] {
        let file = self.file(rank).to_string_lossy().into_owned();
        [("KILN_POLICY", "simulate".into()), ("KILN_FINDINGS", "report".into()), ("KILN_FINDINGS_FILE", file)]
    }

    /// Prints what every rank found. The exit code is 5 if there is anything, also if it could not be written, and otherwise that of the ranks.
    ///
    /// # Errors
    /// How the job ended, if it did not end well and nothing was found; a file that cannot be read.
    pub(super) fn report(&self, ranks: u32, ended: Result<Exit, Failure>) -> Result<Exit, Failure> {
        let mut found = 0;
        let mut is_complete = true;
        for rank in 0..ranks {
            let findings = self.read(rank)?;
            for finding in findings.iter().take(MAX_PRINTED) {
                complain(format_args!("kiln launch: rank {rank} found: {finding}"));
            }
            if findings.len() > MAX_PRINTED {
                complain(format_args!(
                    "kiln launch: rank {rank} found {} more",
                    findings.len() - MAX_PRINTED
                ));
            }
            found += findings.len();
            if !self.complete(rank).exists() {
                is_complete = false;
                complain(format_args!(
                    "kiln launch: findings of rank {rank} could not be written; read them in what it printed, or set TMPDIR to a folder with room"
                ));
            }
        }
        if found == 0 && is_complete {
            if let Ok(Exit::Done) = ended {
                complain(format_args!("kiln launch: no findings in {}", counted(u64::from(ranks), "rank")));
            }
            return ended;
        }
        if let Err(failure) = ended {
            complain(format_args!("kiln launch: {failure}"));
        }
        let more = if is_complete { "" } else { ", and those that could not be written" };
        complain(format_args!(
            "kiln launch: {} in {}{more}",
            counted(found as u64, "finding"),
            counted(u64::from(ranks), "rank")
        ));
        Ok(Exit::Fault)
    }

    fn read(&self, rank: u32) -> Result<Vec<String>, Failure> {
        let path = self.file(rank);
        if path.exists() && !path.is_file() {
            return Ok(Vec::new());
        }
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Failure::file(&path, error)),
        }
    }

    /// The file that is there as long as a rank could write all it found.
    fn complete(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("rank-{rank}{COMPLETE}"))
    }

    fn file(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("rank-{rank}"))
    }
}
