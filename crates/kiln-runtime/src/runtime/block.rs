//! A block of device memory: what handles share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_driver::{DeviceAddress, DevicePlace};
use kiln_mem::DeviceBlock;
use kiln_mem::layer::Annotated;
use kiln_order::{AccessHistory, Stamp, Stamps, StreamKey, StreamState, holds_any, put_off};
use kiln_sync::BiasedLock;

use super::block_source::ForeignOwner;
use super::freed_uses::uses_elsewhere;
use super::inner::Inner;
use crate::device_state::{Cause, Loss, Phase};
use crate::error::{Error, Misuse, Result, Stale};
use crate::ids::{BlockId, Generation};

/// Memory and what is known of its uses. Dropping it gives the memory back after its last use and never waits.
// In this order: between two launches the driver has had the cache to itself, and of each block a launch looks at the first line.
#[repr(C, align(64))]
pub(crate) struct Block {
    /// Where its runtime lies; it is compared and never followed.
    pub(super) place_of_runtime: usize,
    /// Where it starts, for kernels; 0 for a block of no bytes.
    pub(super) start: u64,
    pub(super) history: BiasedLock<AccessHistory>,
    /// The generation up to which it was found to be kept.
    pub(super) kept: AtomicU64,
    pub(super) home: Arc<StreamState>,
    pub(super) runtime: Weak<Inner>,
    pub(super) id: BlockId,
    /// Taken when the block is dropped.
    pub(super) memory: Option<DeviceBlock>,
    /// Set if the memory is another library's, or a module's.
    pub(super) lent: Option<ForeignOwner>,
    /// What stands for the allocation among its writes; nothing was written by it.
    pub(super) allocated: Stamp,
    pub(super) born: Generation,
    /// Whether the memory goes with the context, as a module's does.
    pub(super) of_context: bool,
    /// Set if it was found to be lost, for whatever reason, and was not overwritten since.
    pub(super) lost: Mutex<Option<(Generation, Arc<Cause>)>>,
    /// The generation in which it was overwritten after it was lost; what was lost before has no say.
    pub(super) rewritten: AtomicU64,
    /// Whether it can be found by its name.
    pub(super) is_named: AtomicBool,
}

impl Block {
    /// The last writes of any bytes. Its allocation wrote nothing.
    pub(crate) fn writes(&self) -> Stamps {
        let mut writes = Stamps::default();
        let all = self.history.lock().writes();
        all.iter().filter(|stamp| *stamp != self.allocated).for_each(|stamp| writes.insert(stamp));
        writes
    }

    pub(crate) fn id(&self) -> BlockId {
        self.id
    }

    /// Its name, by which it can be found from here on.
    pub(crate) fn named(self: &Arc<Self>) -> BlockId {
        if !self.is_named.load(Ordering::Relaxed)
            && let Some(runtime) = self.runtime.upgrade()
        {
            runtime.named_blocks().enter(self);
            self.is_named.store(true, Ordering::Relaxed);
        }
        self.id
    }

    /// The runtime it belongs to.
    pub(crate) fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    pub(crate) fn belongs_to(&self, runtime: &Inner) -> bool {
        self.place_of_runtime == std::ptr::from_ref(runtime).addr()
    }

    /// Whether it belongs to a runtime and needs no closer look to be found kept.
    #[inline(always)]
    pub(crate) fn is_usable(&self, runtime: &Inner) -> bool {
        self.belongs_to(runtime) && self.is_kept(runtime.state().generation())
    }

    /// Whether it is known that no context that ended took the contents along.
    #[inline(always)]
    fn is_kept(&self, generation: Generation) -> bool {
        // In the first generation nothing was lost, and what was found about the block need not be looked up.
        generation == Generation::default() || self.kept.load(Ordering::Relaxed) == generation.0
    }

    /// Refuses a block of another runtime, or of one that is gone.
    #[inline]
    pub(crate) fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        if self.belongs_to(runtime) { self.require_kept(runtime) } else { Err(self.foreign()) }
    }

    /// As [`check_kept`](Self::check_kept); the error has what work was told that was to write it, where that was ended.
    #[inline]
    pub(crate) fn require_kept(&self, runtime: &Inner) -> Result<()> {
        self.check_kept(runtime).map_err(|stale| self.gone(runtime, stale))
    }

    /// The error for a block whose contents are gone.
    #[cold]
    pub(crate) fn gone(&self, runtime: &Inner, stale: Stale) -> Error {
        let cause = self.loss(runtime).filter(|_| stale == Stale::NotWritten).map(|(_, cause)| cause);
        Error::new(stale).because(cause.and_then(|cause| cause.told().cloned()))
    }

    #[cold]
    fn foreign(&self) -> Error {
        if self.runtime.strong_count() == 0 {
            Stale::DeviceDropped.into()
        } else {
            Misuse::ForeignBlock { block: self.id() }.into()
        }
    }

    /// Refuses a block that was lost with the context it was written in.
    #[inline]
    pub(crate) fn check_kept(&self, runtime: &Inner) -> std::result::Result<(), Stale> {
        let generation = runtime.state().generation();
        if self.is_kept(generation) { Ok(()) } else { self.judge(runtime, generation) }
    }

    /// Whether a generation that has ended took the contents along. What is found to be kept need not be asked about again.
    #[cold]
    fn judge(&self, runtime: &Inner, generation: Generation) -> std::result::Result<(), Stale> {
        if self.is_lost() {
            return Err(Stale::Lost);
        }
        if let Some(loss) = self.caught_by(runtime) {
            return Err(if loss.is_interruption { Stale::NotWritten } else { Stale::Lost });
        }
        self.kept.fetch_max(generation.0, Ordering::Relaxed);
        Ok(())
    }

    /// The generation it belongs to: the one it was lost with, or else the current one.
    pub(crate) fn generation(&self) -> Generation {
        match self.runtime.upgrade() {
            Some(runtime) => {
                self.loss(&runtime).map_or_else(|| runtime.state().generation(), |(generation, _)| generation)
            }
            None => self.born,
        }
    }

    /// The loss that took its contents: the first in which one of its last writes was under way. Work on a lost block is refused unless it overwrites all of it, so
    /// no other write hides that.
    #[cold]
    pub(crate) fn loss(&self, runtime: &Inner) -> Option<(Generation, Arc<Cause>)> {
        if let Some(lost) = &*self.lost() {
            return Some(lost.clone());
        }
        self.caught_by(runtime).map(|loss| (loss.generation, loss.cause))
    }

    /// The first loss of the device, or end of work on it, in which one of its last writes was under way.
    fn caught_by(&self, runtime: &Inner) -> Option<Loss> {
        let since = self.born.max(Generation(self.rewritten.load(Ordering::Relaxed)));
        let writes = self.history.lock().writes();
        let now = runtime.state().generation();
        runtime.state().loss_where(|loss| {
            let lived = since <= loss.generation && loss.generation < now;
            let went_with_context = loss.everything || self.of_context && !loss.is_interruption;
            lived && (went_with_context || self.is_caught(loss, &writes))
        })
    }

    /// Whether one of its last writes was under way when a device was lost. Its allocation wrote nothing.
    fn is_caught(&self, loss: &Loss, writes: &Stamps) -> bool {
        writes.iter().any(|stamp| stamp != self.allocated && loss.caught(stamp))
    }

    /// The stream its work goes to when nothing else is said: the one it was allocated on, or the main one if that is gone.
    pub(crate) fn home<'a>(&'a self, runtime: &'a Inner) -> &'a Arc<StreamState> {
        if self.home.is_retired() { runtime.main_stream().lane() } else { &self.home }
    }

    /// Does something on its home. That may be given back just then; since the caller did not name it, the main stream serves as well.
    #[inline]
    pub(crate) fn at_home<R>(
        &self,
        runtime: &Inner,
        mut run: impl FnMut(&StreamState) -> Result<R>,
    ) -> Result<R> {
        let home = self.home(runtime);
        match run(home) {
            // It was not when it was chosen, and took nothing.
            Err(_) if home.is_retired() => run(runtime.main_stream().lane()),
            done => done,
        }
    }

    pub(crate) fn home_key(&self) -> StreamKey {
        self.runtime.upgrade().map_or(self.home.key, |runtime| self.home(&runtime).key)
    }

    pub(crate) fn history(&self) -> &BiasedLock<AccessHistory> {
        &self.history
    }

    /// Where commands find the byte at an offset; none for a block of no bytes.
    pub(crate) fn place(&self, offset: u64) -> Option<DevicePlace> {
        self.memory.as_ref()?.device_place().map(|place| place.plus(offset))
    }

    /// Where kernels find the byte at an offset; 0 for a block of no bytes.
    pub(crate) fn address(&self, offset: u64) -> DeviceAddress {
        DeviceAddress(if self.start == 0 { 0 } else { self.start + offset })
    }
}

/// What a takeover does with blocks.
impl Block {
    /// Whether unfinished work was to write it.
    pub(crate) fn is_touched(&self, loss: &Loss) -> bool {
        self.is_caught(loss, &self.history.lock().writes())
    }

    /// Declares it lost: handles say so from here on, and a use that was checked before is refused.
    pub(crate) fn lose(&self, generation: Generation, cause: &Arc<Cause>) {
        // One that is lost already stays lost with its first cause.
        self.lost().get_or_insert_with(|| (generation, cause.clone()));
        // In the first generation nothing is lost, so that this is another one.
        self.kept.store(Generation::default().0, Ordering::Relaxed);
        self.history.lock().lose();
    }

    /// Its contents are there again, and nothing that was submitted before has to do with them.
    pub(crate) fn restore(&self) {
        self.history.lock().restore(Stamp::default());
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    fn lost(&self) -> MutexGuard<'_, Option<(Generation, Arc<Cause>)>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it for kept again, because work that overwrites all of it is about to be queued. Returns what it was lost with, for the case that the work is refused;
    /// none if its memory went with the context, or the device is not ready, and then nothing is changed.
    pub(crate) fn rewrite(&self, runtime: &Inner) -> Option<(Generation, Arc<Cause>)> {
        let state = runtime.state();
        let (generation, cause) = self.loss(runtime)?;
        let has_memory =
            state.loss_where(|loss| loss.generation == generation).is_some_and(|loss| !loss.everything);
        if !has_memory || self.of_context || self.lent.is_some() || state.phase() != Phase::Ready {
            return None;
        }
        let now = state.generation();
        *self.lost() = None;
        self.rewritten.fetch_max(now.0, Ordering::Relaxed);
        self.restore();
        self.kept.fetch_max(now.0, Ordering::Relaxed);
        Some((generation, cause))
    }

    /// Whether it is mapped read-only.
    pub(crate) fn is_sealed(&self) -> bool {
        self.history.lock().is_sealed()
    }

    /// Its holder keeps its memory for another user: a device that checks accesses treats it as freed.
    pub(crate) fn set_aside(&self) {
        if let (Some(runtime), Some(memory)) = (self.checked_runtime(), &self.memory) {
            Annotated::set_aside(&**runtime.memory(), memory);
        }
    }

    /// Its holder hands memory out again that was set aside: a device that checks accesses treats it as new.
    pub(crate) fn hand_out_again(&self) -> Result<()> {
        match (self.checked_runtime(), &self.memory) {
            (Some(runtime), Some(memory)) => {
                let stream = self.home(&runtime).stream_ref().id();
                Ok(Annotated::hand_out_again(&**runtime.memory(), memory, stream)?)
            }
            _ => Ok(()),
        }
    }

    /// Its runtime, if the device checks accesses.
    fn checked_runtime(&self) -> Option<Arc<Inner>> {
        self.runtime.upgrade().filter(|runtime| runtime.driver().info().features.access_checks)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, DeviceBlock::bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // A runtime that is gone has taken its memory along.
        let (Some(runtime), Some(memory)) = (self.runtime.upgrade(), self.memory.take()) else { return };
        if let Some(recovery) = runtime.recovery() {
            recovery.block_dropped(self.id);
        }
        if let (Some(recording), None) = (runtime.recording(), &self.lent) {
            recording.freed(&runtime, self.id.number(), &memory);
        }
        if *self.is_named.get_mut() {
            runtime.named_blocks().leave(self.id);
        }
        let frees_wait = runtime.tracker().rules().frees_wait_for_uses();
        let uses = if frees_wait { self.history.get_mut().all() } else { Stamps::default() };
        let dropped = DroppedBlock {
            memory,
            uses,
            is_sealed: self.history.get_mut().is_sealed(),
            lent: self.lent.take(),
        };
        if holds_any() {
            return dropped.put_off(&runtime, self.home.clone());
        }
        dropped.give_back(&runtime, &self.home);
    }
}

/// What is left of a block without handles.
struct DroppedBlock {
    memory: DeviceBlock,
    /// What its memory is given back after.
    uses: Stamps,
    is_sealed: bool,
    lent: Option<ForeignOwner>,
}

impl DroppedBlock {
    #[inline(always)]
    fn give_back(self, runtime: &Inner, home: &StreamState) {
        // Memory that cannot be opened again is not given out again, since it could not be written.
        if let Some(recovery) = runtime.recovery()
            && self.is_sealed
            && !recovery.make_writable(runtime, &self.memory)
        {
            return;
        }
        if let Some(lent) = self.lent {
            return lent.give_back(runtime, &self.uses);
        }
        let uses = uses_elsewhere(runtime.tracker(), home, self.uses);
        if let Err(failure) = runtime.memory().deallocate(self.memory, &uses) {
            tracing::error!(%failure, "a block could not be given back");
        }
    }

    /// Gives it back when this thread has left the streams it is inside of: it may have to wait for what is queued there next.
    #[cold]
    fn put_off(self, runtime: &Arc<Inner>, home: Arc<StreamState>) {
        let weak = Arc::downgrade(runtime);
        let later = move || {
            // A runtime that is gone has taken its memory along.
            if let Some(runtime) = weak.upgrade() {
                self.give_back(&runtime, &home);
            }
        };
        put_off(runtime.tracker().host(), Box::new(later));
    }
}
