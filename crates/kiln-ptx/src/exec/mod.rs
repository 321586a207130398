//! Execution of PTX without a GPU.
//!
//! A [`Program`] is a module made ready to run. An [`Entry`] of it is launched over a grid of blocks and reads and
//! writes memory that the caller provides as a [`Memory`]. Everything a kernel does is checked while it runs, and an
//! [`Outcome`] says what was found, what was printed and how much was executed.
//!
//! # The contract
//!
//! - Integers and IEEE operations give the bits a GPU gives. Functions the hardware approximates are computed closer
//!   than PTX demands.
//! - Every access is checked: bounds of the block it hits, freed memory, alignment; on request also whether a thread
//!   wrote what is read. Shared memory is watched for races, barriers for threads that do not come.
//! - A kernel cannot hang: a warp that runs longer than [`Options::step_limit`] and threads that wait for each other
//!   end the launch with a finding.
//! - A launch on one thread is deterministic; [`Options::seed`] picks another order of blocks and warps.
//! - What is not executed (matrices, bulk copies, clusters, textures) is found by [`Entry::unsupported`] beforehand and
//!   ends a launch, with a finding that names instruction and line, only when a thread reaches it.
//!
//! # The model
//!
//! ```text
//! Module ── Program ── Entry ─ launch(shape, arguments, globals, memory, options) ─▶ Outcome
//!                        │ lowered once: steps with resolved operands
//!                        ▼
//!             blocks on host threads ── warps in turn ── lane groups
//!                 │ shared memory, barriers   │ local memory     │ one loop over 32 lanes per step
//! ```
//!
//! Types in reading order: [`Program`], [`Entry`], [`LaunchShape`], [`Options`], [`Memory`], [`Outcome`], [`Finding`].
//!
//! # What it does not do
//!
//! It does not model caches, timing or weak memory: accesses happen in program order. It does not look for races in
//! global memory.

mod alu;
mod barrier;
mod block;
mod check;
mod code;
mod column;
mod entry;
mod fault;
mod finding;
mod launch;
mod log;
mod lower;
mod memory;
mod options;
mod outcome;
mod printf;
mod program;
mod random;
mod site;
mod variables;
mod warp;

pub use entry::{Entry, LaunchError};
pub use fault::Fault;
pub use finding::{AccessKind, BadAccess, Finding, FindingKind};
pub use memory::window::WINDOWS_START;
pub use memory::{Cells, DeviceHeap, Memory, Miss, MissKind, SimpleMemory, Span, Words};
pub use options::{Checks, LaunchShape, Options};
pub use outcome::{Counters, Outcome};
pub use program::{Program, UnsupportedInstruction};
pub use site::Site;
pub use variables::ModuleVariable;
