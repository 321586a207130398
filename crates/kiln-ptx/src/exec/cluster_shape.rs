//! How the blocks of a grid are divided into clusters.

/// The clusters of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterShape {
    /// Blocks of a cluster in each dimension.
    pub(crate) blocks: [u32; 3],
    /// Blocks of the grid, which are multiples of those.
    grid: [u32; 3],
    /// Whether the launch or the kernel names the shape.
    pub(crate) is_explicit: bool,
}

impl ClusterShape {
    /// Clusters of `blocks` in a grid; without a shape each block is one.
    pub(crate) fn new(grid: [u32; 3], blocks: Option<[u32; 3]>) -> Self {
        Self { blocks: blocks.unwrap_or([1; 3]), grid, is_explicit: blocks.is_some() }
    }

    /// Blocks of a cluster.
    pub(crate) fn size(&self) -> u64 {
        product(self.blocks)
    }

    /// Clusters of the grid in each dimension.
    pub(crate) fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis] / self.blocks[axis].max(1))
    }

    /// Clusters of the grid.
    pub(crate) fn count(&self) -> u64 {
        product(self.clusters())
    }

    /// The index of the cluster of a block.
    pub(crate) fn cluster_index(&self, block: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| block[axis] / self.blocks[axis].max(1))
    }

    /// The index of a block in its cluster.
    pub(crate) fn index_in_cluster(&self, block: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| block[axis] % self.blocks[axis].max(1))
    }

    /// The number of the cluster of a block, and the rank of the block in it.
    pub(crate) fn place(&self, block: u64) -> (u64, usize) {
        let index = index_of(block, self.grid);
        let cluster = number_of(self.cluster_index(index), self.clusters());
        (cluster, number_of(self.index_in_cluster(index), self.blocks) as usize)
    }

    /// The number of a block in the grid.
    pub(crate) fn block(&self, cluster: u64, rank: usize) -> u64 {
        let (first, within) = (index_of(cluster, self.clusters()), index_of(rank as u64, self.blocks));
        let index = std::array::from_fn(|axis| first[axis] * self.blocks[axis] + within[axis]);
        number_of(index, self.grid)
    }
}

fn product(of: [u32; 3]) -> u64 {
    of.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d)))
}

fn index_of(number: u64, shape: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = shape.map(|part| u64::from(part.max(1)));
    [number % x, number / x % y, number / x / y].map(|part| part as u32)
}

fn number_of(index: [u32; 3], shape: [u32; 3]) -> u64 {
    let ([x, y, z], [width, height, _]) = (index.map(u64::from), shape.map(u64::from));
    x + width * (y + height * z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_one_place_in_one_cluster() {
        let shape = ClusterShape::new([4, 6, 2], Some([2, 3, 1]));
        assert_eq!((shape.size(), shape.count(), shape.clusters()), (6, 8, [2, 2, 2]));
        let mut seen = [false; 48];
        for (cluster, rank) in (0..8).flat_map(|cluster| (0..6).map(move |rank| (cluster, rank))) {
            let block = shape.block(cluster, rank);
            assert_eq!(shape.place(block), (cluster, rank));
            assert!(!std::mem::replace(&mut seen[block as usize], true));
        }
        // The second block of the first row, and the one below it.
        assert_eq!((shape.place(1), shape.place(4), shape.place(2)), ((0, 1), (0, 2), (1, 0)));
    }
}
