//! Recordings of runtimes that live as long as the process, such as that of `DeviceRuntime::auto`. Nothing drops these runtimes, so their recordings are ended when the process
//! exits.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use super::process_recording;
use crate::runtime::runtime_table::RuntimeKey;

/// The process whose recordings these are. One that was forked from it has neither the threads that write them nor the right to.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The runtimes that are recorded, or were.
static RECORDED: Mutex<Vec<RuntimeKey>> = Mutex::new(Vec::new());

/// Ends the recording of this runtime when the process exits, if the runtime lives then.
pub(super) fn ends_with_process(runtime: RuntimeKey) {
    static REGISTERED: Once = Once::new();
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
    REGISTERED.call_once(|| {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        // SAFETY: the function may be called at any time, takes nothing, and unwinds no further than itself. Where it cannot be registered, recordings end as they did before.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // A panic must not reach the caller, which is no Rust code; the file has what was written before.
    let _ = catch_unwind(|| {
        let recorded = std::mem::take(&mut *RECORDED.lock().unwrap_or_else(PoisonError::into_inner));
        recorded.into_iter().filter_map(RuntimeKey::live).for_each(|runtime| runtime.end_recording());
        // Other threads may submit until the process is gone: nothing comes behind the mark of the end.
        process_recording::finish();
    });
}
