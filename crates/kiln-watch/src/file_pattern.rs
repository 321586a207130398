//! Files of several processes: a number in their names, or a folder that they are in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kiln_trace::split_process_number;

/// Files of one pattern.
const MAX_FILES: usize = 1024;

/// Files whose names have the number of a process between two texts: `rank-%p.kiln` is `rank-4711.kiln`, and others.
///
/// ```
/// use kiln_watch::FilePattern;
///
/// let pattern = FilePattern::of("run/rank-%p.kiln".as_ref()).unwrap();
/// assert_eq!(pattern.number("run/rank-4711.kiln".as_ref()), Some(4711));
/// assert_eq!(pattern.number("run/rank-x.kiln".as_ref()), None);
/// assert!(FilePattern::of("run/rank.kiln".as_ref()).is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePattern {
    folder: PathBuf,
    before: OsString,
    behind: OsString,
}

impl FilePattern {
    /// The pattern that a path is, if it has `%p` in the name of the file.
    pub fn of(path: &Path) -> Option<Self> {
        let (before, behind) = split_process_number(path.file_name()?)?;
        Some(Self::around(path, &before, &behind))
    }

    /// The files beside one that have a number between two texts.
    pub fn around(beside: &Path, before: &OsStr, behind: &OsStr) -> Self {
        let folder =
            beside.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self { folder: folder.to_owned(), before: before.to_owned(), behind: behind.to_owned() }
    }

    /// The number in the name of a file; none for other files.
    pub fn number(&self, path: &Path) -> Option<u32> {
        let name = path.file_name()?.as_encoded_bytes();
        let number = name.strip_prefix(self.before.as_encoded_bytes())?;
        let number = std::str::from_utf8(number.strip_suffix(self.behind.as_encoded_bytes())?).ok()?;
        if number.bytes().all(|digit| digit.is_ascii_digit()) { number.parse().ok() } else { None }
    }

    /// The files that are there and not empty, by number; those that were not changed since a moment are left out.
    pub fn files(&self, since: Option<SystemTime>) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let found = entries.filter_map(|path| Some((self.number(&path)?, path)));
        let mut found: Vec<(u32, PathBuf)> =
            found.filter(|(_, path)| is_there(path, since)).take(MAX_FILES).collect();
        found.sort();
        found.into_iter().map(|(_, path)| path).collect()
    }
}

/// The recordings in a folder, by name: files that end with `.kiln`. Empty ones are among them: their disk may have had no room.
pub fn recordings_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_recording =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "kiln") && path.is_file();
    let mut found: Vec<PathBuf> = entries.filter(is_recording).take(MAX_FILES).collect();
    found.sort();
    found
}

fn is_there(path: &Path, since: Option<SystemTime>) -> bool {
    let is_new = |known: &fs::Metadata| {
        since.is_none_or(|since| known.modified().is_ok_and(|changed| changed >= since))
    };
    path.metadata().is_ok_and(|known| known.is_file() && known.len() > 0 && is_new(&known))
}
