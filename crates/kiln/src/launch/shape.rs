//! The shape of a launch, checked against the limits before anything is queued.

use kiln_driver::{DeviceInfo, Dim3, Driver, FunctionAttributes};

use super::kernel::Kernel;
use super::mismatch::Mismatch;
use crate::error::Result;

/// Grid, block and what goes with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    pub(super) cluster: Option<Dim3>,
    pub(super) dynamic_shared_bytes: u32,
    pub(super) cooperative: bool,
}

impl Shape {
    /// One block of one thread.
    pub(super) const ONE: Self = Self {
        grid: Dim3::new(1, 1, 1),
        block: Dim3::new(1, 1, 1),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
    };

    pub(super) fn check(
        &self,
        kernel: &str,
        info: &DeviceInfo,
        function: &FunctionAttributes,
    ) -> std::result::Result<(), Box<Mismatch>> {
        let limits = &info.limits;
        let shape = |what, given, limit: String| {
            Err(Box::new(Mismatch::Shape { kernel: kernel.to_owned(), what, given, limit }))
        };
        if !within(self.grid, limits.max_grid) {
            return shape("grid", self.grid, format!("1x1x1 to {}", limits.max_grid));
        }
        if !within(self.block, limits.max_block) {
            return shape("block", self.block, format!("1x1x1 to {}", limits.max_block));
        }
        let threads = limits.max_threads_per_block.min(function.max_threads_per_block);
        if self.block.count() > u128::from(threads) {
            return shape("block", self.block, format!("{threads} threads for this kernel"));
        }
        if let Some(cluster) = self.cluster
            && (cluster.count() == 0 || cluster.count() > u128::from(limits.max_cluster_blocks))
        {
            return shape("cluster", cluster, format!("{} blocks", limits.max_cluster_blocks));
        }
        let fixed = function.static_shared_bytes;
        let limit = limits.shared_bytes_per_block_optin.max(limits.shared_bytes_per_block);
        if self.dynamic_shared_bytes.checked_add(fixed).is_none_or(|all| all > limit) {
            let dynamic = self.dynamic_shared_bytes;
            return Err(Box::new(Mismatch::Shared { kernel: kernel.to_owned(), dynamic, fixed, limit }));
        }
        Ok(())
    }

    /// Refuses a cooperative launch whose blocks cannot all be resident at once; its shape was checked before.
    pub(super) fn check_residency(&self, kernel: &Kernel, driver: &dyn Driver) -> Result<()> {
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

fn within(given: Dim3, limit: Dim3) -> bool {
    let each = |given: u32, limit: u32| (1..=limit).contains(&given);
    each(given.x, limit.x) && each(given.y, limit.y) && each(given.z, limit.z)
}
