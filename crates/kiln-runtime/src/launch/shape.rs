//! The shape of a launch, checked against the limits before anything is queued.

use kiln_driver::{DeviceInfo, Dim3, Driver, FunctionAttributes};

use super::kernel::Kernel;
use crate::error::{Error, Result};
use crate::signature::Mismatch;

/// What a kernel and its device allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    grid: Dim3,
    block: Dim3,
    /// Threads of a block.
    threads: u32,
    /// Beside what the kernel declares.
    dynamic_shared_bytes: u32,
    cluster_blocks: u32,
}

impl Bounds {
    pub(super) fn of(device: &DeviceInfo, function: &FunctionAttributes) -> Self {
        let limits = &device.limits;
        let shared = limits.shared_bytes_per_block_optin.max(limits.shared_bytes_per_block);
        Self {
            grid: limits.max_grid,
            block: limits.max_block,
            threads: limits.max_threads_per_block.min(function.max_threads_per_block),
            dynamic_shared_bytes: shared.saturating_sub(function.static_shared_bytes),
            cluster_blocks: if device.features.cluster_launch { limits.max_cluster_blocks } else { 0 },
        }
    }

    /// Whether a grid can be made of clusters.
    fn allow_cluster(&self, cluster: Dim3, grid: Dim3) -> bool {
        let divides = |cluster: u32, grid: u32| cluster > 0 && grid.is_multiple_of(cluster);
        cluster.count() <= u128::from(self.cluster_blocks)
            && divides(cluster.x, grid.x)
            && divides(cluster.y, grid.y)
            && divides(cluster.z, grid.z)
    }
}

/// Grid, block and what goes with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    pub(super) cluster: Option<Dim3>,
    pub(super) dynamic_shared_bytes: u32,
    pub(super) cooperative: bool,
    /// The number of threads the grid is derived from; 0 if the grid was given.
    threads: u64,
}

/// Extents that were not given. No launch has them, so the check of the limits refuses them without looking for them.
const UNSET: Dim3 = Dim3::new(0, 0, 0);
/// Threads in a block where only the number of threads was given.
const DEFAULT_BLOCK_THREADS: u32 = 256;

impl Shape {
    /// Neither grid nor block was given.
    pub(super) const UNSET: Self = Self {
        grid: UNSET,
        block: UNSET,
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        threads: 0,
    };

    pub(super) fn set_grid(&mut self, grid: Dim3) {
        self.grid = grid;
        self.threads = 0;
    }

    pub(super) fn set_block(&mut self, block: Dim3) {
        self.block = block;
        if self.threads > 0 {
            self.cover(self.threads);
        }
    }

    /// Derives the grid from a number of threads, and the block too if none was given.
    pub(super) fn set_threads(&mut self, count: u64, kernel: &Kernel) {
        if self.block == UNSET {
            let most = DEFAULT_BLOCK_THREADS.min(kernel.bounds().threads);
            self.block = Dim3::new(u32::try_from(count).unwrap_or(most).min(most), 1, 1);
        }
        self.cover(count);
    }

    /// A grid with at least so many threads. What no grid holds becomes the largest number, which the check of the limits refuses.
    fn cover(&mut self, count: u64) {
        self.threads = count;
        let block = u64::try_from(self.block.count()).unwrap_or(u64::MAX).max(1);
        self.grid = Dim3::new(u32::try_from(count.div_ceil(block)).unwrap_or(u32::MAX), 1, 1);
    }

    /// Refuses what the kernel or its device does not allow.
    pub(super) fn check(&self, kernel: &Kernel) -> std::result::Result<(), Box<Mismatch>> {
        if self.is_allowed(kernel) { Ok(()) } else { Err(Box::new(self.explain(kernel))) }
    }

    /// Whether the kernel and its device allow it.
    fn is_allowed(&self, kernel: &Kernel) -> bool {
        let unclustered = Self { cluster: None, ..*self };
        let cluster_fits =
            self.cluster.is_none_or(|cluster| kernel.bounds().allow_cluster(cluster, self.grid));
        unclustered.is_allowed_unclustered(kernel) && cluster_fits
    }

    /// The same where there are no clusters, which is nearly always; no, where there are.
    #[inline(always)]
    pub(super) fn is_allowed_unclustered(&self, kernel: &Kernel) -> bool {
        let bounds = kernel.bounds();
        within(self.grid, bounds.grid)
            && within(self.block, bounds.block)
            // Each extent is within that of a device, so that the product fits.
            && u64::from(self.block.x) * u64::from(self.block.y) * u64::from(self.block.z) <= u64::from(bounds.threads)
            && self.dynamic_shared_bytes <= bounds.dynamic_shared_bytes
            && self.cluster.is_none()
    }

    /// What is not allowed.
    #[cold]
    fn explain(&self, kernel: &Kernel) -> Mismatch {
        let bounds = kernel.bounds();
        let (name, fixed) = (kernel.name().to_owned(), kernel.attributes().static_shared_bytes);
        let shape = |what, given, limit: String| Mismatch::Shape { kernel: name.clone(), what, given, limit };
        if self.grid == UNSET {
            return Mismatch::NoGrid { kernel: name };
        }
        if !within(self.grid, bounds.grid) {
            return shape("grid", self.grid, format!("1x1x1 to {}", bounds.grid));
        }
        if self.block == UNSET {
            return Mismatch::NoBlock { kernel: name };
        }
        if !within(self.block, bounds.block) {
            return shape("block", self.block, format!("1x1x1 to {}", bounds.block));
        }
        if self.block.count() > u128::from(bounds.threads) {
            return shape("block", self.block, format!("{} threads for this kernel", bounds.threads));
        }
        match self.cluster {
            Some(cluster) if !bounds.allow_cluster(cluster, self.grid) => {
                let limit = format!("{} blocks that divide a grid of {}", bounds.cluster_blocks, self.grid);
                shape("cluster", cluster, limit)
            }
            _ => {
                let (dynamic, limit) = (self.dynamic_shared_bytes, bounds.dynamic_shared_bytes + fixed);
                Mismatch::Shared { kernel: name, dynamic, fixed, limit }
            }
        }
    }

    /// Refuses a cooperative launch whose blocks cannot all be resident at once; its shape was checked before.
    pub(super) fn check_residency(&self, kernel: &Kernel, driver: &dyn Driver) -> Result<()> {
        if !driver.info().features.cooperative_launch {
            let refused =
                kiln_driver::Error::unsupported("launch", "a cooperative launch", "this device has none");
            return Err(Error::new(refused).placed(format!("kernel `{}`", kernel.name())));
        }
        let threads = self.block.count() as u32;
        let occupancy = driver.occupancy(kernel.id(), threads, self.dynamic_shared_bytes)?;
        let limit =
            u64::from(occupancy.blocks_per_multiprocessor) * u64::from(driver.info().limits.multiprocessors);
        match u64::try_from(self.grid.count()) {
            Ok(blocks) if blocks <= limit => Ok(()),
            blocks => {
                let (kernel, blocks) = (kernel.name().to_owned(), blocks.unwrap_or(u64::MAX));
                Err(Mismatch::CooperativeResidencyExceeded { kernel, blocks, limit }.into())
            }
        }
    }
}

/// Without a branch for each extent: a launch that fits is the only one that is in a hurry.
#[inline(always)]
fn within(given: Dim3, limit: Dim3) -> bool {
    // None is the largest number when one is taken off.
    let each = |given: u32, limit: u32| given.wrapping_sub(1) < limit;
    each(given.x, limit.x) & each(given.y, limit.y) & each(given.z, limit.z)
}
