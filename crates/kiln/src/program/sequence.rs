//! Steps that go to the device as one submission.

use std::time::Duration;

use kiln_driver::{Access, Dim3};
use kiln_ir::{Binding, ParameterKind, STATUS_BYTES, Status, Type};

use super::backend::Backend;
use super::bindings::{Bindings, Bound, HostVector};
use super::config::DispatchConfig;
use super::error::ProgramError;
use super::fitting::Fitting;
use super::outputs::Outputs;
use super::pipeline::Pipeline;
use crate::buffer::{Element, GpuRef};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, Output};
use crate::misuse::Misuse;
use crate::telemetry::Timing;

/// Fills, uploads, steps and reads, in order: one submission, one wait.
///
/// Host data that goes up is copied when it is named, so it may change afterwards; vectors that receive results are written when
/// [`run`](Self::run) returns, and only if nothing trapped.
#[must_use = "a sequence does nothing until it is run"]
pub struct Sequence<'a> {
    backend: Backend,
    builder: GraphBuilder,
    reads: Vec<Read<'a>>,
    statuses: Vec<(String, Output<u8>)>,
    timeout: Option<Duration>,
    label: Option<String>,
    profile: bool,
}

struct Read<'a> {
    from: Output<u8>,
    to: Destination<'a>,
}

enum Destination<'a> {
    Into(&'a mut dyn HostVector),
    Returned(String, Type),
}

/// A program with its buffers on the device.
pub(super) struct Placed<'a> {
    pub(super) fitting: Fitting,
    pub(super) buffers: Vec<GpuRef<u8>>,
    status: Option<GpuRef<u8>>,
    barrier: Option<GpuRef<u8>>,
    cooperative: bool,
    given: Vec<(String, Option<Bound<'a>>)>,
}

impl Backend {
    /// Begins a sequence.
    pub fn sequence<'a>(&self) -> Sequence<'a> {
        Sequence {
            backend: self.clone(),
            builder: self.runtime().graph(),
            reads: Vec::new(),
            statuses: Vec::new(),
            timeout: None,
            label: None,
            profile: false,
        }
    }
}

impl<'a> Sequence<'a> {
    /// How long to wait for the end.
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
        self.builder.fill(to, value)?;
        Ok(self)
    }

    /// Overwrites a resident buffer with host data.
    ///
    /// # Errors
    /// If the lengths differ; a buffer of another runtime.
    pub fn upload<T: Element>(&mut self, to: &GpuRef<T>, data: &[T]) -> Result<&mut Self> {
        self.builder.upload(to, data)?;
        Ok(self)
    }

    /// Copies one resident buffer to another.
    ///
    /// # Errors
    /// If the lengths differ or they overlap; a buffer of another runtime.
    pub fn copy<T: Element>(&mut self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<&mut Self> {
        self.builder.copy(from, to)?;
        Ok(self)
    }

    /// Reads a resident buffer, or a view of one, into a vector.
    ///
    /// # Errors
    /// A buffer of another runtime.
    pub fn read<T: Element>(&mut self, from: &GpuRef<T>, into: &'a mut Vec<T>) -> Result<&mut Self> {
        let from = self.builder.download(&from.cast::<u8>()?)?;
        self.reads.push(Read { from, to: Destination::Into(into) });
        Ok(self)
    }

    /// Runs a program once.
    ///
    /// # Errors
    /// What does not fit; a program that does not check all its accesses.
    pub fn step(&mut self, pipeline: &Pipeline, bindings: Bindings<'a>) -> Result<&mut Self> {
        self.step_with(pipeline, bindings, &DispatchConfig::default())
    }

    /// Runs a program as a configuration says. Time-out, label and profile are said of the whole sequence, and a loop until a flag is a dispatch of
    /// its own.
    ///
    /// # Errors
    /// As for [`step`](Self::step); a choice that cannot be honoured here.
    pub fn step_with(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<&mut Self> {
        pipeline.check_safe()?;
        if config.timeout.is_some() || config.label.is_some() || config.profile {
            let why = "a time-out, a label and a profile belong to the whole sequence";
            return Err(ProgramError::Unsupported { what: "a setting of one step", why }.into());
        }
        if config.converge.is_some() {
            let why = "a sequence is one submission; dispatch the program by itself";
            return Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into());
        }
        self.run_step(pipeline, bindings, config)?;
        Ok(self)
    }

    /// Runs everything, waits once, and hands out the results.
    ///
    /// # Errors
    /// A trap, a time-out, the fault of a lost device. Vectors of the caller are then as they were.
    pub fn run(mut self) -> Result<(Outputs, Option<Timing>)> {
        let mut outputs = Outputs::default();
        let timing = self.flush(&mut outputs)?;
        Ok((outputs, timing))
    }

    /// Makes a graph of it, to be replayed.
    ///
    /// # Errors
    /// Results that go to vectors of the caller, which a later replay could not reach; a program that can trap, which nobody would hear of; as for
    /// [`GraphBuilder::build`].
    pub fn build(self) -> Result<Graph> {
        let refused = if !self.reads.is_empty() {
            Some((
                "a read into host memory",
                "replays outlive the borrow; read the resident buffer afterwards",
            ))
        } else if !self.statuses.is_empty() {
            Some(("a program that can trap", "a replay has nobody to tell; dispatch it in a sequence"))
        } else {
            None
        };
        match refused {
            Some((what, why)) => Err(ProgramError::Unsupported { what, why }.into()),
            None => self.builder.build(),
        }
    }

    /// One step with everything around it.
    pub(super) fn run_step(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<()> {
        match config.block.filter(|block| *block != pipeline.program().block) {
            Some(block) => {
                let variant = pipeline.with_block(block)?;
                self.run_block(&variant, bindings, config)
            }
            None => self.run_block(pipeline, bindings, config),
        }
    }

    fn run_block(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<()> {
        let placed = self.place(pipeline, bindings, config)?;
        for _ in 0..config.steps {
            self.launch(pipeline, &placed)?;
        }
        self.watch(pipeline, &placed)?;
        self.bring_back(placed)
    }

    /// Checks everything, then puts the buffers of a program on the device.
    pub(super) fn place(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<Placed<'a>> {
        let limits = &self.backend.runtime().info().limits;
        let fitting = Fitting::new(pipeline.program(), &bindings, config, limits)?;
        let mut given: Vec<(String, Option<Bound<'a>>)> =
            bindings.buffers.into_iter().map(|(name, bound)| (name, Some(bound))).collect();
        let mut buffers = Vec::with_capacity(fitting.buffers.len());
        for binding in &fitting.buffers {
            let bound = given.iter_mut().find(|(name, _)| *name == binding.name).map(|(_, bound)| bound);
            buffers.push(self.place_buffer(binding, bound)?);
        }
        let hidden = |sequence: &mut Self, kind, bytes: u64| -> Result<Option<GpuRef<u8>>> {
            if !pipeline.layout().has(kind) {
                return Ok(None);
            }
            sequence.builder.scratch(bytes as usize).map(Some)
        };
        let status = hidden(self, ParameterKind::Status, STATUS_BYTES)?;
        if let Some(status) = &status {
            self.builder.fill(status, 0)?;
        }
        let barrier = hidden(self, ParameterKind::GridBarrier, 8)?;
        let cooperative = config.cooperative || pipeline.is_cooperative();
        Ok(Placed { fitting, buffers, status, barrier, cooperative, given })
    }

    fn place_buffer(
        &mut self,
        binding: &Binding,
        bound: Option<&mut Option<Bound<'a>>>,
    ) -> Result<GpuRef<u8>> {
        let bound = match bound {
            Some(Some(Bound::Resident { buffer, .. })) => return aligned(binding, buffer),
            Some(wrong @ Some(Bound::Wrong(_))) => match wrong.take() {
                Some(Bound::Wrong(error)) => return Err(error),
                _ => None,
            },
            Some(bound) => bound.as_ref(),
            None => None,
        };
        let buffer = self.builder.scratch::<u8>(binding.bytes() as usize)?;
        match bound {
            Some(Bound::Input { bytes, .. }) => {
                self.builder.upload(&buffer, bytes)?;
            }
            Some(Bound::InOut(vector)) => {
                self.builder.upload(&buffer, vector.bytes())?;
            }
            _ => {
                self.builder.fill(&buffer, 0)?;
            }
        }
        Ok(buffer)
    }

    /// Records one launch; nothing if there are no elements to run over.
    pub(super) fn launch(&mut self, pipeline: &Pipeline, placed: &Placed<'_>) -> Result<()> {
        let plan = &placed.fitting.launch;
        if plan.is_empty {
            return Ok(());
        }
        if let Some(barrier) = &placed.barrier {
            self.builder.fill(barrier, 0)?;
        }
        let mut launch = self.builder.launch(pipeline.kernel());
        launch.grid(extents(plan.grid)).block(extents(plan.block)).shared(plan.dynamic_shared_bytes);
        if placed.cooperative {
            launch.cooperative();
        }
        for parameter in &pipeline.layout().parameters {
            match parameter.kind {
                ParameterKind::Pointer(id) => {
                    let at = id.0 as usize;
                    let role = placed.fitting.buffers[at].role;
                    launch.buffer(&placed.buffers[at], access(role.is_readable(), role.is_writable()));
                }
                ParameterKind::Length(id) => {
                    launch.value(placed.fitting.buffers[id.0 as usize].length);
                }
                ParameterKind::Scalar(id) => {
                    // As an array of one: here nobody knows whether the bits are those of a float.
                    let bits = placed.fitting.scalars[id.0 as usize];
                    match parameter.bytes {
                        1 => launch.value([bits as u8]),
                        2 => launch.value([bits as u16]),
                        4 => launch.value([bits as u32]),
                        _ => launch.value([bits]),
                    };
                }
                ParameterKind::Status => {
                    if let Some(status) = &placed.status {
                        launch.read_write(status);
                    }
                }
                ParameterKind::GridBarrier => {
                    if let Some(barrier) = &placed.barrier {
                        launch.read_write(barrier);
                    }
                }
            }
        }
        // SAFETY: the program was verified, so the kernel made of it touches nothing outside of the buffers and lengths given here: every
        // access is checked against the length, or the caller vouched for it when it chose an unchecked dispatch. Hidden parameters are as
        // long as the layout asks.
        unsafe { launch.record() }?;
        Ok(())
    }

    /// Records that somebody looks whether the program trapped.
    pub(super) fn watch(&mut self, pipeline: &Pipeline, placed: &Placed<'_>) -> Result<()> {
        if let Some(status) = &placed.status {
            let output = self.builder.download(status)?;
            self.statuses.push((pipeline.program().name.clone(), output));
        }
        Ok(())
    }

    /// Records that the results come back.
    pub(super) fn bring_back(&mut self, placed: Placed<'a>) -> Result<()> {
        let Placed { fitting, buffers, mut given, .. } = placed;
        for (binding, buffer) in fitting.buffers.into_iter().zip(&buffers) {
            let bound =
                given.iter_mut().find(|(name, _)| *name == binding.name).and_then(|(_, bound)| bound.take());
            let to = match bound {
                Some(Bound::Resident { .. } | Bound::Wrong(_)) => continue,
                Some(Bound::InOut(vector) | Bound::Output { into: vector, .. }) => Destination::Into(vector),
                _ if binding.is_written() => Destination::Returned(binding.name, binding.element),
                _ => continue,
            };
            self.reads.push(Read { from: self.builder.download(buffer)?, to });
        }
        Ok(())
    }

    /// Downloads one word and runs everything recorded so far.
    pub(super) fn flush_word(
        &mut self,
        word: &GpuRef<u8>,
        outputs: &mut Outputs,
    ) -> Result<(u32, Option<Timing>)> {
        let output = self.builder.download(word)?;
        let timing = self.submit_and_wait()?;
        let bytes: Vec<u8> = self.builder.output(&output)?.to_vec();
        self.deliver(outputs)?;
        let word = <[u8; 4]>::try_from(bytes.as_slice()).map_or(0, u32::from_le_bytes);
        Ok((word, timing))
    }

    /// Runs everything recorded so far, waits, and hands out what came back.
    pub(super) fn flush(&mut self, outputs: &mut Outputs) -> Result<Option<Timing>> {
        let timing = self.submit_and_wait()?;
        self.deliver(outputs)?;
        Ok(timing)
    }

    fn submit_and_wait(&mut self) -> Result<Option<Timing>> {
        if self.profile {
            let timed = self.builder.submit_once_timed().map_err(|error| self.labelled(error))?;
            self.wait_for(timed.ticket())?;
            return timed.wait().map(Some).map_err(|error| self.labelled(error));
        }
        let ticket = self.builder.submit_once().map_err(|error| self.labelled(error))?;
        self.wait_for(&ticket)?;
        Ok(None)
    }

    fn wait_for(&self, ticket: &crate::Ticket) -> Result<()> {
        let done = match self.timeout {
            Some(limit) => ticket.wait_within(limit),
            None => ticket.wait().map(|()| true),
        };
        match done {
            Ok(true) => Ok(()),
            Ok(false) => {
                let program =
                    self.statuses.first().map_or_else(|| "sequence".to_owned(), |(name, _)| name.clone());
                Err(self.labelled(ProgramError::TimedOut { program }.into()))
            }
            Err(error) => Err(self.labelled(error)),
        }
    }

    /// Traps first: what a program that trapped wrote goes nowhere.
    fn deliver(&mut self, outputs: &mut Outputs) -> Result<()> {
        for (program, status) in std::mem::take(&mut self.statuses) {
            let bytes = self.builder.output(&status)?;
            let Some(words) = bytes.first_chunk::<{ STATUS_BYTES as usize }>() else { continue };
            if let Status::Trapped { code, thread, block } = Status::read(words) {
                return Err(self.labelled(ProgramError::Trap { program, code, thread, block }.into()));
            }
        }
        for read in std::mem::take(&mut self.reads) {
            let bytes = self.builder.output(&read.from)?;
            match read.to {
                Destination::Into(vector) => vector.replace(bytes),
                Destination::Returned(name, element) => outputs.buffers.push((name, element, bytes.to_vec())),
            }
        }
        self.builder = self.backend.runtime().graph();
        Ok(())
    }

    fn labelled(&self, error: Error) -> Error {
        match &self.label {
            Some(label) => error.labelled(label),
            None => error,
        }
    }
}

/// A buffer of the caller's, if its address suits the program's elements: a view of bytes may begin anywhere.
fn aligned(binding: &Binding, buffer: &GpuRef<u8>) -> Result<GpuRef<u8>> {
    let (address, element_bytes) = (buffer.address().0, binding.element.bytes());
    if address.is_multiple_of(element_bytes) {
        return Ok(buffer.clone());
    }
    Err(Misuse::Cast { bytes: buffer.bytes(), offset: address, element_bytes }.into())
}

fn extents([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3::new(x, y, z)
}

fn access(reads: bool, writes: bool) -> Access {
    match (reads, writes) {
        (_, false) => Access::Read,
        (false, true) => Access::Write,
        (true, true) => Access::ReadWrite,
    }
}

impl std::fmt::Debug for Sequence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sequence of {} commands", self.builder.len())
    }
}
