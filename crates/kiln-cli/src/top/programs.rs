//! The programs that publish, from their folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::entry::Program;
use crate::live_process::is_alive;

/// An entry has no more bytes.
const MAX_ENTRY_BYTES: u64 = 256 << 10;
/// Entries that are read.
const MAX_ENTRIES: usize = 1024;
/// A program that has not published for so long is silent: it is stopped, or its disk is full.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// The programs that publish in a folder, by number, and how many entries could not be read. What programs left behind that are gone is
/// removed.
///
/// # Errors
/// A folder that cannot be read. One that is not there is one without programs.
pub(super) fn published(folder: &Path) -> io::Result<(Vec<Program>, u64)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let (mut programs, mut unreadable) = (Vec::new(), 0);
    for entry in entries.flatten().take(MAX_ENTRIES) {
        let path = entry.path();
        let Some(process) = process_of(&path) else { continue };
        if !is_alive(process) {
            let _ = fs::remove_file(&path);
            continue;
        }
        match read(&path).as_deref().and_then(Program::read).filter(|program| program.process == process) {
            // A later process has its number.
            Some(program)
                if program.started != 0 && started(process).is_some_and(|now| now != program.started) =>
            {
                let _ = fs::remove_file(&path);
            }
            Some(program) => programs.push(Program { is_silent: is_silent(program.updated_ms), ..program }),
            None => unreadable += 1,
        }
    }
    programs.sort_by_key(|program| program.process);
    Ok((programs, unreadable))
}

/// The process that a file is of; none for other files.
fn process_of(path: &Path) -> Option<u32> {
    let is_entry = path.extension().is_some_and(|ending| ending == "json");
    path.file_stem().filter(|_| is_entry)?.to_str()?.parse().ok()
}

/// The contents of a plain file that is not too large.
fn read(path: &Path) -> Option<Vec<u8>> {
    let known = fs::symlink_metadata(path).ok()?;
    if !known.is_file() || known.len() > MAX_ENTRY_BYTES {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_ENTRY_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

fn is_silent(updated_ms: u64) -> bool {
    let updated = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(updated_ms));
    // A clock that was set back says nothing.
    updated.and_then(|updated| updated.elapsed().ok()).is_some_and(|age| age > SILENT_AFTER)
}

/// When a process began, as the system counts it; none where that cannot be found out.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name stands in brackets and may have any letters.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
