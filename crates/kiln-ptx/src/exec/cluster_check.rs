//! Whether the clusters of a launch fit the kernel, the grid and the architecture.

use super::cluster_shape::ClusterShape;
use super::entry::Entry;
use super::launch_error::LaunchError;
use super::options::LaunchShape;

impl Entry {
    /// The clusters of a launch: those that it names, or those that the kernel was compiled for.
    pub(super) fn clusters(&self, shape: &LaunchShape) -> Result<ClusterShape, LaunchError> {
        let refused = |text: String| Err(LaunchError::Cluster { kernel: self.name().to_owned(), text });
        let Some(function) = self.function() else { return Ok(ClusterShape::new(shape.grid, shape.cluster)) };
        let (bounds, line) = (&function.bounds, function.origin.position().line);
        if bounds.blocks_are_clusters {
            return refused(format!(
                "is launched with a grid of clusters (`.blocksareclusters`, line {line} of the PTX), which is not executed without a GPU; run it on a GPU"
            ));
        }
        if let (Some(required), Some(given)) = (bounds.required_cluster, shape.cluster)
            && required != given
        {
            return refused(format!(
                "was compiled for clusters of {} (`.reqnctapercluster`, line {line} of the PTX), not of {}; launch it with that shape, or without one",
                words(required),
                words(given)
            ));
        }
        let blocks = shape.cluster.or(bounds.required_cluster);
        if blocks.is_none() && bounds.explicit_cluster {
            return refused(format!(
                "must be launched with a cluster shape (`.explicitcluster`, line {line} of the PTX); name the blocks of a cluster at the launch"
            ));
        }
        let clusters = ClusterShape::new(shape.grid, blocks);
        let size = clusters.size();
        let (most, portable) = (LaunchShape::MAX_CLUSTER, LaunchShape::MAX_PORTABLE_CLUSTER);
        match clusters.blocks {
            wide if size == 0 || size > most => refused(format!(
                "cannot run in clusters of {}: a cluster has 1 to {portable} blocks, and up to {most} where the kernel allows a size that is not portable",
                words(wide)
            )),
            wide if size > portable && !shape.non_portable_cluster => refused(format!(
                "cannot run in clusters of {}: {portable} blocks are portable; use smaller clusters, or allow sizes that are not portable (up to {most})",
                words(wide)
            )),
            wide if bounds.max_cluster_rank.is_some_and(|most| size > u64::from(most)) => refused(format!(
                "was compiled for clusters of at most {} blocks (`.maxclusterrank`, line {line} of the PTX), not of {}; use smaller clusters",
                bounds.max_cluster_rank.unwrap_or_default(),
                words(wide)
            )),
            wide if shape.grid.iter().zip(wide).any(|(grid, blocks)| grid % blocks != 0) => refused(format!(
                "cannot run a grid of {} in clusters of {}: make each dimension of the grid a multiple of that of the cluster",
                words(shape.grid),
                words(wide)
            )),
            wide if size > 1 => match self.program.module.target.sm() {
                Some(sm) if sm < LaunchShape::CLUSTERS_FROM_SM => refused(format!(
                    "cannot run in clusters of {} on sm_{sm}: clusters need sm_{} or newer; compile it for such an architecture",
                    words(wide),
                    LaunchShape::CLUSTERS_FROM_SM
                )),
                _ => Ok(clusters),
            },
            _ => Ok(clusters),
        }
    }
}

fn words([x, y, z]: [u32; 3]) -> String {
    format!("{x} x {y} x {z} blocks")
}
