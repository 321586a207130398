//! The programs that publish, from their folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::entry::Program;
use super::process_state::ProcessState;

/// An entry has no more bytes.
const MAX_ENTRY_BYTES: u64 = 256 << 10;
/// Entries that are read.
const MAX_ENTRIES: usize = 1024;
/// A program that has not published for so long is silent: it is stopped, or its disk is full.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// What a folder has.
#[derive(Default)]
pub(super) struct Published {
    /// By number.
    pub(super) programs: Vec<Program>,
    pub(super) unreadable: Vec<UnreadableEntry>,
}

/// An entry that could not be read.
#[derive(Clone, Debug, Serialize)]
pub(super) struct UnreadableEntry {
    pub(super) process: u32,
    pub(super) file: String,
    /// Why, and what to do.
    pub(super) why: String,
}

impl Published {
    /// The programs that publish in a folder. What programs left behind that are gone is removed.
    ///
    /// # Errors
    /// A folder that cannot be read. One that is not there is one without programs.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut published = Self::default();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(published),
            Err(error) => return Err(error),
        };
        let entries = entries.flatten().map(|entry| entry.path());
        let of_processes = entries.filter_map(|path| Some((process_of(&path)?, path)));
        for (process, path) in of_processes.take(MAX_ENTRIES) {
            let state = ProcessState::of(process);
            if state.is_gone() {
                let _ = fs::remove_file(&path);
                continue;
            }
            match read(&path).and_then(|text| Program::read(&text, process)) {
                // A later process has its number.
                Ok(program) if !state.began(program.started) => drop(fs::remove_file(&path)),
                Ok(program) => {
                    let is_silent = is_silent(program.updated_ms);
                    published.programs.push(Program { is_silent, ..program });
                }
                // It ended meanwhile, and took its entry with it.
                Err(_) if fs::symlink_metadata(&path).is_err() => {}
                Err(why) => {
                    let file = path.display().to_string();
                    published.unreadable.push(UnreadableEntry { process, file, why });
                }
            }
        }
        published.programs.sort_by_key(|program| program.process);
        published.unreadable.sort_by_key(|entry| entry.process);
        Ok(published)
    }

    /// Why a process is not among the programs, and what to do; none if it is.
    pub(super) fn why_not(&self, process: u32, folder: &Path) -> Option<(String, String)> {
        if self.programs.iter().any(|program| program.process == process) {
            return None;
        }
        if let Some(entry) = self.unreadable.iter().find(|entry| entry.process == process) {
            let (why, next) = entry.why.split_once("; ").unwrap_or((&entry.why, "remove it"));
            return Some((format!("{}: {why}", entry.file), next.to_owned()));
        }
        let state = ProcessState::of(process);
        Some(if state.is_gone() {
            let what = format!("there is no process {process}: it has ended, or the number is wrong");
            (what, "`kiln top --once` lists the programs that publish".to_owned())
        } else if state.is_of_another_user() {
            let what = format!("process {process} is of another user, and only that user sees its programs");
            (what, "run `kiln top` as that user".to_owned())
        } else {
            let folder = folder.display();
            let what = format!("process {process} publishes nothing in {folder}");
            let next = "start it with KILN_TOP=1 and with the same XDG_RUNTIME_DIR; a kiln program is seen while it has a runtime";
            (what, next.to_owned())
        })
    }
}

/// Why programs do not publish in a folder although they were asked to; none if nothing is wrong with it.
#[cfg(unix)]
pub(super) fn wrong_with(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let known = fs::symlink_metadata(folder).ok()?;
    let is_own = known.uid() == rustix::process::geteuid().as_raw() && known.mode() & 0o077 == 0;
    (!known.is_dir() || !is_own).then(|| {
        "it is not a folder of this user alone, so programs publish nothing in it; set its mode to 0700, or remove it".to_owned()
    })
}

#[cfg(not(unix))]
pub(super) fn wrong_with(_: &Path) -> Option<String> {
    None
}

/// The process that a file is of; none for other files.
fn process_of(path: &Path) -> Option<u32> {
    let is_entry = path.extension().is_some_and(|ending| ending == "json");
    path.file_stem().filter(|_| is_entry)?.to_str()?.parse().ok()
}

/// The contents of a plain file that is not too large.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let said = |error: io::Error| error.to_string();
    let known = fs::symlink_metadata(path).map_err(said)?;
    if !known.is_file() || known.len() > MAX_ENTRY_BYTES {
        return Err(format!("it is no file of at most {MAX_ENTRY_BYTES} bytes; remove it"));
    }
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_ENTRY_BYTES).read_to_end(&mut text)).map_err(said)?;
    Ok(text)
}

fn is_silent(updated_ms: u64) -> bool {
    let updated = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(updated_ms));
    // A clock that was set back says nothing.
    updated.and_then(|updated| updated.elapsed().ok()).is_some_and(|age| age > SILENT_AFTER)
}
