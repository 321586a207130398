//! A program that is a worker, except while it is told not to be.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kiln::recovery::{Process, WorkerEntry};

/// A script that starts this binary's worker, or ends at once, or does nothing for a long time.
pub(crate) struct Script {
    file: PathBuf,
    /// While this is there the script does what its first line says, after it has added another.
    refusals: PathBuf,
}

impl Script {
    pub(crate) fn new(name: &str) -> Self {
        let place =
            |kind| std::env::temp_dir().join(format!("kiln-isolated-{}-{name}-{kind}", std::process::id()));
        let (file, refusals) = (place("script"), place("refusals"));
        let text = format!(
            "#!/bin/sh\nif [ -e {refusals} ]; then read how < {refusals}; echo >> {refusals}; exec > /dev/null 2>&1; $how; fi\n\
             exec {exe} worker --exact --include-ignored --nocapture > /dev/null\n",
            refusals = refusals.display(),
            exe = std::env::current_exe().unwrap().display(),
        );
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        Self { file, refusals }
    }

    /// A process whose workers are started by the script.
    pub(crate) fn process(&self) -> Process {
        Process { entry: WorkerEntry::Program(self.file.clone()), ..crate::rig::process() }
    }

    /// From here on no worker starts.
    pub(crate) fn refuse(&self) {
        std::fs::write(&self.refusals, "exit 1\n").unwrap();
    }

    /// From here on a worker that is started does not say that it is ready.
    pub(crate) fn stall(&self) {
        std::fs::write(&self.refusals, "exec sleep 300\n").unwrap();
    }

    /// From here on workers start again.
    pub(crate) fn relent(&self) {
        std::fs::remove_file(&self.refusals).unwrap();
    }

    /// Waits until a worker was not started.
    pub(crate) fn await_refusal(&self) {
        let limit = Instant::now() + Duration::from_secs(60);
        while std::fs::read_to_string(&self.refusals).unwrap().lines().count() < 2 {
            assert!(Instant::now() < limit, "no thread starts a worker");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
        let _ = std::fs::remove_file(&self.refusals);
    }
}
