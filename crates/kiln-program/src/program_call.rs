//! A program with its arguments, to be queued or recorded as a library call is.

use kiln_driver::Dim3;
use kiln_ir::EntryParameterKind;
use kiln_runtime::{GpuRef, GraphBuilder, Result, Stream, Ticket};

use crate::binding::{Bindings, Fitting};
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;
use crate::program_backend::Pipeline;
use crate::sequence::{HiddenBuffers, Step, describe, fit_resident};

/// A program with resident buffers: [`submit`](Self::submit) queues it and does not wait, [`record`](Self::record) makes it a node of a graph beside
/// copies, launches and library calls.
///
/// A program that can trap is refused, because no caller would hear of it: dispatch it, or run it in a [`Sequence`](crate::Sequence).
///
/// ```
/// use kiln::{DeviceRuntime, program::{Backend, Bindings, Program}};
///
/// let program = Program::parse("kernel add(inout x: u32[], by: u32) block(64) over(x) { x[global.x] = x[global.x] + by; }")?;
/// let gpu = DeviceRuntime::simulated(1)?;
/// let add = Backend::over(gpu.clone()).compile(&program)?;
/// let (x, copy) = (gpu.zeros::<u32>(100)?, gpu.allocate::<u32>(100)?);
/// add.call(Bindings::new().resident("x", &x).scalar("by", 5_u32)).submit()?;
///
/// let mut graph = gpu.graph();
/// let mut step = add.call(Bindings::new().resident("x", &x).scalar("by", 1_u32)).record(&mut graph)?;
/// graph.copy(&x, &copy)?;
/// let mut graph = graph.build()?;
/// graph.replay()?;
/// step.update(&mut graph, Bindings::new().scalar("by", 10_u32))?;
/// graph.replay()?;
/// assert_eq!(copy.download()?, [16; 100]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `submit` or `record`"]
pub struct ProgramCall<'a> {
    pipeline: &'a Pipeline,
    bindings: Bindings<'a>,
    config: DispatchConfig,
    stream: Option<&'a Stream>,
}

impl Pipeline {
    /// A call with these arguments, to be queued or recorded; see [`ProgramCall`].
    pub fn call<'a>(&'a self, bindings: Bindings<'a>) -> ProgramCall<'a> {
        ProgramCall { pipeline: self, bindings, config: DispatchConfig::default(), stream: None }
    }
}

impl<'a> ProgramCall<'a> {
    /// Blocks in the grid; otherwise a thread for each element of the buffer the program runs over.
    pub fn grid(mut self, grid: impl Into<Dim3>) -> Self {
        self.config.grid = Some(grid.into());
        self
    }

    /// Elements of the shared memory whose size the program leaves open.
    pub fn dynamic_shared_elements(mut self, elements: u64) -> Self {
        self.config.dynamic_shared_elements = Some(elements);
        self
    }

    /// The stream to run on. Otherwise it is the home of a buffer that is written.
    pub fn on(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Queues the program, after everything that it has to come after.
    ///
    /// # Errors
    /// What does not fit, as for a dispatch; host data; a program that can trap, that waits for its whole grid, or that does not check its accesses; no
    /// elements to run over. Nothing is queued then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        let (fitting, buffers) = checked(self.pipeline, self.bindings, &self.config)?;
        let mut launch = self.pipeline.backend().runtime().launch(self.pipeline.kernel());
        if let Some(stream) = self.stream {
            launch.on(stream);
        }
        describe(&mut launch, self.pipeline, &fitting, &buffers, HiddenBuffers::default());
        // SAFETY: the program was verified and checks every access against the lengths given here, which are those of the buffers; buffers that are
        // written share no bytes with others, which `fit_resident` made sure of.
        unsafe { launch.submit() }
    }

    /// Makes the program a node of a graph. The step that is returned can be changed between replays.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<Step> {
        let (fitting, buffers) = checked(self.pipeline, self.bindings, &self.config)?;
        let mut launch = graph.launch(self.pipeline.kernel());
        describe(&mut launch, self.pipeline, &fitting, &buffers, HiddenBuffers::default());
        // SAFETY: as for `submit`, at each replay.
        let node = unsafe { launch.record() }?;
        drop(launch);
        Ok(Step::of(self.pipeline, self.config, node, buffers, fitting.scalars))
    }
}

fn checked(
    pipeline: &Pipeline,
    bindings: Bindings<'_>,
    config: &DispatchConfig,
) -> Result<(Fitting, Vec<GpuRef<u8>>)> {
    pipeline.check_safe()?;
    let needs = |kind| pipeline.layout().has(kind);
    if needs(EntryParameterKind::Status) || needs(EntryParameterKind::GridBarrier) {
        let what = "a call of a program that can trap or has a grid barrier";
        let why = "no caller would hear of a trap; dispatch it, or run it in a sequence";
        return Err(ProgramError::Unsupported { what, why }.into());
    }
    fit_resident(pipeline, bindings, config)
}
