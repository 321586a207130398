//! What a process has open, to be held against what it has later.
#![allow(dead_code, reason = "some compare it and some look into it")]

use std::path::PathBuf;

/// Descriptors, children and threads of ours that are there now.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) descriptors: usize,
    pub(crate) children: Vec<String>,
    pub(crate) threads: usize,
}

impl Held {
    pub(crate) fn now() -> Self {
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let children = tasks().flat_map(|task| {
            let text = read(task.path().join("children"));
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        });
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            children: children.collect(),
            threads: tasks().filter(|task| read(task.path().join("comm")).starts_with("kiln ")).count(),
        }
    }

    /// As [`now`](Self::now), found several times in a row: threads of other tests that start and end open files of the system for a moment.
    pub(crate) fn settled() -> Self {
        let (mut last, mut same) = (Self::now(), 0);
        while same < 5 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now = Self::now();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        last
    }
}
