//! Loads the ranks of a communicator, and ends what they have queued.

use kiln_driver::{DeviceKind, Driver, Image, ModuleId};
use kiln_operation::{ABORT, CommunicatorRank, DEPARTURE};
use kiln_runtime::internal::{is_in_worker, on_last_drop};
use kiln_runtime::{DeviceRuntime, Error, Kernel, Module, Signature, Stream};

/// A rank that its device has loaded, with what ends it.
#[derive(Clone)]
pub(crate) struct LoadedRank {
    runtime: DeviceRuntime,
    module: Module,
    /// None where it is made when it is needed.
    ready: Option<ReadyAbort>,
}

/// What an abort is made of.
#[derive(Clone)]
pub(crate) struct ReadyAbort {
    kernel: Kernel,
    /// A separate stream: others may be entered by a thread that waits for what is ended here.
    stream: Stream,
}

impl ReadyAbort {
    fn new(runtime: &DeviceRuntime, module: &Module) -> Result<Self, Error> {
        let kernel = module.kernel(ABORT, Some(Signature::new(Vec::new())))?;
        Ok(Self { kernel, stream: runtime.stream()? })
    }
}

/// Loads a rank. What ends it is made now for a device in a worker process, which answers no question while it is inside of a collective that is to be ended.
///
/// # Errors
/// What the device or its library says; a lost device.
pub(crate) fn load(
    runtime: &DeviceRuntime,
    rank: &CommunicatorRank,
) -> Result<(Option<Module>, Option<ReadyAbort>), Error> {
    let module = runtime.load_module(&Image::Communicator(&rank.to_string()))?;
    // A worker process has a separate machine, in which no other rank is.
    if runtime.info().kind != DeviceKind::Cuda && !is_in_worker(runtime) {
        on_last_drop(&module, say_departed);
    }
    let ready = is_in_worker(runtime).then(|| ReadyAbort::new(runtime, &module)).transpose()?;
    Ok((Some(module), ready))
}

/// Tells a simulated machine that a rank calls nothing more, so that ranks which wait for it are told.
fn say_departed(driver: &dyn Driver, module: ModuleId) {
    // There is no such variable, and a lost device has no ranks.
    let _ = driver.global(module, DEPARTURE);
}

impl LoadedRank {
    pub(crate) fn new(runtime: &DeviceRuntime, module: &Module, ready: Option<&ReadyAbort>) -> Self {
        Self { runtime: runtime.clone(), module: module.clone(), ready: ready.cloned() }
    }

    /// Has the driver end what the rank has queued. The caller has said of that work that it is ended.
    pub(crate) fn abort(&self) {
        let submitted = || -> Result<(), Error> {
            let ready = match &self.ready {
                Some(ready) => ready.clone(),
                None => ReadyAbort::new(&self.runtime, &self.module)?,
            };
            let mut launch = self.runtime.launch(&ready.kernel);
            launch.grid(1).block(1).on(&ready.stream);
            // SAFETY: the function takes no arguments and touches no memory, and it ends at once.
            unsafe { launch.submit() }.map(drop)
        };
        if let Err(error) = submitted() {
            tracing::warn!(%error, "a rank of a communicator could not be aborted");
        }
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
