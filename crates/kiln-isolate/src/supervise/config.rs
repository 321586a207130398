//! How a device is isolated.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::restart_policy::RestartPolicy;
use super::worker_event::WorkerEvent;
use crate::protocol::device_spec::DeviceSpec;

/// How a device is isolated.
///
/// ```
/// use std::time::Duration;
/// use kiln_isolate::{IsolationConfig, DeviceSpec};
///
/// let config = IsolationConfig::new(DeviceSpec::cuda(0)).standby(true).watchdog(Duration::from_secs(10));
/// assert!(config.standby);
/// ```
#[derive(Clone)]
pub struct IsolationConfig {
    /// The device that a worker opens.
    pub device: DeviceSpec,
    /// What is started as a worker.
    pub entry: WorkerEntry,
    /// How long either process polls shared memory before it sleeps.
    pub spin: Duration,
    /// How long a worker may take to start and to open its device.
    pub start_limit: Duration,
    /// How long a stream with work may make no progress, or a question to the worker stay unanswered, before the worker counts as hung.
    /// `None` is no limit. Time in which this process was stopped or could not run does not count.
    pub watchdog: Option<Duration>,
    /// Whether a second worker is kept ready.
    pub standby: bool,
    /// How often a worker may be replaced.
    pub restarts: RestartPolicy,
    /// Names of environment variables that workers inherit, besides those that the driver's libraries read.
    pub inherited_variables: Vec<String>,
    /// Environment variables that are set for workers only.
    pub variables: Vec<(OsString, OsString)>,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no worker is started"))]
    pub(crate) observer: Option<Observer>,
}

/// A function that is called with what happens to workers.
pub(crate) type Observer = Arc<dyn Fn(&WorkerEvent) + Send + Sync>;

/// What is started as a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerEntry {
    /// This program; its `main` begins with [`worker_entry`](crate::worker_entry).
    Main,
    /// This test binary, with the one test of that name, which calls [`worker_entry`](crate::worker_entry). Mark that test
    /// `#[ignore = "helper process"]`, so that it does not count as a test that passed.
    Test(String),
    /// Another program whose `main` begins with [`worker_entry`](crate::worker_entry), of the same version of this crate.
    Program(PathBuf),
}

impl IsolationConfig {
    /// The defaults: this program as its own worker, no standby, no watchdog.
    pub fn new(device: DeviceSpec) -> Self {
        Self {
            device,
            entry: WorkerEntry::Main,
            spin: Duration::from_micros(50),
            start_limit: Duration::from_secs(60),
            watchdog: None,
            standby: false,
            restarts: RestartPolicy::default(),
            inherited_variables: Vec::new(),
            variables: Vec::new(),
            observer: None,
        }
    }

    /// What is started as a worker.
    #[must_use]
    pub fn entry(self, entry: WorkerEntry) -> Self {
        Self { entry, ..self }
    }

    /// Keeps a second worker ready, with its device open and the client's objects in it, so that a takeover waits for neither. Costs a
    /// second context on the device, and a thread in this process.
    #[must_use]
    pub fn standby(self, standby: bool) -> Self {
        Self { standby, ..self }
    }

    /// Kills a worker whose work makes no progress for that long.
    #[must_use]
    pub fn watchdog(self, limit: Duration) -> Self {
        Self { watchdog: Some(limit), ..self }
    }

    /// How often a worker may be replaced.
    #[must_use]
    pub fn restarts(self, restarts: RestartPolicy) -> Self {
        Self { restarts, ..self }
    }

    /// Sets an environment variable for workers only.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Calls a function with what happens to workers, on a thread of this crate. It must not block for long and must not call the
    /// device. A panic in it is caught.
    #[must_use]
    pub fn observe(self, observer: impl Fn(&WorkerEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Tells the observer.
    #[cfg(target_os = "linux")]
    pub(crate) fn report(&self, event: &WorkerEvent) {
        use std::panic::{AssertUnwindSafe, catch_unwind};

        let Some(observer) = &self.observer else { return };
        // A panic must not end the thread that watches workers: they would end with it. The panic was printed.
        let _ = catch_unwind(AssertUnwindSafe(|| observer(event)));
    }
}

impl fmt::Debug for IsolationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, entry, standby, watchdog, .. } = self;
        write!(f, "{device:?} in {entry:?}, standby {standby}, watchdog {watchdog:?}")
    }
}
