//! A CUDA device runtime for Rust that also runs with no GPU.

#![forbid(unsafe_code)]

pub mod probe;
pub mod state;

pub use kiln_probe::{Absence, Availability, Policy, libraries};
#[doc(hidden)]
pub use kiln_runtime::order;
pub use kiln_runtime::{
    Accept, BackendContext, BackendParts, BlockId, BlockUse, ByValue, CachedBackend, Cause, CodeCounters,
    CodeError, CompletionConfig, DeviceRuntime, DeviceState, Done, Download, Effect, Element, Error,
    ErrorKind, ForeignEvent, Generation, Given, GpuRef, Graph, GraphBuilder, GraphError, HandedEvent, In,
    InOut, Input, IntoGraph, Isolation, Kernel, Launch, LaunchUpdate, Memory, MemoryConfig, Mismatch, Misuse,
    Module, ModuleBuilder, NodeId, Number, OnStream, Out, Output, Parameter, ParameterKind, ParameterName,
    Pass, PinnedBuffer, PostMortem, PreparedUse, RawPointer, Recorder, Result, RuntimeConfig, Signature,
    Source, Stale, StateWatch, Status, Stream, StreamPool, Telemetry, Ticket, Timed, Timing, availability,
    balanced_partition, gpu_for_test, memory_budget_for, policy, probe_backend, probe_backend_with_compile,
    refresh, require, resolve, scatter, set_policy, set_runtime_config, worker_entry,
};
pub use kiln_runtime::{backend, cache, foreign, survival, telemetry};

#[doc(inline)]
pub use kiln_program as program;
pub use kiln_program::{Backend, Bindings, DispatchConfig, Pipeline, Program, Sequence};
#[doc(inline)]
pub use kiln_service as service;
