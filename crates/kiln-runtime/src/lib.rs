//! The runtime of one device: streams, memory, order, launches, graphs, code and recovery.
//!
//! Users import the crate `kiln`, which has everything here under the same names.

pub mod backend;
mod buffer;
pub mod cache;
mod code;
mod completion;
mod error;
pub mod foreign;
mod graph;
#[doc(hidden)]
pub mod internal;
mod launch;
mod misuse;
#[doc(hidden)]
pub mod order;
pub mod prober;
mod runtime;
pub mod state;
pub mod survival;
pub mod telemetry;

pub use backend::{BackendContext, BackendParts, CachedBackend};
pub use buffer::{Element, GpuRef, Memory, PinnedBuffer, Stale};
pub use code::{CodeCounters, CodeError, ModuleBuilder, Source};
pub use completion::{CompletionConfig, Done, Download};
pub use error::{Error, ErrorKind, Result};
pub use foreign::{BlockUse, ForeignEvent, HandedEvent, PreparedUse, RawPointer, Recorder};
pub use graph::{Graph, GraphBuilder, GraphError, Input, IntoGraph, LaunchUpdate, NodeId, Output};
pub use launch::{
    Accept, ByValue, Effect, Given, In, InOut, Kernel, Launch, Mismatch, Module, Number, OnStream, Out,
    Parameter, ParameterKind, ParameterName, Pass, Signature,
};
pub use misuse::Misuse;
pub use prober::{
    Prober, ProberConfig, TestGate, availability, balanced_partition, gpu_for_test, memory_budget_for,
    policy, probe_backend, probe_backend_with_compile, refresh, require, resolve, scatter, set_policy,
    set_runtime_config,
};
pub use runtime::{
    BlockId, DeviceRuntime, Generation, MemoryConfig, RuntimeConfig, Stream, StreamPool, Ticket,
};
pub use state::{Cause, DeviceState, StateWatch, Status};
pub use survival::{Isolation, PostMortem, worker_entry};
pub use telemetry::{Telemetry, Timed, Timing};
