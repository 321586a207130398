//! Functions of the host in the order of streams.
//!
//! A function whose turn came is handed to a thread that calls one after the other, so that a call that lets the device move never runs one: it
//! may wait for the thread that makes that call. While functions are queued or run, a second thread lets the device move, because the program may
//! wait for a function without a call of the device.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use kiln_driver::Code;

use crate::schedule::machine_core::{Core, HOST_POLL};
use crate::schedule::machine_state::State;
use crate::schedule::step_work::Job;
use crate::schedule::stream_queue::{Ready, Step, Stream};
use crate::schedule::task::{LaunchTask, Task};

/// Functions of the host that are not done.
#[derive(Debug, Default)]
pub(crate) struct HostFunctions {
    /// Steps that are queued and did not begin.
    waiting: usize,
    /// Those whose turn came, in that order.
    calls: VecDeque<HostCall>,
    is_running: bool,
}

/// One of them.
#[derive(Debug)]
enum HostCall {
    Run {
        ready: Ready,
        device: u32,
        job: Job,
    },
    /// Its device was lost before its turn.
    Lost {
        task: Arc<LaunchTask>,
        code: Code,
    },
}

impl HostFunctions {
    /// Tasks were queued.
    pub(crate) fn expect<'a>(&mut self, tasks: impl Iterator<Item = &'a Task>) {
        self.waiting += tasks.filter(|task| task.host_function().is_some()).count();
    }

    /// The turn of one came.
    pub(crate) fn begin(&mut self) {
        self.waiting -= 1;
    }

    /// What is queued on a stream does not run any more.
    pub(crate) fn lose(&mut self, stream: &Stream, code: Code) {
        for (at, queued) in stream.queue.iter().enumerate() {
            let tasks: Vec<&Task> = match &queued.step {
                Step::Task(task) if at > 0 || !stream.running => vec![task],
                Step::Graph(run) => run.waiting().collect(),
                _ => Vec::new(),
            };
            for task in tasks.into_iter().filter_map(Task::host_function) {
                self.waiting -= 1;
                self.calls.push_back(HostCall::Lost { task: task.clone(), code });
            }
        }
    }

    /// How many count as running.
    pub(crate) fn begun(&self) -> usize {
        let handed_over = self.calls.iter().filter(|call| matches!(call, HostCall::Run { .. })).count();
        handed_over + usize::from(self.is_running)
    }

    fn are_pending(&self) -> bool {
        self.waiting > 0 || !self.calls.is_empty() || self.is_running
    }
}

impl State {
    /// Gives a step that began to the thread of the functions. What comes before it is done, and the program may learn that from the function.
    pub(crate) fn hand_over(&mut self, ready: Ready, device: u32, job: Job) {
        if let Some((_, mark)) = self.mark_of(ready) {
            self.host_learns(&mark.clock);
        }
        self.host_functions.calls.push_back(HostCall::Run { ready, device, job });
    }
}

impl Core {
    /// Calls functions whose turn came, until the machine ends.
    pub(crate) fn call_host_functions(&self) {
        let mut state = self.lock();
        while !state.stop {
            let Some(call) = state.host_functions.calls.pop_front() else {
                state = self.sleep(state);
                continue;
            };
            state.host_functions.is_running = true;
            drop(state);
            state = match call {
                HostCall::Run { ready, device, job } => self.run_job(ready, device, job),
                HostCall::Lost { task, code } => {
                    // There is no launch that could fail by it.
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        task.function.loaded.kernel.is_lost(&task.arguments, code);
                    }));
                    self.lock()
                }
            };
            state.host_functions.is_running = false;
            self.notify();
        }
    }

    /// Lets the device move while there are functions, until the machine ends.
    pub(crate) fn move_for_host_functions(&self) {
        let mut state = self.lock();
        while !state.stop {
            let moved;
            (state, moved) = match state.host_functions.are_pending() {
                true => self.advance(state, None),
                false => (state, false),
            };
            if !moved {
                // Work may wait for what the host or another process writes, without a call. What was written since `advance` looked is seen by the next look, so
                // whether to look again does not depend on what memory has now.
                let looks_again = state.host_functions.are_pending() && state.has_memory_waits();
                state = match looks_again {
                    true => {
                        self.moved.wait_timeout(state, HOST_POLL).unwrap_or_else(PoisonError::into_inner).0
                    }
                    false => self.sleep(state),
                };
            }
        }
    }
}
