//! A device with an order and streams, for the tests of this crate: a simulated one, or CUDA.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;

use kiln_driver::{Command, DevicePlace, Driver, DriverExt, Object, Pattern, StreamRequest};
use kiln_mem::{AllocationRequest, DeviceBlock, DriverOrder, Heap, HeapConfig, Order, Stamp, StreamRef};
use kiln_sim::{DeviceConfig, FaultPlan, Finding, Machine, MachineConfig};

pub(crate) const MIB: u64 = 1 << 20;

/// One device.
pub(crate) struct Rig {
    /// What a simulated one runs on.
    machine: Option<Machine>,
    pub device: Arc<dyn Driver>,
    pub order: Arc<DriverOrder>,
}

impl Rig {
    /// A device with so much memory.
    pub(crate) fn new(seed: u64, memory_bytes: u64) -> Self {
        Self::with(seed, DeviceConfig::with_memory(memory_bytes), FaultPlan::none())
    }

    /// The same, which like hardware is told nothing about the blocks of a resource.
    pub(crate) fn unchecked(seed: u64, memory_bytes: u64) -> Self {
        let mut config = MachineConfig::seeded(seed).device(DeviceConfig::with_memory(memory_bytes));
        config.checks.declarations = false;
        Self::of(config)
    }

    /// A device that does not follow the lives of blocks either.
    pub(crate) fn without_lifetimes(seed: u64, memory_bytes: u64) -> Self {
        let mut config = MachineConfig::seeded(seed).device(DeviceConfig::with_memory(memory_bytes));
        (config.checks.declarations, config.checks.lifetimes) = (false, false);
        Self::of(config)
    }

    /// A device as it is described.
    pub(crate) fn with(seed: u64, device: DeviceConfig, faults: FaultPlan) -> Self {
        let mut config = MachineConfig::seeded(seed).device(device);
        config.faults = faults;
        Self::of(config)
    }

    fn of(config: MachineConfig) -> Self {
        let machine = Machine::new(config);
        let device = machine.device(0).unwrap();
        Self { machine: Some(machine), ..Self::over(device) }
    }

    /// Any device.
    pub(crate) fn over(device: Arc<dyn Driver>) -> Self {
        let order = Arc::new(DriverOrder::new(device.clone()));
        Self { machine: None, device, order }
    }

    pub(crate) fn driver(&self) -> Arc<dyn Driver> {
        self.device.clone()
    }

    pub(crate) fn order(&self) -> Arc<dyn Order> {
        self.order.clone()
    }

    pub(crate) fn stream(&self) -> StreamRef {
        self.order.add(self.device.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap()
    }

    pub(crate) fn heap(&self) -> Heap {
        self.heap_with(HeapConfig::default())
    }

    pub(crate) fn heap_with(&self, config: HeapConfig) -> Heap {
        Heap::over_pages(self.driver(), self.order(), config).unwrap()
    }

    /// Work on a stream that writes a block.
    pub(crate) fn write(&self, stream: StreamRef, block: &DeviceBlock, byte: u8) -> Stamp {
        let to = block.device_place().unwrap();
        self.write_at(stream, to, byte, block.bytes())
    }

    pub(crate) fn write_at(&self, stream: StreamRef, to: DevicePlace, byte: u8, count: u64) -> Stamp {
        let fill = Command::Fill { to, pattern: Pattern::U8(byte), count };
        self.order.submit(stream, &fill).unwrap()
    }

    /// More work on a block than is done by the next call; the last of it.
    pub(crate) fn keep_busy(&self, stream: StreamRef, block: &DeviceBlock) -> Stamp {
        let write = || self.write_at(stream, block.device_place().unwrap(), 1, 1);
        (0..500).fold(write(), |_, _| write())
    }

    /// The bytes of a block, after everything on a stream.
    pub(crate) fn read(&self, stream: StreamRef, block: &DeviceBlock) -> Vec<u8> {
        let host = self.device.allocate_host(block.bytes()).unwrap();
        self.device.download(stream.id(), block.device_place().unwrap(), &host, block.bytes()).unwrap();
        self.device.synchronize(stream.id()).unwrap();
        let mut bytes = vec![0; host.len()];
        assert!(host.read(0, &mut bytes));
        self.device.destroy(Object::Host(host.id())).unwrap();
        bytes
    }

    /// What the simulated device found so far.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.machine.as_ref().map(Machine::findings).unwrap_or_default()
    }

    pub(crate) fn synchronize(&self, stream: StreamRef) {
        self.device.synchronize(stream.id()).unwrap();
        self.order.refresh(stream.key()).unwrap();
    }

    /// Gives the streams back and looks at the verdict: no race, no use after free, no leak.
    pub(crate) fn finish(self, streams: &[StreamRef]) {
        for stream in streams {
            self.order.remove(*stream).unwrap();
            self.device.destroy(Object::Stream(stream.id())).unwrap();
        }
        drop(self.order);
        if let Some(machine) = self.machine {
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }
}

/// Runs something on a device with a stream, and looks at the verdict.
pub(crate) fn with_rig(run: impl FnOnce(&Rig, StreamRef)) {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    run(&rig, stream);
    rig.finish(&[stream]);
}

/// A request of so many bytes.
pub(crate) fn request(bytes: u64, stream: StreamRef) -> AllocationRequest {
    AllocationRequest::new(bytes, stream)
}

/// Numbers that repeat from their seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 42)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Small ones as often as large ones.
    pub(crate) fn size(&mut self, most: u64) -> u64 {
        let log = self.below(u64::from(most.ilog2()) + 1);
        (1 << log) + self.below(1 << log)
    }
}
