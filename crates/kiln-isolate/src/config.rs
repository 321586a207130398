//! How a device is isolated, as one value.

use std::ffi::OsString;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Backend;
use crate::news::News;
use crate::restarts::RestartPolicy;

/// How a device is isolated.
///
/// ```
/// use std::time::Duration;
/// use kiln_isolate::{Backend, Config};
///
/// let config = Config::new(Backend::cuda(0)).standby(true).watchdog(Duration::from_secs(10));
/// assert!(config.standby);
/// ```
#[derive(Clone)]
pub struct Config {
    /// The device.
    pub backend: Backend,
    /// What is started as a worker.
    pub entry: Entry,
    /// How long either side looks for news before it sleeps.
    pub spin: Duration,
    /// How long a worker has to start and to open its device.
    pub start_limit: Duration,
    /// How long a stream may have work and not get on, or a question be open, before the worker counts as hung. None is
    /// for ever. Time in which this process was stopped, or could not look, does not count.
    pub watchdog: Option<Duration>,
    /// Whether a second worker is kept ready.
    pub standby: bool,
    /// How often a worker may be replaced.
    pub restarts: RestartPolicy,
    /// Names of variables that a worker's environment holds besides those the driver's libraries read.
    pub passed_on: Vec<String>,
    /// Variables set for workers alone.
    pub variables: Vec<(OsString, OsString)>,
    pub(crate) observer: Option<Observer>,
}

/// Told of what happens to workers.
pub(crate) type Observer = Arc<dyn Fn(&News) + Send + Sync>;

/// What is started as a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// This program; its `main` begins with [`worker_entry`](crate::worker_entry).
    Main,
    /// This test binary, with the one test of that name, which calls [`worker_entry`](crate::worker_entry). Mark that test
    /// `#[ignore = "helper process"]`, so that it does not count as a test that passed.
    Test(String),
    /// Another program that enters a worker of this version.
    Program(PathBuf),
}

impl Config {
    /// The defaults: this program as its own worker, no standby, no watchdog.
    pub fn new(backend: Backend) -> Self {
        Self {
            backend,
            entry: Entry::Main,
            spin: Duration::from_micros(50),
            start_limit: Duration::from_secs(60),
            watchdog: None,
            standby: false,
            restarts: RestartPolicy::default(),
            passed_on: Vec::new(),
            variables: Vec::new(),
            observer: None,
        }
    }

    /// What is started as a worker.
    #[must_use]
    pub fn entry(self, entry: Entry) -> Self {
        Self { entry, ..self }
    }

    /// Keeps a second worker ready, with its device open and what the client has in it, so that a takeover waits neither for
    /// its start nor for that. It costs a second context on the device, and a thread in this process.
    #[must_use]
    pub fn standby(self, standby: bool) -> Self {
        Self { standby, ..self }
    }

    /// Counts a worker as hung when work does not get on for so long.
    #[must_use]
    pub fn watchdog(self, limit: Duration) -> Self {
        Self { watchdog: Some(limit), ..self }
    }

    /// How often a worker may be replaced.
    #[must_use]
    pub fn restarts(self, restarts: RestartPolicy) -> Self {
        Self { restarts, ..self }
    }

    /// Sets a variable for workers alone.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Calls a function with what happens to workers, on the thread that looks after them; it must not block for long
    /// and must not call the device. If it panics, nothing but that call is lost.
    #[must_use]
    pub fn observe(self, observer: impl Fn(&News) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    pub(crate) fn tell(&self, news: &News) {
        let Some(observer) = &self.observer else { return };
        // Workers live as long as the thread that looks after them, so it survives an observer that panics. The panic was printed.
        let _ = catch_unwind(AssertUnwindSafe(|| observer(news)));
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, entry, standby, watchdog, .. } = self;
        write!(f, "{backend:?} in {entry:?}, standby {standby}, watchdog {watchdog:?}")
    }
}
