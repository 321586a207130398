//! Steps that go to the device as one submission.

mod collectives;
mod graph_step;
mod loop_batch;
mod loop_body;
mod pending_dispatch;
mod run;
mod run_on_device_buffers;
mod split_into_submissions;
mod submitter;

use std::panic::Location;
use std::time::Duration;

use kiln_ir::Type;
use kiln_runtime::internal::called_from;
use kiln_runtime::{Element, Error, GpuRef, Graph, GraphBuilder, Output, Result};

use crate::binding::{Bindings, HostVector};
use crate::dispatch::Dispatched;
use crate::dispatch_config::{Converge, DispatchConfig};
use crate::error::ProgramError;
use crate::program_backend::{Backend, Pipeline};

pub use graph_step::Step;
pub use loop_body::Turn;
pub use pending_dispatch::PendingDispatch;
pub(crate) use run_on_device_buffers::{HiddenBuffers, describe, fit_resident};

use pending_dispatch::no_timeout;
use run::Run;
use split_into_submissions::{Again, FirstTurn, Part, Until, find_flag};
use submitter::Waiting;

/// Commands of a repetition that are recorded in place. More are submitted in batches, and cannot be part of a graph.
const MAX_RECORDED_COMMANDS: u64 = 4096;

/// Fills, uploads, steps, loops and reads, in order: one submission, one wait.
///
/// Host data that goes up is copied when it is named, so it may change afterwards; vectors that receive results are written when
/// [`run`](Self::run) returns, and only if nothing trapped. A loop [until](Self::until) a flag is more than one submission: the host looks at
/// the flag after a turn, then after two more, four more, and so on.
///
/// ```
/// use kiln::{DeviceRuntime, program::{Backend, Bindings, Program}};
///
/// // Every cell takes the largest of its neighbours; `changed` says whether one did.
/// let spread = Program::parse("
///     kernel spread(in from: u32[], out to: u32[like from], inout changed: u32[1]) block(32) over(from) {
///         let i: u64 = global.x;
///         let best: u32 = max(from[i], max(from[i - 1], from[i + 1]));
///         to[i] = best;
///         if (i < len(from)) & (best != from[i]) { atomic_max(changed[0], 1); }
///     }")?;
/// let gpu = DeviceRuntime::simulated(1)?;
/// let backend = Backend::over(gpu.clone());
/// let spread = backend.compile(&spread)?;
/// let (a, b, changed) = (gpu.allocate::<u32>(5)?, gpu.allocate::<u32>(5)?, gpu.allocate::<u32>(1)?);
///
/// let mut cells = Vec::new();
/// let mut sequence = backend.sequence();
/// sequence.upload(&a, &[0, 0, 7, 0, 0])?;
/// sequence.until(&changed, 100, |turn| {
///     turn.step(&spread, Bindings::new().resident("from", &a).resident("to", &b).resident("changed", &changed))?;
///     turn.copy(&b, &a)?;
///     Ok(())
/// })?;
/// sequence.read(&a, &mut cells)?;
/// sequence.run()?;
/// assert_eq!(cells, [7; 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a sequence does nothing until it is run"]
pub struct Sequence<'a> {
    pub(crate) backend: Backend,
    /// What came before, each part ended by a loop.
    pub(crate) parts: Vec<Part>,
    /// What is recorded since.
    pub(crate) builder: GraphBuilder,
    pub(crate) reads: Vec<Read<'a>>,
    pub(crate) watched: Vec<Watched>,
    /// Programs that run, but for turns that are submitted in batches.
    pub(crate) steps: u64,
    pub(crate) timeout: Option<Duration>,
    pub(crate) profile: bool,
    /// The first program, for messages.
    pub(crate) name: Option<String>,
    label: Option<String>,
    /// A loop was recorded in part.
    is_broken: bool,
}

/// Bytes that come back.
pub(crate) struct Read<'a> {
    pub(crate) part: usize,
    pub(crate) from: Output<u8>,
    pub(crate) to: Destination<'a>,
}

/// Where they go.
pub(crate) enum Destination<'a> {
    Into(&'a mut (dyn HostVector + 'static)),
    Returned(String, Type),
}

/// What a program says of how it ended.
pub(crate) struct Watched {
    pub(crate) part: usize,
    pub(crate) program: String,
    pub(crate) output: Output<u8>,
}

impl Backend {
    /// Begins a sequence.
    pub fn sequence<'a>(&self) -> Sequence<'a> {
        Sequence {
            backend: self.clone(),
            parts: Vec::new(),
            builder: self.runtime().graph(),
            reads: Vec::new(),
            watched: Vec::new(),
            steps: 0,
            timeout: None,
            profile: false,
            name: None,
            label: None,
            is_broken: false,
        }
    }
}

impl<'a> Sequence<'a> {
    /// How long all of it may take. What is not done by then still runs; the buffers it writes are [not to be
    /// trusted](GpuRef::is_trusted).
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.timeout = Some(limit);
        self
    }

    /// A name that errors carry.
    pub fn label(&mut self, label: &str) -> &mut Self {
        self.label = Some(label.to_owned());
        self
    }

    /// Asks for the device's time.
    pub fn profile(&mut self) -> &mut Self {
        self.profile = true;
        self
    }

    /// Sets every element of a resident buffer.
    ///
    /// # Errors
    /// A buffer of another runtime.
    pub fn fill<T: Element>(&mut self, to: &GpuRef<T>, value: T) -> Result<&mut Self> {
        let recorded = self.builder.fill(to, value);
        self.named(recorded)?;
        Ok(self)
    }

    /// Overwrites a resident buffer with host data.
    ///
    /// # Errors
    /// If the lengths differ; a buffer of another runtime.
    pub fn upload<T: Element>(&mut self, to: &GpuRef<T>, data: &[T]) -> Result<&mut Self> {
        let recorded = self.builder.upload(to, data);
        self.named(recorded)?;
        Ok(self)
    }

    /// Copies one resident buffer to another.
    ///
    /// # Errors
    /// If the lengths differ or they overlap; a buffer of another runtime.
    pub fn copy<T: Element>(&mut self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<&mut Self> {
        let recorded = self.builder.copy(from, to);
        self.named(recorded)?;
        Ok(self)
    }

    /// Reads a resident buffer, or a view of one, into a vector.
    ///
    /// # Errors
    /// A buffer of another runtime.
    pub fn read<T: Element>(&mut self, from: &GpuRef<T>, into: &'a mut Vec<T>) -> Result<&mut Self> {
        let recorded = from.cast::<u8>().and_then(|bytes| self.builder.download(&bytes));
        let (part, from) = (self.parts.len(), self.named(recorded)?);
        self.reads.push(Read { part, from, to: Destination::Into(into) });
        Ok(self)
    }

    /// Runs a program once.
    ///
    /// # Errors
    /// What does not fit; a program that does not check all its accesses.
    pub fn step(&mut self, pipeline: &Pipeline, bindings: Bindings<'a>) -> Result<&mut Self> {
        self.step_with(pipeline, bindings, &DispatchConfig::default())
    }

    /// Runs a program as a configuration says. Time-out, label and profile are said of the whole sequence.
    ///
    /// # Errors
    /// As for [`step`](Self::step); a choice that cannot be honoured here.
    pub fn step_with(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<&mut Self> {
        let allowed = self.check_step(pipeline, config);
        self.named(allowed)?;
        self.run_step(pipeline, bindings, config)?;
        Ok(self)
    }

    /// As [`step_with`](Self::step_with), and says which step it is: in the graph that [`build`](Self::build) makes, it can be changed.
    ///
    /// # Errors
    /// As for [`step_with`](Self::step_with); a step that runs more than once.
    pub fn record(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<Step> {
        let recorded = self.record_one(pipeline, bindings, config);
        self.named(recorded)
    }

    fn record_one(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<Step> {
        self.check_step(pipeline, config)?;
        if config.steps != 1 || config.converge.is_some() {
            let why = "each run is a separate node; record them one by one";
            return Err(ProgramError::Unsupported { what: "a step that runs more than once", why }.into());
        }
        let variant = pipeline.variant(config)?;
        let pipeline = variant.as_deref().unwrap_or(pipeline);
        let placed = self.place(pipeline, bindings, config)?;
        let mut first = FirstTurn::default();
        self.launch(pipeline, &placed, &mut first.nodes)?;
        let step = Step::new(pipeline, config, &placed, first.nodes.last().copied());
        first.programs = placed.launches();
        first.placed.push(placed);
        self.close_loop(first, 1, None)?;
        Ok(step)
    }

    /// Does something a number of times; 0 times record nothing.
    ///
    /// # Errors
    /// What the function answers; the sequence can then not be run.
    pub fn repeat(
        &mut self,
        turns: u64,
        body: impl FnOnce(&mut Turn<'_, 'a>) -> Result<()>,
    ) -> Result<&mut Self> {
        if turns > 0 {
            let first = self.first_turn(None, body);
            let closed = first.and_then(|first| self.close_loop(first, turns, None));
            self.named(closed)?;
        }
        Ok(self)
    }

    /// Does something until it leaves a flag of one element at zero, but no more often than `limit` times. The flag is zero when a turn
    /// begins, and a turn that changed something makes it something else. Once a turn has left it at zero further ones must change nothing: some
    /// may have run already.
    ///
    /// # Errors
    /// What the function answers; the sequence can then not be run. A flag that is not one element, or of another runtime; a limit of 0.
    pub fn until(
        &mut self,
        flag: &GpuRef<u32>,
        limit: u64,
        body: impl FnOnce(&mut Turn<'_, 'a>) -> Result<()>,
    ) -> Result<&mut Self> {
        let closed = self.turn_until(flag, limit, body);
        self.named(closed)?;
        Ok(self)
    }

    fn turn_until(
        &mut self,
        flag: &GpuRef<u32>,
        limit: u64,
        body: impl FnOnce(&mut Turn<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        if flag.len() != 1 {
            let why = "its flag must be a buffer of one u32";
            return Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into());
        }
        let flag = flag.cast::<u8>()?;
        let first = self.first_turn(Some(&flag), body)?;
        self.close_loop(first, limit, Some(flag))
    }

    /// Runs everything, waits, and hands out the results.
    ///
    /// # Errors
    /// A trap, a time-out, a flag that never says stop, the fault of a lost device. Vectors of the caller are then as they were.
    #[track_caller]
    pub fn run(mut self) -> Result<Dispatched> {
        let _context = called_from(self.backend.runtime(), Location::caller());
        let label = self.label.take();
        let done = self.check_whole().and_then(|()| Run::new(self, Waiting::Blocking).finish());
        done.map_err(|error| labelled(error, label.as_deref()))
    }

    /// As [`run`](Self::run), without blocking: the work is queued, and awaiting what is returned brings the results. A loop until a flag
    /// is driven by the polls.
    ///
    /// # Errors
    /// What the driver says of the first submission; a time-out, which the executor's own timer is for.
    #[track_caller]
    pub fn run_async(mut self) -> Result<PendingDispatch<'a>> {
        let _context = called_from(self.backend.runtime(), Location::caller());
        let label = self.label.take();
        let allowed = if self.timeout.is_some() { Err(no_timeout()) } else { self.check_whole() };
        allowed.map_err(|error| labelled(error, label.as_deref()))?;
        PendingDispatch::start(Run::new(self, Waiting::Polled), label)
    }

    /// Makes a graph of it, to be replayed.
    ///
    /// # Errors
    /// Results that go to vectors of the caller, which a later replay could not reach; a program that can trap, which no caller would hear of; a loop
    /// until a flag, which no host code would read; a time-out or a profile, which each replay says for itself; as for [`GraphBuilder::build`].
    pub fn build(mut self) -> Result<Graph> {
        let label = self.label.take();
        self.into_graph().map_err(|error| labelled(error, label.as_deref()))
    }

    fn into_graph(self) -> Result<Graph> {
        self.check_whole()?;
        let refused = if self.timeout.is_some() || self.profile {
            Some((
                "a time-out or a profile of a graph",
                "each replay has its own; wait for its ticket as long as you like, or replay with time taken",
            ))
        } else if !self.reads.is_empty() {
            Some((
                "a read into host memory",
                "replays outlive the borrow; read the resident buffer afterwards",
            ))
        } else if !self.watched.is_empty() {
            Some(("a program that can trap", "a replay cannot report it; dispatch it in a sequence"))
        } else if !self.parts.is_empty() {
            Some((
                "a loop until a flag, or of very many turns",
                "a replay is one submission; run the sequence",
            ))
        } else {
            None
        };
        match refused {
            Some((what, why)) => Err(ProgramError::Unsupported { what, why }.into()),
            None => self.builder.build(),
        }
    }

    /// Refuses what a step cannot say of the whole.
    pub(crate) fn check_step(&self, pipeline: &Pipeline, config: &DispatchConfig) -> Result<()> {
        pipeline.check_safe()?;
        if config.timeout.is_some() || config.label.is_some() || config.profile {
            let why = "a time-out, a label and a profile belong to the whole sequence";
            return Err(ProgramError::Unsupported { what: "a setting of one step", why }.into());
        }
        Ok(())
    }

    /// One step with everything around it; the caller vouches for what the program does not check.
    pub(crate) fn run_step(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<()> {
        let step = self.record_step(pipeline, bindings, config);
        self.named(step)
    }

    /// The same; an error carries the name of the sequence.
    pub(crate) fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| labelled(error, self.label.as_deref()))
    }

    fn record_step(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<()> {
        let turns = match &config.converge {
            None => config.steps,
            Some(_) if config.steps != 1 => {
                let why = "the flag says how often it runs; leave the number of steps at one";
                return Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into());
            }
            Some(Converge { limit, .. }) => *limit,
        };
        let variant = pipeline.variant(config)?;
        let pipeline = variant.as_deref().unwrap_or(pipeline);
        let placed = self.place(pipeline, bindings, config)?;
        let flag = config.converge.as_ref().map(|converge| find_flag(&placed, converge)).transpose()?;
        let mut first = FirstTurn::default();
        if let Some(flag) = &flag {
            first.nodes.push(self.builder.fill(flag, 0)?);
        }
        if turns > 0 {
            self.launch(pipeline, &placed, &mut first.nodes)?;
            first.programs = placed.launches();
        }
        first.placed.push(placed);
        self.close_loop(first, turns, flag)
    }

    /// Records the first turn of a loop, which begins with its flag at zero.
    fn first_turn(
        &mut self,
        flag: Option<&GpuRef<u8>>,
        body: impl FnOnce(&mut Turn<'_, 'a>) -> Result<()>,
    ) -> Result<FirstTurn<'a>> {
        let mut turn = Turn { sequence: self, first: FirstTurn::default() };
        if let Some(flag) = flag {
            turn.fill(flag, 0)?;
        }
        let recorded = body(&mut turn);
        let first = turn.first;
        self.is_broken |= recorded.is_err();
        recorded.map(|()| first)
    }

    /// Adds the turns behind the first, and what looks at a loop when it is over.
    fn close_loop(&mut self, first: FirstTurn<'a>, turns: u64, flag: Option<GpuRef<u8>>) -> Result<()> {
        let name =
            || first.placed.first().map_or_else(|| "sequence".to_owned(), |placed| placed.program.clone());
        let works = self.builder.works(&first.nodes);
        let more = turns.saturating_sub(1);
        if turns == 0 && flag.is_some() {
            self.is_broken = true;
            return Err(ProgramError::NotConverged { program: name(), steps: 0 }.into());
        }
        let commands = more.saturating_mul(works.len() as u64);
        if flag.is_none() && commands <= MAX_RECORDED_COMMANDS {
            (0..more).for_each(|_| self.builder.again(&works));
            self.steps = self.steps.saturating_add(first.programs.saturating_mul(turns));
        } else {
            let mut statuses = Vec::new();
            for placed in &first.placed {
                self.watch(placed)?;
                statuses.extend(placed.watched().map(|status| (placed.program.clone(), status.clone())));
            }
            let until = match flag {
                Some(flag) => Some(Until { program: name(), look: self.builder.download(&flag)?, flag }),
                None => None,
            };
            let builder = std::mem::replace(&mut self.builder, self.backend.runtime().graph());
            let again = Again { works, turns: more, programs: first.programs, statuses, until };
            self.parts.push(Part { builder, again: Some(again) });
            self.steps = self.steps.saturating_add(first.programs);
        }
        for placed in first.placed {
            self.watch(&placed)?;
            self.bring_back(placed)?;
        }
        Ok(())
    }

    fn check_whole(&self) -> Result<()> {
        if self.is_broken {
            let why = "recording it failed; begin the sequence anew";
            return Err(ProgramError::Unsupported { what: "a loop that was recorded in part", why }.into());
        }
        Ok(())
    }
}

fn labelled(error: Error, label: Option<&str>) -> Error {
    match label {
        Some(label) => error.labelled(label),
        None => error,
    }
}

impl std::fmt::Debug for Sequence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let commands = self.parts.iter().map(|part| part.builder.len()).sum::<usize>() + self.builder.len();
        write!(f, "sequence of {commands} commands")
    }
}
