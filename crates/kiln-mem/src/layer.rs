//! Layers: memory resources that wrap another one and add one feature each.
//!
//! A layer gives its own key to the blocks that it passes on and takes back only those. What it has written down about a block is
//! therefore there when the block comes back, and a block cannot go around it.
//!
//! What a layer collects has a type without the type of the resource below, so that it can be read from a stack that was built from
//! text: [`Statistics`], [`TraceRecorder`], [`GuardChecker`] and [`LeakTracker`]; see [`LayerView`](crate::LayerView).

mod aligned;
mod budgeted;
mod fault_injection;
mod guarded;
mod leaks;
mod limited;
mod reported_to_checker;
mod retrying;
mod statistics;
mod traced;

pub use aligned::Aligned;
pub use budgeted::Budgeted;
pub use fault_injection::{FailPlan, Failing};
pub use guarded::{Damage, GuardChecker, GuardConfig, GuardFinding, Guarded};
pub use leaks::{LeakTracked, LeakTracker, LiveBlock};
pub use limited::Limited;
pub(crate) use reported_to_checker::NamedParts;
pub use reported_to_checker::{Annotated, TaggedBlocks};
pub use retrying::Retrying;
pub use statistics::{Counted, Statistics, StatisticsScope};
pub use traced::{TraceConfig, TraceRecorder, Traced};

use crate::block::{DeviceBlock, ResourceKey};
use crate::error::FreeError;
use crate::last_use::Stamps;
use crate::resource::MemoryResource;

/// The block as the resource below knows it, if it is one of ours.
fn unwrap(
    block: DeviceBlock,
    own: ResourceKey,
    inner: &impl MemoryResource,
) -> Result<DeviceBlock, FreeError> {
    if block.owner() == own { Ok(block.rebound(inner.key())) } else { Err(FreeError::foreign(block, own)) }
}

/// Gives a block to the resource below; if that fails, it comes back as one of ours.
fn free_below(
    block: DeviceBlock,
    uses: &Stamps,
    own: ResourceKey,
    inner: &impl MemoryResource,
) -> Result<(), FreeError> {
    inner
        .deallocate(block, uses)
        .map_err(|FreeError { block, error }| FreeError { block: block.rebound(own), error })
}
