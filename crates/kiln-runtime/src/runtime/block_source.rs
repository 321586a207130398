//! Where the memory of a block comes from: the memory stack, another library, or a module.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use kiln_driver::{Access, DeviceMemory, ForeignMemory, MemoryId, Place};
use kiln_mem::{
    AllocTag, AllocationRequest, BlockParts, BlockToken, DeviceBlock, ErrorKind as MemoryErrorKind,
    MemoryRefusal, ResourceKey,
};
use kiln_order::{AccessHistory, Stamp, Stamps, StreamState, Use};
use kiln_sync::BiasedLock;

use super::block::Block;
use super::inner::Inner;
use super::stream::{Keep, Stream};
use crate::error::{Error, ErrorKind, Misuse, Result};
use crate::ids::{BlockId, Generation};

/// Memory that is another library's, or a module's.
pub(super) struct ForeignOwner {
    /// The name it was given at the driver; none for a variable, which has its module's.
    name: Option<MemoryId>,
    /// The stream whose later work comes after all uses; held, so that it can be made to wait.
    home: Stream,
    /// What keeps the memory alive.
    keep: Keep,
}

impl ForeignOwner {
    /// Gives the memory back in the order of its home: what its owner queues there from here on comes after all uses. A module is unloaded after
    /// everything that was queued, so its variables need no wait.
    pub(super) fn give_back(self, runtime: &Inner, uses: &Stamps) {
        let Some(name) = self.name else { return };
        if let Err(error) = runtime.tracker().order_after(self.home.lane(), uses) {
            // A device that does not take the wait is lost, and then nothing on it runs any more.
            let error = error.into_driver("wait_on");
            tracing::error!(%error, "the owner of adopted memory could not be made to wait for its last use");
        }
        runtime.disown(name);
        drop(self.keep);
    }
}

impl Block {
    /// A block of memory that another library owns. What the owner queued on `home` so far comes before every use.
    pub(crate) fn adopt(
        runtime: &Arc<Inner>,
        home: &Stream,
        memory: ForeignMemory,
        keep: Keep,
    ) -> Result<Arc<Self>> {
        if !home.belongs_to(runtime) {
            return Err(Error::new(Misuse::ForeignStream { stream: home.id().to_string() }));
        }
        runtime.check_ready()?;
        let generation = runtime.state().generation();
        let named = runtime.adopt(memory)?;
        let lent = ForeignOwner { name: Some(named.id), home: home.clone(), keep };
        let block = Self::lent(runtime, named, lent, false, generation);
        // A number behind what the owner queued: a wait for it is a wait for that, too.
        block.number_first_use(runtime)?;
        Ok(Arc::new(block))
    }

    /// A block over a variable of a module. Work that was queued before is not known to use it or not, so all of it comes before every use.
    pub(crate) fn variable(runtime: &Arc<Inner>, memory: DeviceMemory, keep: Keep) -> Result<Arc<Self>> {
        let generation = runtime.state().generation();
        let mut queued = Stamps::default();
        runtime.tracker().latest_stamps().into_iter().for_each(|stamp| queued.insert(stamp));
        let home = runtime.main_stream().clone();
        runtime.tracker().order_after(home.lane(), &queued)?;
        let mut block =
            Self::lent(runtime, memory, ForeignOwner { name: None, home, keep }, true, generation);
        block.allocated = block.number_first_use(runtime)?;
        Ok(Arc::new(block))
    }

    /// A block over memory that is not the runtime's own.
    fn lent(
        runtime: &Arc<Inner>,
        memory: DeviceMemory,
        lent: ForeignOwner,
        of_context: bool,
        generation: Generation,
    ) -> Self {
        let lane = lent.home.lane().clone();
        let parts = BlockParts {
            place: Some(Place::Device(memory.id.into())),
            address: memory.address,
            bytes: memory.bytes,
            stream: lane.key,
            tag: AllocTag::default(),
            token: BlockToken::default(),
        };
        // SAFETY: the memory was vouched for by the library that handed it over, or is a variable of a module that `lent` keeps loaded. No
        // resource has that key, so none takes it back.
        let owned = unsafe { DeviceBlock::from_parts(ResourceKey::fresh(), parts) };
        let number = runtime.next_block();
        Self {
            place_of_runtime: Arc::as_ptr(runtime).addr(),
            runtime: Arc::downgrade(runtime),
            start: memory.address.0,
            id: BlockId::of(number),
            kept: AtomicU64::new(generation.0),
            home: lane,
            memory: Some(owned),
            lent: Some(lent),
            allocated: Stamp::default(),
            born: generation,
            of_context,
            lost: Mutex::new(None),
            rewritten: AtomicU64::new(0),
            is_named: AtomicBool::new(false),
            history: BiasedLock::new(AccessHistory::new(memory.bytes, Stamp::default()).of_block(number)),
        }
    }

    /// Gives the memory a number on its home, which every use comes after.
    fn number_first_use(&self, runtime: &Inner) -> Result<Stamp> {
        let first =
            Use { history: &self.history, range: 0..self.bytes(), access: Access::Write, argument: 0 };
        runtime.submit(&self.home, &mut [first], |_, _| Ok(()))
    }

    #[track_caller]
    pub(crate) fn allocate(
        runtime: &Arc<Inner>,
        home: &Stream,
        bytes: u64,
        align: u64,
        tag: AllocTag,
    ) -> Result<Arc<Self>> {
        if !home.belongs_to(runtime) {
            return Err(Error::new(Misuse::ForeignStream { stream: home.id().to_string() }));
        }
        let _context = runtime.called_from(Location::caller());
        runtime.check_ready()?;
        let lane = home.lane();
        let generation = runtime.state().generation();
        let request = AllocationRequest::new(bytes, lane.stream_ref())
            .align(align.max(AllocationRequest::MIN_ALIGN))
            .tag(tag);
        let memory = runtime.memory().allocate(&request).inspect_err(|error| {
            let Some(recording) = runtime.recording() else { return };
            match (error.exhausted(), error.kind()) {
                (Some(exhausted), _) => recording.refused(runtime, exhausted, tag),
                (None, MemoryErrorKind::Refused(MemoryRefusal::Size(bytes))) => {
                    recording.refused_size(runtime, *bytes, tag);
                }
                (None, _) => {}
            }
        })?;
        let mut block = Self::owning(runtime, lane, memory, generation);
        if block.needs_number(runtime) {
            block.take_number(runtime)?;
        }
        Ok(block.shared(runtime))
    }

    /// A block that the caller took from the runtime's own memory. On failure it comes back.
    pub(crate) fn take_over(
        runtime: &Arc<Inner>,
        memory: DeviceBlock,
    ) -> std::result::Result<Arc<Self>, (Error, DeviceBlock)> {
        let Some(lane) = runtime.tracker().state_at(memory.stream()) else {
            return Err((Misuse::ForeignMemory.into(), memory));
        };
        let generation = runtime.state().generation();
        let mut block = Self::owning(runtime, &lane, memory, generation);
        if block.needs_number(runtime)
            && let Err(error) = block.take_number(runtime)
            && let Some(memory) = block.memory.take()
        {
            return Err((error, memory));
        }
        Ok(block.shared(runtime))
    }

    /// A block whose memory goes back to the runtime's memory when it is dropped.
    #[inline]
    fn owning(
        runtime: &Arc<Inner>,
        lane: &Arc<StreamState>,
        memory: DeviceBlock,
        generation: Generation,
    ) -> Self {
        // The block that had the memory before may still be used on this stream, so other streams come after what is planned here.
        let is_forgotten = !runtime.tracker().rules().uses_wait_for_allocation();
        let planned = Stamp { stream: lane.key, number: lane.planned() };
        let first_write = if is_forgotten { Stamp::default() } else { planned };
        let (number, bytes) = (runtime.next_block(), memory.bytes());
        Self {
            place_of_runtime: Arc::as_ptr(runtime).addr(),
            runtime: Arc::downgrade(runtime),
            start: if memory.is_empty() { 0 } else { memory.address().0 },
            id: BlockId::of(number),
            kept: AtomicU64::new(generation.0),
            home: lane.clone(),
            memory: Some(memory),
            lent: None,
            allocated: first_write,
            born: generation,
            of_context: false,
            lost: Mutex::new(None),
            rewritten: AtomicU64::new(0),
            is_named: AtomicBool::new(false),
            history: BiasedLock::new(AccessHistory::new(bytes, first_write).of_block(number)),
        }
    }

    /// The block as handles share it.
    #[inline]
    fn shared(self, runtime: &Inner) -> Arc<Self> {
        let block = Arc::new(self);
        if let Some(recovery) = runtime.recovery() {
            recovery.block_allocated(&block);
        }
        if let (Some(recording), Some(memory)) = (runtime.recording(), &block.memory) {
            recording.allocated(runtime, (block.id.number(), block.allocated), memory);
        }
        block
    }

    /// Whether its memory is made on its stream; see [`take_number`](Self::take_number).
    #[inline]
    fn needs_number(&self, runtime: &Inner) -> bool {
        let is_forgotten = !runtime.tracker().rules().uses_wait_for_allocation();
        runtime.tracker().makes_memory() && self.bytes() > 0 && !is_forgotten
    }

    /// Memory that was made on its stream is there once the stream got so far, which the order does not see: what it knows to be done on that stream
    /// may be everything that has a number. The next number stands for it.
    #[cold]
    fn take_number(&mut self, runtime: &Arc<Inner>) -> Result<()> {
        let range = 0..self.bytes();
        let first = Use { history: &self.history, range, access: Access::Write, argument: 0 };
        match runtime.submit(&self.home, &mut [first], |_, _| Ok(())) {
            // This thread is inside of the stream by a use it has prepared. That has a number which is not done, and comes after the memory.
            Err(error) if matches!(error.kind(), ErrorKind::Misuse(Misuse::Prepared { .. })) => {}
            numbered => self.allocated = numbered?,
        }
        Ok(())
    }
}
