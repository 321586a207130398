//! A step of a sequence in a graph, whose arguments can be updated in place.

use kiln_driver::Access;
use kiln_ir::{EntryParameterKind, Literal};
use kiln_runtime::{GpuRef, Graph, NodeId, Result};

use super::run_on_device_buffers::{Placed, access, extents, fit_resident, nothing_to_run};
use crate::binding::{Bindings, Bound, Fitting};
use crate::dispatch_config::DispatchConfig;
use crate::element_kind::ElementKind;
use crate::program_backend::Pipeline;

/// A program that is a node of a graph: its scalars, its buffers and with them its size can be changed between replays.
///
/// It comes from [`Sequence::record`](crate::Sequence::record), or from [`ProgramCall::record`](crate::ProgramCall::record) where the graph has other work
/// beside programs.
///
/// ```
/// use kiln::{DeviceRuntime, program::{Backend, Bindings, DispatchConfig, Program}};
///
/// let program = Program::parse("kernel scale(inout x: u32[], by: u32) block(64) over(x) { x[global.x] = x[global.x] * by; }")?;
/// let gpu = DeviceRuntime::simulated(1)?;
/// let backend = Backend::over(gpu.clone());
/// let (pipeline, x, y) = (backend.compile(&program)?, gpu.upload(&[1u32, 2])?, gpu.upload(&[7u32; 500])?);
///
/// let mut sequence = backend.sequence();
/// let given = Bindings::new().resident("x", &x).scalar("by", 3u32);
/// let mut step = sequence.record(&pipeline, given, &DispatchConfig::default())?;
/// let mut graph = sequence.build()?;
/// graph.replay()?;
/// step.update(&mut graph, Bindings::new().scalar("by", 10u32))?;
/// graph.replay()?;
/// assert_eq!(x.download()?, [30, 60]);
/// step.update(&mut graph, Bindings::new().resident("x", &y))?;
/// graph.replay()?;
/// assert_eq!(y.download()?, [70; 500]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Step {
    pipeline: Pipeline,
    config: DispatchConfig,
    /// None if it had nothing to run over.
    node: Option<NodeId>,
    /// In the order of the program.
    buffers: Vec<GpuRef<u8>>,
    scalars: Vec<u64>,
}

impl Step {
    pub(crate) fn new(
        pipeline: &Pipeline,
        config: &DispatchConfig,
        placed: &Placed<'_>,
        node: Option<NodeId>,
    ) -> Self {
        let (buffers, scalars) = (placed.buffers.clone(), placed.fitting.scalars.clone());
        // The pipeline has the block that was asked for.
        let config = DispatchConfig { block: None, ..config.clone() };
        Self { pipeline: pipeline.clone(), config, node, buffers, scalars }
    }

    /// A program that was recorded on buffers of the caller.
    pub(crate) fn of(
        pipeline: &Pipeline,
        config: DispatchConfig,
        node: NodeId,
        buffers: Vec<GpuRef<u8>>,
        scalars: Vec<u64>,
    ) -> Self {
        Self { pipeline: pipeline.clone(), config, node: Some(node), buffers, scalars }
    }

    /// Changes what is named here, in the graph its sequence became; the rest stays. Replays queued before keep what they had.
    ///
    /// # Errors
    /// What does not fit, as for a dispatch; host data, which a replay could not reach; another graph; buffers that would need an edge the graph
    /// does not have; no elements to run over. The graph is then as it was.
    pub fn update(&mut self, graph: &mut Graph, bindings: Bindings<'_>) -> Result<()> {
        let Some(node) = self.node else { return Err(nothing_to_run()) };
        let bindings = self.completed(bindings);
        let (fitting, buffers) = fit_resident(&self.pipeline, bindings, &self.config)?;
        self.apply(graph, node, &fitting, &buffers)?;
        (self.buffers, self.scalars) = (buffers, fitting.scalars);
        Ok(())
    }

    /// What is named, and for the rest what there was.
    fn completed<'a>(&self, mut bindings: Bindings<'a>) -> Bindings<'a> {
        let program = self.pipeline.program();
        for (declared, buffer) in program.buffers.iter().zip(&self.buffers) {
            if !bindings.buffers.iter().any(|(name, _)| *name == declared.name) {
                let (element, len) =
                    (ElementKind::exactly(declared.element), buffer.bytes() / declared.element.bytes());
                let bound = Bound::Resident { element, len, buffer: buffer.clone() };
                bindings.buffers.push((declared.name.clone(), bound));
            }
        }
        for (declared, bits) in program.scalars.iter().zip(&self.scalars) {
            if !bindings.scalars.iter().any(|(name, _)| *name == declared.name) {
                bindings.scalars.push((declared.name.clone(), Literal::new(declared.ty, *bits)));
            }
        }
        bindings
    }

    fn apply(
        &self,
        graph: &mut Graph,
        node: NodeId,
        fitting: &Fitting,
        buffers: &[GpuRef<u8>],
    ) -> Result<()> {
        let mut update = graph.update(node)?;
        update.grid(extents(fitting.launch.grid));
        for (at, parameter) in self.pipeline.layout().parameters.iter().enumerate() {
            match parameter.kind {
                EntryParameterKind::Pointer(id) => {
                    let role = fitting.buffers[id.0 as usize].role;
                    let buffer = &buffers[id.0 as usize];
                    match access(role.is_readable(), role.is_writable()) {
                        Access::Read => update.read(at, buffer),
                        Access::Write => update.write(at, buffer),
                        Access::ReadWrite => update.read_write(at, buffer),
                    };
                }
                EntryParameterKind::Length(id) => {
                    update.value(at, fitting.buffers[id.0 as usize].length);
                }
                EntryParameterKind::Scalar(id) => {
                    let bits = fitting.scalars[id.0 as usize];
                    // As an array of one, as when it was recorded.
                    match parameter.bytes {
                        1 => update.value(at, [bits as u8]),
                        2 => update.value(at, [bits as u16]),
                        4 => update.value(at, [bits as u32]),
                        _ => update.value(at, [bits]),
                    };
                }
                // They are the graph's own and stay.
                EntryParameterKind::Status | EntryParameterKind::GridBarrier => {}
            }
        }
        // SAFETY: as when the step was recorded: the program was verified and checks every access against the lengths given here, which are those
        // of the buffers, and buffers that are written share no bytes with others. A step that does not check could not be recorded.
        unsafe { update.apply() }
    }
}
