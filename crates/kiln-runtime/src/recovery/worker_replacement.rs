//! Replacing a lost worker: the thread that does it, and what a runtime holds of it.

mod open_device;
mod recovery_thread;
mod worker_activity;
mod worker_recovery;

pub(super) use worker_recovery::WorkerRecovery;
