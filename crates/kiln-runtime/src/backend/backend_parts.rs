//! `BackendParts`: the runtime and the default stream that a backend is created with.

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Capability, Driver};

use super::options::BackendOptions;
use crate::error::Result;
use crate::prober::Prober;
use crate::runtime::{DeviceRuntime, Stream};

/// The device a backend works on: its runtime, the stream to use by default, and the capability to compile for.
#[derive(Clone)]
pub struct BackendParts {
    runtime: &'static DeviceRuntime,
    stream: Stream,
}

impl BackendParts {
    fn new(runtime: &'static DeviceRuntime) -> Self {
        Self { runtime, stream: runtime.main_stream().clone() }
    }

    /// The runtime, shared by every backend on this device.
    pub fn runtime(&self) -> &'static DeviceRuntime {
        self.runtime
    }

    /// The device below it.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        self.runtime.driver()
    }

    /// The default stream: the runtime's main one, shared by every backend that says nothing else. It is not CUDA's
    /// legacy default stream, which would wait for all others. A backend that wants to overlap with its neighbours
    /// leases one from the runtime.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What to compile for.
    pub fn capability(&self) -> Capability {
        self.runtime.info().capability
    }
}

impl fmt::Debug for BackendParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.stream.id(), self.runtime)
    }
}

impl Prober {
    /// The parts for a backend, on the best device that the policy in force leads to and that can be opened.
    ///
    /// # Errors
    /// Every one carries the label, such as `"solver backend: no CUDA runtime available"` and
    /// `"solver backend: failed to create CUDA context for device 0"`, with the cause, its code and its call below.
    pub fn probe_backend(&self, label: &str) -> Result<BackendParts> {
        self.probe_backend_on(label, &BackendOptions::default())
    }

    /// As [`probe_backend`](Self::probe_backend), under a policy and on a device of the caller's choice.
    ///
    /// # Errors
    /// As [`probe_backend`](Self::probe_backend), and if the chosen device does not exist.
    pub fn probe_backend_on(&self, label: &str, options: &BackendOptions) -> Result<BackendParts> {
        let chosen = self.choose(options.policy, &options.device);
        chosen.map(BackendParts::new).map_err(|error| error.labelled(label))
    }

    /// As [`probe_backend`](Self::probe_backend), and one build step on the parts: compile, load, allocate.
    ///
    /// # Errors
    /// As [`probe_backend`](Self::probe_backend), and what the step answers, labelled too.
    pub fn probe_backend_with_compile<T>(
        &self,
        label: &str,
        build: impl FnOnce(BackendParts) -> Result<T>,
    ) -> Result<T> {
        build(self.probe_backend(label)?).map_err(|error| error.labelled(label))
    }
}
