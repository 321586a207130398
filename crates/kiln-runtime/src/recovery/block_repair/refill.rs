//! How a block is filled again when its contents are gone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::buffer::{Element, GpuRef, copied, zeros};
use crate::error::{Misuse, Result};
use crate::recovery::worker_replacement::WorkerRecovery;

/// A way to fill a block again.
#[derive(Clone)]
pub(crate) enum Refill {
    /// The bytes themselves, kept on the host.
    Mirror(Arc<Vec<u8>>),
    /// A function that makes them; it answers with none where the host has no memory for a copy.
    Source(Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>),
}

impl Refill {
    /// Hands the bytes on; false if there are none, or not as many as the block has.
    pub(crate) fn pour(&self, bytes: u64, into: impl FnOnce(&[u8])) -> bool {
        let fits = |found: &[u8]| found.len() as u64 == bytes;
        match self {
            Self::Mirror(mirror) if fits(mirror) => into(mirror),
            Self::Source(source) => match catch_unwind(AssertUnwindSafe(|| source())) {
                Ok(None) => {
                    tracing::error!(wanted = bytes, "the host has no memory to refill a lost block");
                    return false;
                }
                Ok(Some(made)) if fits(&made) => into(&made),
                Ok(Some(made)) => {
                    tracing::error!(
                        wanted = bytes,
                        made = made.len(),
                        "a lost block was refilled with another size"
                    );
                    return false;
                }
                Err(_) => {
                    tracing::error!("what was to refill a lost block panicked");
                    return false;
                }
            },
            Self::Mirror(_) => return false,
        }
        true
    }
}

/// Filling again. On a device in this process, which does not come back, these do nothing.
impl<T: Element> GpuRef<T> {
    /// Keeps a copy of these elements on the host: if the contents are lost, the buffer holds them again when the device is ready, instead of
    /// being stale. It is these elements that come back, whatever was written since; call it again when that matters.
    ///
    /// # Errors
    /// Another number of elements; a part of a block, since blocks are lost whole; no host memory for the copy.
    pub fn heal_with(&self, contents: &[T]) -> Result<()> {
        if contents.len() != self.len() {
            return Err(Misuse::Length { buffer: self.len(), given: contents.len() }.into());
        }
        let copy = copied(bytemuck::cast_slice(contents), "a copy to heal from")?;
        self.set_refill(Refill::Mirror(Arc::new(copy)))
    }

    /// As [`heal_with`](Self::heal_with), with a function that makes the elements when they are needed. It is called by the thread that brings the
    /// device back and must not use that device, which it cannot wait for ([`Misuse::WaitWhileHealing`]); if it panics or makes another number of elements, the buffer is lost.
    ///
    /// # Errors
    /// A part of a block, since blocks are lost whole.
    pub fn heal_by(&self, source: impl Fn() -> Vec<T> + Send + Sync + 'static) -> Result<()> {
        let bytes = move || copied(bytemuck::cast_slice(&source()), "a copy to heal from").ok();
        self.set_refill(Refill::Source(Arc::new(bytes)))
    }

    /// As [`heal_by`](Self::heal_by), with zeros. Where the host has no memory for them, the buffer is lost.
    pub(crate) fn heal_with_zeros(&self) -> Result<()> {
        let bytes = self.len() * size_of::<T>();
        self.set_refill(Refill::Source(Arc::new(move || zeros(bytes, "zeros to heal from").ok())))
    }

    fn set_refill(&self, refill: Refill) -> Result<()> {
        let runtime = self.whole_block()?;
        if let Some(recovery) = WorkerRecovery::of(&runtime) {
            recovery.registry().set_refill(self.block_id(), refill);
        }
        Ok(())
    }
}
