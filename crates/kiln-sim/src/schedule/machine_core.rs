//! The core of a machine: its lock, and the loop that runs ready work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::call::{Answered, Call};
use kiln_driver::{Error, Fault as Loss, MemoryRequest, Refusal, Result};

use crate::check::finding::FindingKind;
use crate::check::vector_clock::Lane;
use crate::code::kernel::Others;
use crate::device::objects::{Objects, Origin};
use crate::fault_plan::{FaultPlan, PlannedFault};
use crate::machine_config::{MachineConfig, Mode};
use crate::report::SimReport;
use crate::schedule::machine_state::State;
use crate::schedule::step_work::{Job, in_kernel, kernels_of_thread};
use crate::schedule::stream_queue::Ready;

pub(crate) type Guard<'a> = MutexGuard<'a, State>;

/// How long work that waits for memory lets the host work before it looks again.
pub(crate) const HOST_POLL: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: MachineConfig,
    pub(crate) devices: Vec<Arc<Objects>>,
    /// Tells its clock from those of other machines of the process.
    pub(crate) number: u64,
    state: Mutex<State>,
    /// Told whenever something was queued or done.
    pub(crate) moved: Condvar,
}

impl Core {
    pub(crate) fn new(mut config: MachineConfig) -> Self {
        if config.devices.is_empty() {
            config.devices.push(crate::DeviceConfig::default());
        }
        let objects = |(ordinal, device): (usize, &crate::DeviceConfig)| {
            Arc::new(Objects::new(device.info(
                ordinal as u32,
                config.engine.is_some(),
                config.checks.declarations,
            )))
        };
        let devices = config.devices.iter().enumerate().map(objects).collect();
        let state = Mutex::new(State::new(&config));
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { config, devices, number, state, moved: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self) {
        self.moved.notify_all();
    }

    pub(crate) fn sleep<'a>(&self, state: Guard<'a>) -> Guard<'a> {
        self.moved.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn workers(&self) -> usize {
        match self.config.mode {
            Mode::Threaded { workers } => workers.max(1),
            Mode::Seeded(_) | Mode::Scheduled(_) => 0,
        }
    }

    /// The state, for a call that needs the device.
    pub(crate) fn enter(&self, device: u32, call: &'static str) -> Result<Guard<'_>> {
        self.enter_in_time(device, call, true)
    }

    /// As [`enter`](Self::enter); a call that measures takes no time, so that who measures a program does not change it.
    pub(crate) fn enter_in_time(
        &self,
        device: u32,
        call: &'static str,
        takes_time: bool,
    ) -> Result<Guard<'_>> {
        if in_kernel() {
            let (handle, why) =
                (format!("device {device}"), "a kernel cannot call the device it runs on".into());
            return Err(Error::refused(call, Refusal::Busy { handle, why }));
        }
        let mut state = self.lock();
        state.note_call();
        if takes_time {
            let call_ns = state.costs.call_ns;
            state.pass(call_ns);
        }
        let counts = &mut state.device(device).counts;
        counts.calls += 1;
        let number = counts.calls;
        let planned = state.faults.meet(device, |fault| match fault {
            PlannedFault::LostAtCall { call, code } if *call == number => Some(*code),
            _ => None,
        });
        if let Some(code) = planned {
            state.lose(device, Loss { code, detail: format!("as planned for call {number}") }, None);
        }
        state.meet_planned_loss(device);
        self.answer_lost(state, device, call)
    }

    /// The state, unless the device is lost.
    pub(crate) fn answer_lost<'a>(
        &self,
        mut state: Guard<'a>,
        device: u32,
        call: &'static str,
    ) -> Result<Guard<'a>> {
        match state.device(device).lost.clone() {
            Some(lost) => {
                // Functions of the host that will not run are told.
                self.notify();
                Err(lost.seen_by(call))
            }
            None => Ok(state),
        }
    }

    /// Makes a call and writes it down.
    pub(crate) fn traced<R: Answered>(
        &self,
        device: u32,
        call: Call<'_>,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let is_part = self.is_part(device, &call);
        let result = run();
        if is_part && result.is_ok() {
            // Blocks come and go too often for the trace, and a device without checks hears nothing of them.
            return result;
        }
        let mut state = self.lock();
        state.note_call();
        if state.journal.is_tracing() {
            let text = match &call {
                Call::Load { image } => format!("Load {{ {} }}", image.name()),
                call => format!("{call:?}"),
            };
            let now_ns = state.now_ns;
            match &result {
                Ok(value) => {
                    let answer = value.answer();
                    state.journal.write(now_ns, format_args!("device {device} {text} -> {answer:?}"));
                }
                Err(error) => {
                    state.journal.write(now_ns, format_args!("device {device} {text} -> error {error}"));
                }
            }
        }
        if let Err(error) = &result {
            state.find_stale(device, &call, error);
        }
        result
    }

    /// Whether a call is about a block that a resource hands out of other memory.
    fn is_part(&self, device: u32, call: &Call<'_>) -> bool {
        match call {
            Call::Allocate { request } => matches!(request, MemoryRequest::Part(_)),
            Call::Free { memory, .. } => {
                let block = self.devices[device as usize].memory.find("free", *memory);
                block.is_ok_and(|block| block.origin == Origin::Part)
            }
            _ => false,
        }
    }

    /// Runs one step, without the lock while bytes move or a kernel runs.
    pub(crate) fn step<'a>(&'a self, mut state: Guard<'a>, ready: Ready) -> Guard<'a> {
        let parallelism = self.workers().max(1);
        let Some((device, job)) = state.begin(ready, parallelism) else {
            self.notify();
            return state;
        };
        state.running += 1;
        if job.is_host_function() {
            state.hand_over(ready, device, job);
            self.notify();
            return state;
        }
        drop(state);
        self.run_job(ready, device, job)
    }

    /// Runs what a step has to do, and ends the step.
    pub(crate) fn run_job(&self, ready: Ready, device: u32, job: Job) -> Guard<'_> {
        let idle = Mutex::new(Duration::ZERO);
        let others = || self.let_others_move(&idle);
        let outcome = job.run(&self.devices[device as usize].info, Others(&others));
        let mut state = self.lock();
        state.running -= 1;
        state.end(ready, outcome);
        state.note_movement();
        self.notify();
        state
    }

    /// Lets other streams and the host go on while a kernel waits for memory. False if none of them can change it: nothing is left to run,
    /// and the host has been idle for the limit.
    fn let_others_move(&self, idle: &Mutex<Duration>) -> bool {
        let mut state = self.lock();
        let ready = state.ready();
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !ready.is_empty() {
            *idle = Duration::ZERO;
            let pick = state.chooser.choose(ready.len());
            state.idle_polls = 0;
            drop(self.step(state, ready[pick]));
            return true;
        }
        // A kernel under this one on the thread waits for memory as well and goes on when this one ends: two launches that wait for each other
        // never do. Nothing promises that launches of two streams run at the same time.
        if state.running <= kernels_of_thread() && *idle >= self.config.limits.idle_host {
            return false;
        }
        *idle += HOST_POLL;
        drop(self.moved.wait_timeout(state, HOST_POLL));
        true
    }

    /// Lets something move, if anything can; `towards` says whose progress is wanted.
    pub(crate) fn advance<'a>(&'a self, mut state: Guard<'a>, towards: Option<Lane>) -> (Guard<'a>, bool) {
        let mut ready = state.ready();
        if self.workers() > 0 || ready.is_empty() {
            let hope = state.running > 0 || !ready.is_empty();
            if !hope {
                return (state, false);
            }
            if !state.has_memory_waits() {
                return (self.sleep(state), true);
            }
            // Memory may change without a word: workers that slept before do not see it, nor would this thread.
            self.notify();
            let slept = self.moved.wait_timeout(state, HOST_POLL);
            return (slept.unwrap_or_else(PoisonError::into_inner).0, true);
        }
        if let Some(lane) = towards
            && !state.chooser.is_scripted()
            && state.chooser.choose(2) == 0
        {
            let needed = state.needed_by(lane);
            if ready.iter().any(|ready| needed.contains(&ready.lane)) {
                ready.retain(|ready| needed.contains(&ready.lane));
            }
        }
        let pick = state.chooser.choose(ready.len());
        state.idle_polls = 0;
        (self.step(state, ready[pick]), true)
    }

    /// The device works while the host does something else: perhaps it makes a step, and after it rested a few times
    /// it must.
    pub(crate) fn drift<'a>(&'a self, mut state: Guard<'a>) -> (Guard<'a>, bool) {
        let ready = state.ready();
        let may_rest = state.idle_polls < self.config.limits.idle_polls;
        state.idle_polls = state.idle_polls.saturating_add(1);
        if self.workers() > 0 {
            return (state, false);
        }
        let pick = state.chooser.choose(ready.len() + usize::from(may_rest));
        match ready.get(pick) {
            Some(ready) => {
                state.idle_polls = 0;
                (self.step(state, *ready), true)
            }
            None => (state, false),
        }
    }

    /// Runs everything that is queued, then says what was found.
    pub(crate) fn finish(&self) -> SimReport {
        let mut state = self.lock();
        loop {
            let (next, moved) = self.advance(state, None);
            state = next;
            if moved {
                continue;
            }
            // No thread of the program submits any more, so ranks that did not come never will.
            let stalled = state.stalled();
            if stalled.is_empty() {
                break;
            }
            state.end_deadlock(&stalled);
        }
        if state.checks.leaks {
            for objects in &self.devices {
                self.find_leaks(&mut state, objects);
            }
        }
        self.report(&state)
    }

    pub(crate) fn report(&self, state: &State) -> SimReport {
        SimReport {
            findings: state.journal.findings().to_vec(),
            dropped: state.journal.dropped(),
            commands: state.journal.commands,
            mode: self.config.mode.clone(),
            faults_to_come: FaultPlan { faults: state.faults.to_come() },
        }
    }

    /// On a lost device nothing can be given back, so nothing there is a leak.
    fn find_leaks(&self, state: &mut State, objects: &Objects) {
        let device = objects.info.ordinal;
        if state.device(device).lost.is_some() {
            return;
        }
        let mut left: Vec<String> = Vec::new();
        let variables = objects.variables();
        left.extend(
            objects.memory.handles().iter().filter(|id| !variables.contains(id)).map(ToString::to_string),
        );
        left.extend(objects.reservations.handles().iter().map(ToString::to_string));
        left.extend(objects.pages.handles().iter().map(ToString::to_string));
        left.extend(objects.hosts.handles().iter().map(ToString::to_string));
        left.extend(objects.streams.handles().iter().map(ToString::to_string));
        left.extend(objects.events.handles().iter().map(ToString::to_string));
        left.extend(objects.modules.handles().iter().map(ToString::to_string));
        left.extend(objects.graphs.handles().iter().map(ToString::to_string));
        for subject in left {
            state.find_object(FindingKind::Leak, device, subject, None, None);
        }
    }
}
