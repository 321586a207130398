//! A device behind a queue: requests keep working while the device is lost and rebuilt.
//!
//! ```text
//!   submit(request) ─► bounded queue ─► one thread ─► DeviceRuntime ─► reactor
//!        │                 │ stashed while the device is rebuilt          │
//!        ▼                 │ refused when full, closed or failed          ▼
//!      Reply  ◄────────────┴─────────────── exactly one answer ◄──── work done
//! ```
//!
//! - **Every request gets exactly one typed reply**: its output, or [`Refused`] with the reason and the request itself, so that host buffers
//!   come back whatever happens: overflow, shutdown, a fault, a panic in the request.
//! - **Work overlaps.** The thread queues one request after the other and answers each when its ticket is done; it waits for none.
//! - **A lost device stashes.** While it is rebuilt, requests wait in the same bounded queue; what was in flight fails with the cause. A
//!   service that may [`Restart`] builds a new runtime itself, after a growing pause and so many times at most; then it has failed,
//!   and answers at once.
//! - **Load is measured**, on the device's clock, and a [`DeviceFleet`] sends each request to the device that is likely to finish it first.
//!   A device that fails requests is avoided and probed; a request it refuses goes to another one.
//!
//! No actor framework is needed: a [`Reply`] can be awaited on any executor or waited for. With the feature `kameo` a service is also an
//! actor of that crate.

#![forbid(unsafe_code)]

mod circuit_breaker;
mod device_service;
mod fleet;
mod fleet_members;
#[cfg(feature = "kameo")]
mod kameo;
mod queue;
mod rebuild_limit;
mod refused;
mod reply;
mod request;
mod service_load;
mod service_thread;
mod standard_requests;

#[cfg(feature = "kameo")]
pub use self::kameo::DeviceActor;
pub use device_service::{DeviceService, ServiceConfig};
pub use fleet::DeviceFleet;
pub use rebuild_limit::Restart;
pub use refused::{RefusalReason, Refused};
pub use reply::Reply;
pub use request::{Request, Started};
pub use service_load::Load;
pub use standard_requests::{Readback, Task, Upload};
