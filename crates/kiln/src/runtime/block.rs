//! A block of device memory: what handles share.

use std::fmt;
use std::sync::{Arc, Weak};

use kiln_driver::{DeviceAddress, DevicePlace};

use super::inner::Inner;
use super::source::Piece;
use super::stream::Stream;
use crate::buffer::Stale;
use crate::error::{Error, Result};
use crate::misuse::Misuse;
use crate::order::{Lane, Latch, Mutation, Stamps, StreamKey, Track};

/// The name of a block; no other block of its runtime ever has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(u64);

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

/// How often the device's context had been rebuilt when something was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Generation(pub u64);

/// Memory and what is known of its uses. Dropping it gives the memory back after its last use and never waits.
pub(crate) struct Block {
    runtime: Weak<Inner>,
    id: BlockId,
    home: Arc<Lane>,
    bytes: u64,
    /// None for a block of no bytes.
    piece: Option<Piece>,
    track: Latch<Track>,
}

impl Block {
    pub(crate) fn allocate(runtime: &Arc<Inner>, home: &Stream, bytes: u64) -> Result<Arc<Self>> {
        if !home.belongs_to(runtime) {
            return Err(Error::new(Misuse::ForeignStream { stream: home.id().to_string() }));
        }
        let (piece, track) = if bytes == 0 {
            (None, Track::new(0, crate::order::Stamp::default()))
        } else {
            let (piece, stamp) = runtime.source().allocate(bytes, home.lane())?;
            (Some(piece), Track::new(bytes, stamp))
        };
        let id = BlockId(runtime.blocks().open(bytes));
        let runtime = Arc::downgrade(runtime);
        Ok(Arc::new(Self { runtime, id, home: home.lane().clone(), bytes, piece, track: Latch::new(track) }))
    }

    pub(crate) fn id(&self) -> BlockId {
        self.id
    }

    /// The runtime it belongs to.
    pub(crate) fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    pub(crate) fn belongs_to(&self, runtime: &Inner) -> bool {
        std::ptr::eq(self.runtime.as_ptr(), runtime)
    }

    /// Refuses a block of another runtime, or of one that is gone.
    pub(crate) fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        if self.belongs_to(runtime) {
            Ok(())
        } else if self.runtime.strong_count() == 0 {
            Err(Stale::DeviceDropped.into())
        } else {
            Err(Misuse::ForeignBlock { block: self.id }.into())
        }
    }

    /// The stream its work goes to when nothing else is said: the one it was allocated on, or the main one if that is gone.
    pub(crate) fn home<'a>(&'a self, runtime: &'a Inner) -> &'a Arc<Lane> {
        if self.home.is_retired() { runtime.main_stream().lane() } else { &self.home }
    }

    pub(crate) fn home_key(&self) -> StreamKey {
        self.home.key
    }

    pub(crate) fn track(&self) -> &Latch<Track> {
        &self.track
    }

    /// Where commands find the byte at an offset; none for a block of no bytes.
    pub(crate) fn place(&self, offset: u64) -> Option<DevicePlace> {
        self.piece.map(|piece| piece.place.plus(offset))
    }

    /// Where kernels find the byte at an offset; 0 for a block of no bytes.
    pub(crate) fn address(&self, offset: u64) -> DeviceAddress {
        DeviceAddress(self.piece.map_or(0, |piece| piece.address.0 + offset))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.upgrade() else { return };
        runtime.blocks().close(self.bytes);
        if let Some(piece) = self.piece {
            let track = self.track.get_mut();
            let uses = match runtime.tracker().mutation() {
                Some(Mutation::UseBeforeFree) => Stamps::default(),
                _ => track.all(),
            };
            runtime.source().release(piece, uses);
        }
    }
}
