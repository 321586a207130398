//! Learning that work is done, without a thread that waits.
//!
//! ```text
//!   ticket.await ─► done already? ─► a short spin ─► queue of its stream ──┐
//!                                                                         ▼
//!      task woken, callback called  ◄───────────────  reactor: one thread of the runtime
//!                                                     looks at one event per busy stream,
//!                                                     sleeps when there is nothing to wait for
//! ```
//!
//! - **One thread for each runtime**, started when it is first needed and gone with the runtime. However many wait, a busy stream costs
//!   one question for each look: what is done on a stream is done in order.
//! - **A look comes after a small part of the time waited so far**, so a wait is never much longer than the work, and long work is seldom
//!   asked about. A new waiter ends the pause.
//! - **No host functions**: after a fault CUDA never runs them. A lost device answers every waiter with its cause at the next look, and at once
//!   if another call met the fault.
//! - **Dropping a future forgets the waiter and nothing else.** Buffers are freed after their last use in any case, and host memory that a
//!   copy writes goes back to its pool with the stamp of the copy.
//! - **The spin is on the device's clock.** On a simulated device time is virtual, so a long spin makes futures of one thread
//!   finish in the order the seed picks, every time.

mod config;
mod reactor;
mod stream_waiters;
mod waiters;

pub use config::CompletionConfig;

pub(crate) use reactor::{Reactor, ReactorHandle};
pub(crate) use waiters::{Outcome, Place, Waiter};
