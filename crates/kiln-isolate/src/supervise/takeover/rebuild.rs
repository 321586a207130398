//! Replaces a lost worker and makes the client's objects again in the new one.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kiln_driver::{Clock, MemoryId, PagesId};

use super::{Takeover, TakeoverError, TakeoverPhases, UnfinishedStream};
use crate::client::connection::Link;
use crate::client::loss_cause::LossCause;
use crate::client::objects::Origin;
use crate::supervise::isolated_device::IsolatedDevice;
use crate::supervise::supervisor_handle::Replacement;
use crate::supervise::worker_event::WorkerEvent;
use crate::supervise::worker_objects::{Pace, StateSync, SyncError, SyncOutcome};

impl From<SyncError> for TakeoverError {
    fn from(error: SyncError) -> Self {
        let SyncError { what, error } = error;
        Self::Rebuild { what, error }
    }
}

impl IsolatedDevice {
    /// Replaces a lost worker, and keeps everything that can be kept.
    ///
    /// Until it is done, calls of other threads return that the device is lost. One takeover runs at a time.
    ///
    /// # Errors
    /// [`TakeoverError`]; the device is lost as before.
    pub fn take_over(&self) -> Result<Takeover, TakeoverError> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.proxy.shared.link();
        let Some(lost) = old.lost() else { return Err(TakeoverError::NotLost) };
        let cause = lost.cause.clone();
        let idle = lost.at.elapsed();
        let policy = &self.config.restarts;
        let Some(pause) = restarts.admit(policy, self.proxy.clock.now()) else {
            return Err(TakeoverError::GivenUp { limit: policy.limit, span: policy.span, cause });
        };
        if !self.cancellation.pause(pause) {
            return Err(TakeoverError::Abandoned { cause });
        }
        let taken = self.take_over_from(&old);
        // The old worker is torn down and the next standby started only now, when no caller waits any more.
        self.supervisor.takeover_finished();
        let takeover = taken?;
        let phases = TakeoverPhases { idle, pause, ..takeover.phases };
        self.config.report(&WorkerEvent::TakenOver { generation: takeover.generation });
        Ok(Takeover { cause, phases, ..takeover })
    }

    fn take_over_from(&self, old: &Link) -> Result<Takeover, TakeoverError> {
        let requested = Instant::now();
        // Calls that were changing an object when the worker was lost have returned before the objects are read.
        let _excluded = self.proxy.objects.exclude_changes();
        let replacement = self.supervisor.replace()?;
        let kill = requested.elapsed().saturating_sub(replacement.start);
        let rebuilt = self.rebuild_on(old, &replacement);
        let mut takeover = rebuilt.inspect_err(|_| self.supervisor.kill(LossCause::Killed))?;
        takeover.phases.kill = kill;
        self.drop_lost(&takeover);
        self.process.replace(replacement.worker.process);
        takeover.generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.proxy.shared.replace_link(replacement.worker.link);
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
        // Every thread that was pushing into the old ring has returned, so all submission numbers are final.
        drop(old.sender());
        self.proxy.shared.stream_cells.start_over();
        self.proxy.shared.event_cells.start_over();
        let mut state = new.worker.state.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = state.counts();
        let mut phases = TakeoverPhases { start: new.start, ..TakeoverPhases::default() };
        let mut sync = StateSync {
            link: &new.worker.link,
            objects: &self.proxy.objects,
            state: &mut state,
            pace: Pace::Immediate,
            outcome: SyncOutcome::default(),
        };
        let mut begun = Instant::now();
        let mut lap = || -> Duration { std::mem::replace(&mut begun, Instant::now()).elapsed() };
        sync.release_queues()?;
        sync.sync_pages()?;
        phases.pages = lap();
        sync.sync_host_blocks()?;
        phases.hosts = lap();
        sync.sync_code()?;
        phases.code = lap();
        sync.resume_queues()?;
        sync.name_blocks()?;
        phases.queues = lap();
        let SyncOutcome { kept_bytes, lost_graphs } = sync.outcome;
        Ok(Takeover {
            cause: LossCause::Killed,
            generation: 0,
            standby: new.standby,
            unfinished: self.unfinished(old),
            kept_bytes,
            lost_memory: self.lost_memory(),
            lost_pages: self.pages_without_descriptor(),
            lost_graphs,
            prepared,
            rebuilt: state.counts().beyond(&prepared),
            phases,
        })
    }

    /// Memory that was not made of pages.
    fn lost_memory(&self) -> Vec<MemoryId> {
        let memory = &self.proxy.objects.memory;
        let is_lost =
            |id: &MemoryId| memory.pin(*id).is_ok_and(|block| !matches!(block.origin, Origin::Part(_)));
        memory.handles().into_iter().filter(is_lost).collect()
    }

    fn pages_without_descriptor(&self) -> Vec<PagesId> {
        let pages = &self.proxy.objects.pages;
        let held = |id: &PagesId| pages.pin(*id).is_ok_and(|pages| pages.descriptor.is_none());
        pages.handles().into_iter().filter(held).collect()
    }

    fn unfinished(&self, old: &Link) -> Vec<UnfinishedStream> {
        let streams = self.proxy.shared.streams.all().into_iter();
        let streams = streams.map(|(stream, count)| {
            let mut progress = count.progress(&old.segment);
            // A worker that breaks the protocol may have written any number.
            progress.completed = progress.completed.min(progress.submitted);
            UnfinishedStream { stream, progress }
        });
        streams.filter(|it| it.progress.completed < it.progress.submitted).collect()
    }
}
