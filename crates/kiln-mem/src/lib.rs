//! Device memory: resources that hand out blocks, a heap that makes it cheap, and decorators that each know one thing.
//!
//! ```text
//!     Request ──►  budget ─► stats ─► trace ─► guard …        decorators, in any order
//!                     │
//!                     ▼
//!                   heap       front caches ─► arenas of streams ─► pages or chunks
//!                     │
//!                     ▼
//!              trait Driver    CUDA or the simulated device
//! ```
//!
//! # The contract
//!
//! - A [`MemoryResource`] gives out [`DeviceBlock`]s and takes back its own only. A block is a value with one owner: it
//!   cannot be freed twice, and a free that fails gives it back.
//! - A block is for a stream. Work submitted to that stream after the allocation may use it at once. Whoever frees it
//!   names the last uses on other streams ([`Stamps`]); it does not wait for them.
//! - A block reaches its next owner only when everything the last one queued is ordered before whatever the next one
//!   queues. What is ordered, an [`Order`] knows; memory only asks.
//! - On a warm path no driver is called, no lock is taken that others hold, and nothing is allocated on the host. No
//!   driver call is made under a lock.
//! - "Out of memory" is said after everything on the [ladder](Rung) was tried, and [explains itself](Exhausted).
//! - A call that fails has changed nothing.
//!
//! # In reading order
//!
//! [`Request`], [`DeviceBlock`], [`MemoryResource`] and [`MemoryResourceExt`]: what is asked for, what is given.
//! [`Heap`] with [`HeapConfig`], [`Spare`] and [`HeapActivity`]; [`Pages`] for blocks of whole pages, [`PagePart`] for handing pages to
//! another process; [`Direct`] and [`DriverPool`] for what the driver does by itself. [`decorator`] for what
//! stands around them, [`Budget`] for limits that are shared, [`Stack`] for all of it as text. [`Order`], [`Stamp`] and
//! [`Clocks`]: the seam to whoever submits work. [`Pressure`], [`Rung`], [`Exhausted`]: when memory is short. [`trace`]
//! writes what happened, [`replay`] does it again, [`workload`] measures.
//!
//! # What it does not do
//!
//! It submits no work of its own except device-side waits under pressure and, in a guard, fills and copies. It does not
//! move live blocks. It knows no kernels and no buffers; those are in `kiln`.

mod account;
mod accounting;
mod block;
mod budget;
mod byte_size;
pub mod decorator;
mod direct;
mod driver_memory;
mod driver_pool;
mod error;
mod exhausted;
mod heap;
mod ladder;
mod ledger;
mod order;
mod page_part;
mod pages;
mod pending;
pub mod replay;
mod request;
mod resource;
pub mod stack;
mod stamp;
mod tag;
pub mod trace;
pub mod workload;

pub use accounting::Accounting;
pub use block::{BlockId, BlockParts, DeviceBlock, ResourceKey, Token};
pub use budget::{Budget, Reserved, Shortage};
pub use byte_size::{BadByteSize, ByteSize};
pub use direct::Direct;
pub use driver_pool::DriverPool;
pub use error::{Error, ErrorKind, ExhaustedError, FreeError, Refusal, Result};
pub use exhausted::Exhausted;
pub use heap::{BadSpare, Heap, HeapActivity, HeapConfig, PAGE_BYTES, Spare};
pub use ladder::{Callback, Pressure, Registration, Relief, Rung, Step};
pub use ledger::Counts;
pub use order::{Clocks, DriverOrder, Order};
pub use page_part::PagePart;
pub use pages::Pages;
pub use request::Request;
pub use resource::{MemoryResource, MemoryResourceExt};
pub use stack::Stack;
pub use stamp::{Stamp, Stamps, StreamKey, StreamRef, TooManyStreams};
pub use tag::{AllocTag, TooManyTags};
