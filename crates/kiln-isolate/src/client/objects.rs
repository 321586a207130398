//! What the client stores of each object: enough to check every call, and to make the object again in another worker.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kiln_driver::{
    DeviceAddress, DeviceMemory, Error, Function, FunctionAttributes, PartKind, PartLabel, Protection,
    Refusal, Result, SharedBytes,
};

use super::client_state::Remote;
use super::stream_table::StreamCount;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::progress_cells::ProgressCell;
use crate::protocol::wire::{ABORT, IMAGE_COMMUNICATOR, Request, WirePart, WirePlace};

/// A stream.
pub(crate) struct Stream {
    pub(crate) remote: Remote,
    pub(crate) count: Arc<StreamCount>,
    pub(crate) priority: i32,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.remote.shared.streams.remove(self.count.wire);
        self.remote.shared.forget_failures(self.count.wire);
    }
}

/// An event.
pub(crate) struct Event {
    pub(crate) remote: Remote,
    pub(crate) cell: Arc<ProgressCell>,
    pub(crate) timed: bool,
    /// The worker was asked to query the event for this signal.
    pub(crate) watched: AtomicU64,
    last: Mutex<Option<Signal>>,
}

/// The last signal of an event.
#[derive(Clone)]
pub(crate) struct Signal {
    pub(crate) ticket: u64,
    /// The stream it was signalled on, and as which submission.
    pub(crate) stream: Arc<StreamCount>,
    pub(crate) number: u64,
    /// An answer of the worker implied that it is done.
    pub(crate) known_done: bool,
}

impl Event {
    pub(crate) fn new(remote: Remote, cell: Arc<ProgressCell>, timed: bool) -> Self {
        Self { remote, cell, timed, watched: AtomicU64::new(0), last: Mutex::new(None) }
    }

    pub(crate) fn last(&self) -> MutexGuard<'_, Option<Signal>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Device memory that was allocated as such, not mapped from pages.
pub(crate) struct Block {
    pub(crate) wire: u64,
    pub(crate) address: DeviceAddress,
    pub(crate) bytes: u64,
    pub(crate) origin: Origin,
}

/// How memory was allocated, which decides how it is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Direct,
    Pool,
    /// A variable, which is freed with its module.
    Variable,
    /// A block that a resource hands out of other memory.
    Part(PartOrigin),
}

/// What names a block to a worker that checks accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartOrigin {
    pub(crate) place: WirePlace,
    pub(crate) kind: PartKind,
    pub(crate) label: PartLabel,
}

impl Block {
    /// What is made again in another worker, where the memory of pages keeps its contents; none if it is no part of such memory.
    pub(crate) fn kept_part(&self) -> Option<Request<'_>> {
        let Origin::Part(PartOrigin { place: place @ WirePlace::Reservation { .. }, kind, label }) =
            &self.origin
        else {
            return None;
        };
        let kind = match kind {
            PartKind::NewBlock | PartKind::KeptBlock => PartKind::KeptBlock,
            PartKind::Inspection => PartKind::Inspection,
        };
        let part = WirePart { place: *place, bytes: self.bytes, stream: None, kind, label: label.as_str() };
        Some(Request::BeginPart { id: self.wire, part })
    }
}

/// A reserved range.
pub(crate) struct Range {
    pub(crate) wire: u64,
    pub(crate) address: DeviceAddress,
    pub(crate) bytes: u64,
    /// Held while the worker changes the range, so that changes are recorded in the order in which they were made. Commands do not wait
    /// for it.
    pub(crate) changes: Mutex<()>,
    pub(crate) mappings: RwLock<BTreeMap<u64, Mapping>>,
}

/// Pages that are mapped in a range.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) pages: Arc<Pages>,
    pub(crate) protection: Protection,
}

impl Range {
    /// Refuses bytes outside of the range, or without mapped pages.
    pub(crate) fn check_mapped(
        &self,
        call: &'static str,
        handle: &dyn std::fmt::Display,
        offset: u64,
        bytes: u64,
    ) -> Result<()> {
        check_range(call, handle, offset, bytes, self.bytes)?;
        let mappings = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let under = mappings.range(..=at).next_back();
            let next = under.map(|(start, mapping)| start + mapping.pages.bytes).filter(|next| *next > at);
            let Some(next) = next else {
                let what = format!("nothing is mapped at {at:#x} of {handle}");
                return Err(Error::invalid(call, what, "map pages there first"));
            };
            at = next;
        }
        Ok(())
    }
}

/// An allocation of physical memory.
pub(crate) struct Pages {
    pub(crate) remote: Remote,
    pub(crate) bytes: u64,
    /// Whether the caller may export it.
    pub(crate) exportable: bool,
    /// Keeps the memory allocated when the worker ends.
    pub(crate) descriptor: Option<OwnedFd>,
}

/// A host block, shared with the worker.
pub(crate) struct Host {
    pub(crate) remote: Remote,
    pub(crate) file: MemoryFile,
    pub(crate) bytes: Arc<SharedBytes>,
}

/// Loaded code.
pub(crate) struct Module {
    pub(crate) code: Arc<Code>,
    /// Kernels that were looked up, by name.
    pub(crate) functions: Mutex<HashMap<String, Function>>,
    /// Variables that were looked up, by name.
    pub(crate) variables: Mutex<HashMap<String, DeviceMemory>>,
}

/// The worker's part of a module. Kernels hold it too, so that it is not unloaded under a launch.
pub(crate) struct Code {
    pub(crate) remote: Remote,
    pub(crate) kind: u8,
    pub(crate) image: MemoryFile,
}

/// A kernel.
pub(crate) struct Kernel {
    pub(crate) wire: u64,
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) attributes: FunctionAttributes,
    /// The launch shape that was last found to fit: threads and shared bytes.
    pub(crate) fits: AtomicU64,
    /// How many blocks of each shape fit on a multiprocessor.
    pub(crate) resident: Mutex<HashMap<(u32, u32), u32>>,
}

impl Kernel {
    /// Whether a launch of it ends a rank of a communicator.
    pub(crate) fn aborts(&self) -> bool {
        self.code.kind == IMAGE_COMMUNICATOR && self.name == ABORT
    }

    /// The size of its packed arguments, where it is known.
    pub(crate) fn argument_bytes(&self) -> Option<u32> {
        let spans = self.attributes.parameters.as_ref()?;
        Some(spans.iter().map(|span| span.offset.saturating_add(span.bytes)).max().unwrap_or(0))
    }
}

/// A graph, with its encoded nodes.
pub(crate) struct Graph {
    pub(crate) remote: Remote,
    pub(crate) nodes: Mutex<Vec<Vec<u8>>>,
    /// Counts changes of the nodes; changed under their lock.
    pub(crate) version: AtomicU64,
}

/// Refuses bytes outside of a block.
pub(crate) fn check_range(
    call: &'static str,
    handle: &dyn std::fmt::Display,
    offset: u64,
    bytes: u64,
    size: u64,
) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    let handle = handle.to_string();
    Err(Error::refused(call, Refusal::OutOfRange { handle, offset, bytes, size }))
}
