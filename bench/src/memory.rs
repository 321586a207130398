//! The memory workloads, on kiln's heap and its peers.

pub(crate) mod alloc_free_pairs;
mod counting_allocator;
mod cudarc_slices;
pub(crate) mod fragmentation;
pub(crate) mod mapping_cost;
pub(crate) mod random_lifetimes;
mod raw_pool;
mod thread_clock;
pub(crate) mod warm_call_counts;

use std::sync::Arc;

use kiln_driver::{Clock, Driver, StreamRequest, WallClock};
use kiln_mem::{DriverOrder, Heap, HeapConfig, StreamRef};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

pub(crate) use counting_allocator::CountedAllocator;
pub(crate) use cudarc_slices::CudarcSlices;
pub(crate) use raw_pool::RawPool;
use thread_clock::ThreadClock;

use crate::{Arguments, Device, Failure};

/// Memory of the simulated device; nothing of it is touched.
const SIMULATED_BYTES: u64 = 128 << 30;

/// The device, and how it is measured.
pub(crate) struct Bench {
    driver: Arc<dyn Driver>,
    is_cuda: bool,
    /// Whether kiln is measured, and not its peers alone.
    pub(crate) with_kiln: bool,
    pub(crate) repeats: usize,
    /// Which points of M2 are wanted, by their number of blocks; all if there is none.
    blocks: Vec<usize>,
    /// Time on the wall.
    pub(crate) clock: WallClock,
    is_cpu_time: bool,
}

/// A heap, with the order it asks.
pub(crate) struct Setting {
    driver: Arc<dyn Driver>,
    order: Arc<DriverOrder>,
    pub(crate) heap: Heap,
}

impl Bench {
    /// Opens the device.
    pub(crate) fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let (device, repeats) = (arguments.device, arguments.repeats);
        let simulated = || Ok::<Arc<dyn Driver>, Failure>(simulated()?);
        let (driver, is_cuda): (Arc<dyn Driver>, bool) = match device {
            Device::Sim => (simulated()?, false),
            Device::Cuda => (kiln_cuda::CudaDevice::open(0)?, true),
            Device::Auto => match kiln_cuda::CudaDevice::open(0) {
                Ok(driver) => (driver, true),
                Err(_) => (simulated()?, false),
            },
        };
        Ok(Self {
            driver,
            is_cuda,
            with_kiln: !arguments.peers_only,
            repeats: repeats.max(1),
            blocks: arguments.blocks.clone(),
            clock: WallClock::new(),
            is_cpu_time: arguments.cpu_time,
        })
    }

    /// Whether it is a GPU, and peers can be measured.
    pub(crate) fn is_cuda(&self) -> bool {
        self.is_cuda
    }

    /// Whether points of M2 with so many blocks are wanted.
    pub(crate) fn wants_blocks(&self, count: usize) -> bool {
        self.blocks.is_empty() || self.blocks.contains(&count)
    }

    /// The clock for work of one thread.
    pub(crate) fn thread_clock(&self) -> &dyn Clock {
        if self.is_cpu_time { &ThreadClock } else { &self.clock }
    }

    /// The device in words.
    pub(crate) fn describe(&self) -> String {
        let info = self.driver.info();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!("{} ({}), {cores} cores", info.name, info.kind)
    }

    /// A heap over the device.
    pub(crate) fn setting(&self, config: HeapConfig) -> Result<Setting, Failure> {
        Setting::over(self.driver()?, config)
    }

    /// The device; a simulated one is new each time, so that none begins with what another left.
    pub(crate) fn driver(&self) -> Result<Arc<dyn Driver>, Failure> {
        if self.is_cuda { Ok(self.driver.clone()) } else { Ok(simulated()?) }
    }
}

impl Setting {
    /// A heap over a driver.
    pub(crate) fn over(driver: Arc<dyn Driver>, config: HeapConfig) -> Result<Self, Failure> {
        let order = Arc::new(DriverOrder::new(driver.clone()));
        let heap = Heap::over_pages(driver.clone(), order.clone(), config)?;
        Ok(Self { driver, order, heap })
    }

    /// Its stream.
    pub(crate) fn stream(&self) -> Result<StreamRef, Failure> {
        Ok(self.order.add(self.driver.create_stream(StreamRequest::New { priority: 0 })?)?)
    }
}

fn simulated() -> Result<Arc<kiln_sim::SimDevice>, Failure> {
    let config = MachineConfig::seeded(0).device(DeviceConfig::with_memory(SIMULATED_BYTES));
    Ok(Machine::new(config).device(0)?)
}
