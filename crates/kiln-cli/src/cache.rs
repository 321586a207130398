//! `kiln cache`: compiled kernels on disk.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use kiln::code_cache::{CacheConfig, CachePlace, DiskCache, EntryKind, EntryState, Surroundings};
use serde::Serialize;

use crate::console::Console;
use crate::demangled_name::readable;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::table::{Table, bytes};

/// The flags of `kiln cache`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The folder of the cache; by default $XDG_CACHE_HOME/kiln or ~/.cache/kiln.
    #[arg(long, global = true, value_name = "FOLDER")]
    at: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln cache list
  kiln cache prune --limit 256MiB
  kiln cache verify --json

Exit codes: 0 done, 2 wrong usage, 5 an entry is damaged (verify) or the folder cannot be used.";

/// Digits of a key that tell entries apart; JSON has all of them.
const SHOWN_KEY_DIGITS: usize = 16;

#[derive(Subcommand)]
enum Action {
    /// List the entries, the least recently used first.
    List,
    /// Read every entry and report damaged ones.
    Verify,
    /// Remove the least recently used entries beyond a limit, and unfinished files.
    Prune {
        /// The size to keep, such as 256MiB.
        #[arg(long, value_name = "BYTES", default_value = "1GiB")]
        limit: kiln_mem::ByteSize,
    },
    /// Remove every entry.
    Clear,
}

#[derive(Serialize)]
struct Listing {
    folder: Option<String>,
    entries: Vec<Entry>,
    bytes: u64,
    /// The compile time of all entries, which a hit of each saves.
    compile_nanoseconds: u64,
}

#[derive(Serialize)]
struct Entry {
    key: String,
    bytes: u64,
    used_unix_seconds: u64,
    /// The compile time that a hit saves; null for an entry that cannot be read.
    compile_nanoseconds: Option<u64>,
    /// Empty for an entry that cannot be read.
    kernels: Vec<String>,
}

#[derive(Serialize)]
struct Examination {
    folder: Option<String>,
    good: usize,
    files: Vec<FileSheet>,
    exit: u8,
}

#[derive(Serialize)]
struct FileSheet {
    file: String,
    verdict: &'static str,
    detail: String,
}

#[derive(Serialize)]
struct Freed {
    folder: Option<String>,
    freed_bytes: u64,
    left_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    if let (Action::Verify, Some(folder)) = (&arguments.action, &arguments.at)
        && !folder.exists()
    {
        let step = "give the folder of a cache, or leave --at out for the default";
        return Err(Failure::file(folder, "the folder does not exist").next(step));
    }
    let place = arguments.at.clone().map_or(CachePlace::User, CachePlace::At);
    let cache = DiskCache::new(&CacheConfig { place, ..CacheConfig::default() }, &Surroundings::of_process());
    match &arguments.action {
        Action::List => list(&cache, arguments.json, console),
        Action::Verify => verify(&cache, arguments.json, console),
        Action::Prune { limit } => free(&cache, arguments.json, console, limit.0),
        Action::Clear => free(&cache, arguments.json, console, 0),
    }
}

fn folder(cache: &DiskCache) -> Option<String> {
    cache.folder().map(|folder| folder.display().to_string())
}

fn named(cache: &DiskCache) -> String {
    match cache.folder() {
        Some(folder) if folder.exists() => folder.display().to_string(),
        Some(folder) => format!("{} (the folder does not exist)", folder.display()),
        None => "no cache folder: neither XDG_CACHE_HOME nor HOME is set".into(),
    }
}

fn unusable(cache: &DiskCache, error: &std::io::Error) -> Failure {
    let folder = cache.folder().map_or_else(|| named(cache), |folder| folder.display().to_string());
    Failure::output(format!("{folder}: {error}"))
}

fn list(cache: &DiskCache, json: bool, console: &mut Console) -> Result<Exit, Failure> {
    let entries = cache.list().map_err(|error| unusable(cache, &error))?;
    let total = entries.iter().map(|entry| entry.bytes).sum();
    let saved =
        entries.iter().filter_map(|entry| entry.compile_time).fold(Duration::ZERO, Duration::saturating_add);
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if json {
        let since =
            |used: SystemTime| used.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let entries = entries.iter().map(|entry| Entry {
            key: entry.key.to_string(),
            bytes: entry.bytes,
            used_unix_seconds: since(entry.used),
            compile_nanoseconds: entry.compile_time.map(nanoseconds),
            kernels: entry.kernels.clone(),
        });
        let listing = Listing {
            folder: folder(cache),
            entries: entries.collect(),
            bytes: total,
            compile_nanoseconds: nanoseconds(saved),
        };
        console.json(&listing)?;
        return Ok(Exit::Done);
    }
    let count = match entries.len() {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    let (total, saved) = (bytes(total), brief(saved));
    console.line(format_args!("{}: {count}, {total}, {saved} of compile time", named(cache)));
    if !entries.is_empty() {
        let mut table = Table::new(&["key", "#size", "#compile time", "#last used", "kernels"]);
        for entry in &entries {
            let age = entry.used.elapsed().map_or(0, |time| time.as_secs());
            let saves = entry.compile_time.map_or_else(|| "unknown".to_owned(), brief);
            let key: String = entry.key.to_string().chars().take(SHOWN_KEY_DIGITS).collect();
            let age = format!("{} ago", duration(age));
            let kernels: Vec<String> = entry.kernels.iter().map(|name| readable(name)).collect();
            table.row([key, bytes(entry.bytes), saves, age, kernels.join(", ")]);
        }
        console.line(table.render(console.columns()));
    }
    Ok(Exit::Done)
}

fn verify(cache: &DiskCache, json: bool, console: &mut Console) -> Result<Exit, Failure> {
    let verdicts = cache.verify().map_err(|error| unusable(cache, &error))?;
    let good = verdicts.iter().filter(|verdict| verdict.is_good()).count();
    let damaged = verdicts
        .iter()
        .any(|verdict| matches!(verdict, EntryState::Damaged { .. } | EntryState::Unreadable { .. }));
    let exit = if damaged { Exit::Fault } else { Exit::Done };
    let files: Vec<FileSheet> = verdicts.iter().map(sheet).collect();
    if json {
        let examination = Examination { folder: folder(cache), good, files, exit: exit.code() };
        console.json(&examination)?;
        return Ok(exit);
    }
    console.line(format_args!("{}: {good} of {} files are intact", named(cache), files.len()));
    if !files.is_empty() {
        let mut table = Table::new(&["state", "file", "detail"]);
        for file in files {
            table.row([file.verdict.to_owned(), file.file, file.detail]);
        }
        console.line(table.render(console.columns()));
    }
    if damaged {
        console.line(
            "A damaged entry is compiled again when it is next used; `kiln cache clear` removes all entries.",
        );
    }
    Ok(exit)
}

fn sheet(verdict: &EntryState) -> FileSheet {
    let (word, file, detail) = match verdict {
        EntryState::Good { key, kind } => {
            let holds = match kind {
                EntryKind::Ptx => "PTX",
                EntryKind::CubinWithPtx => "machine code and PTX",
                EntryKind::Cubin => "machine code",
                EntryKind::Algorithm => "the choice of an algorithm",
            };
            ("good", key.to_string(), holds.to_owned())
        }
        EntryState::Damaged { path, damage } => ("damaged", path.display().to_string(), damage.to_string()),
        EntryState::OtherVersion { path } => {
            ("other version", path.display().to_string(), "another version of kiln wrote it".to_owned())
        }
        EntryState::Abandoned { path } => {
            ("unfinished", path.display().to_string(), "a process is writing it, or was killed".to_owned())
        }
        EntryState::Unreadable { path, error } => ("unreadable", path.display().to_string(), error.clone()),
    };
    FileSheet { file, verdict: word, detail }
}

fn free(cache: &DiskCache, json: bool, console: &mut Console, limit_bytes: u64) -> Result<Exit, Failure> {
    let freed_bytes = cache.prune(limit_bytes).map_err(|error| unusable(cache, &error))?;
    let left_bytes =
        cache.list().map_err(|error| unusable(cache, &error))?.iter().map(|entry| entry.bytes).sum();
    if json {
        console.json(&Freed { folder: folder(cache), freed_bytes, left_bytes })?;
        return Ok(Exit::Done);
    }
    console.line(format_args!("{}: freed {}, {} left", named(cache), bytes(freed_bytes), bytes(left_bytes)));
    Ok(Exit::Done)
}

/// A time with three digits.
fn brief(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.001 => format!("{:.0} us", seconds * 1e6),
        0.001..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        1.0..120.0 => format!("{seconds:.1} s"),
        _ => duration(time.as_secs()),
    }
}

/// A number of seconds in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
