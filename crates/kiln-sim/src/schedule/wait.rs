//! Waits for and polls streams and events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::{
    Code, Error, EventId, Fault as Loss, Health, Progress, Result, StreamId, Submission, Timeout, WaitTarget,
    Waited,
};

use crate::check::finding::FindingKind;
use crate::check::vector_clock::{Lane, VectorClock};
use crate::collective::stall::RanksWait;
use crate::device::objects::{Objects, Signal};
use crate::schedule::machine_core::{Core, Guard};
use crate::schedule::machine_state::State;
use crate::schedule::memory_wait::MemoryWait;
use crate::schedule::stream_queue::Hung;

/// A poll's cost doubles this often at most while nothing new is found.
const POLL_DOUBLINGS: u32 = 16;
/// How long a program makes no call before a thread that looks on its own moves the machine.
const IDLE_PROGRAM: Duration = Duration::from_millis(400);

/// What is waited for.
#[derive(Debug)]
enum Goal {
    Signal(Arc<Signal>),
    Stream { lane: Lane, tick: u64 },
}

impl Goal {
    fn lane(&self) -> Lane {
        match self {
            Self::Signal(signal) => signal.mark.lane,
            Self::Stream { lane, .. } => *lane,
        }
    }

    /// When it was done, if it ran. A stream that is not there any more has nothing left to run.
    fn done_ns(&self, state: &State) -> Option<u64> {
        match self {
            Self::Signal(signal) => signal.done_ns.get().copied(),
            Self::Stream { lane, tick } => {
                state.streams.get(lane).map_or(Some(0), |stream| stream.done_ns(*tick))
            }
        }
    }
}

impl Core {
    pub(crate) fn wait(&self, objects: &Objects, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        const CALL: &str = "wait";
        let device = objects.info.ordinal;
        if target == WaitTarget::Findings {
            return match self.lock().journal.next_unread(device) {
                Some(found) => Err(found.seen_by(CALL)),
                None => Ok(Waited::Done),
            };
        }
        let measures = matches!(target, WaitTarget::Event(event) if objects.is_timed(event));
        let mut state = self.enter_in_time(device, CALL, !measures)?;
        let Some(goal) = goal(objects, &state, target)? else { return Ok(Waited::Done) };
        let deadline_ns = match timeout {
            Timeout::Poll => state.now_ns,
            Timeout::After(time) => state.now_ns.saturating_add(nanoseconds(time)),
            Timeout::Never => u64::MAX,
        };
        // Other ranks come in real time.
        let until = match timeout {
            Timeout::After(time) => Instant::now().checked_add(time),
            Timeout::Poll | Timeout::Never => None,
        };
        if timeout == Timeout::Poll && goal.done_ns(&state).is_none_or(|done_ns| done_ns > state.now_ns) {
            state = self.poll(state, device);
        }
        // For how long the host did nothing that work could go on by.
        let mut idle = Duration::ZERO;
        loop {
            state.meet_planned_loss(device);
            state = self.answer_lost(state, device, CALL)?;
            let Some(done_ns) = goal.done_ns(&state) else {
                if timeout == Timeout::Poll {
                    return Ok(Waited::TimedOut);
                }
                let (next, moved) = self.advance(state, Some(goal.lane()));
                state = next;
                if !moved {
                    let (next, ranks) = self.wait_for_ranks(state, until);
                    state = next;
                    match ranks {
                        RanksWait::Moved => continue,
                        RanksWait::TimedOut => return self.time_out(state, device, deadline_ns),
                        RanksWait::NotWaiting => {}
                    }
                    let (next, memory) = self.wait_for_memory(state, until, &mut idle);
                    state = next;
                    match memory {
                        MemoryWait::Moved => continue,
                        MemoryWait::TimedOut => return self.time_out(state, device, deadline_ns),
                        MemoryWait::NotWaiting => {}
                    }
                    state = self.stuck(state, device, target, deadline_ns)?;
                    return self.time_out(state, device, deadline_ns);
                }
                idle = Duration::ZERO;
                continue;
            };
            if done_ns > deadline_ns.max(state.now_ns) {
                return self.time_out(state, device, deadline_ns);
            }
            state.now_ns = state.now_ns.max(done_ns);
            state.meet_planned_loss(device);
            state = self.answer_lost(state, device, CALL)?;
            state.host_sees(&goal);
            return Ok(Waited::Done);
        }
    }

    pub(crate) fn progress(&self, objects: &Objects, stream: StreamId) -> Result<Progress> {
        const CALL: &str = "progress";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let lane = *objects.streams.find(CALL, stream)?;
        let is_idle = |state: &State| state.streams.get(&lane).is_none_or(|stream| stream.is_idle());
        if !is_idle(&state) {
            state = self.poll(state, device);
            state = self.answer_lost(state, device, CALL)?;
        }
        let now_ns = state.now_ns;
        let Some(stream) = state.streams.get_mut(&lane) else { return Ok(Progress::default()) };
        let seen = stream.observe(now_ns);
        let progress =
            Progress { submitted: Submission(stream.submitted), completed: Submission(stream.completed) };
        if let Some(seen) = seen {
            state.host_learns(&seen.mark.clock);
        }
        Ok(progress)
    }

    pub(crate) fn elapsed(&self, objects: &Objects, from: EventId, to: EventId) -> Result<Duration> {
        const CALL: &str = "elapsed";
        let mut state = self.enter_in_time(objects.info.ordinal, CALL, false)?;
        let now_ns = state.now_ns;
        let when = |id: EventId| {
            let event = objects.events.find(CALL, id)?;
            if !event.timed {
                let next = "create it with EventRequest::Timed";
                return Err(Error::invalid(CALL, format!("{id} is not timed"), next));
            }
            let signal = event.last();
            let done_ns = signal.as_ref().and_then(|signal| signal.done_ns.get().copied());
            match (signal, done_ns.filter(|done_ns| *done_ns <= now_ns)) {
                (Some(signal), Some(done_ns)) => Ok((signal, done_ns)),
                _ => {
                    let next = "signal it and wait for it first";
                    Err(Error::invalid(CALL, format!("{id} is not signalled and done"), next))
                }
            }
        };
        let ((from, from_ns), (to, to_ns)) = (when(from)?, when(to)?);
        // An answer says that both are done.
        state.host_learns(&from.mark.clock);
        state.host_learns(&to.mark.clock);
        Ok(Duration::from_nanos(to_ns.saturating_sub(from_ns)))
    }

    pub(crate) fn health(&self, device: u32) -> Health {
        self.health_seen(self.lock(), device, true)
    }

    /// The same for a thread of our own, which looks at times of the real clock. What one thread of a program does then does not depend on when it looked, unless the program
    /// pauses for so long that only this thread can move the machine.
    pub(crate) fn health_in_background(&self, device: u32) -> Health {
        let state = self.lock();
        let is_idle = state.last_called.elapsed() >= IDLE_PROGRAM;
        self.health_seen(state, device, is_idle)
    }

    fn health_seen<'a>(&'a self, mut state: Guard<'a>, device: u32, may_move: bool) -> Health {
        state.meet_planned_loss(device);
        // It may be asked from a thread that looks at times of the real clock: while work runs, which takes real time too, the virtual clock does not move for it.
        if may_move && state.device(device).lost.is_none() && state.running == 0 && !state.ready().is_empty()
        {
            state = self.glance(state);
        }
        match state.device(device).lost.clone() {
            Some(lost) => Health::Lost(lost.seen_by("health")),
            None => Health::Healthy,
        }
    }

    /// Time passes and perhaps something moves; the less there is to see, the longer it takes.
    fn poll<'a>(&'a self, mut state: Guard<'a>, device: u32) -> Guard<'a> {
        let doublings = state.idle_polls.min(POLL_DOUBLINGS);
        let poll_ns = state.costs.poll_ns.saturating_mul(1 << doublings);
        state.pass(poll_ns);
        let mut state = self.drift(state).0;
        self.look_after_ranks(&mut state);
        self.end_hung(&mut state, device);
        state
    }

    /// Loses a device on which a kernel was found that never ends, when nothing else moved for as long as a wait would wait for it: who only polls is told, too.
    fn end_hung(&self, state: &mut State, device: u32) {
        let limit_ns = nanoseconds(self.config.limits.hang);
        if state.running > 0 || !state.ready().is_empty() || state.device(device).lost.is_some() {
            return;
        }
        let streams = state.streams.values().filter(|stream| stream.device == device);
        let mut hung = streams.filter_map(|stream| stream.hung.as_ref());
        let over = hung.find(|hung| hung.told.is_some() && state.now_ns - hung.since_ns >= limit_ns).cloned();
        if let Some(Hung { mark, told: Some(detail), .. }) = over {
            state.lose(device, Loss { code: Code::LAUNCH_TIMEOUT, detail }, Some(&mark.actor));
        }
    }

    /// As [`poll`](Self::poll), for who does not wait: it always takes the same time, and later polls take no longer for it.
    fn glance<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        let poll_ns = state.costs.poll_ns;
        state.pass(poll_ns);
        let most = state.idle_polls.max(self.config.limits.idle_polls);
        let mut state = self.drift(state).0;
        state.idle_polls = state.idle_polls.min(most);
        self.look_after_ranks(&mut state);
        state
    }

    fn time_out(&self, mut state: Guard<'_>, device: u32, deadline_ns: u64) -> Result<Waited> {
        state.now_ns = state.now_ns.max(deadline_ns);
        state.meet_planned_loss(device);
        self.answer_lost(state, device, "wait").map(|_| Waited::TimedOut)
    }

    /// Nothing can move and nothing will: a wait with a deadline runs into it, one without ends by losing the
    /// device, as a watchdog would.
    fn stuck<'a>(
        &self,
        mut state: Guard<'a>,
        device: u32,
        target: WaitTarget,
        deadline_ns: u64,
    ) -> Result<Guard<'a>> {
        if deadline_ns != u64::MAX {
            return Ok(state);
        }
        state.pass(nanoseconds(self.config.limits.hang));
        let hung =
            state.streams.values().find_map(|stream| stream.hung.clone().filter(|_| stream.device == device));
        let mut subject = match target {
            WaitTarget::Event(id) => id.to_string(),
            WaitTarget::Stream(id) => id.to_string(),
            WaitTarget::Findings => String::new(),
        };
        let waits = state.memory_waits().into_iter().find(|(_, actor)| actor.device == device);
        let (actor, told) = match (hung, waits) {
            (Some(hung), _) => (Some(hung.mark.actor.clone()), hung.told),
            (None, Some((readiness, actor))) => {
                if let Some(what) = readiness.waits_for() {
                    subject = format!("{subject}: {what}");
                }
                (Some(actor), None)
            }
            (None, None) => (None, None),
        };
        if told.is_none() {
            state.find_object(FindingKind::Hang, device, subject, actor.as_ref(), None);
        }
        let detail = told.unwrap_or_else(|| "nothing that was waited for can ever be done".into());
        state.lose(device, Loss { code: Code::LAUNCH_TIMEOUT, detail }, actor.as_ref());
        self.answer_lost(state, device, "wait")
    }
}

impl State {
    fn host_sees(&mut self, goal: &Goal) {
        let (lane, tick) = match goal {
            Goal::Signal(signal) => {
                self.host_learns(&signal.mark.clock);
                (signal.mark.lane, signal.mark.tick)
            }
            Goal::Stream { lane, tick } => {
                // Allocations take their place on a stream without being submissions; they are done too.
                let mut clock = VectorClock::default();
                clock.set(*lane, *tick);
                self.host_learns(&clock);
                (*lane, *tick)
            }
        };
        if let Some(clock) = self.streams.get_mut(&lane).and_then(|stream| stream.observe_to(tick)) {
            self.host_learns(&clock);
        }
    }
}

fn goal(objects: &Objects, state: &State, target: WaitTarget) -> Result<Option<Goal>> {
    match target {
        WaitTarget::Event(id) => Ok(objects.events.find("wait", id)?.last().map(Goal::Signal)),
        WaitTarget::Stream(id) => {
            let lane = *objects.streams.find("wait", id)?;
            let tick = state.streams.get(&lane).map_or(0, |stream| stream.last_tick);
            Ok(Some(Goal::Stream { lane, tick }))
        }
        WaitTarget::Findings => Ok(None),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
