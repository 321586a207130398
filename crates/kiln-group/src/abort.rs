//! Ends what ranks of a communicator have queued.

use kiln_operation::ABORT;
use kiln_runtime::{DeviceRuntime, Error, Module, Signature};

/// Has the driver end what a rank has queued. The caller has said of that work that it is ended.
pub(crate) fn abort(runtime: &DeviceRuntime, module: &Module) {
    let submitted = || -> Result<(), Error> {
        let kernel = module.kernel(ABORT, Some(Signature::new(Vec::new())))?;
        // A separate stream: others may be entered by a thread that waits for what is ended here.
        let stream = runtime.stream()?;
        let mut launch = runtime.launch(&kernel);
        launch.grid(1).block(1).on(&stream);
        // SAFETY: the function takes no arguments and touches no memory, and it ends at once.
        unsafe { launch.submit() }.map(drop)
    };
    if let Err(error) = submitted() {
        tracing::warn!(%error, "a rank of a communicator could not be aborted");
    }
}

/// Does this for several ranks of a process at the same time, and waits for all: the abort of one may not return before another is aborted, too.
pub(crate) fn all_at_once<T: Sync>(ranks: &[T], abort: impl Fn(&T) + Sync) {
    // This thread takes one of them.
    let Some((own, others)) = ranks.split_first() else { return };
    let abort = &abort;
    std::thread::scope(|threads| {
        for rank in others {
            let thread = std::thread::Builder::new().name("kiln-abort".into());
            if let Err(error) = thread.spawn_scoped(threads, move || abort(rank)) {
                tracing::warn!(%error, "ranks of a communicator are aborted one after the other");
                abort(rank);
            }
        }
        abort(own);
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::all_at_once;

    #[test]
    fn no_abort_waits_for_another_to_return() {
        let barrier = Barrier::new(5);
        let aborted = Mutex::new(Vec::new());
        all_at_once(&[0, 1, 2, 3, 4], |rank| {
            barrier.wait();
            aborted.lock().unwrap().push(*rank);
        });
        let mut aborted = aborted.into_inner().unwrap();
        aborted.sort_unstable();
        assert_eq!(aborted, [0, 1, 2, 3, 4]);
        all_at_once(&[0_u32; 0], |_| unreachable!());
    }
}
