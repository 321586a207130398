//! Work spread over all devices.
//!
//! Each device gets the part of the work its weight earns and runs it on its own persistent thread. A job may decline
//! (the part is too small to be worth it, the device lacks something), which sends the caller to their other road; or
//! fail, which does not. The two are never mixed up, and neither is "there is no device", which is a decline.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use kiln_probe::{Absence, split_by_weight};

use super::Prober;
use super::device_threads::Workers;
use super::registry::Registry;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::DeviceRuntime;

/// The part of the work one device gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The device.
    pub ordinal: u32,
    /// Its part of `0..n`; empty if there was not enough for all.
    pub range: Range<u64>,
}

/// How a job ended.
#[derive(Clone, Debug)]
#[must_use]
pub enum PartOutcome<T> {
    /// With a result.
    Done(T),
    /// It was not run, for a good reason; take another road.
    Declined(Decline),
    /// It went wrong.
    Failed(Error),
}

/// Why work was declined.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Decline {
    /// There is no device to run it on.
    #[error(transparent)]
    NoDevice(#[from] Absence),
    /// The job itself said so.
    #[error("{0}")]
    ByJob(String),
}

/// The outcome of one device's share.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// What the device was given.
    pub share: Share,
    /// How it ended.
    pub outcome: PartOutcome<T>,
}

impl<T> PartOutcome<T> {
    /// Declined by the job, with its reason.
    pub fn declined(reason: impl Into<String>) -> Self {
        Self::Declined(Decline::ByJob(reason.into()))
    }

    /// The result, if there is one.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Declined(_) | Self::Failed(_) => None,
        }
    }
}

impl<T> From<Result<T>> for PartOutcome<T> {
    /// Absence is a decline, every other error a failure.
    fn from(result: Result<T>) -> Self {
        match result {
            Ok(value) => Self::Done(value),
            Err(error) => match error.absence() {
                Some(absence) => Self::Declined(absence.clone().into()),
                None => Self::Failed(error),
            },
        }
    }
}

/// One outcome for all parts: the results in the order of the work; else the first failure; else the first decline.
pub fn gather<T>(parts: Vec<Part<T>>) -> PartOutcome<Vec<T>> {
    let mut results = Vec::with_capacity(parts.len());
    let mut declined = None;
    for part in parts {
        match part.outcome {
            PartOutcome::Done(value) => results.push(value),
            PartOutcome::Failed(error) => return PartOutcome::Failed(error),
            PartOutcome::Declined(reason) => declined = declined.or(Some(reason)),
        }
    }
    declined.map_or(PartOutcome::Done(results), PartOutcome::Declined)
}

impl Prober {
    /// Splits `0..n` over the working devices by their scores, in the order of their ordinals.
    ///
    /// # Errors
    /// Absence; a fault.
    pub fn balanced_partition(&self, n: u64) -> Result<Vec<Share>> {
        let devices = self.in_force()?.devices()?;
        let weights: Vec<u64> = devices.working().map(|device| device.score()).collect();
        let ranges = split_by_weight(n, &weights);
        Ok(devices
            .working()
            .zip(ranges)
            .map(|(device, range)| Share { ordinal: device.ordinal, range })
            .collect())
    }

    /// Runs a job on every device that gets a part of `0..n`, each on its device's own thread, and waits for all.
    ///
    /// Declined with no device to run on, failed if the devices could not be asked; else done, with one part per device
    /// and an outcome for each. A job that panics has failed. A job may scatter again; the inner parts then run one
    /// after the other on the thread of the outer one.
    pub fn scatter<T, J>(&self, n: u64, job: J) -> PartOutcome<Vec<Part<T>>>
    where
        T: Send + 'static,
        J: Fn(&'static DeviceRuntime, Range<u64>) -> PartOutcome<T> + Send + Sync + 'static,
    {
        self.try_scatter(n, Arc::new(job)).into()
    }

    fn try_scatter<T, J>(&self, n: u64, job: Arc<J>) -> Result<Vec<Part<T>>>
    where
        T: Send + 'static,
        J: Fn(&'static DeviceRuntime, Range<u64>) -> PartOutcome<T> + Send + Sync + 'static,
    {
        let registry = self.in_force()?;
        let mut shares = self.balanced_partition(n)?;
        shares.retain(|share| !share.range.is_empty());
        if Workers::is_worker() {
            return Ok(shares.into_iter().map(|share| run(registry, share, &*job)).collect());
        }
        let queued: Vec<_> = shares.into_iter().map(|share| self.queue(registry, share, &job)).collect();
        Ok(queued.into_iter().map(Queued::wait).collect())
    }

    fn queue<T, J>(&self, registry: &Arc<Registry>, share: Share, job: &Arc<J>) -> Queued<T>
    where
        T: Send + 'static,
        J: Fn(&'static DeviceRuntime, Range<u64>) -> PartOutcome<T> + Send + Sync + 'static,
    {
        let (answer, answered) = mpsc::sync_channel(1);
        let (its_registry, its_job, its_share) = (Arc::clone(registry), Arc::clone(job), share.clone());
        let task = Box::new(move || {
            // The receiver is gone if the waiting thread is gone; the work is done either way.
            let _ = answer.send(run(&its_registry, its_share, &*its_job));
        });
        let started = self.workers.submit(registry.kind(), share.ordinal, task);
        Queued { share, started, answered }
    }
}

/// A share on its way through a worker.
struct Queued<T> {
    share: Share,
    started: Result<()>,
    answered: mpsc::Receiver<Part<T>>,
}

impl<T> Queued<T> {
    fn wait(self) -> Part<T> {
        let Self { share, started, answered } = self;
        let lost = || ErrorKind::JobPanicked { message: "its thread is gone".into() }.into();
        match started {
            Err(error) => Part { share, outcome: PartOutcome::Failed(error) },
            Ok(()) => {
                answered.recv().unwrap_or_else(|_| Part { share, outcome: PartOutcome::Failed(lost()) })
            }
        }
    }
}

fn run<T>(
    registry: &Registry,
    share: Share,
    job: &(impl Fn(&'static DeviceRuntime, Range<u64>) -> PartOutcome<T> + ?Sized),
) -> Part<T> {
    let attempt = || match registry.runtime(share.ordinal) {
        Ok(runtime) => job(runtime, share.range.clone()),
        Err(error) => Err(error).into(),
    };
    let outcome = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|payload| {
        PartOutcome::Failed(ErrorKind::JobPanicked { message: panic_message(&*payload) }.into())
    });
    Part { share, outcome }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
