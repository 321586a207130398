//! What a runtime tells the code that brings its device back, and asks of it.

use std::any::Any;
use std::sync::Arc;

use kiln_mem::DeviceBlock;
use kiln_order::DependencyTracker;

use super::DeviceRuntime;
use super::block::Block;
use super::inner::Inner;
use super::recording::ActivitySource;
use crate::device_state::StateCell;
use crate::error::Result;
use crate::ids::BlockId;
use crate::resubmission::SubmissionLog;

/// The worker process that has a device.
pub(crate) trait WorkerIdentity: Send + Sync {
    /// Its process id. It takes no lock.
    fn process(&self) -> u32;

    /// The name of its program.
    fn name(&self) -> &str;
}

/// The recovery of a device that lives in a worker process. The runtime calls it and knows nothing else of it; a device in this
/// process has none.
pub(crate) trait RecoveryHook: Any + Send + Sync {
    /// Connects it with a runtime that is being built.
    fn connect(&self, tracker: &Arc<DependencyTracker>, state: &Arc<StateCell>);

    /// The runtime is built: from here on a lost worker is replaced.
    ///
    /// # Errors
    /// If no thread can be started.
    fn start(&self, runtime: &DeviceRuntime) -> Result<()>;

    /// Notices a worker that is gone, before anything is stamped that could not be queued.
    fn check_worker(&self);

    /// Has the worker tell when work runs, by CUPTI; why not, in words, where it cannot.
    fn activity(&self) -> std::result::Result<Box<dyn ActivitySource>, String>;

    /// The worker in use: that of now, whenever it is asked.
    fn worker(&self) -> Box<dyn WorkerIdentity>;

    /// Submissions that are kept to be made again; none if they are not.
    fn replay_log(&self) -> Option<&SubmissionLog>;

    /// A block was allocated.
    fn block_allocated(&self, block: &Arc<Block>);

    /// The last handle of a block was dropped.
    fn block_dropped(&self, block: BlockId);

    /// The block with a name, if it is alive.
    fn find_block(&self, block: BlockId) -> Option<Arc<Block>>;

    /// Makes the memory of a dropped block that was mapped read-only writable again; false if that fails, and then the memory is not used
    /// again.
    fn make_writable(&self, runtime: &Inner, memory: &DeviceBlock) -> bool;

    /// Ends a takeover that waits for something, and starts no other: the runtime shuts down.
    fn abandon(&self);

    /// The end of the runtime: waits for the thread of [`start`](Self::start) and gives back what it had on the device.
    fn end(&self);
}
