//! Device memory: resources that hand out blocks, a fast heap, and layers over it that each add one feature.
//!
//! ```text
//!     Request ──►  budget ─► stats ─► trace ─► guard …        layers, in any order
//!                     │
//!                     ▼
//!                   heap       thread caches ─► arenas of streams ─► pages or chunks
//!                     │
//!                     ▼
//!              trait Driver    CUDA or the simulated device
//! ```
//!
//! # The contract
//!
//! - A [`MemoryResource`] gives out [`DeviceBlock`]s and takes back its own only. A block is a value with one owner: it
//!   cannot be freed twice, and a free that fails gives it back.
//! - A block is for a stream. Work submitted to that stream after the allocation may use it at once. A free names the last uses on
//!   other streams ([`Stamps`]) and does not wait for them.
//! - A block reaches its next owner only when everything the last one queued is ordered before whatever the next one
//!   queues. What is ordered, an [`Order`] knows; memory only asks.
//! - On a warm path no driver is called, no lock is taken that others hold, and nothing is allocated on the host. No
//!   driver call is made under a lock.
//! - "Out of memory" is the answer after all [steps](ReclaimStep) to reclaim memory were taken, and the error [explains why](Exhausted).
//! - A call that fails has changed nothing.
//!
//! # In reading order
//!
//! [`AllocationRequest`], [`DeviceBlock`], [`MemoryResource`] and [`MemoryResourceExt`]: what is asked for, what is given.
//! [`Heap`] with [`HeapConfig`], [`Spare`] and [`HeapActivity`]; [`Pages`] for blocks of whole pages, [`PagePart`] for handing pages to
//! another process; [`Direct`] and [`DriverPool`] for the driver's allocators. [`layer`] for the layers
//! over them, [`Budget`] for limits that are shared, [`Stack`] for all of it as text, [`LayerView`] for reading what the layers of a stack collected. [`Order`], [`Stamp`] and
//! [`Stamps`]: what memory asks the runtime that submits work. [`PressurePolicy`], [`ReclaimStep`], [`Exhausted`]: when memory is short. [`trace`]
//! writes what happened, [`replay`] does it again, [`workload`] measures.
//!
//! # What it does not do
//!
//! It submits no work except device-side waits when memory is short and, in a guard, fills and copies. It does not
//! move live blocks. It knows no kernels and no buffers; those are in `kiln`.

mod allocate_or_reclaim;
mod allocation_counters;
mod block;
mod budget;
mod byte_size;
mod charge_counter;
mod direct;
mod driver_pool;
mod error;
mod exported_pages;
mod heap;
mod last_use;
pub mod layer;
mod layer_view;
mod out_of_memory;
mod pages;
mod pending_frees;
mod reclaim;
pub mod replay;
mod request;
mod resource;
pub mod resource_stack;
mod resource_totals;
mod stream_order;
mod tag;
pub mod trace;
mod try_reserve;
pub mod workload;

pub use allocation_counters::AllocationCounts;
pub use block::{BlockParts, BlockToken, DeviceBlock, DeviceBlockId, ResourceKey};
pub use budget::{Budget, BudgetReservation, BudgetShortage};
pub use byte_size::{ByteSize, ByteSizeError};
pub use direct::Direct;
pub use driver_pool::{DriverPool, PoolActivity};
pub use error::{Error, ErrorKind, ExhaustedError, FreeError, MemoryRefusal, Result};
pub use exported_pages::PagePart;
pub use heap::{Heap, HeapActivity, HeapConfig, PAGE_BYTES, Spare, SpareError};
pub use last_use::{NoSuchStreamKey, Stamp, Stamps, StreamKey, StreamRef};
pub use layer_view::{LayerView, Layers};
pub use out_of_memory::Exhausted;
pub use pages::Pages;
pub use reclaim::{
    CallbackRegistration, PressureCallback, PressurePolicy, ReclaimAttempt, ReclaimStep, Reclaimed,
};
pub use request::AllocationRequest;
pub use resource::{MemoryResource, MemoryResourceExt};
pub use resource_stack::Stack;
pub use resource_totals::Accounting;
pub use stream_order::{DriverOrder, Order};
pub use tag::{AllocTag, TooManyTags};
pub use try_reserve::HostOutOfMemory;
