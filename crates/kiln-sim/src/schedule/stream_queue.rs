//! A stream: what is queued on it, and what of it the host may know to be done.

use std::collections::VecDeque;
use std::sync::Arc;

use kiln_driver::{StreamId, Submission};

use crate::check::access_origin::Mark;
use crate::check::vector_clock::{Lane, VectorClock};
use crate::collective::collective_launch::CollectiveRun;
use crate::device::objects::{MemoryBlock, Signal};
use crate::schedule::graph::GraphRun;
use crate::schedule::task::Task;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) device: u32,
    /// Handles under which it was taken in as another library's.
    pub(crate) names: Vec<StreamId>,
    /// Lanes for the branches of graphs.
    pub(crate) branches: Vec<Lane>,
    /// What the next submission starts after.
    pub(crate) clock: VectorClock,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) submitted: u64,
    /// Work that ran, oldest first, until the host has seen it done.
    pub(crate) finished: VecDeque<Finished>,
    /// The newest submission the host has seen done.
    pub(crate) completed: u64,
    /// The tick of the newest step that was queued.
    pub(crate) last_tick: u64,
    /// When the last step that ran was done.
    pub(crate) time_ns: u64,
    /// Whether its first step is being run.
    pub(crate) running: bool,
    /// The step that does not end.
    pub(crate) hung: Option<Hung>,
    /// Whether the handle is gone; what is queued still runs.
    pub(crate) destroyed: bool,
}

/// A step that does not end.
#[derive(Clone, Debug)]
pub(crate) struct Hung {
    pub(crate) mark: Arc<Mark>,
    /// What was found of it: where in the kernel it is, and in which thread.
    pub(crate) told: Option<String>,
    /// Since when, on the virtual clock.
    pub(crate) since_ns: u64,
}

/// A step in a queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) mark: Arc<Mark>,
    pub(crate) queued_ns: u64,
    pub(crate) step: Step,
    /// The run of a launch of collectives.
    pub(crate) collective: Option<CollectiveRun>,
}

/// What a stream does next.
#[derive(Debug)]
pub(crate) enum Step {
    Task(Task),
    Signal(Arc<Signal>),
    Wait(Option<Arc<Signal>>),
    Free(Arc<MemoryBlock>),
    Graph(GraphRun),
}

/// A step that ran.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) mark: Arc<Mark>,
    pub(crate) end_ns: u64,
}

/// Something that can run now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    pub(crate) lane: Lane,
    pub(crate) node: Option<usize>,
}

impl Stream {
    pub(crate) fn new(id: StreamId, device: u32) -> Self {
        Self {
            id,
            device,
            names: Vec::new(),
            branches: Vec::new(),
            clock: VectorClock::default(),
            queue: VecDeque::new(),
            submitted: 0,
            finished: VecDeque::new(),
            completed: 0,
            last_tick: 0,
            time_ns: 0,
            running: false,
            hung: None,
            destroyed: false,
        }
    }

    /// What of it can run now.
    pub(crate) fn ready(&self, lane: Lane, list: &mut Vec<Ready>) {
        let Some(head) = self.queue.front() else { return };
        if self.running || self.hung.is_some() {
            return;
        }
        match &head.step {
            Step::Wait(Some(signal)) if signal.done_ns.get().is_none() => {}
            Step::Graph(run) => list.extend(run.ready().map(|node| Ready { lane, node: Some(node) })),
            Step::Task(_) | Step::Signal(_) | Step::Wait(_) | Step::Free(_) => {
                list.push(Ready { lane, node: None })
            }
        }
    }

    /// Whether the next step only passes something on, so that running it is not a choice.
    pub(crate) fn head_is_edge(&self) -> bool {
        match self.queue.front().map(|head| &head.step) {
            Some(Step::Signal(_)) => true,
            Some(Step::Wait(signal)) => signal.as_ref().is_none_or(|signal| signal.done_ns.get().is_some()),
            _ => false,
        }
    }

    /// When everything up to a tick was done, if it ran.
    pub(crate) fn done_ns(&self, tick: u64) -> Option<u64> {
        if self.queue.front().is_some_and(|head| head.mark.tick <= tick) {
            return None;
        }
        let last = self.finished.iter().take_while(|finished| finished.mark.tick <= tick).last();
        Some(last.map_or(0, |finished| finished.end_ns))
    }

    /// Takes out what is done by now; the last of it.
    pub(crate) fn observe(&mut self, now_ns: u64) -> Option<Finished> {
        let mut last = None;
        while self.finished.front().is_some_and(|finished| finished.end_ns <= now_ns) {
            last = self.pop_finished();
        }
        last
    }

    /// Takes out everything up to a tick, which the host has seen done; what it learns by that.
    pub(crate) fn observe_to(&mut self, tick: u64) -> Option<Arc<VectorClock>> {
        let mut clock = None;
        while self.finished.front().is_some_and(|finished| finished.mark.tick <= tick) {
            clock = self.pop_finished().map(|finished| finished.mark.clock.clone());
        }
        clock
    }

    /// Drops what the host has learned by other ways.
    pub(crate) fn forget_known(&mut self, host: &VectorClock) {
        while self.finished.front().is_some_and(|finished| finished.mark.is_known_to(host)) {
            self.pop_finished();
        }
    }

    fn pop_finished(&mut self) -> Option<Finished> {
        let finished = self.finished.pop_front()?;
        if let Some(Submission(number)) = finished.mark.actor.submission {
            self.completed = self.completed.max(number);
        }
        Some(finished)
    }

    /// Whether nothing is queued that the host has not seen done.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.finished.is_empty()
    }

    /// Whether nothing will ever be asked of it again.
    pub(crate) fn is_over(&self) -> bool {
        self.destroyed && self.queue.is_empty() && !self.running
    }
}
