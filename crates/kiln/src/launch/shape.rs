//! The shape of a launch, checked against the limits before anything is queued.

use kiln_driver::{DeviceInfo, Dim3, FunctionAttributes};

use super::mismatch::Mismatch;

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
    pub(super) fn check(
        &self,
        kernel: &str,
        info: &DeviceInfo,
        function: &FunctionAttributes,
    ) -> Result<(), Box<Mismatch>> {
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
}

fn within(given: Dim3, limit: Dim3) -> bool {
    let each = |given: u32, limit: u32| (1..=limit).contains(&given);
    each(given.x, limit.x) && each(given.y, limit.y) && each(given.z, limit.z)
}
