//! A program with its buffers on the device: checks, uploads, launches and downloads.

use kiln_driver::{Access, Dim3};
use kiln_ir::{Binding, EntryParameterKind, LaunchPlan, STATUS_BYTES};
use kiln_runtime::{GpuRef, Launch, Misuse, NodeId, Result};

use super::{Destination, Read, Sequence, Watched};
use crate::binding::{Bindings, Bound, Fitting};
use crate::dispatch_config::{DispatchConfig, Speculation};
use crate::error::ProgramError;
use crate::program_backend::Pipeline;

/// Bytes of a grid barrier's counter.
const BARRIER_BYTES: usize = 8;

/// A program with its buffers on the device.
pub(crate) struct Placed<'a> {
    pub(crate) program: String,
    pub(crate) fitting: Fitting,
    pub(crate) buffers: Vec<GpuRef<u8>>,
    status: Option<GpuRef<u8>>,
    /// Whether the status can say anything: a program that only meets at barriers has one too, and leaves it at zero.
    can_trap: bool,
    barrier: Option<GpuRef<u8>>,
    cooperative: bool,
    given: Vec<(String, Option<Bound<'a>>)>,
}

impl Placed<'_> {
    /// Where the program says that it trapped, if it can.
    pub(crate) fn watched(&self) -> Option<&GpuRef<u8>> {
        self.status.as_ref().filter(|_| self.can_trap)
    }

    /// Launches of one step: none without elements to run over.
    pub(crate) fn launches(&self) -> u64 {
        u64::from(!self.fitting.launch.is_empty)
    }
}

impl<'a> Sequence<'a> {
    /// Checks everything, then puts the buffers of a program on the device.
    pub(crate) fn place(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<Placed<'a>> {
        if config.speculation == Speculation::Force {
            let why = "nothing here computes what is not wanted yet; leave it off";
            return Err(ProgramError::Unsupported { what: "speculation", why }.into());
        }
        let limits = &self.backend.runtime().info().limits;
        let fitting = Fitting::new(pipeline.program(), &bindings, config, limits)?;
        let cooperative = config.cooperative || pipeline.is_cooperative();
        if cooperative && !fitting.launch.is_empty {
            check_residency(pipeline, &fitting.launch)?;
        }
        check_overlap(pipeline, &fitting, &bindings)?;
        let mut given: Vec<(String, Option<Bound<'a>>)> =
            bindings.buffers.into_iter().map(|(name, bound)| (name, Some(bound))).collect();
        let mut buffers = Vec::with_capacity(fitting.buffers.len());
        for binding in &fitting.buffers {
            let bound = given.iter_mut().find(|(name, _)| *name == binding.name).map(|(_, bound)| bound);
            buffers.push(self.place_buffer(binding, bound)?);
        }
        let hidden = |sequence: &mut Self, kind, bytes: usize| -> Result<Option<GpuRef<u8>>> {
            if !pipeline.layout().has(kind) {
                return Ok(None);
            }
            sequence.builder.scratch(bytes).map(Some)
        };
        let status = hidden(self, EntryParameterKind::Status, STATUS_BYTES as usize)?;
        if let Some(status) = &status {
            self.builder.fill(status, 0)?;
        }
        let barrier = hidden(self, EntryParameterKind::GridBarrier, BARRIER_BYTES)?;
        let (program, can_trap) = (pipeline.program().name.clone(), pipeline.program().can_trap());
        self.name.get_or_insert_with(|| program.clone());
        Ok(Placed { program, fitting, buffers, status, can_trap, barrier, cooperative, given })
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

    /// Records one launch and says which nodes it is; nothing if there are no elements to run over.
    pub(crate) fn launch(
        &mut self,
        pipeline: &Pipeline,
        placed: &Placed<'_>,
        nodes: &mut Vec<NodeId>,
    ) -> Result<()> {
        let plan = &placed.fitting.launch;
        if plan.is_empty {
            return Ok(());
        }
        if let Some(barrier) = &placed.barrier {
            nodes.push(self.builder.fill(barrier, 0)?);
        }
        let mut launch = self.builder.launch(pipeline.kernel());
        if placed.cooperative {
            launch.cooperative();
        }
        let hidden = HiddenBuffers { status: placed.status.as_ref(), barrier: placed.barrier.as_ref() };
        describe(&mut launch, pipeline, &placed.fitting, &placed.buffers, hidden);
        // SAFETY: the program was verified, so the kernel made of it touches nothing outside of the buffers and lengths given here: every
        // access is checked against the length, or the caller vouched for it when it chose an unchecked dispatch. Buffers that are written share no
        // bytes with others, which `check_overlap` made sure of when they were placed. Hidden parameters are as long as the layout asks.
        nodes.push(unsafe { launch.record() }?);
        Ok(())
    }

    /// Records a check whether the program trapped.
    pub(crate) fn watch(&mut self, placed: &Placed<'_>) -> Result<()> {
        if let Some(status) = placed.watched() {
            let (part, output) = (self.parts.len(), self.builder.download(status)?);
            self.watched.push(Watched { part, program: placed.program.clone(), output });
        }
        Ok(())
    }

    /// Records that the results come back.
    pub(crate) fn bring_back(&mut self, placed: Placed<'a>) -> Result<()> {
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
            let (part, from) = (self.parts.len(), self.builder.download(buffer)?);
            self.reads.push(Read { part, from, to });
        }
        Ok(())
    }
}

/// What a kernel is given besides what its program declares.
#[derive(Clone, Copy, Default)]
pub(crate) struct HiddenBuffers<'l> {
    status: Option<&'l GpuRef<u8>>,
    barrier: Option<&'l GpuRef<u8>>,
}

/// The shape and the arguments of a program, in the order of its kernel's parameters.
pub(crate) fn describe<'l, W>(
    launch: &mut Launch<'l, W>,
    pipeline: &Pipeline,
    fitting: &Fitting,
    buffers: &'l [GpuRef<u8>],
    hidden: HiddenBuffers<'l>,
) {
    let plan = &fitting.launch;
    launch.grid(extents(plan.grid)).block(extents(plan.block)).shared(plan.dynamic_shared_bytes);
    for parameter in &pipeline.layout().parameters {
        match parameter.kind {
            EntryParameterKind::Pointer(id) => {
                let at = id.0 as usize;
                let role = fitting.buffers[at].role;
                match access(role.is_readable(), role.is_writable()) {
                    Access::Read => launch.read(&buffers[at]),
                    Access::Write => launch.write(&buffers[at]),
                    Access::ReadWrite => launch.read_write(&buffers[at]),
                };
            }
            EntryParameterKind::Length(id) => {
                launch.value(fitting.buffers[id.0 as usize].length);
            }
            EntryParameterKind::Scalar(id) => {
                // As an array of one: it is not known here whether the bits are those of a float.
                let bits = fitting.scalars[id.0 as usize];
                match parameter.bytes {
                    1 => launch.value([bits as u8]),
                    2 => launch.value([bits as u16]),
                    4 => launch.value([bits as u32]),
                    _ => launch.value([bits]),
                };
            }
            EntryParameterKind::Status => {
                if let Some(status) = hidden.status {
                    launch.read_write(status);
                }
            }
            EntryParameterKind::GridBarrier => {
                if let Some(barrier) = hidden.barrier {
                    launch.read_write(barrier);
                }
            }
        }
    }
}

/// Checks a program whose buffers are all on the device, and returns the buffers in the order of the program.
pub(crate) fn fit_resident(
    pipeline: &Pipeline,
    bindings: Bindings<'_>,
    config: &DispatchConfig,
) -> Result<(Fitting, Vec<GpuRef<u8>>)> {
    let on_device = |bound: &Bound<'_>| matches!(bound, Bound::Resident { .. } | Bound::Wrong(_));
    if !bindings.buffers.iter().all(|(_, bound)| on_device(bound)) {
        let why = "the work outlives the borrow; give resident buffers";
        return Err(ProgramError::Unsupported { what: "host data", why }.into());
    }
    let limits = &pipeline.backend().runtime().info().limits;
    let fitting = Fitting::new(pipeline.program(), &bindings, config, limits)?;
    if fitting.launch.is_empty {
        return Err(nothing_to_run());
    }
    if config.cooperative || pipeline.is_cooperative() {
        check_residency(pipeline, &fitting.launch)?;
    }
    check_overlap(pipeline, &fitting, &bindings)?;
    let mut given = bindings.buffers;
    let mut buffers = Vec::with_capacity(fitting.buffers.len());
    for binding in &fitting.buffers {
        let at = given.iter().position(|(name, _)| *name == binding.name);
        match at.map(|at| given.swap_remove(at).1) {
            Some(Bound::Resident { buffer, .. }) => buffers.push(aligned(binding, &buffer)?),
            Some(Bound::Wrong(error)) => return Err(error),
            _ => {
                let why = "no caller would have it; give a resident buffer for each one of the program";
                return Err(ProgramError::Unsupported { what: "an output that kiln allocates", why }.into());
            }
        }
    }
    Ok((fitting, buffers))
}

/// Why a launch of no blocks is refused.
pub(crate) fn nothing_to_run() -> kiln_runtime::Error {
    let why = "a launch has at least one block";
    ProgramError::Unsupported { what: "a program over no elements", why }.into()
}

/// Refuses blocks that must be on the device together and cannot be.
fn check_residency(pipeline: &Pipeline, plan: &LaunchPlan) -> Result<()> {
    let info = pipeline.backend().runtime().info();
    if !info.features.cooperative_launch {
        let why = "the device cannot keep all blocks of a grid resident";
        return Err(ProgramError::Unsupported { what: "a cooperative launch", why }.into());
    }
    let threads = plan.block.iter().product();
    let occupancy = pipeline.kernel().occupancy(threads, plan.dynamic_shared_bytes)?;
    let limit = u64::from(occupancy.blocks_per_multiprocessor) * u64::from(info.limits.multiprocessors);
    let blocks = plan.grid.iter().map(|count| u64::from(*count)).fold(1, u64::saturating_mul);
    if blocks <= limit {
        return Ok(());
    }
    let program = pipeline.program().name.clone();
    Err(ProgramError::CooperativeResidencyExceeded { program, blocks, limit }.into())
}

/// Refuses resident buffers that share bytes one of them writes. A program may take it that what it only reads does not change while it runs.
fn check_overlap(pipeline: &Pipeline, fitting: &Fitting, bindings: &Bindings<'_>) -> Result<()> {
    let resident = |binding: &Binding| {
        let bound = bindings.buffers.iter().find(|(name, _)| *name == binding.name);
        match bound {
            Some((_, Bound::Resident { buffer, .. })) => Some(buffer),
            _ => None,
        }
    };
    let held: Vec<_> =
        fitting.buffers.iter().filter_map(|binding| Some((binding, resident(binding)?))).collect();
    for (at, (first, bytes)) in held.iter().enumerate() {
        let shares = |(second, others): &&(&Binding, &GpuRef<u8>)| {
            (first.role.is_writable() || second.role.is_writable()) && bytes.overlaps(others)
        };
        if let Some((second, _)) = held[at + 1..].iter().find(shares) {
            let program = pipeline.program().name.clone();
            let (first, second) = (first.name.clone(), second.name.clone());
            return Err(ProgramError::Overlap { program, first, second }.into());
        }
    }
    Ok(())
}

/// A buffer of the caller's, if its address suits the program's elements: a view of bytes may begin anywhere.
fn aligned(binding: &Binding, buffer: &GpuRef<u8>) -> Result<GpuRef<u8>> {
    let (address, element_bytes) = (buffer.address().0, binding.element.bytes());
    if address.is_multiple_of(element_bytes) {
        return Ok(buffer.clone());
    }
    Err(Misuse::Cast { bytes: buffer.bytes(), offset: address, element_bytes }.into())
}

pub(crate) fn extents([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3::new(x, y, z)
}

pub(crate) fn access(reads: bool, writes: bool) -> Access {
    match (reads, writes) {
        (_, false) => Access::Read,
        (false, true) => Access::Write,
        (true, true) => Access::ReadWrite,
    }
}
