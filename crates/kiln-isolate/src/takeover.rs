//! Another worker in the place of one that is gone.
//!
//! Everything the client keeps is made again under the same numbers, so every handle stays what it was: pages come from
//! their descriptors and lie at their old addresses, host blocks are the same memory, code is loaded from the same
//! images, streams count on. What lived in the old worker alone is gone: memory that was allocated and not
//! mapped from pages, and the variables of modules. Their handles are stale from here on.
//!
//! What was queued and not known to be done is over and may have happened in part. Which contents that spoils is
//! known above the waist, where the accesses are; the takeover says how far each stream was.

mod parting;

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kiln_driver::{Clock, GraphId, MemoryId, PagesId, Progress, StreamId};

use crate::cause::Cause;
use crate::device::IsolatedDevice;
use crate::link::Link;
use crate::news::News;
use crate::outfit::{Fitted, Fitting, Pace, Unfit};
use crate::start_error::StartError;
use crate::supervisor::Replacement;
use crate::tally::Tally;

/// What a takeover found, kept and lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Takeover {
    /// Why the worker before is gone.
    pub cause: Cause,
    /// The generation that begins.
    pub generation: u64,
    /// Whether a standby took over, as opposed to a worker that had to be started.
    pub standby: bool,
    /// Streams with work that was queued and is not known to be done, and how far they were. All of it counts as
    /// completed from here on; what it was to write cannot be relied upon.
    pub unfinished: Vec<Unfinished>,
    /// Bytes of pages that were kept.
    pub kept_bytes: u64,
    /// Memory that is gone; the handles are stale.
    pub lost_memory: Vec<MemoryId>,
    /// Pages that are gone because the device does not export any; the handles are stale, and nothing is mapped where
    /// they were.
    pub lost_pages: Vec<PagesId>,
    /// Graphs that could not be built again because something they name is gone.
    pub lost_graphs: Vec<GraphId>,
    /// What the worker had before it was needed; nothing, if it had to be started.
    pub ahead: Tally,
    /// What it was given now.
    pub left: Tally,
    /// How long it took.
    pub phases: Phases,
}

/// A stream that had work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The stream.
    pub stream: StreamId,
    /// How far it was.
    pub progress: Progress,
}

/// How long each part of a takeover took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// From when the loss was noticed until the takeover was asked for.
    pub idle: Duration,
    /// The pause the restart policy wants.
    pub pause: Duration,
    /// Ending the old worker. One that faulted is not waited for; one that was killed or hung may still be writing, and the system takes
    /// its time with a process whose kernels run.
    pub kill: Duration,
    /// Taking the standby, or starting a worker and opening its device.
    pub start: Duration,
    /// Addresses, pages and mappings.
    pub pages: Duration,
    /// Host blocks.
    pub hosts: Duration,
    /// Images and kernels.
    pub code: Duration,
    /// Streams, events and graphs.
    pub queues: Duration,
}

impl Phases {
    /// All of it after the loss was noticed and the takeover asked for.
    pub fn total(&self) -> Duration {
        let Self { idle: _, pause, kill, start, pages, hosts, code, queues } = *self;
        [pause, kill, start, pages, hosts, code, queues].iter().sum()
    }
}

/// Why there is still no worker. The device stays lost with its old cause; what is retryable can be tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// The worker is there.
    #[error("the worker is there; a takeover needs one that is gone, such as one that was killed")]
    NotLost,
    /// Too many workers were replaced lately.
    #[error("{limit} workers were replaced within {span:?}; the last ended because {cause}")]
    GivenUp {
        /// How many.
        limit: u32,
        /// In which time.
        span: Duration,
        /// Why the last one is gone.
        cause: Cause,
    },
    /// The device was [abandoned](IsolatedDevice::abandon).
    #[error("no worker is wanted any more; the last ended because {cause}")]
    Abandoned {
        /// Why it is gone.
        cause: Cause,
    },
    /// No other worker could be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The new worker has another device.
    #[error("the new worker opened another device than the old one: {found}")]
    AnotherDevice {
        /// What it opened.
        found: String,
    },
    /// The new worker could not make something again; it was ended.
    #[error("the new worker could not make {what} again: {error}")]
    Rebuild {
        /// What.
        what: String,
        /// What it said.
        error: kiln_driver::Error,
    },
}

impl From<Unfit> for TakeoverError {
    fn from(unfit: Unfit) -> Self {
        let Unfit { what, error } = unfit;
        Self::Rebuild { what, error }
    }
}

impl TakeoverError {
    /// Whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Start(error) => error.is_retryable(),
            Self::Rebuild { .. } => true,
            Self::NotLost | Self::GivenUp { .. } | Self::Abandoned { .. } | Self::AnotherDevice { .. } => {
                false
            }
        }
    }
}

impl IsolatedDevice {
    /// Puts another worker in the place of one that is gone, with everything that could be kept.
    ///
    /// Calls of other threads answer that the device is lost until it is done. One takeover runs at a time.
    ///
    /// # Errors
    /// [`TakeoverError`]; the device is lost as before then.
    pub fn take_over(&self) -> Result<Takeover, TakeoverError> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.shared.link();
        let Some(lost) = old.lost() else { return Err(TakeoverError::NotLost) };
        let cause = lost.cause.clone();
        let idle = lost.at.elapsed();
        let policy = &self.config.restarts;
        let Some(pause) = restarts.admit(policy, self.clock.now()) else {
            return Err(TakeoverError::GivenUp { limit: policy.limit, span: policy.span, cause });
        };
        if !self.patience.pause(pause) {
            return Err(TakeoverError::Abandoned { cause });
        }
        let taken = self.take_over_from(&old);
        // The old worker is taken apart and the next standby started when nothing waits for it any more.
        self.supervisor.settle();
        let takeover = taken?;
        let phases = Phases { idle, pause, ..takeover.phases };
        self.config.tell(&News::TakenOver { generation: takeover.generation });
        Ok(Takeover { cause, phases, ..takeover })
    }

    fn take_over_from(&self, old: &Link) -> Result<Takeover, TakeoverError> {
        let asked = Instant::now();
        // Calls that were making something when the worker ended find that out before anything is looked at.
        let _still = self.objects.hold_still();
        let replacement = self.supervisor.replace()?;
        let kill = asked.elapsed().saturating_sub(replacement.start);
        let taken = self.rebuild_on(old, &replacement);
        let mut takeover = taken.inspect_err(|_| self.supervisor.kill(Cause::Killed))?;
        takeover.phases.kill = kill;
        self.let_go(&takeover);
        takeover.generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.shared.put_link(replacement.worker.link);
        Ok(takeover)
    }

    fn rebuild_on(&self, old: &Link, new: &Replacement) -> Result<Takeover, TakeoverError> {
        let same = |found: &kiln_driver::DeviceInfo| {
            let key = self.worker_info.key;
            kiln_driver::DeviceInfo { key, ..found.clone() } == self.worker_info
        };
        if !same(&new.info) {
            return Err(TakeoverError::AnotherDevice { found: new.info.name.clone() });
        }
        // Whoever was on the way into the old ring has come out of it, so that all numbers are final.
        drop(old.sender());
        self.shared.stream_cells.start_over();
        self.shared.event_cells.start_over();
        let mut outfit = new.worker.outfit.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = outfit.tally();
        let mut phases = Phases { start: new.start, ..Phases::default() };
        let mut fitting = Fitting {
            link: &new.worker.link,
            objects: &self.objects,
            outfit: &mut outfit,
            pace: Pace::Swift,
            fitted: Fitted::default(),
        };
        let mut begun = Instant::now();
        let mut lap = || std::mem::replace(&mut begun, Instant::now()).elapsed();
        fitting.let_go()?;
        fitting.fit_pages()?;
        phases.pages = lap();
        fitting.fit_hosts()?;
        phases.hosts = lap();
        fitting.fit_code()?;
        phases.code = lap();
        fitting.resume_queues()?;
        phases.queues = lap();
        let Fitted { kept_bytes, lost_graphs } = fitting.fitted;
        Ok(Takeover {
            cause: Cause::Killed,
            generation: 0,
            standby: new.standby,
            unfinished: self.unfinished(old),
            kept_bytes,
            lost_memory: self.objects.memory.handles(),
            lost_pages: self.pages_without_descriptor(),
            lost_graphs,
            ahead,
            left: outfit.tally().beyond(&ahead),
            phases,
        })
    }

    fn pages_without_descriptor(&self) -> Vec<PagesId> {
        let held = |id: &PagesId| self.objects.pages.pin(*id).is_ok_and(|pages| pages.descriptor.is_none());
        self.objects.pages.handles().into_iter().filter(held).collect()
    }

    fn unfinished(&self, old: &Link) -> Vec<Unfinished> {
        let streams = self.shared.streams.all().into_iter();
        let streams = streams.map(|(stream, count)| {
            let mut progress = count.progress(&old.area);
            // A worker that lied may have written anything there.
            progress.completed = progress.completed.min(progress.submitted);
            Unfinished { stream, progress }
        });
        streams.filter(|it| it.progress.completed < it.progress.submitted).collect()
    }
}
