//! Findings in work that was never waited for, of runtimes that live as long as the process, such as that of `DeviceRuntime::auto`. Where the environment names a file for
//! findings, they are written to it when the process exits.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError, mpsc};
use std::time::Duration;

use super::inner::Inner;
use super::runtime_table::RuntimeKey;
use crate::findings::finding_file::is_asked_for;

/// How long a process that exits waits for work that is queued. Work of ranks may wait for others that have ended.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// The process whose runtimes these are. One that was forked from it has none of them.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static RUNTIMES: Mutex<Vec<RuntimeKey>> = Mutex::new(Vec::new());

impl Inner {
    /// Has the last findings written when the process exits, if the runtime lives then and they are asked for.
    pub(super) fn note_findings_at_exit(&self) {
        static REGISTERED: Once = Once::new();
        if self.findings().is_none() || !is_asked_for() {
            return;
        }
        RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner).push(self.key());
        REGISTERED.call_once(|| {
            PROCESS.store(std::process::id(), Ordering::Relaxed);
            // SAFETY: the function may be called at any time, takes nothing, and unwinds no further than itself. Where it cannot be registered, what was not waited for is
            // not looked at.
            let _ = unsafe { libc::atexit(at_exit) };
        });
    }
}

extern "C" fn at_exit() {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // A panic must not reach the caller, which is no Rust code.
    let _ = catch_unwind(|| {
        let runtimes = std::mem::take(&mut *RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner));
        let (done, ended) = mpsc::channel();
        // A thread of the program may hold what this needs, and is not waited for longer than the limit.
        let read = move || {
            for runtime in runtimes.into_iter().filter_map(RuntimeKey::live) {
                // A device that is lost, or takes longer, has findings too.
                let _ = runtime.drain(EXIT_LIMIT);
                runtime.findings().into_iter().for_each(|log| drop(log.unread()));
            }
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(read).is_ok() {
            let _ = ended.recv_timeout(EXIT_LIMIT);
        }
    });
}
