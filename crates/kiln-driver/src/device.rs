//! What a device is and what it can do.

use std::fmt;

use crate::command::Dim3;
use crate::handle::DeviceKey;

/// Everything known of an opened device; it does not change while the device is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// The key its handles carry.
    pub key: DeviceKey,
    /// Its number among the devices of its kind.
    pub ordinal: u32,
    /// Hardware or simulation.
    pub kind: DeviceKind,
    /// The name the vendor gave it.
    pub name: String,
    /// Its identity, the same after a reboot.
    pub uuid: Uuid,
    /// Where it sits.
    pub pci: PciId,
    /// Compute capability.
    pub capability: Capability,
    /// The CUDA version that its driver supports.
    pub driver_version: Version,
    /// Device memory in bytes.
    pub total_memory_bytes: u64,
    /// Whether this is a slice of a device (MIG).
    pub mig: bool,
    /// Numbers a request is checked against.
    pub limits: Limits,
    /// What it can do.
    pub features: Features,
}

/// Hardware or simulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceKind {
    /// A CUDA device.
    Cuda,
    /// The simulator.
    Simulated,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "CUDA",
            Self::Simulated => "simulated",
        })
    }
}

/// Compute capability, such as 9.0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Capability {
    /// Before the point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A CUDA version, such as 13.0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version {
    /// Before the point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl Version {
    /// From the number the CUDA libraries use, such as 12040 for 12.4.
    pub fn from_cuda(number: u32) -> Self {
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The identity of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU-")?;
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a device sits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PciId {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{:02x}:{:02x}.0", self.domain, self.bus, self.device)
    }
}

/// Numbers a request is checked against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Extents of a grid.
    pub max_grid: Dim3,
    /// Extents of a block.
    pub max_block: Dim3,
    /// Threads of a block.
    pub max_threads_per_block: u32,
    /// Blocks of a cluster; 1 where there are no clusters.
    pub max_cluster_blocks: u32,
    /// Threads that step together.
    pub warp_threads: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads resident on a multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// Blocks resident on a multiprocessor.
    pub max_blocks_per_multiprocessor: u32,
    /// Registers of a block.
    pub max_registers_per_block: u32,
    /// Shared memory of a block without asking.
    pub shared_bytes_per_block: u32,
    /// Shared memory of a block when the kernel opts in.
    pub shared_bytes_per_block_optin: u32,
    /// Shared memory of a multiprocessor.
    pub shared_bytes_per_multiprocessor: u32,
    /// Constant memory.
    pub constant_bytes: u32,
    /// Bytes of packed arguments.
    pub max_argument_bytes: u32,
    /// Level-two cache.
    pub l2_bytes: u64,
    /// Every allocation starts at a multiple of this.
    pub allocation_alignment_bytes: u64,
    /// Pages come in multiples of this; 0 where there are no pages.
    pub page_granularity_bytes: u64,
    /// The lowest and the highest stream priority; the highest is the smaller number.
    pub priorities: Priorities,
}

/// The range of stream priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priorities {
    /// For work that can wait.
    pub lowest: i32,
    /// For work that cannot; the smaller number.
    pub highest: i32,
}

/// What a device can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Reserve, create, map and unmap pages.
    pub pages: bool,
    /// Hand pages to another process as a file descriptor.
    pub page_export: bool,
    /// Allocate in stream order from the driver's pool.
    pub memory_pool: bool,
    /// Register host memory that was allocated elsewhere.
    pub host_registration: bool,
    /// Launches whose blocks may wait for each other.
    pub cooperative_launch: bool,
    /// Launches in clusters.
    pub cluster_launch: bool,
    /// Several kernels at once.
    pub concurrent_kernels: bool,
    /// Run PTX.
    pub ptx: bool,
    /// Run cubin.
    pub cubin: bool,
    /// Run kernels that are registered host functions.
    pub host_kernels: bool,
    /// Hand the native handles behind streams and events to other libraries, and take theirs.
    pub native_handles: bool,
    /// Check what work touches: against the spans a launch declares, and against the life of each block. Such a device takes
    /// [`MemoryRequest::Part`](crate::MemoryRequest::Part) and answers its findings.
    pub access_checks: bool,
}

/// What is free and what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryInfo {
    /// Bytes that are free, other processes considered.
    pub free_bytes: u64,
    /// Bytes of the device.
    pub total_bytes: u64,
}
