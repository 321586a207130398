//! The runtime of one device: streams, memory, order, launches, graphs, code and recovery.
//!
//! Users import the crate `kiln`, which has everything here under the same names.
//!
//! # Layers
//!
//! A module imports modules below it and no other; `cargo xtask tidy` checks that. Methods of [`DeviceRuntime`] stand beside the type
//! they hand out, so the core need not know buffers, kernels or graphs.
//!
//! ```text
//!   backend                                      what the parts of a program share
//!   prober     telemetry                         one runtime per device; counters as a snapshot
//!   code                                         from source to kernels, in memory and on disk
//!   graph      recovery  foreign  future         recorded work; replacing a worker; work of other libraries; awaiting
//!   launch                                       kernels and their launches
//!   buffer                                       typed device memory and pinned host memory
//!   runtime                                      the core: streams, blocks, submissions, transfers, tickets, recordings
//!   completion isolation  resubmission          the thread that sees work end; configuration; work that is done again
//!   error                                        the one error, and the reasons it is made of
//!   device_state  signature  code_cache          phases, causes and losses; parameters of kernels; files of compiled code
//!   ids        wake       counters  span         names; waking tasks and threads; numbers; tracing
//! ```
//!
//! The core calls the recovery of worker processes through a hook, and keeps what the code cache needs by its type.

#![cfg_attr(
    not(all(feature = "isolate", target_os = "linux")),
    allow(
        dead_code,
        unused_imports,
        reason = "much of the core is called by the recovery of worker processes only"
    )
)]

pub mod backend;
mod buffer;
mod code;
pub mod code_cache;
mod completion;
mod counters;
pub mod device_state;
mod error;
mod findings;
pub mod foreign;
mod future;
mod graph;
mod ids;
#[doc(hidden)]
pub mod internal;
mod isolation;
mod launch;
pub mod prober;
pub mod recovery;
mod resubmission;
mod runtime;
mod signature;
pub mod telemetry;
pub mod tensor;
mod tracing_span;
mod wake;

pub use backend::{
    BackendContext, BackendOptions, BackendParts, CachedBackend, probe_backend, probe_backend_on,
    probe_backend_with_compile,
};
pub use buffer::{Element, GpuRef, LastWrite, Memory, PinnedBuffer};
pub use code::{CodeCounters, ModuleBuilder, Source};
pub use completion::CompletionConfig;
pub use device_state::{Cause, DeviceState, Status};
pub use error::{
    CodeError, Error, ErrorKind, FINDINGS_VARIABLE, GraphError, Misuse, OutOfHostMemory, RecordingError,
    Result, SealError, Stale, TRACE_VARIABLE, UnknownFindings,
};
pub use findings::Findings;
pub use foreign::{BlockUse, ForeignEvent, HandedEvent, PreparedUse, RawPointer, Recorder, TrackError};
pub use future::{Done, Download};
pub use graph::{Graph, GraphBuilder, Input, IntoGraph, LaunchUpdate, NodeId, Output};
pub use ids::{BlockId, Generation};
#[doc(inline)]
pub use kiln_cuda::nvtx;
pub use launch::{Accept, ByValue, In, InOut, Kernel, Launch, Module, OnStream, Out, Pass};
pub use prober::{
    Prober, ProberConfig, TestGate, availability, balanced_partition, gpu_for_test, memory_budget_for,
    policy, refresh, require, resolve, scatter, set_policy, set_runtime_config,
};
pub use recovery::Isolation;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use recovery::{PostMortem, worker_entry};
pub use runtime::{
    Changed, DeviceRuntime, Drained, FindingList, MemoryConfig, RuntimeConfig, StateWatch, Stream,
    StreamPool, Subscription, Ticket, Timed, Timing,
};
pub use signature::{Effect, Given, Mismatch, Number, Parameter, ParameterKind, ParameterName, Signature};
pub use telemetry::Telemetry;
