//! Checks bindings against the parameters of a program, before anything is queued or allocated.
//!
//! Lengths are planned by [`BindingPlan`]; this adds what only the caller's side knows: the Rust types of elements, where data comes from and
//! where results go.

use kiln_driver::Limits;
use kiln_ir::{
    Binding, BindingPlan, Buffer, DeviceLimits, LaunchPlan, LaunchRequest, PlanError, Program, Role,
};

use super::bindings::{Bindings, Bound};
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;

/// Bytes a buffer may have.
const MAX_BUFFER_BYTES: u64 = i64::MAX as u64;

/// A program with what it was given, ready to be placed.
pub(crate) struct Fitting {
    pub(crate) buffers: Vec<Binding>,
    /// The bits of each scalar, in the program's order.
    pub(crate) scalars: Vec<u64>,
    pub(crate) launch: LaunchPlan,
}

impl Fitting {
    pub(crate) fn new(
        program: &Program,
        bindings: &Bindings<'_>,
        config: &DispatchConfig,
        limits: &Limits,
    ) -> Result<Self, ProgramError> {
        let declared: Vec<&str> = program.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        check_names("buffer", bindings.buffers.iter().map(|(name, _)| name), &declared)?;
        let declared: Vec<&str> = program.scalars.iter().map(|scalar| scalar.name.as_str()).collect();
        check_names("scalar", bindings.scalars.iter().map(|(name, _)| name), &declared)?;
        for buffer in &program.buffers {
            let bound =
                bindings.buffers.iter().find(|(name, _)| *name == buffer.name).map(|(_, bound)| bound);
            check_element(buffer, bound)?;
            check_role(buffer, bound)?;
        }
        let plan = BindingPlan::new(program, &given_bytes(program, bindings)?)?;
        for binding in &plan.bindings {
            let bytes = binding.length.checked_mul(binding.element.bytes());
            if bytes.is_none_or(|bytes| bytes > MAX_BUFFER_BYTES) {
                return Err(ProgramError::TooLarge { name: binding.name.clone(), elements: binding.length });
            }
        }
        let request = LaunchRequest {
            grid: config.grid.map(|grid| [grid.x, grid.y, grid.z]),
            dynamic_shared_bytes: shared_bytes(program, config)?,
        };
        let launch = LaunchPlan::new(program, &plan, &request, &device_limits(limits))?;
        Ok(Self { buffers: plan.bindings, scalars: scalars(program, bindings)?, launch })
    }
}

/// The bytes of every buffer whose length the caller says.
fn given_bytes<'a>(
    program: &'a Program,
    bindings: &Bindings<'_>,
) -> Result<Vec<(&'a str, u64)>, ProgramError> {
    let mut given = Vec::with_capacity(bindings.buffers.len());
    for (name, bound) in &bindings.buffers {
        let Some(buffer) = program.buffers.iter().find(|buffer| buffer.name == *name) else { continue };
        let Some(elements) = bound.len() else { continue };
        let too_large = || ProgramError::TooLarge { name: name.clone(), elements };
        given.push((
            buffer.name.as_str(),
            elements.checked_mul(buffer.element.bytes()).ok_or_else(too_large)?,
        ));
    }
    Ok(given)
}

fn device_limits(limits: &Limits) -> DeviceLimits {
    let grid = limits.max_grid;
    DeviceLimits {
        threads_per_block: u64::from(limits.max_threads_per_block),
        grid: [u64::from(grid.x), u64::from(grid.y), u64::from(grid.z)],
        shared_bytes_per_block: u64::from(
            limits.shared_bytes_per_block.max(limits.shared_bytes_per_block_optin),
        ),
        // The kernel's own occupancy decides, and it is asked when the launch is recorded.
        resident_blocks: None,
    }
}

fn check_names<'a>(
    what: &'static str,
    given: impl Iterator<Item = &'a String> + Clone,
    declared: &[&str],
) -> Result<(), ProgramError> {
    for (at, name) in given.clone().enumerate() {
        if !declared.contains(&name.as_str()) {
            let known = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
            return Err(ProgramError::Unknown { what, name: name.clone(), known });
        }
        if given.clone().take(at).any(|other| other == name) {
            return Err(ProgramError::Twice { what, name: name.clone() });
        }
    }
    Ok(())
}

fn scalars(program: &Program, bindings: &Bindings<'_>) -> Result<Vec<u64>, ProgramError> {
    let one = |scalar: &kiln_ir::ScalarParameter| {
        let (kernel, name) = (program.name.clone(), scalar.name.clone());
        match bindings.scalars.iter().find(|(name, _)| *name == scalar.name) {
            None => Err(PlanError::MissingScalar { kernel, scalar: name }.into()),
            Some((_, value)) if value.ty() != scalar.ty => {
                let (expected, found) = (scalar.ty, value.ty());
                Err(PlanError::ScalarType { kernel, scalar: name, expected, found }.into())
            }
            Some((_, value)) => Ok(value.bits()),
        }
    };
    program.scalars.iter().map(one).collect()
}

fn check_element(buffer: &Buffer, bound: Option<&Bound<'_>>) -> Result<(), ProgramError> {
    match bound.and_then(Bound::element) {
        Some(given) if !given.fits(buffer.element) => {
            Err(ProgramError::Element { name: buffer.name.clone(), wanted: buffer.element, given })
        }
        _ => Ok(()),
    }
}

fn check_role(buffer: &Buffer, bound: Option<&Bound<'_>>) -> Result<(), ProgramError> {
    let role =
        |given, next| Err(ProgramError::Role { name: buffer.name.clone(), role: buffer.role, given, next });
    match (buffer.role, bound) {
        (_, Some(Bound::Resident { .. } | Bound::Wrong(_))) => Ok(()),
        (Role::Persistent, _) => {
            role("on the host", "give a resident buffer that keeps it between dispatches")
        }
        (Role::Input | Role::InOut, Some(Bound::Length(_))) => role("a length alone", "give its elements"),
        (Role::Input, Some(Bound::InOut(_) | Bound::Output { .. })) => {
            role("written back", "give it as an input")
        }
        (Role::InOut, Some(Bound::Output { .. })) => role("an output only", "give it as in-out"),
        (Role::Output, Some(Bound::Input { .. } | Bound::InOut(_))) => {
            role("read from the host", "give it as an output")
        }
        _ => Ok(()),
    }
}

fn shared_bytes(program: &Program, config: &DispatchConfig) -> Result<u32, ProgramError> {
    let wrong = |reason: String| Err(ProgramError::Shared { program: program.name.clone(), reason });
    match (program.shared.iter().find(|shared| shared.count.is_none()), config.dynamic_shared_elements) {
        (None, None) => Ok(0),
        (Some(shared), None) => {
            wrong(format!("shared memory `{}` has no size; give its number of elements", shared.name))
        }
        (None, Some(_)) => wrong("it has no dynamic shared memory; give no size for it".to_owned()),
        (Some(shared), Some(elements)) => {
            match elements.checked_mul(shared.element.bytes()).map(u32::try_from) {
                Some(Ok(bytes)) => Ok(bytes),
                _ => wrong(format!("{elements} elements of shared memory `{}` are too many", shared.name)),
            }
        }
    }
}
