//! Compares arguments with the declarations of a program, and launches it.
//!
//! The buffers of a program come first and its scalars after them, each in the order of their declarations. Here roles and element
//! types are compared; lengths and shapes are checked by the program's own plans.

use std::sync::Arc;

use kiln::program::ProgramError;
use kiln::{
    DeviceRuntime, GpuRef,
    program::{Backend, Bindings, DispatchConfig},
};
use kiln_driver::Dim3;
use kiln_ir::{
    BindingPlan, Buffer, DeviceLimits, Interpreter, LaunchPlan, LaunchRequest, Literal, OutOfRange, Program,
    Role, ScalarParameter, Type,
};

use super::flags::LaunchFlags;
use super::loaded_arguments::{Argument, ArgumentSheet, Plan};
use super::program_trap::ProgramTrap;
use crate::argument_spec::{Spec, Start};
use crate::element_type::ElementType;
use crate::failure::Failure;
use crate::plural::{counted, was};

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
}

/// A program with its block, and arguments that fit it.
pub(super) struct ProgramLaunch<'a> {
    pub(super) program: Program,
    pub(super) shape: Shape,
    pub(super) arguments: Vec<ArgumentSheet>,
    /// With arrays converted where that was asked for.
    pub(super) plan: Plan,
    flags: &'a LaunchFlags,
}

/// How a program that was launched ended early.
pub(super) struct Stopped {
    pub(super) text: String,
    /// The trap it executed, if it did.
    pub(super) trap: Option<ProgramTrap>,
}

impl<'a> ProgramLaunch<'a> {
    /// Compares flags and arguments with a program.
    ///
    /// # Errors
    /// Something does not fit; nothing has run.
    pub(super) fn new(program: &Program, flags: &'a LaunchFlags, plan: &Plan) -> Result<Self, Failure> {
        if let Some(wanted) = flags.kernel.as_ref().filter(|wanted| **wanted != program.name) {
            let message = format!("there is no program `{wanted}` in the file");
            return Err(Failure::refused(message).next(format!("it has `{}`", program.name)));
        }
        let (_, block) = (flags.grid()?, flags.block()?);
        let program = match block {
            None => program.clone(),
            Some(Dim3 { x, y, z }) => program
                .with_block([x, y, z])
                .map_err(|why| Failure::refused(format!("program `{}`: {why}", program.name)))?,
        };
        let mut plan = plan.clone();
        let arguments = fit(&program, flags, &mut plan)?;
        let shape = shape(&program, flags, &plan)?;
        Ok(Self { program, shape, arguments, plan, flags })
    }

    /// Compiles, dispatches and waits. `buffers` are the uploaded arrays, by argument.
    ///
    /// # Errors
    /// The program could not be launched. A trap or a fault is no error but a [`Stopped`].
    pub(super) fn dispatch(
        &self,
        gpu: &DeviceRuntime,
        buffers: &[Option<GpuRef<u8>>],
        found: impl FnOnce() -> bool,
    ) -> Result<Option<Stopped>, Failure> {
        let pipeline = Backend::over(gpu.clone()).compile(&self.program)?;
        let config = DispatchConfig {
            grid: self.flags.grid().ok().flatten(),
            dynamic_shared_elements: dynamic_elements(&self.program, self.flags.shared)?,
            ..DispatchConfig::default()
        };
        let bindings = self.bindings(buffers)?;
        // SAFETY: accesses that the program does not check are checked by the simulated device. On a GPU the user who runs this
        // program answers for its indices, as with any program they start; a fault there loses this process's context only.
        let done = unsafe { pipeline.dispatch_unchecked(bindings, &config) };
        match done {
            Ok(_) => Ok(None),
            Err(error) => {
                let trap = error.downcast_ref::<ProgramError>().and_then(ProgramTrap::of);
                match trap.is_some() || error.is_lost() || found() {
                    true => Ok(Some(Stopped { text: format!("{error:#}"), trap })),
                    false => Err(error.into()),
                }
            }
        }
    }

    fn bindings(&self, buffers: &[Option<GpuRef<u8>>]) -> Result<Bindings<'static>, Failure> {
        let mut bindings = Bindings::new();
        for (declared, buffer) in self.program.buffers.iter().zip(buffers.iter().flatten()) {
            bindings = bind(bindings, declared, buffer)?;
        }
        let values = self.flags.arguments.iter().skip(self.program.buffers.len());
        for (scalar, spec) in self.program.scalars.iter().zip(values) {
            if let Spec::Value { bytes, .. } = spec {
                bindings = bindings.scalar(&scalar.name, literal(scalar, bytes));
            }
        }
        Ok(bindings)
    }
}

/// Counts the indices out of range of a launch, which have a meaning in programs and are no findings: the interpreter runs the program once
/// more. Accesses of threads past the end of the buffer that the program runs over are not counted. None if the interpreter stopped
/// early: at a trap, at the limit of steps, or at an unchecked index.
///
/// # Errors
/// The arguments do not fit.
pub(crate) fn count_out_of_range(
    program: &Program,
    flags: &LaunchFlags,
    plan: &Plan,
) -> Result<Option<OutOfRange>, Failure> {
    let ProgramLaunch { program, shape, plan, .. } = ProgramLaunch::new(program, flags, plan)?;
    let count = program.buffers.len();
    let arrays = plan.arguments.iter().take(count).flat_map(Argument::arrays);
    let mut buffers: Vec<Vec<u8>> = arrays.map(|array| array.array.bytes.clone()).collect();
    let values = flags.arguments.iter().skip(count);
    let scalars: Vec<Literal> = program
        .scalars
        .iter()
        .zip(values)
        .filter_map(|(scalar, spec)| match spec {
            Spec::Value { bytes, .. } => Some(literal(scalar, bytes)),
            _ => None,
        })
        .collect();
    let interpreter = Interpreter {
        dynamic_shared_bytes: flags.shared,
        step_limit: flags.step_limit,
        ..Interpreter::new([shape.grid.x, shape.grid.y, shape.grid.z])
    };
    let outcome = interpreter.run(&program, &scalars, &mut buffers).ok();
    Ok(outcome.map(|outcome| outcome.covered_out_of_range))
}

/// Binds a buffer of bytes as one of the declared elements.
fn bind<'a>(bindings: Bindings<'a>, declared: &Buffer, buffer: &GpuRef<u8>) -> Result<Bindings<'a>, Failure> {
    let name = &declared.name;
    Ok(match declared.element {
        Type::Bool | Type::U8 => bindings.resident(name, buffer),
        Type::U16 => bindings.resident(name, &buffer.cast::<u16>()?),
        Type::U32 => bindings.resident(name, &buffer.cast::<u32>()?),
        Type::U64 => bindings.resident(name, &buffer.cast::<u64>()?),
        Type::I8 => bindings.resident(name, &buffer.cast::<i8>()?),
        Type::I16 => bindings.resident(name, &buffer.cast::<i16>()?),
        Type::I32 => bindings.resident(name, &buffer.cast::<i32>()?),
        Type::I64 => bindings.resident(name, &buffer.cast::<i64>()?),
        Type::F16 | Type::Bf16 => bindings.resident(name, &buffer.cast::<[u8; 2]>()?),
        Type::F32 => bindings.resident(name, &buffer.cast::<f32>()?),
        Type::F64 => bindings.resident(name, &buffer.cast::<f64>()?),
    })
}

fn literal(scalar: &ScalarParameter, bytes: &[u8]) -> Literal {
    let mut bits = [0; 8];
    for (bit, byte) in bits.iter_mut().zip(bytes) {
        *bit = *byte;
    }
    Literal::new(scalar.ty, u64::from_le_bytes(bits))
}

/// Compares the arguments with what the program declares; with `--cast`, arrays of another element type are converted.
fn fit(program: &Program, flags: &LaunchFlags, plan: &mut Plan) -> Result<Vec<ArgumentSheet>, Failure> {
    let (buffers, scalars, specs) = (&program.buffers, &program.scalars, &flags.arguments);
    let wanted = buffers.len() + scalars.len();
    if wanted != specs.len() {
        let (wanted, given) = (counted(wanted as u64, "argument"), specs.len() as u64);
        let message = format!("program `{}` takes {wanted}, and {given} {} given", program.name, was(given));
        return Err(Failure::refused(message).next("`kiln inspect` lists them"));
    }
    let mut sheets = Vec::new();
    for (index, (spec, argument)) in specs.iter().zip(&mut plan.arguments).enumerate() {
        let (name, misfit) = match (buffers.get(index), scalars.get(index.wrapping_sub(buffers.len()))) {
            (Some(buffer), _) => (&buffer.name, fit_buffer(buffer, argument, flags.cast)),
            (None, Some(scalar)) => (&scalar.name, fit_scalar(scalar, spec)),
            (None, None) => continue,
        };
        if let Err((why, next)) = misfit {
            let message = format!("program `{}`, `{name}`, {spec}: {why}", program.name);
            return Err(Failure::refused(message).next(next));
        }
        let effect = buffers.get(index).map(|buffer| role_word(buffer.role));
        sheets.push(ArgumentSheet::of(index, Some(name.clone()), spec, argument, effect));
    }
    Ok(sheets)
}

/// What a role lets a program do, in the words that describe kernels.
pub(crate) fn role_word(role: Role) -> &'static str {
    match (role.is_readable(), role.is_writable()) {
        (_, false) => "reads",
        (false, true) => "writes",
        (true, true) => "both",
    }
}

/// What is wrong with an argument, and what to do.
type Misfit = (String, String);

fn fit_buffer(buffer: &Buffer, argument: &mut Argument, cast: bool) -> Result<(), Misfit> {
    let Argument::Array(argument) = argument else {
        return Err((
            "it is a buffer".into(),
            "give an array with in:, inout:, out:, zeros:, uninit: or scratch:".into(),
        ));
    };
    // A program has no structs: its elements are all that it writes.
    argument.widest_access = Some(1);
    match (buffer.role.is_writable(), argument.is_written()) {
        (true, false) => {
            return Err(("the program writes it".into(), "declare it with inout: or out:".into()));
        }
        (false, true) if !matches!(argument.start, Some(Start::Zeros | Start::Uninitialised)) => {
            return Err((
                "the program only reads it".into(),
                "declare it with in:, zeros: or uninit:".into(),
            ));
        }
        _ => {}
    }
    let (wanted, given) = (element(buffer.element), argument.array.element);
    // Numpy has no bf16; its bits are stored as u16.
    if given == wanted || (wanted == ElementType::Bf16 && given == ElementType::U16) {
        return Ok(());
    }
    if cast {
        let converted = argument.array.cast(wanted);
        argument.array =
            Arc::new(converted.map_err(|error| (error.to_string(), "convert the file".to_owned()))?);
        return Ok(());
    }
    let next = format!("convert it with a.astype(numpy.{}), or give --cast", wanted.numpy());
    Err((format!("its elements are {}, and the program takes {}", given.numpy(), buffer.element), next))
}

fn fit_scalar(scalar: &ScalarParameter, spec: &Spec) -> Result<(), Misfit> {
    let next = format!("give a value such as {}:1", scalar.ty);
    match spec {
        Spec::Value { element: given, .. } if *given == element(scalar.ty) => Ok(()),
        Spec::Value { element: given, .. } => {
            Err((format!("it is {}, and {given} was given", scalar.ty), next))
        }
        _ => Err((format!("it is a scalar of type {}", scalar.ty), next)),
    }
}

/// The element type of arrays that corresponds to a type of programs.
fn element(ty: Type) -> ElementType {
    match ty {
        Type::Bool => ElementType::Bool,
        Type::U8 => ElementType::U8,
        Type::U16 => ElementType::U16,
        Type::U32 => ElementType::U32,
        Type::U64 => ElementType::U64,
        Type::I8 => ElementType::I8,
        Type::I16 => ElementType::I16,
        Type::I32 => ElementType::I32,
        Type::I64 => ElementType::I64,
        Type::F16 => ElementType::F16,
        Type::Bf16 => ElementType::Bf16,
        Type::F32 => ElementType::F32,
        Type::F64 => ElementType::F64,
    }
}

/// The shape of the launch. The device checks its own limits later.
fn shape(program: &Program, flags: &LaunchFlags, plan: &Plan) -> Result<Shape, Failure> {
    let refused = |why: kiln_ir::PlanError| Failure::refused(why.to_string());
    let given: Vec<(&str, u64)> = program
        .buffers
        .iter()
        .zip(&plan.arguments)
        .filter_map(|(buffer, argument)| match argument {
            Argument::Array(argument) => Some((buffer.name.as_str(), argument.array.bytes.len() as u64)),
            _ => None,
        })
        .collect();
    let bindings = BindingPlan::new(program, &given).map_err(refused)?;
    let request = LaunchRequest {
        grid: flags.grid()?.map(|grid| [grid.x, grid.y, grid.z]),
        dynamic_shared_bytes: flags.shared,
    };
    let limits = DeviceLimits { shared_bytes_per_block: u64::MAX, ..DeviceLimits::default() };
    let launch = LaunchPlan::new(program, &bindings, &request, &limits).map_err(|why| match why {
        kiln_ir::PlanError::NoGrid { .. } => refused(why).next("give --grid"),
        why => refused(why),
    })?;
    let extents = |[x, y, z]: [u32; 3]| Dim3::new(x, y, z);
    Ok(Shape { grid: extents(launch.grid), block: extents(launch.block) })
}

/// The dynamic shared memory in elements, the unit of a dispatch.
fn dynamic_elements(program: &Program, bytes: u32) -> Result<Option<u64>, Failure> {
    let Some(shared) = program.shared.iter().find(|shared| shared.count.is_none()) else { return Ok(None) };
    let (size, bytes) = (shared.element.bytes(), u64::from(bytes));
    let name = &shared.name;
    match bytes {
        0 => Err(Failure::refused(format!("shared memory `{name}` has no size")).next("give --shared BYTES")),
        bytes if bytes % size != 0 => Err(Failure::refused(format!(
            "{bytes} bytes of shared memory are not a whole number of {} elements in `{name}`",
            shared.element
        ))),
        bytes => Ok(Some(bytes / size)),
    }
}
