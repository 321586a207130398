//! One step of the machine: begin under the lock, run without it, end under it again.
//!
//! Copies and fills are checked when they begin, since what they touch is known; kernels when they end.

use std::sync::Arc;

use kiln_driver::Fault as Loss;

use crate::check::access_origin::{Action, Mark};
use crate::check::checker::Stretch;
use crate::check::vector_clock::Lane;
use crate::code::kernel::KernelFault;
use crate::collective::collective_kernel::Exchange;
use crate::device::objects::{MemoryBlock, Origin};
use crate::fault_plan::PlannedFault;
use crate::memory::memory_view::MemoryView;
use crate::schedule::machine_state::State;
use crate::schedule::scheduling_choice::mix;
use crate::schedule::step_work::{Job, Outcome};
use crate::schedule::stream_queue::{Finished, Hung, Ready, Step, Stream};
use crate::schedule::task::{LaunchTask, Task};

impl State {
    /// Marks a step as running and says what is to be done for it; nothing if it failed or hangs.
    pub(crate) fn begin(&mut self, ready: Ready, parallelism: usize) -> Option<(u32, Job)> {
        self.complete_mark(ready);
        let stream = self.streams.get_mut(&ready.lane)?;
        let device = stream.device;
        let head = stream.queue.front_mut()?;
        let (task, mark) = match (&mut head.step, ready.node) {
            (Step::Graph(run), Some(node)) => {
                run.take(node);
                (Some(run.plan.nodes[node].task.clone()), run.marks[node].clone())
            }
            (Step::Task(task), _) => (Some(task.clone()), head.mark.clone()),
            _ => (None, head.mark.clone()),
        };
        stream.running = ready.node.is_none();
        if task.as_ref().is_some_and(|task| task.host_function().is_some()) {
            self.host_functions.begin();
        }
        let job = match task {
            None => Ok(Some(Job::Pass)),
            Some(Task::Copy { from, to, .. }) if self.copy_passes_link((&from, &to), device, &mark) => {
                Ok(None)
            }
            Some(Task::Copy { from, to, bytes }) => self.begin_copy(&from, &to, bytes, &mark).map(Some),
            Some(Task::Fill { address, pattern, count, .. }) => {
                self.begin_fill(device, address, pattern, count, &mark).map(Some)
            }
            Some(Task::Launch(task)) => Ok(self.begin_launch(ready, device, task, &mark, parallelism)),
        };
        match job {
            Ok(None) if self.device(device).lost.is_some() => {
                self.stop_running(ready.lane);
                None
            }
            Ok(job) => job.map(|job| (device, job)),
            Err(fault) => {
                self.fault(device, &KernelFault::Access(fault), None, &mark);
                self.stop_running(ready.lane);
                None
            }
        }
    }

    /// Takes over what came of a step.
    pub(crate) fn end(&mut self, ready: Ready, outcome: Outcome) {
        // A device that was lost meanwhile has no queue any more.
        let Some((device, mark)) = self.mark_of(ready) else { return self.stop_running(ready.lane) };
        let mark = self.acquire(ready, &outcome, mark);
        let mut kernel_ns = 0;
        if let Outcome::Launched { task, view, result, spent_ns, notes, brought } = outcome {
            // What the kernel itself is found to do says more than what follows from it for the memory.
            let told = self.note(device, notes, &view, &result, &mark);
            self.check_strays(device, &view, &mark);
            self.check_kernel(&view, &task, &mark);
            match result {
                Ok(()) => {}
                Err(KernelFault::Hang) => return self.hang(ready.lane, &mark, told),
                Err(fault) => {
                    self.fault(device, &fault, told, &mark);
                    return self.stop_running(ready.lane);
                }
            }
            kernel_ns = match spent_ns {
                0 => self.costs.inside(0, view.touched_bytes()),
                spent_ns => spent_ns,
            };
            if task.collectives.is_some() {
                kernel_ns = self.collective_run(ready).map_or(0, |run| self.collective_ns(run));
                if !self.end_exchange(ready, brought, &mark) {
                    return self.wait_again(ready);
                }
            }
        }
        self.complete(ready, &mark, kernel_ns);
        self.pass_edges(ready.lane);
        self.forget_if_over(ready.lane);
    }

    /// The first step of a collective is done; the second one waits for the other ranks.
    fn wait_again(&mut self, ready: Ready) {
        let head = self.streams.get_mut(&ready.lane).and_then(|stream| stream.queue.front_mut());
        match (head.map(|head| &mut head.step), ready.node) {
            (Some(Step::Graph(run)), Some(node)) => run.put_back(node),
            _ => self.stop_running(ready.lane),
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

    /// Drops a stream whose handle is gone and whose work is done; its lanes can serve another.
    pub(crate) fn forget_if_over(&mut self, lane: Lane) {
        if !self.streams.get(&lane).is_some_and(Stream::is_over) {
            return;
        }
        if let Some(stream) = self.streams.remove(&lane) {
            let last = (lane, stream.last_tick);
            stream.branches.into_iter().chain([lane]).for_each(|lane| self.lanes.give_back(lane, last));
        }
    }

    fn begin_launch(
        &mut self,
        ready: Ready,
        device: u32,
        task: Arc<LaunchTask>,
        mark: &Arc<Mark>,
        parallelism: usize,
    ) -> Option<Job> {
        let checks_undefined = self.checks.uninitialised;
        let exchange = self.begin_exchange(ready);
        self.unmap_missing_hosts();
        let map = self.map_for_kernels(device);
        let state = self.device(device);
        // The second step of a collective is no launch, nor is one that was ended.
        let number = match exchange {
            Some(Exchange::Leave(_) | Exchange::End { .. }) => 0,
            _ => {
                state.counts.launches += 1;
                state.counts.launches
            }
        };
        let (alone, footprint) = (parallelism == 1, task.footprint.clone());
        let view = MemoryView::new(map, alone, checks_undefined.then_some(mark.order), footprint);
        let planned = self.faults.meet(device, |fault| match fault {
            PlannedFault::Sticky { launch, code } if *launch == number => Some(Some(*code)),
            PlannedFault::Hang { launch } if *launch == number => Some(None),
            _ => None,
        });
        match planned {
            Some(Some(code)) => {
                let loss = Loss { code, detail: format!("as planned for launch {number}") };
                self.lose(device, loss, Some(&mark.actor));
                self.stop_running(ready.lane);
                return None;
            }
            Some(None) => {
                self.hang(ready.lane, mark, None);
                return None;
            }
            None => {}
        }
        if matches!(exchange, Some(Exchange::Arrive)) && self.collective_passes_links(ready, device, mark) {
            self.stop_running(ready.lane);
            return None;
        }
        // With seed 0, and without a seed, threads run in the order of their numbers.
        let seed = if self.seed == 0 { 0 } else { mix(self.seed ^ mark.order) };
        Some(Job::Launch { task, view: Box::new(view), seed, parallelism, exchange })
    }

    pub(crate) fn mark_of(&self, ready: Ready) -> Option<(u32, Arc<Mark>)> {
        let stream = self.streams.get(&ready.lane)?;
        let head = stream.queue.front()?;
        let mark = match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => &run.marks[node],
            _ => &head.mark,
        };
        Some((stream.device, mark.clone()))
    }

    fn stop_running(&mut self, lane: Lane) {
        if let Some(stream) = self.streams.get_mut(&lane) {
            stream.running = false;
        }
        self.forget_if_over(lane);
    }

    fn hang(&mut self, lane: Lane, mark: &Arc<Mark>, told: Option<String>) {
        let now_ns = self.now_ns;
        self.journal.write(now_ns, format_args!("{} hangs", mark.actor));
        if let Some(stream) = self.streams.get_mut(&lane) {
            stream.running = false;
            stream.hung = Some(Hung { mark: mark.clone(), told, since_ns: now_ns });
        }
    }

    /// Loses the device. `told` is what was found of the fault already: where in the kernel, by which thread, near which argument.
    fn fault(&mut self, device: u32, fault: &KernelFault, told: Option<String>, mark: &Arc<Mark>) {
        if let (KernelFault::Access(fault), None) = (fault, &told) {
            self.find_fault(device, fault, mark);
        }
        let loss = Loss { code: fault.code(), detail: told.unwrap_or_else(|| fault.to_string()) };
        self.lose(device, loss, Some(&mark.actor));
    }

    /// Writes down that a step is done, and when.
    fn complete(&mut self, ready: Ready, mark: &Arc<Mark>, kernel_ns: u64) {
        let Some((start_ns, end_ns)) = self.schedule(ready, kernel_ns) else { return };
        self.journal.commands += 1;
        if !matches!(mark.actor.action, Action::Signal | Action::Wait | Action::Free(_)) {
            self.journal.span(&mark.actor, start_ns, end_ns);
        }
        let head = self.streams.get_mut(&ready.lane).and_then(|stream| stream.queue.front_mut());
        match (head.map(|head| &mut head.step), ready.node) {
            (Some(Step::Graph(run)), Some(node)) => {
                if let Some(end_ns) = run.finish(node, end_ns) {
                    self.retire(ready.lane, end_ns);
                }
            }
            _ => self.retire(ready.lane, end_ns),
        }
    }

    /// Takes the first step off a stream.
    fn retire(&mut self, lane: Lane, end_ns: u64) {
        let Some(stream) = self.streams.get_mut(&lane) else { return };
        stream.running = false;
        let Some(head) = stream.queue.pop_front() else { return };
        stream.time_ns = stream.time_ns.max(end_ns);
        stream.forget_known(&self.host);
        stream.finished.push_back(Finished { mark: head.mark.clone(), end_ns });
        let device = stream.device;
        match head.step {
            // Each signal is queued once, so it is done once.
            Step::Signal(signal) => drop(signal.done_ns.set(end_ns)),
            Step::Free(block) => self.free_now(device, &block, &head.mark),
            Step::Task(_) | Step::Wait(_) | Step::Graph(_) => {}
        }
    }

    /// Runs what only passes something on, since no program can tell whether it ran.
    fn pass_edges(&mut self, lane: Lane) {
        let ready = Ready { lane, node: None };
        while self.streams.get(&lane).is_some_and(Stream::head_is_edge)
            && let Some((_, mark)) = self.mark_of(ready)
        {
            self.complete(ready, &mark, 0);
        }
    }
}
