//! Memory of another library as buffers: after its owner's work, before its owner's free.

use std::sync::Arc;

use kiln::{
    DeviceRuntime, GpuRef, RuntimeConfig, Stream,
    buffer::LastWrite,
    error::{ErrorKind, Misuse},
    memory::MemoryConfig,
};
use kiln_driver::{
    Access, Command, DeviceAddress, DeviceMemory, Driver, DriverExt, ForeignHandle, ForeignMemory,
    MemoryRequest, Pattern, StreamId, StreamRequest,
};
use kiln_mem::{AllocationRequest, DeviceBlock, MemoryResource, MemoryResourceExt};
use kiln_sim::{Machine, MachineConfig};

const LEN: usize = 16;
const SEEDS: u64 = 40;

/// A slice of the other library, allocated, filled and freed in the order of its stream.
struct Slice {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    memory: DeviceMemory,
}

impl Slice {
    fn filled(driver: &Arc<dyn Driver>, stream: StreamId, value: u32) -> Self {
        let memory = driver.allocate(MemoryRequest::Pool { bytes: 4 * LEN as u64, stream }).unwrap();
        let slice = Self { driver: driver.clone(), stream, memory };
        slice.fill(value);
        slice
    }

    fn fill(&self, value: u32) {
        let to = self.memory.id.into();
        let fill = Command::Fill { to, pattern: Pattern::U32(value), count: LEN as u64 };
        self.driver.submit(self.stream, &fill).unwrap();
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.driver.free(self.memory.id, Some(self.stream)).unwrap();
    }
}

fn adopt(gpu: &DeviceRuntime, home: &Stream, slice: Slice) -> kiln::Result<GpuRef<u32>> {
    // SAFETY: the slice is that memory, and is handed over to be kept.
    let memory = unsafe { ForeignMemory::new(slice.memory.address, slice.memory.bytes) };
    gpu.adopt_memory(home, memory, slice)
}

/// Runs a program for some seeds, each with a stream of the other library under both of its names.
fn run(program: impl Fn(&DeviceRuntime, StreamId, &Stream)) {
    for seed in 0..SEEDS {
        let machine = Machine::new(MachineConfig::seeded(seed));
        {
            let driver: Arc<dyn Driver> = machine.device(0).unwrap();
            let theirs = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
            {
                let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
                // SAFETY: the stream is destroyed below, after the runtime is gone.
                let handle = unsafe { ForeignHandle::new(driver.native(theirs.into()).unwrap()) };
                let home = gpu.streams().import(handle).unwrap();
                program(&gpu, theirs, &home);
            }
            driver.synchronize(theirs).unwrap();
            driver.destroy(theirs.into()).unwrap();
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_use_comes_after_what_the_owner_queued() {
    run(|gpu, theirs, home| {
        let buffer = adopt(gpu, home, Slice::filled(gpu.driver(), theirs, 7)).unwrap();
        let mut seen = [0; LEN];
        buffer.download_into_on(&gpu.stream().unwrap(), &mut seen).unwrap();
        assert_eq!(seen, [7; LEN]);
        assert_eq!((buffer.len(), buffer.home()), (LEN, home.key()));
    });
}

#[test]
fn the_owner_frees_after_the_last_use_wherever_that_was() {
    run(|gpu, theirs, home| {
        let buffer = adopt(gpu, home, Slice::filled(gpu.driver(), theirs, 1)).unwrap();
        let view = buffer.view(4..).unwrap();
        let (first, second) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        view.upload_on(&first, &[2; LEN - 4]).unwrap();
        let copy = gpu.zeros::<u32>(LEN).unwrap();
        copy.copy_from_on(&second, &buffer).unwrap();
        // The owner frees now, on its own stream, while both may still be running.
        drop((buffer, view));
        let mut expected = [2; LEN];
        expected[..4].fill(1);
        assert_eq!(copy.download().unwrap(), expected);
    });
}

#[test]
fn a_buffer_that_outlives_the_runtime_still_lets_go() {
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let driver: Arc<dyn Driver> = machine.device(0).unwrap();
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let theirs = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        // SAFETY: the stream outlives the runtime.
        let handle = unsafe { ForeignHandle::new(driver.native(theirs.into()).unwrap()) };
        let home = gpu.streams().import_kept(handle, "whatever owns it").unwrap();
        let buffer = adopt(&gpu, &home, Slice::filled(&driver, theirs, 1)).unwrap();
        drop((home, gpu));
        assert!(buffer.download().is_err());
        drop(buffer);
        driver.synchronize(theirs).unwrap();
        driver.destroy(theirs.into()).unwrap();
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn what_cannot_be_elements_is_refused_and_given_back() {
    run(|gpu, theirs, home| {
        let slice = Slice::filled(gpu.driver(), theirs, 1);
        // SAFETY: the first bytes of the slice, which is handed over.
        let odd = unsafe { ForeignMemory::new(slice.memory.address, 6) };
        let error = gpu.adopt_memory::<u32>(home, odd, slice).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Cast { bytes: 6, .. })), "{error}");
        let uses = gpu.zeros::<u32>(4).unwrap();
        gpu.prepare_block_use(home, &[uses.used_as(Access::Read)]).unwrap().finish().unwrap();
    });
}

#[test]
fn elements_lie_where_their_address_allows_it() {
    run(|gpu, theirs, home| {
        let slice = Slice::filled(gpu.driver(), theirs, 0x0101_0101);
        let (address, bytes) = (DeviceAddress(slice.memory.address.0 + 4), slice.memory.bytes - 4);
        // SAFETY: the slice is that memory but for its first word, and is handed over to be kept.
        let memory = unsafe { ForeignMemory::new(address, bytes) };
        let words = gpu.adopt_memory::<u32>(home, memory, slice).unwrap();
        // The first word begins its block and no pair of words.
        let error = words.view(..2).unwrap().cast::<u64>().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Cast { element_bytes: 8, .. })), "{error}");
        let pair = words.view(1..3).unwrap().cast::<u64>().unwrap();
        assert_eq!(pair.download().unwrap(), [0x0101_0101_0101_0101]);
    });
}

/// A block of the runtime's own memory stack, taken by hand.
fn taken(gpu: &DeviceRuntime, stream: &Stream, bytes: u64) -> DeviceBlock {
    gpu.memory().allocate(&AllocationRequest::new(bytes, stream.memory_ref())).unwrap()
}

#[test]
fn blocks_of_the_memory_stack_are_tracked_like_buffers() {
    for stack in ["heap", "pages", "direct", "pool"] {
        for seed in 0..SEEDS / 4 {
            let machine = Machine::new(MachineConfig::seeded(seed));
            {
                let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
                let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
                let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
                let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
                let to = gpu.allocate_on::<u32>(&two, LEN).unwrap();
                // Each has the memory of the one before it, and another stream still reads that.
                for value in 1..4 {
                    let block = taken(&gpu, &one, 4 * LEN as u64);
                    let buffer = gpu.track_block::<u32>(block).unwrap();
                    assert_eq!((buffer.len(), buffer.home()), (LEN, one.key()));
                    assert_eq!(buffer.last_write_stream(), LastWrite::Never);
                    buffer.fill_on(&one, value).unwrap();
                    to.copy_from_on(&two, &buffer).unwrap();
                    buffer.view(..4).unwrap().fill_on(&one, 9).unwrap();
                }
                assert_eq!(to.download().unwrap(), [3; LEN]);
                gpu.synchronize().unwrap();
                gpu.reap_pending().unwrap();
                assert_eq!(gpu.bytes_outstanding(), to.bytes(), "{stack}: tracked blocks went back");
            }
            let report = machine.finish();
            assert!(report.is_clean(), "{stack}, seed {seed}: {report}");
        }
    }
}

#[test]
fn a_block_that_cannot_be_tracked_comes_back() {
    let machines = [1, 2].map(|seed| Machine::new(MachineConfig::seeded(seed)));
    {
        let [gpu, other] = machines.each_ref().map(|machine| {
            DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap()
        });
        let refused = gpu.track_block::<u32>(taken(&other, other.main_stream(), 64)).unwrap_err();
        assert!(matches!(refused.error.kind(), ErrorKind::Misuse(Misuse::ForeignMemory)), "{refused}");
        other.memory().free(refused.block).unwrap();

        let refused = gpu.track_block::<u32>(taken(&gpu, gpu.main_stream(), 10)).unwrap_err();
        let wrong = Misuse::Cast { bytes: 10, offset: refused.block.address().0, element_bytes: 4 };
        assert!(matches!(refused.error.kind(), ErrorKind::Misuse(found) if *found == wrong), "{refused}");
        gpu.track_block::<u8>(refused.block).unwrap().fill(1).unwrap();
        assert!(gpu.track_block::<u64>(taken(&gpu, gpu.main_stream(), 0)).unwrap().is_empty());

        let block = taken(&gpu, gpu.main_stream(), 64);
        gpu.shutdown(std::time::Duration::from_secs(5)).unwrap();
        let refused = gpu.track_block::<u8>(block).unwrap_err();
        assert!(matches!(refused.error.kind(), ErrorKind::Stale(_)), "{refused}");
        drop(gpu.memory().free(refused.block));
    }
}
