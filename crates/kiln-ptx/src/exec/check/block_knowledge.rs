//! What every thread of a block is ordered behind since its last barrier.

use std::sync::{Arc, OnceLock};

use super::vector_clock::{Clock, Time};

/// What every thread of the block is ordered behind.
#[derive(Clone, Default)]
pub(super) struct Base {
    /// Up to which time, for each warp of the block.
    pub(super) own: Vec<Time>,
    /// The same for warps of other blocks.
    pub(super) foreign: Arc<Clock>,
    /// The number of the first warp of the block in the grid.
    pub(super) first: u32,
    /// All of it as one clock, once it was asked for.
    pub(super) clock: OnceLock<Arc<Clock>>,
}

impl Base {
    /// All of it as one clock.
    pub(super) fn clock(&self) -> &Arc<Clock> {
        self.clock.get_or_init(|| {
            let mut clock = Clock::of_warps((self.first..).zip(self.own.iter().copied()));
            clock.join(&self.foreign);
            Arc::new(clock)
        })
    }
}
