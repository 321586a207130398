//! Programs on a device: compiled once, dispatched on host data, on resident buffers, or in sequences.
//!
//! A [`Program`] cannot touch anything outside of its buffers, so running one is safe. What a caller gives
//! ([`Bindings`]) and what a program declares become a [`BindingPlan`] (which buffer is how long) and a
//! [`LaunchPlan`] (grid, block, shared memory). Both are plain values: they know no device, and every refusal happens in them, before anything
//! is allocated or queued.
//!
//! ```text
//!   Program ─ Backend::compile ─ Pipeline ┐
//!   Bindings ─ BindingPlan ─ LaunchPlan ──┴─ Sequence ─ one submission ─ one wait
//! ```
//!
//! - A dispatch is a [`Sequence`] of one step, so no route differs from another. One that does not block is a [`PendingDispatch`], a future.
//! - A [`ProgramCall`] queues one program on resident buffers, or makes it a node of a graph that has other work, too: library calls, copies, launches.
//! - An output that kiln allocates is zero before the program runs; one that the caller brought keeps what the program does not write.
//! - A trap is an error with its code and thread; host vectors are then as they were, and resident buffers are
//!   [not to be trusted](kiln_runtime::GpuRef::is_trusted). The same holds of a program that was not done in time, and of a
//!   sequence that the device took in part.
//! - [`Collectives`] (all-reduce, all-gather, reduce-scatter, broadcast) are recorded like copies. There are communicators of one rank today.
//! - A [`Typed`] handle has the parameters of its program in its type, and what does not fit them does not compile.
//!
//! ```
//! use kiln::{DeviceRuntime, program::{Backend, Bindings, Program}};
//!
//! let saxpy = Program::build("saxpy", |k| {
//!     let a = k.scalar::<f32>("a");
//!     let (x, y) = (k.input::<f32>("x"), k.in_out::<f32>("y"));
//!     k.over(y);
//!     let i = k.global_x();
//!     y.store(i, a * x.load(i) + y.load(i));
//! }).unwrap();
//!
//! let backend = Backend::over(DeviceRuntime::simulated(1)?);
//! let saxpy = backend.compile(&saxpy)?;
//! let mut y = vec![1.0f32; 3];
//! saxpy.dispatch(Bindings::new().scalar("a", 2.0f32).input("x", &[1.0f32, 2.0, 3.0]).in_out("y", &mut y))?;
//! assert_eq!(y, [3.0, 5.0, 7.0]);
//! # Ok::<(), kiln::Error>(())
//! ```

mod binding;
mod dispatch;
mod dispatch_config;
mod element_kind;
mod error;
mod program_backend;
mod program_call;
mod sequence;
mod single_rank_collective;
mod typed_program;

pub use binding::{
    Argument, Arguments, Bindings, Kept, Outputs, Parameters, ProgramParameter, ProgramValue, Read,
    ReadWrite, Write,
};
pub use dispatch::Dispatched;
pub use dispatch_config::{Converge, DispatchConfig, Speculation};
pub use element_kind::ElementKind;
pub use error::ProgramError;
pub use program_backend::{Backend, Pipeline};
pub use program_call::ProgramCall;
pub use sequence::{PendingDispatch, Sequence, Step, Turn};
pub use single_rank_collective::{
    CollectiveError, Collectives, Communicator, CommunicatorConfig, ReduceOp, Reduction,
};
pub use typed_program::Typed;

pub use kiln_ir::{Binding, BindingPlan, LaunchPlan, PlanError, Program};
