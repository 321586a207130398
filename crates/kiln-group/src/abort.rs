//! Ends what a rank of a communicator has queued.

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
