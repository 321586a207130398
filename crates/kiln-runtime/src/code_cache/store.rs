//! The entries of one folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::entry::{CacheEntry, EntryDamage, HEADER_BYTES, Header, decode, encode, read_kernels};
use super::entry_state::EntryState;
use super::folder::{CachePlace, Surroundings};
use super::key::Key;

/// Files whose name ends so are being written.
const UNFINISHED: &str = "part";
/// Files whose name ends so are entries.
const FINISHED: &str = "kiln";
/// Entries one process writes before it lists the folder again: other processes write there too.
const WRITES_BETWEEN_LISTINGS: u32 = 64;
/// Names longer than this in all are not read for lists.
const KERNELS_LIMIT_BYTES: u64 = 1 << 20;

/// How the cache is kept.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// Where.
    pub place: CachePlace,
    /// Bytes of all entries; the least recently used go first. Several processes that write at once may exceed it for a while.
    pub limit_bytes: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { place: CachePlace::User, limit_bytes: 1 << 30 }
    }
}

/// How often the cache helped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounters {
    /// Entries that were found.
    pub hits: u64,
    /// Entries that were not.
    pub misses: u64,
    /// Entries that were found and could not be used.
    pub damaged: u64,
    /// Entries that were written.
    pub stores: u64,
    /// Bytes read from good entries.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time that hits saved: what it took once to make what was found.
    pub time_saved: Duration,
}

/// One entry, as a list shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryInfo {
    /// Its key.
    pub key: Key,
    /// Its size on disk.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
    /// How long it took to make, and so what each use of it saves; none if another version of kiln wrote it, or it is damaged.
    pub compile_time: Option<Duration>,
    /// The names of its kernels; none if it cannot be read.
    pub kernels: Vec<String>,
}

/// Compiled code on disk.
#[derive(Debug)]
pub struct DiskCache {
    folder: Option<PathBuf>,
    limit_bytes: u64,
    warned: AtomicBool,
    next_part: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    damaged: AtomicU64,
    stores: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    saved_ns: AtomicU64,
    /// None before the first entry is written.
    contents: Mutex<Option<Contents>>,
}

/// What the folder holds, as far as this process knows.
#[derive(Debug)]
struct Contents {
    bytes: u64,
    /// Entries written since the folder was listed.
    writes: u32,
}

/// A file that has the name of an entry.
struct EntryFile {
    key: Key,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl DiskCache {
    /// The cache of a configuration. Nothing is touched until something is looked up.
    pub fn new(config: &CacheConfig, around: &Surroundings) -> Self {
        Self {
            folder: config.place.folder(around),
            limit_bytes: config.limit_bytes,
            warned: AtomicBool::new(false),
            next_part: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            stores: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            saved_ns: AtomicU64::new(0),
            contents: Mutex::new(None),
        }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What is stored under a key. A damaged entry is removed and counts as missing.
    pub fn get(&self, key: &Key) -> Option<CacheEntry> {
        let path = self.path(key)?;
        let found = fs::read(&path).ok().and_then(|bytes| match decode(key, &bytes) {
            Ok(entry) => Some(entry),
            Err(damage) => {
                tracing::warn!(path = %path.display(), %damage, "a cached kernel cannot be used and is made anew");
                self.damaged.fetch_add(1, Ordering::Relaxed);
                // If it cannot be removed it is overwritten, or found damaged again.
                let _ = fs::remove_file(&path);
                None
            }
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = &found {
            let saved_ns = u64::try_from(entry.compile_time.as_nanos()).unwrap_or(u64::MAX);
            self.bytes_read.fetch_add(entry.payload.len() as u64, Ordering::Relaxed);
            self.saved_ns.fetch_add(saved_ns, Ordering::Relaxed);
            // The time of use decides which entry goes first; a disk that cannot note it keeps the time of writing.
            let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        found
    }

    /// Stores something under a key, if the disk allows it.
    pub fn put(&self, key: &Key, entry: &CacheEntry) {
        let Some(path) = self.path(key) else { return };
        let file = encode(key, entry);
        match self.write_whole(&path, &file) {
            Ok(()) => {
                self.stores.fetch_add(1, Ordering::Relaxed);
                self.bytes_written.fetch_add(entry.payload.len() as u64, Ordering::Relaxed);
                self.keep_limit(file.len() as u64);
            }
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(path = %path.display(), %error, "compiled kernels are not kept: the cache cannot be written");
                }
            }
        }
    }

    /// How often it helped so far.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            stores: self.stores.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            time_saved: Duration::from_nanos(self.saved_ns.load(Ordering::Relaxed)),
        }
    }

    /// Whether the disk was found not to be writable; the log says so once.
    pub fn has_warned(&self) -> bool {
        self.warned.load(Ordering::Relaxed)
    }

    /// The entries, the one that was not used for longest first.
    ///
    /// # Errors
    /// What the system says when the folder cannot be read. A folder that does not exist has no entries.
    pub fn list(&self) -> io::Result<Vec<EntryInfo>> {
        let about = |EntryFile { key, path, bytes, used }| {
            let (compile_time, kernels) = read_start(&path).unzip();
            EntryInfo { key, bytes, used, compile_time, kernels: kernels.unwrap_or_default() }
        };
        Ok(self.entries()?.into_iter().map(about).collect())
    }

    /// Reads every file and says what it is.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub fn verify(&self) -> io::Result<Vec<EntryState>> {
        let mut verdicts: Vec<EntryState> =
            self.files(UNFINISHED)?.into_iter().map(|path| EntryState::Abandoned { path }).collect();
        for EntryFile { key, path, .. } in self.entries()? {
            verdicts.push(match fs::read(&path) {
                Err(error) => EntryState::Unreadable { path, error: error.to_string() },
                Ok(bytes) => match decode(&key, &bytes) {
                    Ok(entry) => EntryState::Good { key, kind: entry.kind },
                    Err(EntryDamage::Format) => EntryState::OtherVersion { path },
                    Err(damage) => EntryState::Damaged { path, damage },
                },
            });
        }
        Ok(verdicts)
    }

    /// Removes entries, those not used for longest first, until the rest has at most so many bytes; and what writers abandoned.
    /// Returns how many bytes were freed.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub fn prune(&self, limit_bytes: u64) -> io::Result<u64> {
        self.prune_to(limit_bytes).map(|(freed, _)| freed)
    }

    /// Prunes once more was written than the limit allows, as far as this process knows.
    fn keep_limit(&self, written: u64) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *contents {
            Some(known)
                if known.bytes + written <= self.limit_bytes && known.writes < WRITES_BETWEEN_LISTINGS =>
            {
                known.bytes += written;
                known.writes += 1;
            }
            // A folder that cannot be listed is tried again at the next write.
            known => {
                *known = self.prune_to(self.limit_bytes).ok().map(|(_, bytes)| Contents { bytes, writes: 0 });
            }
        }
    }

    /// As [`prune`](Self::prune). Returns how many bytes were freed, and how many are left.
    fn prune_to(&self, limit_bytes: u64) -> io::Result<(u64, u64)> {
        let entries = self.entries()?;
        let mut left: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut freed = 0;
        for entry in &entries {
            if left <= limit_bytes {
                break;
            }
            if fs::remove_file(&entry.path).is_ok() {
                left -= entry.bytes;
                freed += entry.bytes;
            }
        }
        Ok((freed + self.remove_abandoned(), left))
    }

    /// Removes everything. Returns how many bytes were freed.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub fn clear(&self) -> io::Result<u64> {
        self.prune(0)
    }

    /// The files of entries, the one that was not used for longest first; their contents are not looked at.
    fn entries(&self) -> io::Result<Vec<EntryFile>> {
        let mut entries = Vec::new();
        for path in self.files(FINISHED)? {
            let key = path.file_stem().and_then(|name| name.to_str()).and_then(Key::parse);
            // An entry another process removes meanwhile is none.
            if let (Some(key), Ok(about)) = (key, fs::metadata(&path)) {
                entries.push(EntryFile { key, path, bytes: about.len(), used: about.modified()? });
            }
        }
        entries.sort_by_key(|entry| (entry.used, entry.key));
        Ok(entries)
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{key}.{FINISHED}")))
    }

    fn files(&self, extension: &str) -> io::Result<Vec<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == extension))
            .collect();
        files.sort();
        Ok(files)
    }

    /// Writes beside the place and moves there, so that no reader sees half of it.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        create_private_folder(folder)?;
        let number = self.next_part.fetch_add(1, Ordering::Relaxed);
        let part = folder.join(format!("{}-{number}.{UNFINISHED}", std::process::id()));
        let written = create_private_file(&part).and_then(|mut file| file.write_all(bytes));
        let moved = written.and_then(|()| fs::rename(&part, path));
        if moved.is_err() {
            let _ = fs::remove_file(&part);
        }
        moved
    }

    /// Removes unfinished files of writers that are gone. Returns their bytes.
    fn remove_abandoned(&self) -> u64 {
        let abandoned = |path: &PathBuf| {
            let writer = path.file_stem()?.to_str()?.split('-').next()?.parse::<u32>().ok()?;
            let gone = writer != std::process::id() && !Path::new(&format!("/proc/{writer}")).exists();
            gone.then(|| fs::metadata(path).map_or(0, |about| about.len()))
        };
        let files = self.files(UNFINISHED).unwrap_or_default();
        files.iter().filter_map(|path| abandoned(path).filter(|_| fs::remove_file(path).is_ok())).sum()
    }
}

/// How long an entry took to make, and the names of its kernels. The rest of the file is not read.
fn read_start(path: &Path) -> Option<(Duration, Vec<String>)> {
    let mut file = File::open(path).ok()?;
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact(&mut bytes).ok()?;
    let header = Header::read(&bytes).ok()?;
    let mut lines = Vec::new();
    let length = Some(header.kernels_length).filter(|length| *length <= KERNELS_LIMIT_BYTES).unwrap_or(0);
    file.take(length).read_to_end(&mut lines).ok()?;
    Some((header.compile_time, read_kernels(&lines).unwrap_or_default()))
}

#[cfg(unix)]
fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(not(unix))]
fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
