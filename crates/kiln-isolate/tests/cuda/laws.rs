//! The laws on a CUDA device in a worker process, where there is one. `KILN_REQUIRE_GPU=1` makes its absence a failure.

use kiln_conform::{Kernels, Opened, Subject};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig, WorkerEntry, WorkerStartError};

use crate::WORKER;

fn open() -> Result<Opened, WorkerStartError> {
    let config = IsolationConfig::new(DeviceSpec::cuda(0)).entry(WorkerEntry::Test(WORKER.into()));
    IsolatedDevice::open(config).map(|device| Opened::new(device))
}

fn subject() -> Subject {
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    if let Err(reason) = open() {
        return Subject::absent("a worker with CUDA", reason.to_string(), required || !reason.is_absence());
    }
    let opened = |_| open().map_err(|reason| reason.to_string());
    Subject::new("a worker with CUDA", Kernels::ptx(), opened).in_real_time()
}

kiln_conform::laws!(subject());
