//! One step of the machine: begin under the lock, run without it, end under it again.
//!
//! Copies and fills are checked when they begin, since what they touch is known; kernels when they end.

use std::sync::Arc;

use kiln_driver::{Access, Fault as Loss, Protection};

use crate::checker::Stretch;
use crate::choice::mix;
use crate::fault_plan::Fault;
use crate::graph::NodeState;
use crate::job::{Job, Move, Outcome, Span};
use crate::kernel::KernelFault;
use crate::memory_view::{AccessCause, AccessFault, MemoryView};
use crate::objects::{MemoryBlock, Origin};
use crate::party::{Action, Mark};
use crate::shadow::Touch;
use crate::state::{Engine, State};
use crate::stream::{Finished, Ready, Step};
use crate::task::{End, LaunchTask, Task};

/// What a step costs, and on which engine.
#[derive(Clone, Copy, Debug)]
struct Cost {
    duration_ns: u64,
    engine: Option<Engine>,
}

impl State {
    /// Marks a step as running and says what is to be done for it; nothing if it failed or hangs.
    pub(crate) fn begin(&mut self, ready: Ready, parallelism: usize) -> Option<(u32, Job)> {
        let stream = self.streams.get_mut(&ready.lane)?;
        let device = stream.device;
        let head = stream.queue.front_mut()?;
        let (task, mark) = match (&mut head.step, ready.node) {
            (Step::Graph(run), Some(node)) => {
                run.states[node] = NodeState::Running;
                (Some(run.plan.nodes[node].task.clone()), run.marks[node].clone())
            }
            (Step::Task(task), _) => (Some(task.clone()), head.mark.clone()),
            _ => (None, head.mark.clone()),
        };
        stream.running = ready.node.is_none();
        let job = match task {
            None => Ok(Job::Pass),
            Some(Task::Copy { from, to, bytes }) => self.begin_copy(&from, &to, bytes, &mark),
            Some(Task::Fill { address, pattern, count }) => {
                let to = End::Device { device, address };
                self.begin_write(&to, pattern.bytes().saturating_mul(count), &mark)
                    .map(|stretches| Job::Fill { to: spans(&stretches), pattern })
            }
            Some(Task::Launch(task)) => return self.begin_launch(ready, device, task, &mark, parallelism),
        };
        match job {
            Ok(job) => Some((device, job)),
            Err(fault) => {
                self.fault(device, &KernelFault::Access(fault), &mark);
                self.stop_running(ready);
                None
            }
        }
    }

    /// Takes over what came of a step.
    pub(crate) fn end(&mut self, ready: Ready, outcome: Outcome) {
        let Some((device, mark)) = self.mark_of(ready) else {
            self.stop_running(ready);
            return;
        };
        let mut spent_ns = None;
        if let Outcome::Launched { task, view, result, spent_ns: spent } = outcome {
            self.check_kernel(&view, &task, &mark);
            spent_ns = Some(spent).filter(|spent| *spent > 0);
            match result {
                Ok(()) => {}
                Err(KernelFault::Hang) => return self.hang(ready, &mark),
                Err(fault) => {
                    self.fault(device, &fault, &mark);
                    return self.stop_running(ready);
                }
            }
        }
        self.journal.commands += 1;
        self.complete(ready, device, &mark, spent_ns);
        self.pass_edges(ready);
        if self.streams.get(&ready.lane).is_some_and(crate::stream::Stream::is_over) {
            self.forget_stream(ready.lane);
        }
    }

    /// Drops a stream whose handle is gone and whose work is done.
    pub(crate) fn forget_stream(&mut self, lane: crate::vector_clock::Lane) {
        if let Some(stream) = self.streams.remove(&lane) {
            stream.branches.into_iter().chain([lane]).for_each(|lane| self.lanes.give_back(lane));
        }
    }

    fn mark_of(&self, ready: Ready) -> Option<(u32, Arc<Mark>)> {
        let stream = self.streams.get(&ready.lane)?;
        let head = stream.queue.front()?;
        let mark = match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => &run.marks[node],
            _ => &head.mark,
        };
        Some((stream.device, mark.clone()))
    }

    fn stop_running(&mut self, ready: Ready) {
        if let Some(stream) = self.streams.get_mut(&ready.lane) {
            stream.running = false;
            if stream.is_over() {
                self.forget_stream(ready.lane);
            }
        }
    }

    fn hang(&mut self, ready: Ready, mark: &Arc<Mark>) {
        let now_ns = self.now_ns;
        self.journal.write(now_ns, format_args!("{} hangs", mark.party));
        if let Some(stream) = self.streams.get_mut(&ready.lane) {
            stream.running = false;
            stream.hung = Some(mark.clone());
        }
    }

    fn fault(&mut self, device: u32, fault: &KernelFault, mark: &Arc<Mark>) {
        if let KernelFault::Access(fault) = fault {
            self.find_fault(device, fault, mark);
        }
        let loss = Loss { code: fault.code(), detail: fault.to_string() };
        self.lose(device, loss, Some(&mark.party));
    }

    fn begin_launch(
        &mut self,
        ready: Ready,
        device: u32,
        task: Arc<LaunchTask>,
        mark: &Arc<Mark>,
        parallelism: usize,
    ) -> Option<(u32, Job)> {
        let state = self.device(device);
        state.counts.launches += 1;
        let number = state.counts.launches;
        let view = MemoryView::new(state.map.clone());
        let planned = self.faults.of(device).find_map(|fault| match fault {
            Fault::Sticky { launch, code } if *launch == number => Some(Some(*code)),
            Fault::Hang { launch } if *launch == number => Some(None),
            _ => None,
        });
        match planned {
            None => {
                let seed = mix(mark.order);
                Some((device, Job::Launch { task, view, seed, parallelism }))
            }
            Some(Some(code)) => {
                let loss = Loss { code, detail: format!("as planned for launch {number}") };
                self.lose(device, loss, Some(&mark.party));
                self.stop_running(ready);
                None
            }
            Some(None) => {
                self.hang(ready, mark);
                None
            }
        }
    }

    fn begin_copy(&mut self, from: &End, to: &End, bytes: u64, mark: &Arc<Mark>) -> Result<Job, AccessFault> {
        let sources = self.stretches(from, bytes, Access::Read, mark)?;
        let targets = self.stretches(to, bytes, Access::Write, mark)?;
        let undefined = match to {
            End::Host { .. } => {
                sources.iter().for_each(|stretch| self.check_defined(stretch, mark));
                Vec::new()
            }
            End::Device { .. } => undefined_parts(&sources),
        };
        sources.iter().for_each(|stretch| self.check_touch(stretch, Touch::Read, mark));
        targets.iter().for_each(|stretch| self.check_touch(stretch, Touch::Write, mark));
        if self.checks.uninitialised {
            undefine_parts(&targets, &undefined);
        }
        Ok(Job::Copy(moves(&spans(&sources), &spans(&targets))))
    }

    fn begin_write(&mut self, to: &End, bytes: u64, mark: &Arc<Mark>) -> Result<Vec<Stretch>, AccessFault> {
        let targets = self.stretches(to, bytes, Access::Write, mark)?;
        targets.iter().for_each(|stretch| self.check_touch(stretch, Touch::Write, mark));
        Ok(targets)
    }

    /// The memory behind one end of a copy, as it is mapped now.
    fn stretches(
        &mut self,
        end: &End,
        bytes: u64,
        access: Access,
        mark: &Arc<Mark>,
    ) -> Result<Vec<Stretch>, AccessFault> {
        match end {
            _ if bytes == 0 => Ok(Vec::new()),
            End::Host { memory, offset } => {
                let range = *offset..offset + bytes;
                self.check_host_alive(memory, range.clone(), mark);
                Ok(vec![Stretch::of_host(memory, range)])
            }
            End::Device { device, address } => {
                let map = &self.device(*device).map;
                let range = *address..address + bytes;
                if let Some(hole) = map.first_hole(range.clone()) {
                    let cause = AccessCause::Unmapped;
                    return Err(AccessFault { address: hole, bytes: range.end - hole, access, cause });
                }
                let segments = map.overlapping(range.clone());
                let locked = segments.iter().find(|segment| segment.protection == Protection::Read);
                if let (true, Some(segment)) = (access.writes(), locked) {
                    let (address, cause) = (segment.start.max(range.start), AccessCause::ReadOnly);
                    return Err(AccessFault { address, bytes: range.end - address, access, cause });
                }
                let part = |segment: &crate::address_map::Segment| {
                    let (start, end) = (segment.start.max(range.start), segment.end.min(range.end));
                    Stretch::of_segment(segment, start - segment.start..end - segment.start)
                };
                Ok(segments.iter().map(part).collect())
            }
        }
    }

    /// Writes down that a step is done, and when.
    fn complete(&mut self, ready: Ready, device: u32, mark: &Arc<Mark>, spent_ns: Option<u64>) {
        let Some(stream) = self.streams.get(&ready.lane) else { return };
        let Some(head) = stream.queue.front() else { return };
        let cost = self.cost(device, &head.step, ready.node, spent_ns);
        let earliest_ns = match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => run.earliest_ns(node, head.queued_ns.max(stream.time_ns)),
            (Step::Wait(Some(signal)), _) => {
                let signalled_ns = signal.done_ns.get().copied().unwrap_or(0);
                signalled_ns.max(head.queued_ns).max(stream.time_ns)
            }
            _ => head.queued_ns.max(stream.time_ns),
        };
        let (start_ns, end_ns) = self.occupy(device, earliest_ns, cost);
        if !matches!(mark.party.action, Action::Signal | Action::Wait | Action::Free(_)) {
            self.journal.span(&mark.party, start_ns, end_ns);
        }
        let Some(stream) = self.streams.get_mut(&ready.lane) else { return };
        if let (Some(node), Some(head)) = (ready.node, stream.queue.front_mut())
            && let Step::Graph(run) = &mut head.step
        {
            run.states[node] = NodeState::Done(end_ns);
            run.left -= 1;
            if run.left > 0 {
                return;
            }
            let end_ns = run.end_ns();
            return self.retire(ready, device, end_ns);
        }
        self.retire(ready, device, end_ns);
    }

    /// Takes the first step off a stream.
    fn retire(&mut self, ready: Ready, device: u32, end_ns: u64) {
        let Some(stream) = self.streams.get_mut(&ready.lane) else { return };
        stream.running = false;
        let Some(head) = stream.queue.pop_front() else { return };
        stream.time_ns = stream.time_ns.max(end_ns);
        stream.forget_known(&self.host);
        stream.finished.push_back(Finished { mark: head.mark.clone(), end_ns });
        match head.step {
            Step::Signal(signal) => {
                let _ = signal.done_ns.set(end_ns);
            }
            Step::Free(block) => self.free_now(device, &block, &head.mark),
            Step::Task(_) | Step::Wait(_) | Step::Graph(_) => {}
        }
    }

    /// Runs what only passes something on, since nobody could tell whether it ran.
    fn pass_edges(&mut self, ready: Ready) {
        while let Some(stream) = self.streams.get(&ready.lane)
            && stream.head_is_edge()
        {
            let ready = Ready { node: None, ..ready };
            let Some((device, mark)) = self.mark_of(ready) else { return };
            self.journal.commands += 1;
            self.complete(ready, device, &mark, None);
        }
    }

    /// Takes memory out of the map; what uses it from here on faults.
    pub(crate) fn free_now(&mut self, device: u32, block: &MemoryBlock, death: &Arc<Mark>) {
        let range = block.address..block.address + block.bytes;
        let removed = Arc::make_mut(&mut self.device(device).map).remove(range);
        for segment in removed {
            let whole = 0..segment.end - segment.start;
            self.check_end(&Stretch::of_segment(&segment, whole), death);
            self.device(device).graveyard.bury(&segment.region, death);
        }
        if block.origin == Origin::Pool {
            self.device(device).pool.used_bytes -= block.bytes;
        }
    }

    fn cost(&self, device: u32, step: &Step, node: Option<usize>, spent_ns: Option<u64>) -> Cost {
        let (task, latency_ns) = match (step, node) {
            (Step::Graph(run), Some(node)) => (&run.plan.nodes[node].task, self.costs.node_ns),
            (Step::Task(task), _) => (task, 0),
            _ => return Cost { duration_ns: 0, engine: None },
        };
        let costs = &self.costs;
        let cost = match task {
            Task::Copy { from, to, bytes } => {
                let factor = self.faults.copy_factor(device);
                let (duration_ns, engine) = match (from, to) {
                    (End::Host { .. }, _) => (costs.link(*bytes), Some(Engine::Upload)),
                    (_, End::Host { .. }) => (costs.link(*bytes), Some(Engine::Download)),
                    (End::Device { device: from, .. }, End::Device { device: to, .. }) if from != to => {
                        (costs.link(*bytes), None)
                    }
                    _ => (costs.inside(costs.copy_ns, *bytes), None),
                };
                Cost { duration_ns: duration_ns.saturating_mul(factor), engine }
            }
            Task::Fill { pattern, count, .. } => {
                let bytes = pattern.bytes().saturating_mul(*count);
                Cost { duration_ns: costs.inside(costs.fill_ns, bytes), engine: None }
            }
            Task::Launch(_) => {
                let one_at_a_time = !self.devices[device as usize].concurrent_kernels;
                Cost {
                    duration_ns: costs.launch_ns.saturating_add(spent_ns.unwrap_or(0)),
                    engine: one_at_a_time.then_some(Engine::Kernels),
                }
            }
        };
        Cost { duration_ns: cost.duration_ns.saturating_add(latency_ns), ..cost }
    }

    /// When a piece of work begins and ends, given its engine.
    fn occupy(&mut self, device: u32, earliest_ns: u64, cost: Cost) -> (u64, u64) {
        let Some(engine) = cost.engine else {
            return (earliest_ns, earliest_ns.saturating_add(cost.duration_ns));
        };
        let free_ns = &mut self.device(device).engines_ns[engine as usize];
        let start_ns = earliest_ns.max(*free_ns);
        *free_ns = start_ns.saturating_add(cost.duration_ns);
        (start_ns, *free_ns)
    }
}

fn spans(stretches: &[Stretch]) -> Vec<Span> {
    let span = |stretch: &Stretch| {
        let place = stretch.place();
        Span { bytes: stretch.physical.bytes.clone(), offset: place.start, len: place.end - place.start }
    };
    stretches.iter().map(span).collect()
}

/// Pairs two lists of spans of the same total length.
fn moves(from: &[Span], to: &[Span]) -> Vec<Move> {
    let mut list = Vec::new();
    let (mut from, mut to) = (from.to_vec(), to.to_vec());
    from.reverse();
    to.reverse();
    while let (Some(mut source), Some(mut target)) = (from.pop(), to.pop()) {
        let len = source.len.min(target.len);
        let cut = |span: &mut Span, rest: &mut Vec<Span>| {
            if span.len > len {
                rest.push(Span { offset: span.offset + len, len: span.len - len, bytes: span.bytes.clone() });
                span.len = len;
            }
        };
        cut(&mut source, &mut from);
        cut(&mut target, &mut to);
        list.push(Move { from: source, to: target });
    }
    list
}

/// The parts of a list of stretches that nobody wrote, counted from the first byte of the list.
fn undefined_parts(stretches: &[Stretch]) -> Vec<std::ops::Range<u64>> {
    let mut parts = Vec::new();
    let mut at = 0;
    for stretch in stretches {
        let place = stretch.place();
        let undefined = stretch.physical.shadow().undefined(place.clone());
        parts.extend(
            undefined.into_iter().map(|part| at + part.start - place.start..at + part.end - place.start),
        );
        at += place.end - place.start;
    }
    parts
}

fn undefine_parts(stretches: &[Stretch], parts: &[std::ops::Range<u64>]) {
    let mut at = 0;
    for stretch in stretches {
        let place = stretch.place();
        let len = place.end - place.start;
        for part in parts {
            let (start, end) = (part.start.max(at), part.end.min(at + len));
            if start < end {
                stretch.physical.shadow().undefine(place.start + start - at..place.start + end - at);
            }
        }
        at += len;
    }
}
