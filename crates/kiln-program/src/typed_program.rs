//! `Typed`: a compiled program whose parameters are checked at compile time.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kiln_ir::Program;
use kiln_runtime::Result;

use crate::binding::{Arguments, Bindings, Parameters, Said};
use crate::dispatch::Dispatched;
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;
use crate::program_backend::{Backend, Pipeline};
use crate::program_call::ProgramCall;
use crate::sequence::PendingDispatch;

/// A pipeline whose parameters the compiler knows: what is given in another number, of another type or the wrong way round does not
/// compile.
///
/// That the program has these parameters is checked once, when the handle is made. Lengths are checked at each dispatch, as they always are.
///
/// ```
/// use kiln::program::{Read, ReadWrite, Typed, ProgramValue};
/// use kiln::{DeviceRuntime, program::{Backend, Program}};
///
/// type Saxpy = (ProgramValue<f32>, Read<f32>, ReadWrite<f32>);
///
/// let program = Program::parse("
///     kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(128) over(y) {
///         y[global.x] = fma(a, x[global.x], y[global.x]);
///     }")?;
/// let gpu = DeviceRuntime::simulated(1)?;
/// let saxpy: Typed<Saxpy> = Backend::over(gpu.clone()).compile_typed(&program)?;
///
/// // From the host, and from the device, as each argument likes.
/// let (x, mut y) = ([1.0, 2.0, 3.0], vec![1.0; 3]);
/// saxpy.dispatch((2.0, &x, &mut y))?;
/// assert_eq!(y, [3.0, 5.0, 7.0]);
/// let y = gpu.upload(&y)?;
/// saxpy.dispatch((1.0, &x, &y))?;
/// assert_eq!(y.download()?, [4.0, 7.0, 10.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Elements of another type:
///
/// ```compile_fail,E0277
/// # use kiln::program::{Read, ReadWrite, Typed, ProgramValue};
/// fn run(saxpy: &Typed<(ProgramValue<f32>, Read<f32>, ReadWrite<f32>)>, x: &[f64], y: &mut Vec<f32>) -> kiln::Result<()> {
///     saxpy.dispatch((2.0, x, y)).map(drop)
/// }
/// ```
///
/// An argument too few:
///
/// ```compile_fail,E0277
/// # use kiln::program::{Read, ReadWrite, Typed, ProgramValue};
/// fn run(saxpy: &Typed<(ProgramValue<f32>, Read<f32>, ReadWrite<f32>)>, x: &[f32]) -> kiln::Result<()> {
///     saxpy.dispatch((2.0, x)).map(drop)
/// }
/// ```
///
/// A buffer that is written, given as one that cannot be:
///
/// ```compile_fail,E0277
/// # use kiln::program::{Read, ReadWrite, Typed, ProgramValue};
/// fn run(saxpy: &Typed<(ProgramValue<f32>, Read<f32>, ReadWrite<f32>)>, x: &[f32], y: &Vec<f32>) -> kiln::Result<()> {
///     saxpy.dispatch((2.0, x, y)).map(drop)
/// }
/// ```
///
/// As it should be:
///
/// ```
/// # use kiln::program::{Read, ReadWrite, Typed, ProgramValue};
/// fn run(saxpy: &Typed<(ProgramValue<f32>, Read<f32>, ReadWrite<f32>)>, x: &[f32], y: &mut Vec<f32>) -> kiln::Result<()> {
///     saxpy.dispatch((2.0, x, y)).map(drop)
/// }
/// ```
pub struct Typed<P> {
    pipeline: Arc<Pipeline>,
    /// The names of the parameters, in the order of the tuple.
    names: Arc<[String]>,
    parameters: PhantomData<fn() -> P>,
}

impl Backend {
    /// As [`compile`](Self::compile), for a program whose parameters are known when this is written.
    ///
    /// # Errors
    /// As for [`compile`](Self::compile); a program with other parameters.
    pub fn compile_typed<P: Parameters>(&self, program: &Program) -> Result<Typed<P>> {
        Typed::new(self.compile(program)?)
    }
}

impl<P: Parameters> Typed<P> {
    /// Checks that a program has these parameters.
    ///
    /// # Errors
    /// More or fewer buffers or scalars; one of another type, or that the program uses in another way.
    pub fn new(pipeline: Arc<Pipeline>) -> Result<Self> {
        let names = fit(pipeline.program(), &P::said())?;
        Ok(Self { pipeline, names: names.into(), parameters: PhantomData })
    }

    /// The pipeline, to be dispatched by name.
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// The arguments by name, for a step of a [`Sequence`](crate::Sequence).
    pub fn bind<'a>(&self, arguments: impl Arguments<'a, P>) -> Bindings<'a> {
        arguments.bind(&self.names)
    }

    /// A call with these arguments, to be queued or recorded; see [`ProgramCall`].
    pub fn call<'a>(&'a self, arguments: impl Arguments<'a, P>) -> ProgramCall<'a> {
        self.pipeline.call(self.bind(arguments))
    }

    /// Runs the program once.
    ///
    /// # Errors
    /// As for [`Pipeline::dispatch`].
    #[track_caller]
    pub fn dispatch<'a>(&self, arguments: impl Arguments<'a, P>) -> Result<Dispatched> {
        self.pipeline.dispatch(self.bind(arguments))
    }

    /// Runs the program as a configuration says.
    ///
    /// # Errors
    /// As for [`Pipeline::dispatch_with`].
    #[track_caller]
    pub fn dispatch_with<'a>(
        &self,
        arguments: impl Arguments<'a, P>,
        config: &DispatchConfig,
    ) -> Result<Dispatched> {
        self.pipeline.dispatch_with(self.bind(arguments), config)
    }

    /// Runs the program once, without blocking.
    ///
    /// # Errors
    /// As for [`Pipeline::dispatch_async`].
    #[track_caller]
    pub fn dispatch_async<'a>(&self, arguments: impl Arguments<'a, P>) -> Result<PendingDispatch<'a>> {
        self.pipeline.dispatch_async(self.bind(arguments))
    }
}

/// The name of each parameter a handle names, in the order of the handle.
fn fit(program: &Program, said: &[Said]) -> std::result::Result<Vec<String>, ProgramError> {
    let name = || program.name.clone();
    let counts = [
        ("buffers", program.buffers.len(), said.iter().filter(|said| said.is_buffer()).count()),
        ("scalars", program.scalars.len(), said.iter().filter(|said| !said.is_buffer()).count()),
    ];
    if let Some((what, declared, named)) = counts.into_iter().find(|(_, declared, named)| declared != named) {
        return Err(ProgramError::ParameterCount { program: name(), what, declared, named });
    }
    let (mut buffers, mut scalars) = (program.buffers.iter(), program.scalars.iter());
    let mut names = Vec::with_capacity(said.len());
    for said in said {
        let next = if said.is_buffer() {
            buffers.next().map(|buffer| {
                let declared =
                    format!("`{}` is {} with elements of {}", buffer.name, buffer.role, buffer.element);
                (&buffer.name, said.fits_buffer(buffer), declared)
            })
        } else {
            scalars.next().map(|scalar| {
                (
                    &scalar.name,
                    said.fits_scalar(scalar),
                    format!("`{}` is a scalar of {}", scalar.name, scalar.ty),
                )
            })
        };
        match next {
            Some((name, true, _)) => names.push(name.clone()),
            Some((_, false, declared)) => {
                let said = said.text().to_owned();
                return Err(ProgramError::ParameterType { program: name(), declared, said });
            }
            // The counts agree, so there is one for each.
            None => {}
        }
    }
    Ok(names)
}

impl<P> Clone for Typed<P> {
    fn clone(&self) -> Self {
        Self { pipeline: self.pipeline.clone(), names: self.names.clone(), parameters: PhantomData }
    }
}

impl<P> fmt::Debug for Typed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of ({})", self.pipeline, self.names.join(", "))
    }
}
