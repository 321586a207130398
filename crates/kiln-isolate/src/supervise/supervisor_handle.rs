//! The way to the supervisor's thread: other threads give it jobs and wait for their results.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kiln_driver::DeviceInfo;
use rustix::event::{EventfdFlags, eventfd};

use super::cancellation::Cancellation;
use super::config::IsolationConfig;
use super::standby::StandbySync;
use super::start_error::WorkerStartError;
use super::supervisor::WorkerSupervisor;
use super::worker_objects::WorkerHandle;
use crate::client::loss_cause::LossCause;
use crate::client::stream_table::StreamTable;

/// Something the thread does.
pub(super) type Job = Box<dyn FnOnce(&mut WorkerSupervisor) + Send>;

/// Gives jobs to the supervisor's thread. Dropping it ends the thread and every worker.
pub(crate) struct SupervisorHandle {
    jobs: Mutex<mpsc::Sender<Job>>,
    wake: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A worker that replaces another.
pub(crate) struct Replacement {
    pub(crate) worker: WorkerHandle,
    pub(crate) info: DeviceInfo,
    /// Time to take the standby or to start a worker. Killing the worker before is not part of it.
    pub(crate) start: Duration,
    pub(crate) standby: bool,
}

impl SupervisorHandle {
    /// Starts the thread, and on it the first worker.
    pub(crate) fn start(
        config: Arc<IsolationConfig>,
        streams: Arc<StreamTable>,
        standby: Arc<StandbySync>,
        cancellation: Arc<Cancellation>,
    ) -> Result<(Self, Replacement), WorkerStartError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| WorkerStartError::System { what: "an eventfd", error: error.into() })?;
        let wake = Arc::new(wake);
        let (jobs, queue) = mpsc::channel();
        let supervisor = WorkerSupervisor::new(config, streams, standby, cancellation);
        let seen = wake.clone();
        let thread = std::thread::Builder::new().name("kiln supervisor".into());
        let thread = thread.spawn(move || supervisor.run(&queue, &seen)).map_err(WorkerStartError::Thread)?;
        let handle = Self { jobs: Mutex::new(jobs), wake, thread: Mutex::new(Some(thread)) };
        let first = handle.replace()?;
        Ok((handle, first))
    }

    /// Kills the worker in use, if there is one, and takes the standby or starts another worker.
    pub(crate) fn replace(&self) -> Result<Replacement, WorkerStartError> {
        let gone = || WorkerStartError::Thread(io::ErrorKind::BrokenPipe.into());
        self.call(WorkerSupervisor::replace).ok_or_else(gone)?
    }

    /// A takeover succeeded or failed: faulted workers may be killed, and a standby may be started.
    pub(crate) fn takeover_finished(&self) {
        let job: Job = Box::new(WorkerSupervisor::takeover_finished);
        if self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job).is_ok() {
            self.wake();
        }
    }

    /// Kills the worker in use.
    pub(crate) fn kill(&self, cause: LossCause) {
        self.call(|supervisor| supervisor.kill(cause));
    }

    /// Kills the standby and starts no other.
    pub(crate) fn dismiss_standby(&self) {
        self.call(WorkerSupervisor::dismiss_standby);
    }

    /// Ends every worker, and the thread.
    pub(crate) fn close(&self) {
        self.call(WorkerSupervisor::close);
        let (closed, _) = mpsc::channel();
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Runs a job on the thread and returns its result; `None` if the thread has ended.
    fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut WorkerSupervisor) -> R + Send + 'static,
    ) -> Option<R> {
        let (result, received) = mpsc::channel();
        let job: Job = Box::new(move |supervisor| drop(result.send(job(supervisor))));
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job).ok()?;
        self.wake();
        received.recv().ok()
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        self.close();
    }
}
