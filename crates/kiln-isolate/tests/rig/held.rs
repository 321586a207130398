//! The system resources that a process holds because of its workers.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Descriptors, children, threads and mappings of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) descriptors: usize,
    pub(crate) children: Vec<String>,
    pub(crate) threads: usize,
    /// Mappings of memory that is shared with a worker.
    pub(crate) mappings: usize,
}

impl Held {
    pub(crate) fn now() -> Self {
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let children = tasks().flat_map(|task| {
            let text = read(task.path().join("children"));
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        });
        let maps = read("/proc/self/maps".into());
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            children: children.collect(),
            threads: tasks().filter(|task| read(task.path().join("comm")).starts_with("kiln ")).count(),
            mappings: maps.lines().filter(|line| line.contains("memfd:kiln-isolate")).count(),
        }
    }

    /// Asserts that the process holds this again. Dropping a device ends its children and mappings. A descriptor may belong to another thread of the
    /// test harness, which opens system files for a moment when it starts, and a thread that was joined is listed until the kernel has removed it.
    #[track_caller]
    pub(crate) fn assert_restored(&self, when: impl std::fmt::Display) {
        let mut now = Self::now();
        let of_workers = |held: &Self| (held.children.clone(), held.mappings);
        assert_eq!(of_workers(&now), of_workers(self), "{when}");
        let begun = Instant::now();
        while now != *self && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
            now = Self::now();
        }
        assert_eq!(now, *self, "{when}");
    }

    /// The counts, since each worker is another process.
    pub(crate) fn counts(&self) -> [usize; 4] {
        [self.descriptors, self.children.len(), self.threads, self.mappings]
    }

    /// Polls until the counts are these. The old worker is killed and the next standby started some time after a takeover, so the counts differ right
    /// after it.
    pub(crate) fn settles_at(counts: [usize; 4]) -> bool {
        let begun = Instant::now();
        while Self::now().counts() != counts {
            if begun.elapsed() > Duration::from_secs(60) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Polls until the same was found several times in a row: threads of other tests open system files for a moment when they start.
    pub(crate) fn settled() -> Self {
        Self::found_again(5, |_| true)
    }

    /// The same with so many children.
    pub(crate) fn settled_with(children: usize) -> Self {
        Self::found_again(20, |held| held.children.len() == children)
    }

    fn found_again(times: u32, is_right: impl Fn(&Self) -> bool) -> Self {
        let (mut last, mut same) = (Self::now(), 0);
        let begun = Instant::now();
        while same < times || !is_right(&last) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{last:?}");
            std::thread::sleep(Duration::from_millis(5));
            let now = Self::now();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        last
    }
}
