//! Device states, worker processes, and what survives a fault.
//!
//! # States
//!
//! A [`DeviceRuntime`](crate::DeviceRuntime) is in one [`Phase`] at a time. Which may follow which is a table, and a change that the table
//! does not have is refused:
//!
//! ```text
//!                          ┌────────────────────────────────┐
//!                          ▼                                │ one generation later
//!   Starting ──────────► Ready ──────► Lost ─────────► Rebuilding
//!      │                   │           │  ▲                │ │
//!      │                   │           │  └────────────────┘ │
//!      │                   │           ▼                     ▼
//!      └───────────────────┼────────► Failed ◄──────────────┘
//!                          ▼           │
//!                     ShuttingDown ◄───┘   (from every phase but Stopped)
//!                          │
//!                          ▼
//!                       Stopped
//! ```
//!
//! - **A fault is seen in one place.** Every error of the driver, in any call, passes a layer around it; one that says that
//!   the device is lost changes the state, and no call pays for that until there is one.
//! - **The cause is kept**: the code, the kernel, the ticket and the line that launched it ([`Cause`]). Waiters get it, and so do
//!   later calls.
//! - **Inside the process a lost device cannot be repaired**, so Lost becomes Failed at once. A [`RecoveryControl`], which can rebuild the
//!   context somewhere else, takes over that decision.
//! - **A watcher may be late.** [`Status`] counts changes and generations, so that a late watcher sees a rebuild. Callbacks
//!   get every change, in order.
//!
//! # Worker processes
//!
//! With [`Isolation::Process`] the context lives in a worker process, and a lost worker is replaced.

pub use kiln_runtime::device_state::{Cause, DeviceState, ForbiddenChange, Keep, Phase, Status};
pub use kiln_runtime::recovery::*;
pub use kiln_runtime::{Changed, StateWatch, Subscription};
