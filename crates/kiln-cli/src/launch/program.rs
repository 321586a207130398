//! Arguments that fit their program, and its launch.
//!
//! A program's buffers come first and its scalars after them, each in the order in which they are declared. What is declared of a
//! buffer is what its role allows; lengths and shapes are the business of the program's own plans.

use kiln::program::ProgramError;
use kiln::{
    DeviceRuntime, GpuRef,
    program::{Backend, Bindings, DispatchConfig},
};
use kiln_driver::Dim3;
use kiln_ir::{
    BindingPlan, Buffer, DeviceLimits, LaunchPlan, LaunchRequest, Literal, Program, Role, Scalar, Type,
};

use super::flags::LaunchFlags;
use super::plan::{Argument, ArgumentSheet, Plan};
use crate::element_type::ElementType;
use crate::failure::Failure;
use crate::spec::Spec;

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
}

/// A program with the block it is run with, and arguments that were held against it.
pub(super) struct ProgramLaunch<'a> {
    pub(super) program: Program,
    pub(super) shape: Shape,
    pub(super) arguments: Vec<ArgumentSheet>,
    flags: &'a LaunchFlags,
}

/// How a program that was launched ended early.
pub(super) struct Stopped {
    pub(super) text: String,
    /// Whether it stopped itself.
    pub(super) trapped: bool,
}

impl<'a> ProgramLaunch<'a> {
    /// Holds flags and arguments against a program.
    ///
    /// # Errors
    /// What does not fit; nothing is opened.
    pub(super) fn new(program: &Program, flags: &'a LaunchFlags, plan: &Plan) -> Result<Self, Failure> {
        if let Some(wanted) = flags.kernel.as_ref().filter(|wanted| **wanted != program.name) {
            let name = &program.name;
            return Err(Failure::refused(format!("there is no program named `{wanted}`; it is `{name}`")));
        }
        let program = match flags.block {
            None => program.clone(),
            Some(Dim3 { x, y, z }) => program
                .with_block([x, y, z])
                .map_err(|why| Failure::refused(format!("program `{}`: {why}", program.name)))?,
        };
        let arguments = check(&program, &flags.arguments, plan)?;
        let shape = shape(&program, flags, plan)?;
        Ok(Self { program, shape, arguments, flags })
    }

    /// Compiles, dispatches, waits. `buffers` has what was uploaded for each argument.
    ///
    /// # Errors
    /// What kept the program from being launched. One that traps or faults is stopped.
    pub(super) fn dispatch(
        &self,
        gpu: &DeviceRuntime,
        buffers: &[Option<GpuRef<u8>>],
        found: impl FnOnce() -> bool,
    ) -> Result<Option<Stopped>, Failure> {
        let pipeline = Backend::over(gpu.clone()).compile(&self.program)?;
        let config = DispatchConfig {
            grid: self.flags.grid,
            dynamic_shared_elements: dynamic_elements(&self.program, self.flags.shared)?,
            ..DispatchConfig::default()
        };
        let bindings = self.bindings(buffers)?;
        // SAFETY: accesses that the program does not check are checked by the simulated device. On a GPU whoever asked for this
        // program to be run answers for its indices, as with any program they start; a fault there loses this process's context
        // only.
        let done = unsafe { pipeline.dispatch_unchecked(bindings, &config) };
        match done {
            Ok(_) => Ok(None),
            Err(error) => {
                let trapped = matches!(error.downcast_ref(), Some(ProgramError::Trap { .. }));
                match trapped || error.is_lost() || found() {
                    true => Ok(Some(Stopped { text: format!("{error:#}"), trapped })),
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

/// Binds the bytes of a buffer as the elements it has.
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

fn literal(scalar: &Scalar, bytes: &[u8]) -> Literal {
    let mut bits = [0; 8];
    for (bit, byte) in bits.iter_mut().zip(bytes) {
        *bit = *byte;
    }
    Literal::new(scalar.ty, u64::from_le_bytes(bits))
}

/// Holds the arguments against what the program declares.
fn check(program: &Program, specs: &[Spec], plan: &Plan) -> Result<Vec<ArgumentSheet>, Failure> {
    let (buffers, scalars) = (&program.buffers, &program.scalars);
    let wanted = buffers.len() + scalars.len();
    if wanted != specs.len() {
        return Err(Failure::refused(format!(
            "program `{}` takes {wanted} arguments, and {} were given; `kiln inspect` lists them",
            program.name,
            specs.len()
        )));
    }
    let mut sheets = Vec::new();
    for (index, (spec, argument)) in specs.iter().zip(&plan.arguments).enumerate() {
        let (name, misfit) = match (buffers.get(index), scalars.get(index.wrapping_sub(buffers.len()))) {
            (Some(buffer), _) => (&buffer.name, misfit_of_buffer(buffer, argument)),
            (None, Some(scalar)) => (&scalar.name, misfit_of_scalar(scalar, spec)),
            (None, None) => continue,
        };
        if let Some(why) = misfit {
            let program = &program.name;
            return Err(Failure::refused(format!("program `{program}`, `{name}`, {spec}: {why}")));
        }
        let effect = buffers.get(index).map(|buffer| role_word(buffer.role));
        sheets.push(ArgumentSheet::of(index, Some(name.clone()), spec, argument, effect));
    }
    Ok(sheets)
}

/// What a role lets a program do, in the words for kernels.
pub(crate) fn role_word(role: Role) -> &'static str {
    match (role.is_readable(), role.is_writable()) {
        (_, false) => "reads",
        (false, true) => "writes",
        (true, true) => "both",
    }
}

fn misfit_of_buffer(buffer: &Buffer, argument: &Argument) -> Option<String> {
    let Argument::Array { array, to, .. } = argument else {
        return Some("it is a buffer; give an array with in:, out: or inout:".into());
    };
    match (buffer.role.is_writable(), to.is_some()) {
        (true, false) => return Some("the program writes it; declare it with inout: or out:".into()),
        (false, true) => return Some("the program only reads it; declare it with in:".into()),
        _ => {}
    }
    let wanted = element(buffer.element);
    // Numpy has no bf16; its bits are kept as u16.
    let fits = array.element == wanted || (wanted == ElementType::Bf16 && array.element == ElementType::U16);
    (!fits).then(|| format!("its elements are {}, and {} were given", buffer.element, array.element))
}

fn misfit_of_scalar(scalar: &Scalar, spec: &Spec) -> Option<String> {
    match spec {
        Spec::Value { element: given, .. } if *given == element(scalar.ty) => None,
        Spec::Value { element: given, .. } => Some(format!("it is {}, and {given} was given", scalar.ty)),
        _ => Some(format!("it is a scalar; give a value such as {}:1", scalar.ty)),
    }
}

/// The type as arrays have it.
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

/// The shape the launch will have. What the device can hold is the device's to say.
fn shape(program: &Program, flags: &LaunchFlags, plan: &Plan) -> Result<Shape, Failure> {
    let refused = |why: kiln_ir::PlanError| Failure::refused(why.to_string());
    let given: Vec<(&str, u64)> = program
        .buffers
        .iter()
        .zip(&plan.arguments)
        .filter_map(|(buffer, argument)| match argument {
            Argument::Array { array, .. } => Some((buffer.name.as_str(), array.bytes.len() as u64)),
            Argument::Value(_) => None,
        })
        .collect();
    let bindings = BindingPlan::new(program, &given).map_err(refused)?;
    let request = LaunchRequest {
        grid: flags.grid.map(|grid| [grid.x, grid.y, grid.z]),
        dynamic_shared_bytes: flags.shared,
    };
    let limits = DeviceLimits { shared_bytes_per_block: u64::MAX, ..DeviceLimits::default() };
    let launch = LaunchPlan::new(program, &bindings, &request, &limits).map_err(|why| match why {
        kiln_ir::PlanError::NoGrid { .. } => Failure::refused(format!("{why}; give --grid")),
        why => refused(why),
    })?;
    let extents = |[x, y, z]: [u32; 3]| Dim3::new(x, y, z);
    Ok(Shape { grid: extents(launch.grid), block: extents(launch.block) })
}

/// The dynamic shared memory in elements, as a dispatch takes it.
fn dynamic_elements(program: &Program, bytes: u32) -> Result<Option<u64>, Failure> {
    let Some(shared) = program.shared.iter().find(|shared| shared.count.is_none()) else { return Ok(None) };
    let (size, bytes) = (shared.element.bytes(), u64::from(bytes));
    match bytes {
        0 => {
            Err(Failure::refused(format!("shared memory `{}` has no size; give --shared BYTES", shared.name)))
        }
        bytes if bytes % size != 0 => Err(Failure::refused(format!(
            "{bytes} bytes of shared memory are no whole number of {} in `{}`",
            shared.element, shared.name
        ))),
        bytes => Ok(Some(bytes / size)),
    }
}
