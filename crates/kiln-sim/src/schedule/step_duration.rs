//! How long a step takes, and when its engine is free for it.

use crate::schedule::machine_state::{Engine, State};
use crate::schedule::stream_queue::{Ready, Step};
use crate::schedule::task::{End, Task};

/// What a step costs, and on which engine.
#[derive(Clone, Copy, Debug)]
struct Cost {
    duration_ns: u64,
    engine: Option<Engine>,
}

impl State {
    /// When a step could begin: after what its stream and its graph did before it.
    pub(crate) fn earliest_ns(&self, ready: Ready) -> Option<u64> {
        let stream = self.streams.get(&ready.lane)?;
        let head = stream.queue.front()?;
        let stream_ns = head.queued_ns.max(stream.time_ns);
        match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => Some(run.earliest_ns(node, stream_ns)),
            _ => Some(stream_ns),
        }
    }

    /// When a step that ran began and ended on the virtual clock: after what it waited for, and in turn on its engine.
    pub(crate) fn schedule(&mut self, ready: Ready, kernel_ns: u64) -> Option<(u64, u64)> {
        let stream = self.streams.get(&ready.lane)?;
        let head = stream.queue.front()?;
        let device = stream.device;
        let stream_ns = head.queued_ns.max(stream.time_ns);
        let (earliest_ns, cost) = match (&head.step, ready.node) {
            (Step::Graph(run), Some(node)) => {
                let cost = self.cost(device, &run.plan.nodes[node].task, kernel_ns);
                let duration_ns = cost.duration_ns.saturating_add(self.costs.node_ns);
                (run.earliest_ns(node, stream_ns), Cost { duration_ns, ..cost })
            }
            (Step::Task(task), _) => (stream_ns, self.cost(device, task, kernel_ns)),
            (Step::Wait(Some(signal)), _) => {
                let signalled_ns = signal.done_ns.get().copied().unwrap_or(0);
                (stream_ns.max(signalled_ns), Cost { duration_ns: 0, engine: None })
            }
            _ => (stream_ns, Cost { duration_ns: 0, engine: None }),
        };
        // A collective begins when the last of its ranks comes.
        let earliest_ns = self.collective_run(ready).map_or(earliest_ns, |run| earliest_ns.max(run.met_ns));
        let Some(engine) = cost.engine else {
            return Some((earliest_ns, earliest_ns.saturating_add(cost.duration_ns)));
        };
        let free_ns = &mut self.device(device).engines_ns[engine as usize];
        let start_ns = earliest_ns.max(*free_ns);
        *free_ns = start_ns.saturating_add(cost.duration_ns);
        Some((start_ns, *free_ns))
    }

    fn cost(&self, device: u32, task: &Task, kernel_ns: u64) -> Cost {
        let costs = &self.costs;
        match task {
            Task::Copy { from, to, bytes } => {
                let (duration_ns, engine) = match (from, to) {
                    (End::Host { .. }, _) => (costs.link(*bytes), Some(Engine::Upload)),
                    (_, End::Host { .. }) => (costs.link(*bytes), Some(Engine::Download)),
                    (End::Device { device: from, .. }, End::Device { device: to, .. }) if from != to => {
                        let link = self.links.link(*from, *to);
                        let link_ns = link.map_or_else(|| costs.link(*bytes), |link| link.copy_ns(*bytes));
                        (link_ns.saturating_mul(self.faults.plan().link_factor(*from, *to)), None)
                    }
                    _ => (costs.inside(costs.copy_ns, *bytes), None),
                };
                Cost { duration_ns: duration_ns.saturating_mul(self.faults.meet_slow_copy(device)), engine }
            }
            Task::Fill { pattern, count, .. } => {
                let bytes = pattern.bytes().saturating_mul(*count);
                Cost { duration_ns: costs.inside(costs.fill_ns, bytes), engine: None }
            }
            Task::Launch(_) => {
                let one_at_a_time = !self.devices[device as usize].concurrent_kernels;
                let engine = one_at_a_time.then_some(Engine::Kernels);
                Cost { duration_ns: costs.launch_ns.saturating_add(kernel_ns), engine }
            }
        }
    }
}
