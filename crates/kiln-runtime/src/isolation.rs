//! Setting: whether a device's context is in this process or in a worker process.

use std::ffi::OsString;
use std::time::Duration;

#[cfg(all(feature = "isolate", target_os = "linux"))]
use kiln_isolate::{DeviceSpec, IsolationConfig, RestartPolicy, WorkerEntry};
use kiln_probe::ProbeError;

use crate::device_state::Keep;
use crate::error::{Error, Misuse};
use crate::resubmission::Replay;

/// Where a device's context lives.
///
/// ```
/// use kiln::recovery::{Isolation, Process};
/// use kiln::RuntimeConfig;
///
/// let isolation = Isolation::Process(Process { standby: true, ..Process::default() });
/// let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
/// # let _ = config;
/// ```
///
/// Work that was queued behind a fault and had not started can be done again by the next worker:
///
/// ```
/// use kiln::recovery::{Isolation, Process, Replay};
///
/// let isolation = Isolation::Process(Process { replay: Replay::NotStarted, ..Process::default() });
/// # let _ = isolation;
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// In this process: the fastest way, and a fault is the end of it.
    #[default]
    InProcess,
    /// In a worker process, which another one replaces when it is gone. The program's `main` begins with
    /// [`worker_entry`](crate::worker_entry).
    Process(Process),
}

impl Isolation {
    /// Why a driver that is open in this process cannot be isolated.
    pub(crate) fn refusal() -> Error {
        if cfg!(all(feature = "isolate", target_os = "linux")) {
            Misuse::OpenInProcess.into()
        } else {
            Self::not_built()
        }
    }

    /// The error where worker processes are not part of this build.
    pub(crate) fn not_built() -> Error {
        let next = "enable the feature `isolate` of kiln, on Linux";
        ProbeError::NotBuilt { what: "devices in worker processes", next }.into()
    }
}

/// How a device is kept in a worker process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Whether a second worker is kept ready, so that a takeover does not wait for one to start.
    pub standby: bool,
    /// How long work may go without getting on before the worker counts as hung. None is for ever. Time in which this process was stopped does
    /// not count.
    pub watchdog: Option<Duration>,
    /// How often, and how fast, workers are replaced. Past that the device is Failed.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    pub restarts: RestartPolicy,
    /// What is kept when a worker is replaced.
    pub on_loss: Keep,
    /// What becomes of work that had not started when its worker was lost.
    pub replay: Replay,
    /// What is started as a worker.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    pub entry: WorkerEntry,
    /// How long a worker has to start and to open its device.
    pub start_limit: Duration,
    /// Variables set for workers alone.
    pub variables: Vec<(OsString, OsString)>,
}

impl Default for Process {
    /// This program as its own worker, no standby, no watchdog; everything kept that unfinished work was not to write, and no work done
    /// again.
    fn default() -> Self {
        Self {
            standby: false,
            watchdog: None,
            #[cfg(all(feature = "isolate", target_os = "linux"))]
            restarts: RestartPolicy::default(),
            on_loss: Keep::Untouched,
            replay: Replay::Never,
            #[cfg(all(feature = "isolate", target_os = "linux"))]
            entry: WorkerEntry::Main,
            start_limit: Duration::from_secs(60),
            variables: Vec::new(),
        }
    }
}

#[cfg(all(feature = "isolate", target_os = "linux"))]
impl Process {
    /// The same in the words of the crate that starts workers.
    pub(crate) fn config(&self, backend: DeviceSpec) -> IsolationConfig {
        let mut config = IsolationConfig::new(backend)
            .entry(self.entry.clone())
            .standby(self.standby)
            .restarts(self.restarts);
        config.watchdog = self.watchdog;
        config.start_limit = self.start_limit;
        config.variables.clone_from(&self.variables);
        config
    }
}
