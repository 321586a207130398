//! The laws on a CUDA device, where there is one. `KILN_REQUIRE_GPU=1` makes its absence a failure.

use std::sync::{Arc, OnceLock};

use kiln_conform::{Kernels, Loss, Opened, Subject};
use kiln_cuda::CudaDevice;

fn subject() -> Subject {
    // Held to the end, so that not every law waits for a new context.
    static HELD: OnceLock<Result<Arc<CudaDevice>, String>> = OnceLock::new();
    let open = |ordinal| CudaDevice::open(ordinal).map_err(|reason| reason.to_string());
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    if let Err(reason) = HELD.get_or_init(|| open(0)) {
        return Subject::absent("CUDA", reason, required);
    }
    let opened = move |_| {
        let first = Opened::new(open(0)?);
        Ok(match open(1) {
            Ok(peer) => first.with_peer(peer),
            Err(_) => first,
        })
    };
    Subject::new("CUDA", Kernels::ptx(), opened).in_real_time().loss(Loss::ChildProcess).exclude(
        "code.load_does_not_wait",
        "CUDA copies a module's variables in, and waits for the device to do so",
    )
}

kiln_conform::laws!(subject());
