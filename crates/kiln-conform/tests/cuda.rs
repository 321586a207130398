//! The laws on a CUDA device, where there is one. `KILN_REQUIRE_GPU=1` makes its absence a failure.

use std::sync::{Arc, OnceLock};

use kiln_conform::{Kernels, Loss, Opened, Subject};
use kiln_cuda::{CudaDevice, OpenError};

fn subject() -> Subject {
    // Held to the end, so that not every law waits for a new context.
    static HELD: OnceLock<Result<Arc<CudaDevice>, OpenError>> = OnceLock::new();
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    if let Err(reason) = HELD.get_or_init(|| CudaDevice::open(0)) {
        return Subject::absent("CUDA", reason.to_string(), required || !reason.is_absence());
    }
    let opened = |_| {
        let first = Opened::new(CudaDevice::open(0).map_err(|reason| reason.to_string())?);
        Ok(match CudaDevice::open(1) {
            Ok(peer) => first.with_peer(peer),
            Err(_) => first,
        })
    };
    Subject::new("CUDA", Kernels::ptx(), opened).in_real_time().loss(Loss::ChildProcess).exclude(
        "code.load_does_not_wait",
        "on an H200 with driver 580 a load comes back when the running kernel is done",
    )
}

kiln_conform::laws!(subject());
