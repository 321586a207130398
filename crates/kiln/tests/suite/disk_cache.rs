//! The cache on disk: found again, never half, never a reason to fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use kiln::code_cache::{
    CacheConfig, CacheEntry, CachePlace, DiskCache, EntryKind, EntryState, Key, KeyBuilder, Surroundings,
};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kiln-cache-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn cache(&self, limit_bytes: u64) -> DiskCache {
        open(&self.0, limit_bytes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Path, limit_bytes: u64) -> DiskCache {
    DiskCache::new(
        &CacheConfig { place: CachePlace::At(folder.into()), limit_bytes },
        &Surroundings::default(),
    )
}

fn key(name: &str) -> Key {
    KeyBuilder::new().part("source", name.as_bytes()).finish()
}

/// What took a second to make.
fn entry(kind: EntryKind, payload: &[u8]) -> CacheEntry {
    let kernels = vec!["axpy".to_owned(), "scale<float>".to_owned()];
    CacheEntry { kind, compile_time: Duration::from_secs(1), kernels, payload: payload.to_vec() }
}

#[test]
fn what_was_stored_is_found_by_another_cache_and_counted() {
    let folder = Folder::new("found");
    let writer = folder.cache(1 << 20);
    writer.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    assert_eq!((writer.counters().stores, writer.counters().bytes_written), (1, 4));
    let cache = folder.cache(1 << 20);
    assert_eq!(cache.get(&key("a")), Some(entry(EntryKind::Ptx, b"code")));
    assert_eq!(cache.get(&key("b")), None);
    let counters = cache.counters();
    assert_eq!((counters.hits, counters.misses, counters.damaged, counters.bytes_read), (1, 1, 0, 4));
    assert_eq!(counters.time_saved, Duration::from_secs(1));
    let listed = cache.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].compile_time, Some(Duration::from_secs(1)));
    assert_eq!(listed[0].kernels, ["axpy", "scale<float>"]);
}

#[test]
fn every_use_saves_what_its_entry_took_to_make() {
    let folder = Folder::new("saved");
    let cache = folder.cache(1 << 20);
    for (name, nanoseconds) in [("short", 1_500), ("long", 7_000_000_000), ("forever", u64::MAX)] {
        let compile_time = Duration::from_nanos(nanoseconds);
        cache.put(&key(name), &CacheEntry { compile_time, ..entry(EntryKind::Ptx, b"code") });
    }
    assert_eq!(cache.counters().time_saved, Duration::ZERO, "to write saves nothing");
    for name in ["short", "long", "short", "missing"] {
        cache.get(&key(name));
    }
    assert_eq!(cache.counters().time_saved, Duration::from_nanos(7_000_003_000));
    assert_eq!(cache.get(&key("forever")).unwrap().compile_time, Duration::from_nanos(u64::MAX));
}

#[test]
fn an_entry_of_another_version_is_made_anew() {
    let folder = Folder::new("version");
    let cache = folder.cache(1 << 20);
    cache.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    let file = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    // The version before this one, whose header was eight bytes shorter.
    bytes[8] -= 1;
    bytes.drain(48..56);
    std::fs::write(&file, &bytes).unwrap();
    assert!(matches!(cache.verify().unwrap()[..], [EntryState::OtherVersion { .. }]));
    assert_eq!(cache.list().unwrap()[0].compile_time, None);
    assert_eq!(cache.get(&key("a")), None);
    assert_eq!((cache.counters().misses, cache.counters().time_saved), (1, Duration::ZERO));
    cache.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    assert!(cache.get(&key("a")).is_some());
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("private");
    folder.cache(1 << 20).put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.0), 0o700);
    let file = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_damaged_entry_is_noticed_removed_and_made_anew() {
    let folder = Folder::new("damaged");
    let cache = folder.cache(1 << 20);
    cache.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    let file = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert!(matches!(cache.verify().unwrap()[..], [EntryState::Damaged { .. }]));
    assert_eq!(cache.get(&key("a")), None);
    assert!(!file.exists());
    cache.put(&key("a"), &entry(EntryKind::CubinWithPtx, b"again"));
    assert_eq!(cache.get(&key("a")), Some(entry(EntryKind::CubinWithPtx, b"again")));
    // The entry of another key under this name is as good as damaged.
    cache.put(&key("b"), &entry(EntryKind::Ptx, b"other"));
    std::fs::copy(folder.0.join(format!("{}.kiln", key("b"))), &file).unwrap();
    assert_eq!(cache.get(&key("a")), None);
    assert_eq!(cache.counters().damaged, 2);
}

#[test]
fn the_least_recently_used_go_first() {
    let folder = Folder::new("lru");
    let cache = folder.cache(1 << 30);
    for (age, name) in ["new", "old", "older"].into_iter().enumerate() {
        cache.put(&key(name), &entry(EntryKind::Ptx, &[0; 1000]));
        let file = std::fs::File::open(folder.0.join(format!("{}.kiln", key(name)))).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(100 * (age as u64 + 1))).unwrap();
    }
    assert!(cache.get(&key("older")).is_some(), "use makes it the newest");
    let small = folder.cache(2500);
    small.put(&key("one more"), &entry(EntryKind::Ptx, &[0; 1000]));
    let left: Vec<Key> = small.list().unwrap().iter().map(|entry| entry.key).collect();
    assert_eq!(left, [key("older"), key("one more")]);
    assert!(small.clear().unwrap() > 2000);
    assert!(small.list().unwrap().is_empty());
}

#[test]
fn a_disk_that_cannot_be_written_is_one_warning_and_no_failure() {
    let folder = Folder::new("readonly");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("file"), b"").unwrap();
    let cache = open(&folder.0.join("file").join("below a file"), 1 << 20);
    assert!(!cache.has_warned());
    cache.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    cache.put(&key("b"), &entry(EntryKind::Ptx, b"code"));
    assert!(cache.has_warned());
    assert_eq!(cache.get(&key("a")), None);
    let off =
        DiskCache::new(&CacheConfig { place: CachePlace::Off, limit_bytes: 1 }, &Surroundings::default());
    off.put(&key("a"), &entry(EntryKind::Ptx, b"code"));
    assert!(off.get(&key("a")).is_none() && !off.has_warned());
}

/// Writes entries until it is killed; the test below starts it as another process.
#[test]
#[ignore = "helper process"]
fn writer() {
    let folder = std::env::var_os("KILN_TEST_CACHE_WRITER").expect("another test starts this one");
    let cache = open(Path::new(&folder), 1 << 30);
    for number in 0_u64.. {
        cache.put(&key(&(number % 7).to_string()), &entry(EntryKind::Ptx, &vec![number as u8; 200_000]));
    }
}

#[test]
fn killed_writers_leave_nothing_half_and_two_writers_do_not_mind_each_other() {
    let folder = Folder::new("killed");
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk_cache::writer", "--include-ignored"])
            .env("KILN_TEST_CACHE_WRITER", &folder.0)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    for round in 0..6 {
        let mut writers = [start(), start()];
        std::thread::sleep(Duration::from_millis(40 + 13 * round));
        for writer in &mut writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let verdicts = folder.cache(1 << 30).verify().unwrap();
        assert!(
            verdicts
                .iter()
                .all(|verdict| verdict.is_good() || matches!(verdict, EntryState::Abandoned { .. })),
            "{verdicts:?}"
        );
    }
    let cache = folder.cache(1 << 30);
    cache.prune(u64::MAX).unwrap();
    assert!(
        cache.verify().unwrap().iter().all(EntryState::is_good),
        "what killed writers left is cleared away"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_warning_and_leaves_nothing_half() {
    // A separate file system of 64 KiB; where the system does not let us make one there is nothing to fill.
    let folder = Folder::new("full");
    std::fs::create_dir_all(&folder.0).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&folder.0)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("skipped: no file system can be mounted here");
        return;
    }
    let cache = folder.cache(1 << 30);
    cache.put(&key("small"), &entry(EntryKind::Ptx, &[1; 1000]));
    cache.put(&key("large"), &entry(EntryKind::Ptx, &[2; 1 << 20]));
    let (warned, small, large) = (cache.has_warned(), cache.get(&key("small")), cache.get(&key("large")));
    let verdicts = cache.verify().unwrap();
    Command::new("umount").arg(&folder.0).status().unwrap();
    assert!(warned && small.is_some() && large.is_none());
    assert!(verdicts.iter().all(EntryState::is_good), "{verdicts:?}");
}
