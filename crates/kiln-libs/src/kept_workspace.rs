//! Workspace that the next call on the same stream takes again.
//!
//! Work on a stream runs in order, so that calls on it can share one. The memory is in the budget, counted under the tag of libraries, and freed when the
//! runtime is short of memory or the handle is dropped. The thread that made the handle takes and keeps one without a locked instruction.

use std::sync::Arc;

use kiln_mem::{CallbackRegistration, ReclaimStep};
use kiln_runtime::internal::{StreamKey, current_generation, mark_workspace, pressure_policy};
use kiln_runtime::{DeviceRuntime, Generation, GpuRef};
use kiln_sync::{Bias, BiasedLock};

use crate::Result;
use crate::library_tag::library_tag;

/// The largest workspace that is kept. Larger ones belong to operations that take long enough to allocate it.
const MAX_KEPT_BYTES: u64 = 32 << 20;
/// Streams whose workspace is kept.
const MAX_STREAMS: usize = 4;
/// Workspaces are the first thing to give back: they can be allocated again at any time.
const PRIORITY: i32 = i32::MAX;
/// Visits of other threads after which all threads are treated alike.
const RETURNS: u32 = 16;

/// The workspaces of one library handle, one for each stream that was used lately.
pub(crate) struct KeptWorkspaces {
    kept: Arc<BiasedLock<Places>>,
    /// None if the runtime does not ask for memory when it is short; then nothing is kept.
    registration: Option<CallbackRegistration>,
}

/// Places for workspaces.
#[derive(Default)]
struct Places {
    all: [Option<Workspace>; MAX_STREAMS],
    /// The one that is used next where all are taken.
    next: usize,
}

/// Workspace of a call.
pub(crate) struct Workspace {
    pub(crate) buffer: GpuRef<u8>,
    stream: StreamKey,
    /// The context that it was taken in.
    generation: Generation,
}

impl KeptWorkspaces {
    pub(crate) fn new(gpu: &DeviceRuntime) -> Self {
        let kept = Arc::new(BiasedLock::with_bias(Places::default(), Bias::Returns(RETURNS)));
        let policy = pressure_policy(gpu);
        let registration = policy.steps.contains(&ReclaimStep::Callbacks).then(|| {
            let kept = Arc::downgrade(&kept);
            policy.on_pressure(PRIORITY, move |_| {
                let Some(kept) = kept.upgrade() else { return 0 };
                // Dropped after the lock: freeing goes back into the memory stack.
                let freed = std::mem::take(&mut *kept.lock());
                freed.all.iter().flatten().map(|workspace| workspace.buffer.bytes()).sum()
            })
        });
        Self { kept, registration }
    }

    /// A workspace of at least so many bytes for work on a stream.
    #[inline]
    pub(crate) fn take(&self, gpu: &DeviceRuntime, stream: StreamKey, bytes: u64) -> Result<Workspace> {
        let generation = current_generation(gpu);
        let taken = self.kept.lock().take(stream);
        match taken {
            Some(kept) if kept.buffer.bytes() >= bytes && kept.generation == generation => Ok(kept),
            // One that is too small, or may be lost, is freed first.
            unusable => {
                drop(unusable);
                Workspace::allocate(gpu, stream, bytes)
            }
        }
    }

    /// Keeps a workspace that was taken, now that the work that uses it is queued.
    #[inline]
    pub(crate) fn keep(&self, workspace: Workspace) {
        if self.registration.is_none() || workspace.buffer.bytes() > MAX_KEPT_BYTES {
            return;
        }
        let replaced = self.kept.lock().put(workspace);
        // After the lock.
        drop(replaced);
    }
}

impl Workspace {
    /// A workspace that no other call uses.
    #[cold]
    pub(crate) fn allocate(gpu: &DeviceRuntime, stream: StreamKey, bytes: u64) -> Result<Self> {
        let generation = current_generation(gpu);
        let found = gpu.streams().find(stream);
        let lease = found.as_ref().unwrap_or_else(|| gpu.main_stream());
        let buffer = gpu.allocate_tagged::<u8>(lease, bytes as usize, library_tag())?;
        // Work that was queued after a call whose worker died does not lose it.
        mark_workspace(&buffer)?;
        Ok(Self { buffer, stream, generation })
    }
}

impl Places {
    #[inline]
    fn take(&mut self, stream: StreamKey) -> Option<Workspace> {
        let is_for = |place: &&mut Option<Workspace>| place.as_ref().is_some_and(|it| it.stream == stream);
        self.all.iter_mut().find(is_for)?.take()
    }

    /// Puts one into a place, and returns what was there.
    #[inline]
    fn put(&mut self, workspace: Workspace) -> Option<Workspace> {
        // Another thread may have kept one for this stream meanwhile.
        let same =
            |place: &Option<Workspace>| place.as_ref().is_some_and(|other| other.stream == workspace.stream);
        let at = self.all.iter().position(same).or_else(|| self.all.iter().position(Option::is_none));
        let at = at.unwrap_or_else(|| {
            self.next = (self.next + 1) % MAX_STREAMS;
            self.next
        });
        self.all.get_mut(at).and_then(|place| place.replace(workspace))
    }
}
