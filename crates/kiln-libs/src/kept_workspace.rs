//! Workspace that the next call on the same stream takes again.
//!
//! Work on a stream runs in order, so that calls on it can share one. The memory is in the budget, counted under the tag of libraries, and freed when the
//! runtime is short of memory or the handle is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::StreamId;
use kiln_mem::{CallbackRegistration, ReclaimStep};
use kiln_runtime::internal::{current_generation, mark_workspace, pressure_policy};
use kiln_runtime::{DeviceRuntime, Generation, GpuRef, Stream};

use crate::Result;
use crate::library_tag::library_tag;

/// The largest workspace that is kept. Larger ones belong to operations that take long enough to allocate it.
const MAX_KEPT_BYTES: u64 = 32 << 20;
/// Streams whose workspace is kept.
const MAX_STREAMS: usize = 4;
/// Workspaces are the first thing to give back: they can be allocated again at any time.
const PRIORITY: i32 = i32::MAX;

/// The workspaces of one library handle, one for each stream that was used lately.
pub(crate) struct KeptWorkspaces {
    kept: Arc<Mutex<Vec<Workspace>>>,
    /// None if the runtime does not ask for memory when it is short; then nothing is kept.
    registration: Option<CallbackRegistration>,
}

/// Workspace of a call.
pub(crate) struct Workspace {
    pub(crate) buffer: GpuRef<u8>,
    stream: StreamId,
    /// The context that it was taken in.
    generation: Generation,
}

impl KeptWorkspaces {
    pub(crate) fn new(gpu: &DeviceRuntime) -> Self {
        let kept: Arc<Mutex<Vec<Workspace>>> = Arc::default();
        let policy = pressure_policy(gpu);
        let registration = policy.steps.contains(&ReclaimStep::Callbacks).then(|| {
            let kept = Arc::downgrade(&kept);
            policy.on_pressure(PRIORITY, move |_| {
                let Some(kept) = kept.upgrade() else { return 0 };
                // Dropped after the lock: freeing goes back into the memory stack.
                let freed = std::mem::take(&mut *lock(&kept));
                freed.iter().map(|workspace| workspace.buffer.bytes()).sum()
            })
        });
        Self { kept, registration }
    }

    /// A workspace of at least so many bytes for work on a stream.
    pub(crate) fn take(&self, gpu: &DeviceRuntime, stream: &Stream, bytes: u64) -> Result<Workspace> {
        let (stream_id, generation) = (stream.id(), current_generation(gpu));
        // One that is too small, or may be lost, is freed here, after the lock.
        if let Some(kept) = self.remove(stream_id)
            && kept.buffer.bytes() >= bytes
            && kept.generation == generation
        {
            return Ok(kept);
        }
        let buffer = gpu.allocate_tagged::<u8>(stream, bytes as usize, library_tag())?;
        // Work that was queued after a call whose worker died does not lose it.
        mark_workspace(&buffer)?;
        Ok(Workspace { buffer, stream: stream_id, generation })
    }

    fn remove(&self, stream: StreamId) -> Option<Workspace> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|workspace| workspace.stream == stream)?;
        Some(kept.remove(at))
    }

    /// Keeps a workspace that was taken, now that the work that uses it is queued.
    pub(crate) fn keep(&self, workspace: Workspace) {
        if self.registration.is_none() || workspace.buffer.bytes() > MAX_KEPT_BYTES {
            return;
        }
        let mut kept = lock(&self.kept);
        let same = kept.iter().position(|other| other.stream == workspace.stream);
        let replaced = match same {
            // Another thread kept one for this stream meanwhile.
            Some(at) => Some(kept.remove(at)),
            None if kept.len() >= MAX_STREAMS => Some(kept.remove(0)),
            None => None,
        };
        kept.push(workspace);
        drop(kept);
        drop(replaced);
    }
}

fn lock(kept: &Mutex<Vec<Workspace>>) -> MutexGuard<'_, Vec<Workspace>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
