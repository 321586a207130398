//! Where a runtime's memory comes from.

use std::sync::Arc;

use kiln_driver::Driver;
use kiln_mem::resource_stack::StackContext;
use kiln_mem::{Budget, ByteSize, HeapConfig, MemoryResource, Order, PressurePolicy, Stack};

/// What a heap in a worker keeps mapped in rows, as what it costs the host. A takeover maps all of it again, some 35 us a frame, and these are 8,192
/// frames: 0.3 s where no standby has done it beforehand.
const WORKER_MAPPING: ByteSize = ByteSize(192 << 20);

/// Where a runtime's memory comes from, and how much it may be.
///
/// What a heap takes from the device is charged to the device's one budget in this process
/// ([`Budget::of_device`]), which all its runtimes share; with its limit, a runtime has an account below it.
#[derive(Clone, Debug, Default)]
pub struct MemoryConfig {
    /// The stack; the heap alone if nothing is said. A heap in a worker keeps few rows mapped unless the stack says how many, because every
    /// takeover maps them again: it is `heap(mapping=192MiB)` there.
    pub stack: Stack,
    /// The most this runtime takes from the device; none is limited by the device's budget alone.
    pub limit_bytes: Option<u64>,
    /// What may be done when memory is short.
    pub pressure: PressurePolicy,
    /// Whether pages can be handed to another process.
    pub exportable: bool,
}

impl MemoryConfig {
    /// The same for a device that lives in a worker.
    pub(crate) fn in_worker(mut self) -> Self {
        if self.stack.mapping().is_none() {
            self.stack = self.stack.with_mapping(WORKER_MAPPING);
        }
        self
    }

    pub(crate) fn build(
        &self,
        driver: &Arc<dyn Driver>,
        order: Arc<dyn Order>,
    ) -> kiln_mem::Result<Arc<dyn MemoryResource>> {
        let device = Budget::of_device(driver.info());
        let budget = match self.limit_bytes {
            Some(limit) => device.child("runtime", limit),
            None => device,
        };
        let (pressure, exportable) = (self.pressure.clone(), self.exportable);
        let heap = HeapConfig { budget: Some(budget), pressure, exportable, ..HeapConfig::default() };
        self.stack.build(&StackContext { driver: driver.clone(), order, heap })
    }
}
