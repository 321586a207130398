//! What a simulated device is like.

use kiln_driver::{
    Capability, Code, DeviceInfo, DeviceKey, DeviceKind, Dim3, Features, Limits, PciId, Priorities, Uuid,
    Version,
};

use crate::schedule::scheduling_choice::mix;

/// A device of a machine. The default is a plausible large GPU; every field can be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// Its name.
    pub name: String,
    /// Its memory. Host memory is used only for what is written.
    pub memory_bytes: u64,
    /// Compute capability.
    pub capability: Capability,
    /// The CUDA version that its driver supports.
    pub driver_version: Version,
    /// Numbers a request is checked against.
    pub limits: Limits,
    /// What it can do. `ptx`, `cubin`, `host_kernels` and `native_handles` are set by the machine.
    pub features: Features,
    /// Opening it fails with this code.
    pub broken: Option<Code>,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            name: "kiln simulated device".into(),
            memory_bytes: 16 << 30,
            capability: Capability { major: 9, minor: 0 },
            driver_version: Version { major: 12, minor: 4 },
            limits: large_limits(),
            features: Features {
                pages: true,
                // Sealed memory files, which other processes can map, are a thing of Linux.
                page_export: cfg!(target_os = "linux"),
                memory_pool: true,
                host_registration: true,
                cooperative_launch: true,
                cluster_launch: true,
                concurrent_kernels: true,
                ..Features::default()
            },
            broken: None,
        }
    }
}

impl DeviceConfig {
    /// The default with another amount of memory.
    pub fn with_memory(bytes: u64) -> Self {
        Self { memory_bytes: bytes, ..Self::default() }
    }

    /// A small, old device: no pages, no pool, no clusters, one kernel at a time.
    pub fn small() -> Self {
        let mut limits = large_limits();
        limits.max_cluster_blocks = 1;
        limits.multiprocessors = 8;
        limits.shared_bytes_per_block_optin = limits.shared_bytes_per_block;
        limits.shared_bytes_per_multiprocessor = 64 << 10;
        limits.page_granularity_bytes = 0;
        limits.priorities = Priorities { lowest: 0, highest: 0 };
        Self {
            name: "kiln simulated small device".into(),
            memory_bytes: 2 << 30,
            capability: Capability { major: 7, minor: 0 },
            limits,
            features: Features { host_registration: true, ..Features::default() },
            ..Self::default()
        }
    }

    /// The default, except that opening it fails with this code.
    pub fn broken(code: Code) -> Self {
        Self { broken: Some(code), ..Self::default() }
    }

    pub(crate) fn info(&self, ordinal: u32, has_engine: bool, checked: bool) -> DeviceInfo {
        let identity = |half: u64| mix(u64::from(ordinal) << 1 | half).to_le_bytes();
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&identity(0));
        uuid[8..].copy_from_slice(&identity(1));
        DeviceInfo {
            key: DeviceKey::fresh(),
            ordinal,
            kind: DeviceKind::Simulated,
            name: self.name.clone(),
            uuid: Uuid(uuid),
            pci: PciId { domain: 0, bus: 1 + ordinal, device: 0 },
            capability: self.capability,
            driver_version: self.driver_version,
            total_memory_bytes: self.memory_bytes,
            mig: false,
            limits: self.limits.clone(),
            features: Features {
                ptx: has_engine,
                cubin: false,
                host_kernels: true,
                native_handles: true,
                access_checks: checked,
                ..self.features
            },
        }
    }
}

/// The limits of a device of capability 9.0.
fn large_limits() -> Limits {
    Limits {
        max_grid: Dim3::new(0x7fff_ffff, 65_535, 65_535),
        max_block: Dim3::new(1024, 1024, 64),
        max_threads_per_block: 1024,
        max_cluster_blocks: 8,
        warp_threads: 32,
        multiprocessors: 132,
        max_threads_per_multiprocessor: 2048,
        max_blocks_per_multiprocessor: 32,
        max_registers_per_block: 65_536,
        shared_bytes_per_block: 48 << 10,
        shared_bytes_per_block_optin: 227 << 10,
        shared_bytes_per_multiprocessor: 228 << 10,
        constant_bytes: 64 << 10,
        max_argument_bytes: 32_764,
        l2_bytes: 50 << 20,
        allocation_alignment_bytes: 256,
        page_granularity_bytes: 2 << 20,
        priorities: Priorities { lowest: 0, highest: -5 },
    }
}
