//! A CUDA device runtime for Rust that also runs with no GPU.

pub mod backend;
mod buffer;
pub mod cache;
mod code;
mod completion;
mod error;
pub mod foreign;
mod graph;
mod launch;
pub mod libraries;
mod misuse;
#[doc(hidden)]
pub mod order;
pub mod probe;
pub mod program;
mod runtime;
pub mod service;
pub mod state;
pub mod survival;
pub mod telemetry;

pub use backend::{BackendContext, BackendParts, CachedBackend};
pub use buffer::{Element, GpuRef, Memory, PinnedBuffer, Stale};
pub use code::{CodeCounters, CodeError, ModuleBuilder, Source};
pub use completion::{CompletionConfig, Done, Download};
pub use error::{Error, ErrorKind, Result};
pub use foreign::{BlockUse, ForeignEvent, HandedEvent, PreparedUse, RawPointer, Recorder};
pub use graph::{Graph, GraphBuilder, GraphError, GraphLaunch, Input, LaunchUpdate, NodeId, Output};
pub use launch::{
    Accept, Effect, Given, In, InOut, Kernel, Launch, Mismatch, Module, Number, Out, Parameter,
    ParameterKind, ParameterName, Pass, Signature,
};
pub use misuse::Misuse;
pub use probe::{
    Absence, Availability, Policy, availability, balanced_partition, gpu_for_test, memory_budget_for, policy,
    probe_backend, probe_backend_with_compile, refresh, require, resolve, scatter, set_policy,
    set_runtime_config,
};
pub use program::{Backend, Bindings, DispatchConfig, Pipeline, Program, Sequence};
pub use runtime::{
    BlockId, DeviceRuntime, Generation, MemoryConfig, RuntimeConfig, Stream, StreamPool, Ticket,
};
pub use state::{Cause, DeviceState, StateWatch, Status};
pub use survival::{Isolation, PostMortem, worker_entry};
pub use telemetry::{Telemetry, Timed, Timing};
