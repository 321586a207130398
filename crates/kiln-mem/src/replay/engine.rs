//! Replays a log on several threads, in the recorded order.
//!
//! The log is cut into runs of calls by the same thread. A mutex holds everything that changes; the thread whose run is next
//! has it and works through the run, then wakes the next. All others sleep.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kiln_driver::Clock;

use super::allocation_log::{AllocationLog, LogAction, LogEvent};
use super::replay_stack::ReplayStack;
use super::report::ReplayReport;
use crate::block::DeviceBlock;
use crate::error::{Error, ErrorKind, MemoryRefusal, Result};
use crate::last_use::{Stamp, Stamps};
use crate::request::AllocationRequest;
use crate::resource::{MemoryResource, MemoryResourceExt};

/// A log may name more threads than a machine should start; they share these.
const THREADS_LIMIT: u32 = 256;

/// Makes the calls of a log. Requests that are refused are counted; they do not end the replay.
///
/// # Errors
/// Whatever the stack says besides out of memory.
pub fn replay(log: &AllocationLog, stack: &ReplayStack, clock: &dyn Clock) -> Result<ReplayReport> {
    let Some(resource) = stack.resource() else { return Ok(ReplayReport::default()) };
    let actors = log.threads().clamp(1, THREADS_LIMIT);
    let runs = runs_of(log.events(), actors);
    let play = Play {
        log,
        stack,
        resource: &**resource,
        clock,
        runs: &runs,
        wake: (0..actors).map(|_| Condvar::new()).collect(),
        state: Mutex::new(State::new(log)),
    };
    std::thread::scope(|scope| {
        for actor in 0..actors {
            let play = &play;
            let started = std::thread::Builder::new().spawn_scoped(scope, move || play.act(actor));
            if started.is_err() {
                let what = format!("the system starts no more than {actor} threads");
                let refusal = MemoryRefusal::Unsupported { what, next: "replay a log of fewer threads" };
                play.fail(ErrorKind::from(refusal).into());
                break;
            }
        }
    });
    let state = play.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.finish(&**resource)
}

/// Calls by the same thread, one after the other.
struct Run {
    actor: u32,
    from: usize,
    end: usize,
}

fn runs_of(events: &[LogEvent], actors: u32) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let actor = event.thread % actors;
        match runs.last_mut() {
            Some(run) if run.actor == actor => run.end = at + 1,
            _ => runs.push(Run { actor, from: at, end: at + 1 }),
        }
    }
    runs
}

struct Play<'a> {
    log: &'a AllocationLog,
    stack: &'a ReplayStack,
    resource: &'a dyn MemoryResource,
    clock: &'a dyn Clock,
    runs: &'a [Run],
    wake: Vec<Condvar>,
    state: Mutex<State>,
}

struct State {
    next_run: usize,
    blocks: Vec<Option<DeviceBlock>>,
    live_bytes: u64,
    /// Nanoseconds of each call.
    times: Vec<u32>,
    report: ReplayReport,
    failure: Option<Error>,
}

impl Play<'_> {
    /// What one thread does: its runs, each when its turn comes.
    fn act(&self, actor: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            state = self.wait_for_turn(state, actor);
            let next = self.runs.get(state.next_run).filter(|_| state.failure.is_none());
            let Some(run) = next else { return };
            for event in &self.log.events()[run.from..run.end] {
                if let Err(error) = self.call(&mut state, event) {
                    state.failure = Some(error);
                    self.wake_all();
                    return;
                }
            }
            state.next_run += 1;
            match self.runs.get(state.next_run) {
                Some(next) => self.wake[next.actor as usize].notify_one(),
                None => self.wake_all(),
            }
        }
    }

    fn wait_for_turn<'s>(&self, state: MutexGuard<'s, State>, actor: u32) -> MutexGuard<'s, State> {
        let is_others = |state: &mut State| {
            state.failure.is_none() && self.runs.get(state.next_run).is_some_and(|run| run.actor != actor)
        };
        self.wake[actor as usize].wait_while(state, is_others).unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.wake.iter().for_each(Condvar::notify_all);
    }

    fn fail(&self, error: Error) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(error);
        self.wake_all();
    }

    fn call(&self, state: &mut State, event: &LogEvent) -> Result<()> {
        let Some(stream) = self.stack.stream(event.stream) else { return Ok(()) };
        match event.action {
            LogAction::Failed { .. } => state.report.failed_in_log += 1,
            LogAction::Allocate { block, bytes } => {
                let request = AllocationRequest::new(bytes, stream);
                let start = self.clock.now();
                let answer = self.resource.allocate(&request);
                state.note_time(self.clock, start);
                match answer {
                    Ok(owned) => state.enter(block, owned),
                    Err(error) if error.is_oom() || error.refusal().is_some() => state.report.refusals += 1,
                    Err(error) => return Err(error),
                }
            }
            LogAction::Free { block } => {
                let Some(owned) = state.blocks.get_mut(block as usize).and_then(Option::take) else {
                    // It was refused.
                    return Ok(());
                };
                let (key, bytes) = (stream.key(), owned.bytes());
                let uses = if key == owned.stream() {
                    Stamps::NONE
                } else {
                    Stamps::from(Stamp { stream: key, number: self.stack.order().latest(key) })
                };
                let start = self.clock.now();
                let answer = self.resource.deallocate(owned, &uses);
                state.note_time(self.clock, start);
                answer.map_err(|failed| failed.error)?;
                state.live_bytes -= bytes;
                state.report.frees += 1;
            }
        }
        Ok(())
    }
}

impl State {
    fn new(log: &AllocationLog) -> Self {
        Self {
            next_run: 0,
            blocks: (0..log.blocks()).map(|_| None).collect(),
            live_bytes: 0,
            times: Vec::with_capacity(log.events().len()),
            report: ReplayReport::default(),
            failure: None,
        }
    }

    fn note_time(&mut self, clock: &dyn Clock, start: std::time::Duration) {
        let time = clock.now().saturating_sub(start);
        self.report.time += time;
        self.times.push(u32::try_from(time.as_nanos()).unwrap_or(u32::MAX));
    }

    fn enter(&mut self, block: u32, owned: DeviceBlock) {
        self.live_bytes += owned.bytes();
        self.report.allocations += 1;
        self.report.peak_live_bytes = self.report.peak_live_bytes.max(self.live_bytes);
        if let Some(place) = self.blocks.get_mut(block as usize) {
            *place = Some(owned);
        }
    }

    /// Frees what the log left live, and sums up.
    fn finish(mut self, resource: &dyn MemoryResource) -> Result<ReplayReport> {
        let counted = resource.accounting();
        for block in self.blocks.into_iter().flatten() {
            self.report.live_at_end += 1;
            if let Err(failed) = resource.free(block) {
                self.failure = self.failure.or(Some(failed.error));
            }
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.times.sort_unstable();
        let at = |percent: usize| {
            let last = self.times.len().saturating_sub(1);
            self.times.get(last * percent / 100).map_or(0, |time| u64::from(*time))
        };
        (self.report.call_p50, self.report.call_p99) = (at(50), at(99));
        self.report.peak_reserved_bytes = counted.peak_reserved_bytes;
        self.report.false_dependencies = counted.false_dependencies;
        Ok(self.report)
    }
}
