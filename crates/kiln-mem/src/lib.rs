//! kiln-mem

mod account;
mod accounting;
mod atomic;
mod block;
mod budget;
mod error;
mod exhausted;
mod heap;
mod ladder;
mod order;
mod request;
mod resource;
mod stamp;
mod tag;
mod thread;

pub use accounting::Accounting;
pub use block::{BlockId, BlockParts, DeviceBlock, ResourceKey, Token};
pub use budget::{Budget, Reserved, Shortage};
pub use error::{Error, ErrorKind, ExhaustedError, FreeError, Refusal, Result};
pub use exhausted::Exhausted;
pub use heap::{Heap, HeapConfig};
pub use ladder::{Callback, Pressure, Registration, Relief, Rung, Step};
pub use order::{Clocks, DriverOrder, Order};
pub use request::Request;
pub use resource::{MemoryResource, MemoryResourceExt};
pub use stamp::{Stamp, Stamps, StreamKey, StreamRef, TooManyStreams};
pub use tag::{AllocTag, TooManyTags};
