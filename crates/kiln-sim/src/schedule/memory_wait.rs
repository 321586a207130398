//! Launches that wait for memory.
//!
//! Such a launch is no candidate to run before its condition holds, so that it holds back nothing but its stream, however many of them there are.
//! The host may change memory, too: a wait of the host for such work looks at memory again for a while before it counts as endless.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::check::access_origin::{Actor, Mark};
use crate::check::vector_clock::VectorClock;
use crate::code::launch_readiness::LaunchReadiness;
use crate::memory::memory_view::MemoryView;
use crate::schedule::machine_core::{Core, Guard, HOST_POLL};
use crate::schedule::machine_state::State;
use crate::schedule::step_work::Outcome;
use crate::schedule::stream_queue::{Ready, Step};
use crate::schedule::task::Task;

/// What came of a wait for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryWait {
    /// No work waits for memory, or none of it has a chance any more.
    NotWaiting,
    /// Time went by.
    Moved,
    /// The time of the caller is over.
    TimedOut,
}

impl Core {
    /// Nothing can run. If work waits for memory, lets the host and other processes do something for a moment; `idle` is for how long they did
    /// nothing so far.
    pub(crate) fn wait_for_memory<'a>(
        &'a self,
        state: Guard<'a>,
        until: Option<Instant>,
        idle: &mut Duration,
    ) -> (Guard<'a>, MemoryWait) {
        let waits = state.memory_waits();
        let has_time = waits.iter().any(|(readiness, _)| match readiness {
            LaunchReadiness::OtherProcess(_) => true,
            _ => *idle < self.config.limits.idle_host,
        });
        if !has_time {
            // The host may have written what was waited for just now.
            let is_over = waits.is_empty() && state.has_memory_waits();
            let is_ready = is_over || !state.ready().is_empty();
            return (state, if is_ready { MemoryWait::Moved } else { MemoryWait::NotWaiting });
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return (state, MemoryWait::TimedOut);
        }
        *idle += HOST_POLL;
        let slept = self.moved.wait_timeout(state, HOST_POLL);
        (slept.unwrap_or_else(PoisonError::into_inner).0, MemoryWait::Moved)
    }
}

impl State {
    /// Whether a step can run as far as memory is concerned.
    pub(crate) fn readiness_of(&self, ready: Ready) -> LaunchReadiness {
        let Some(stream) = self.streams.get(&ready.lane) else { return LaunchReadiness::Ready };
        let launch = self.task_of(ready).and_then(Task::memory_wait);
        let (Some(launch), Some(device)) = (launch, self.devices.get(stream.device as usize)) else {
            return LaunchReadiness::Ready;
        };
        let view = MemoryView::new(device.map.clone(), true, None, None);
        launch.function.loaded.kernel.readiness(&launch.arguments, &view)
    }

    /// What a step that can run does.
    fn task_of(&self, ready: Ready) -> Option<&Task> {
        let head = self.streams.get(&ready.lane)?.queue.front()?;
        match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => run.plan.nodes.get(node).map(|node| &node.task),
            (Step::Task(task), _) => Some(task),
            _ => None,
        }
    }

    /// Whether the turn of a launch with a condition came, whatever memory has now.
    pub(crate) fn has_memory_waits(&self) -> bool {
        self.candidates().into_iter().any(|ready| self.task_of(ready).and_then(Task::memory_wait).is_some())
    }

    /// The steps that wait for memory.
    pub(crate) fn memory_waits(&self) -> Vec<(LaunchReadiness, Actor)> {
        let waits = self.candidates().into_iter().map(|ready| (self.readiness_of(ready), ready));
        let waits = waits.filter(|(readiness, _)| *readiness != LaunchReadiness::Ready);
        waits
            .filter_map(|(readiness, ready)| Some((readiness, self.mark_of(ready)?.1.actor.clone())))
            .collect()
    }

    /// Gives a step that begins the order that waits before it were found to have.
    pub(crate) fn complete_mark(&mut self, ready: Ready) {
        if self.acquired.is_empty() {
            return;
        }
        let Some((_, mark)) = self.mark_of(ready) else { return };
        let mut clock = (*mark.clock).clone();
        if self.acquired.complete(&mut clock) {
            self.replace_mark(ready, Arc::new(mark.with_clock(clock)));
        }
    }

    /// A launch that waited for memory is over: it comes after the work that wrote what it read, and so does what follows it. The host may have
    /// written memory that it has in its own addresses.
    pub(crate) fn acquire(&mut self, ready: Ready, outcome: &Outcome, mark: Arc<Mark>) -> Arc<Mark> {
        let Outcome::Launched { task, view, .. } = outcome else { return mark };
        if !task.function.loaded.kernel.waits_for_memory() {
            return mark;
        }
        let mut clock = VectorClock::default();
        if view.touched().next().is_none() {
            // It waited for something else than memory of the device, such as another process, which may know all that is done.
            clock = self.finished_clock();
        }
        for (segment, touched) in view.touched() {
            for bytes in touched.atomic_runs() {
                let place = segment.offset + bytes.start..segment.offset + bytes.end;
                for writer in segment.physical.shadow().writers(place) {
                    // Other waits for the same bytes wrote nothing.
                    if writer.actor.action != mark.actor.action {
                        clock.join(&writer.clock);
                    }
                }
            }
            if segment.physical.file.is_some() {
                clock.join(&self.host);
            }
        }
        self.acquired.complete(&mut clock);
        if mark.clock.covers(&clock) {
            return mark;
        }
        let queued: usize = self.streams.values().map(|stream| stream.queue.len()).sum();
        if queued <= 1 {
            let host = self.host.clone();
            self.acquired.forget_known(&host);
        }
        let clock = Arc::new(clock);
        self.acquired.add((mark.lane, mark.tick), &clock);
        if let Some(end) = mark.end {
            self.acquired.add(end, &clock);
        }
        let mut all = (*mark.clock).clone();
        all.join(&clock);
        let mark = Arc::new(mark.with_clock(all));
        self.replace_mark(ready, mark.clone());
        mark
    }

    /// Everything that ran.
    fn finished_clock(&self) -> VectorClock {
        let mut clock = VectorClock::default();
        for (lane, stream) in &self.streams {
            let next = stream.queue.front().map(|head| head.mark.tick);
            clock.set(*lane, next.map_or(stream.last_tick, |next| next.saturating_sub(1)));
        }
        clock
    }

    fn replace_mark(&mut self, ready: Ready, mark: Arc<Mark>) {
        let head = self.streams.get_mut(&ready.lane).and_then(|stream| stream.queue.front_mut());
        let Some(head) = head else { return };
        match (&mut head.step, ready.node) {
            (Step::Graph(run), Some(node)) => {
                if let Some(place) = run.marks.get_mut(node) {
                    *place = mark;
                }
            }
            _ => head.mark = mark,
        }
    }
}
