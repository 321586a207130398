//! What is done when the process ends, for runtimes that nothing drops, such as that of `DeviceRuntime::auto`.
//!
//! - Order: the last findings are read first, which waits for work that is queued. Then recordings end, so that they have what that work showed.
//! - A step has a separate thread and a limit. A thread of the program may hold what the step needs, and others may submit until the process is gone.
//! - A panic ends its step and nothing else.
//! - A forked process does nothing for the runtimes of its parent, whose threads it does not have. Those that it makes itself, it ends.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::time::Duration;

use super::inner::Inner;
use super::recording;
use super::runtime_table::RuntimeKey;

/// What is done with a runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndStep {
    /// Findings in work that was never waited for are read, and written to their file.
    ReadFindings,
    /// The recording gets its end.
    EndRecording,
}

impl EndStep {
    /// All, in the order in which they are done.
    const ALL: [Self; 2] = [Self::ReadFindings, Self::EndRecording];

    /// How long the end of the process waits. Work of ranks may wait for others that have ended; a disk may hang.
    fn limit(self) -> Duration {
        match self {
            Self::ReadFindings => Duration::from_secs(5),
            Self::EndRecording => Duration::from_secs(30),
        }
    }

    fn do_with(self, runtimes: &[RuntimeKey]) {
        let live = runtimes.iter().filter_map(|runtime| runtime.live());
        match self {
            Self::ReadFindings => live.for_each(|runtime| runtime.read_last_findings(self.limit())),
            Self::EndRecording => {
                live.for_each(|runtime| runtime.end_recording());
                // Other threads may submit until the process is gone: nothing comes behind the mark of the end.
                recording::close_process_recording();
            }
        }
    }
}

/// A step that is to be done.
struct Listed {
    process: u32,
    step: EndStep,
    runtime: RuntimeKey,
}

/// The process that listed last: to a forked one that is another process until it lists something itself.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static LISTED: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

/// Does this when the process ends, if the runtime lives then.
pub(super) fn when_process_ends(step: EndStep, runtime: RuntimeKey) {
    let process = std::process::id();
    PROCESS.store(process, Ordering::Relaxed);
    let mut listed = listed();
    if listed.len() == listed.capacity() {
        // Those that were dropped are done with, so that the list does not grow with them.
        listed.retain(|known| known.process == process && known.runtime.is_live());
    }
    listed.push(Listed { process, step, runtime });
    drop(listed);
    register(step);
}

/// Has the end of the process call back. Handlers are called from the last that was registered to the first, and a library registers its own when it
/// is loaded. So each step registers when it is first listed, when what it needs is loaded; whichever is called first does all steps.
fn register(step: EndStep) {
    static FINDINGS: Once = Once::new();
    static RECORDINGS: Once = Once::new();
    let once = match step {
        EndStep::ReadFindings => &FINDINGS,
        EndStep::EndRecording => &RECORDINGS,
    };
    once.call_once(|| {
        // SAFETY: the function may be called at any time, takes nothing, and unwinds no further than itself. Where it cannot be registered, findings in work that
        // was not waited for stay unread, and recordings have no end mark.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    let process = std::process::id();
    if PROCESS.load(Ordering::Relaxed) != process {
        return;
    }
    // A panic must not reach the caller, which is no Rust code.
    let _ = catch_unwind(|| {
        let listed = std::mem::take(&mut *listed());
        for step in EndStep::ALL {
            let of_step = |known: &&Listed| known.process == process && known.step == step;
            let runtimes: Vec<RuntimeKey> =
                listed.iter().filter(of_step).map(|known| known.runtime).collect();
            if !runtimes.is_empty() {
                finish_step(step, runtimes);
            }
        }
    });
}

/// Does a step in a separate thread, and waits for it no longer than its limit.
fn finish_step(step: EndStep, runtimes: Vec<RuntimeKey>) {
    let (done, ended) = mpsc::channel();
    let keys = runtimes.clone();
    let in_thread = move || {
        let _ = catch_unwind(|| step.do_with(&keys));
        let _ = done.send(());
    };
    match std::thread::Builder::new().name("kiln-end".to_owned()).spawn(in_thread) {
        Ok(_) => drop(ended.recv_timeout(step.limit())),
        Err(_) => drop(catch_unwind(|| step.do_with(&runtimes))),
    }
}

fn listed() -> MutexGuard<'static, Vec<Listed>> {
    LISTED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Has the last findings read when the process ends, if they are asked for.
    pub(super) fn list_findings(&self) {
        if self.findings().is_some() && crate::findings::finding_file::is_asked_for() {
            when_process_ends(EndStep::ReadFindings, self.key());
        }
    }

    /// Waits for queued work, and has what was found in it written to the file of findings.
    fn read_last_findings(&self, limit: Duration) {
        // A device that is lost, or takes longer, has findings too.
        let _ = self.drain(limit);
        self.findings().into_iter().for_each(|log| drop(log.unread()));
    }
}
