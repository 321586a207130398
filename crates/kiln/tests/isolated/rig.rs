//! A runtime over a worker that is this very binary, and what must not be left of it.

use std::sync::Arc;
use std::time::Duration;

use kiln::order::Mutation;
use kiln::recovery::{DeviceSpec, Isolation, PostMortem, Process, RestartPolicy, WorkerEntry};
use kiln::recovery::{Phase, Status};
use kiln::{DeviceRuntime, RuntimeConfig};

/// Restarts without pause, as many as a test likes.
pub(crate) const RESTARTS: RestartPolicy = RestartPolicy {
    limit: 10_000,
    span: Duration::from_secs(600),
    pause: Duration::ZERO,
    longest_pause: Duration::ZERO,
};

/// This binary's test `worker` as the worker.
pub(crate) fn process() -> Process {
    Process { entry: WorkerEntry::Test("worker".into()), restarts: RESTARTS, ..Process::default() }
}

pub(crate) fn open(seed: u64, process: Process) -> DeviceRuntime {
    open_on(&DeviceSpec::simulated(seed), process)
}

pub(crate) fn open_on(backend: &DeviceSpec, process: Process) -> DeviceRuntime {
    open_mutated(backend, process, None)
}

/// With a rule taken out.
pub(crate) fn open_mutated(
    backend: &DeviceSpec,
    process: Process,
    mutation: Option<Mutation>,
) -> DeviceRuntime {
    let isolation = Isolation::Process(process);
    let config = RuntimeConfig { isolation, mutation, ..RuntimeConfig::default() };
    DeviceRuntime::open(backend, config).unwrap()
}

/// Ends the worker and waits until another has taken over.
pub(crate) fn kill(gpu: &DeviceRuntime) -> Arc<PostMortem> {
    let generation = gpu.status().generation.0;
    gpu.isolated_device().unwrap().kill_worker();
    recovered(gpu, generation)
}

/// Waits until the generation after that one is ready.
pub(crate) fn recovered(gpu: &DeviceRuntime, generation: u64) -> Arc<PostMortem> {
    let ready = |status: &Status| status.generation.0 > generation && status.phase() == Phase::Ready;
    let over = |status: &Status| ready(status) || status.phase().is_over();
    let status = gpu.watch().wait_until(over, Some(Duration::from_secs(60)));
    assert!(ready(&status), "{status}");
    gpu.post_mortems().last().unwrap().clone()
}
