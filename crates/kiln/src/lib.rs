//! A CUDA device runtime for Rust that also runs without a GPU.
//!
//! kiln finds the GPU, owns its memory, streams and kernels, and orders work across streams. Where there is no GPU, the same program runs
//! on a simulated device that executes PTX and checks accesses.
//!
//! Use it instead of cudarc when you use several streams and do not want to place events, when you allocate often or need budgets, when
//! tests must run without a GPU, or when a device fault must not end your process. Matrix products, solvers, Fourier
//! transforms, convolutions, attention, sorts and random numbers are in the crate `kiln-libs`, which this crate does not re-export. Collectives
//! over several processes, by NCCL on GPUs, are in [`group`].
//!
//! # The model
//!
//! - A [`DeviceRuntime`] is one device. Work is submitted to its streams and runs asynchronously.
//! - A [`GpuRef`] is a typed buffer. Clones share the memory; the last one frees it after its last use.
//! - A [`Kernel`] comes from CUDA C, PTX or machine code; its PTX says what parameters it takes and through which pointers it writes.
//! - A [`Launch`] names a kernel, a shape, and its arguments with their access. It is checked before anything is queued.
//! - A [`Stream`] runs its submissions in order. Between streams, kiln orders what touches the same bytes, and only that.
//! - A [`Ticket`] is one submission: wait for it, poll it, `.await` it, or drop it.
//! - A [`Graph`] is recorded work that is replayed with one driver call.
//! - An [`Error`] says what went wrong and what to do next, and answers predicates such as [`is_retryable`](Error::is_retryable).
//!
//! ```
//! use kiln::DeviceRuntime;
//!
//! # const SCALE: &str = "
//! #     .version 7.0
//! #     .target sm_70
//! #     .address_size 64
//! #     .visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 n) {
//! #         .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
//! #         ld.param.u64 %rd1, [data]; ld.param.f32 %f1, [factor]; ld.param.u32 %r5, [n];
//! #         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
//! #         mad.lo.u32 %r4, %r1, %r2, %r3;
//! #         setp.ge.u32 %p, %r4, %r5;
//! #         @%p ret;
//! #         mul.wide.u32 %rd2, %r4, 4;
//! #         add.s64 %rd3, %rd1, %rd2;
//! #         ld.global.f32 %f2, [%rd3]; mul.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3;
//! #         ret;
//! #     }";
//! # fn main() -> kiln::Result<()> {
//! let gpu = DeviceRuntime::simulated(1)?; // or `auto()`: a CUDA device where there is one
//! let scale = gpu.kernel(SCALE, "scale")?; // scale(float* data, float factor, unsigned n), as PTX or CUDA C
//! let data = gpu.upload(&[1.0_f32; 1000])?;
//!
//! // SAFETY: `scale` touches the first n elements of `data` and nothing else, and it ends.
//! unsafe { gpu.launch(&scale).threads(1000).read_write(&data).value(3.0_f32).value(1000_u32).submit()? };
//!
//! assert_eq!(data.download()?, [3.0; 1000]); // waits for the launch
//! # Ok(())
//! # }
//! ```
//!
//! # Where to find the rest
//!
//! | module | what is in it |
//! |---|---|
//! | [`buffer`] | pinned host buffers, element types, stale handles |
//! | [`launch`] | arguments, signatures, modules, and why a launch is refused |
//! | [`code`], [`code_cache`] | how kernels are compiled, and where compiled code is kept |
//! | [`graph`] | recording and changing graphs |
//! | [`stream`], [`completion`] | the stream pool; futures |
//! | [`memory`] | memory stacks, budgets, tags, the heap |
//! | [`order`] | submission numbers and stream identifiers |
//! | [`probe`], [`libraries`] | which devices and libraries there are |
//! | [`backend`] | for a library that uses a device beside other libraries of the program: the shared runtime, its stream, modules and reusable buffers |
//! | [`error`] | kinds of errors, and what each carries |
//! | [`recovery`] | device states, worker processes, what survives a fault |
//! | [`telemetry`] | counters, gauges, device time |
//! | [`foreign`] | work, memory, streams and events of other libraries |
//! | [`ir`] | kernels as typed programs: builder, text, verifier, interpreter, PTX (feature `program`) |
//! | [`program`] | such programs on a device: pipelines, sequences, typed handles (feature `program`) |
//! | [`service`] | a device behind a queue, fleets of devices (feature `service`) |
//! | [`group`] | several devices: copies between them, buffers on all of them, measured load (feature `group`) |
//! | [`sim`] | simulated machines, findings, fault plans (feature `sim`) |
//! | [`testing`] | tests on the simulated device under many seeds (feature `sim`) |
//! | [`checking`] | what a simulated device found, and what a finding does |
//! | [`driver`] | the trait every device implements, and layers around it |
//!
//! # What it does not do
//!
//! It moves nothing between devices unless asked, and supports NVIDIA GPUs on Linux only. The simulator's limits are
//! listed in the book.
//!
//! # Features
//!
//! `sim`, `isolate`, `group`, `program` and `service` are on by default and can be left out. `cudarc` exchanges streams, events and slices with that
//! crate; `kameo` makes a device service an actor of that crate.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod buffer;
pub mod checking;
pub mod code;
pub mod completion;
pub mod error;
pub mod graph;
pub mod launch;
pub mod memory;
pub mod order;
pub mod probe;
pub mod recovery;
pub mod stream;
#[cfg(feature = "sim")]
pub mod testing;

pub use kiln_probe::Policy;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use kiln_runtime::worker_entry;
pub use kiln_runtime::{
    DeviceRuntime, Error, GpuRef, Graph, Kernel, Launch, Result, RuntimeConfig, Stream, Ticket,
};

#[doc(inline)]
pub use kiln_driver as driver;
#[cfg(feature = "group")]
#[doc(inline)]
pub use kiln_group as group;
#[cfg(feature = "program")]
#[doc(inline)]
pub use kiln_ir as ir;
#[doc(inline)]
pub use kiln_probe::libraries;
#[cfg(feature = "program")]
#[doc(inline)]
pub use kiln_program as program;
#[doc(inline)]
pub use kiln_runtime::{backend, code_cache, foreign, nvtx, telemetry, tensor};
#[cfg(feature = "service")]
#[doc(inline)]
pub use kiln_service as service;
#[cfg(feature = "sim")]
#[doc(inline)]
pub use kiln_sim as sim;
#[doc(inline)]
pub use kiln_trace as trace;
