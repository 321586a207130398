//! The laws of the driver interface: conformance tests that every `Driver` must pass.
//!
//! [`kiln_driver::Driver`] says in words what a driver promises. Here each promise is a [`Law`]: a small program against
//! the trait that can tell whether it is kept. CUDA, the simulator in each of its ways to run, every layer around
//! them, and whatever comes later, all run the same list.
//!
//! ```text
//!    Subject ── how to open a fresh driver, which kernels it loads, exclusions with reasons
//!       │
//!    run_all ── for each Law, for each round ── open ── Rig ── law ── give back ── verdict of the subject
//!       │
//!    Summary ── N passed, N failed, N excluded, N skipped
//! ```
//!
//! # Joining
//!
//! A driver joins with one file below `tests/`, of under thirty lines: a function that makes a [`Subject`], and
//! [`laws!`], which makes one test for each chapter.
//!
//! # What a law is like
//!
//! - It is a correct program: it orders its work, frees after the last use, and gives everything back. A checking
//!   layer or a simulator around the driver must find nothing in it; [`Opened::with_verdict`] holds it to that.
//! - It can fail. The crate's own tests run the laws on drivers that are broken on purpose, each in one way, and
//!   show which law finds it.
//! - It measures no time. Where a promise is about time it holds the order of things against the device's own clock.
//! - Where a device lacks a feature, the law checks that the calls say so.
//!
//! An exclusion is data: the name of a law and a reason. An excluded law that is kept is a failure, and
//! so is an exclusion that names no law.
//!
//! # Reading order
//!
//! [`Law`] and [`Chapter`], [`Subject`] and [`Opened`], [`mod@kernels`], [`run_all`], [`Summary`]; then the chapters.
//!
//! # What it does not do
//!
//! It does not measure speed, does not test what stands above the driver interface, and does not try what the contract leaves
//! undefined: a caller that breaks its side is the business of the simulator and of the checking layer.

mod chapters;
mod child_process;
mod driver_under_test;
mod expect;
mod fixture;
pub mod kernels;
mod law;
mod laws_macro;
mod run;
mod skip_log;
mod summary;

pub use driver_under_test::{Loss, Opened, Subject};
pub use fixture::Rig;
pub use kernels::Kernels;
pub use law::{Chapter, Failure, Law, LawVerdict, Stop, all_laws};
pub use run::{run_all, run_chapter, run_once, run_test};
pub use summary::{LawOutcome, LawReport, LawResult, Summary};
