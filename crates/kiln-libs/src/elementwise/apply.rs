//! A function of each element, and its gradient.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::element_function::ElementFunction;
use super::element_number::ElementFloat;
use super::element_program::{ElementProgram, Input, check_inputs};
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::Plan;
use crate::prims::primitive_call::Operation;

/// An [`apply`](super::Elementwise::apply).
#[derive(Clone, Debug)]
pub struct Apply<T> {
    pub(super) function: ElementFunction,
    pub(super) x: GpuRef<T>,
    pub(super) y: GpuRef<T>,
}

/// An [`apply_backward`](super::Elementwise::apply_backward).
#[derive(Clone, Debug)]
pub struct ApplyBackward<T> {
    pub(super) function: ElementFunction,
    pub(super) x: GpuRef<T>,
    pub(super) dy: GpuRef<T>,
    pub(super) dx: GpuRef<T>,
}

const FORWARD: Check = Check("elementwise.apply");
const BACKWARD: Check = Check("elementwise.apply_backward");

impl<T: ElementFloat> PrimitiveCall<'_, Apply<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(FORWARD.0, T::TYPE, 1))
    }
}

impl<T: ElementFloat> PrimitiveCall<'_, ApplyBackward<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(BACKWARD.0, T::TYPE, 1))
    }
}

impl<T: ElementFloat> Operation for Apply<T> {
    fn check(&self) -> Result<()> {
        check_inputs(FORWARD, &[("x", &self.x)], ("y", &self.y))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let value = self.function.value(T::COMPUTED_IN);
        let program = ElementProgram {
            name: self.function.name(),
            computed_in: T::COMPUTED_IN,
            value: &value,
            scalars: Vec::new(),
        };
        program.plan(plan, &[Input::new("x", &self.x)?], &self.y)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(FORWARD.0).with("x", &self.x).with("y", &self.y)
    }

    fn home(&self) -> StreamKey {
        self.y.home()
    }
}

impl<T: ElementFloat> Operation for ApplyBackward<T> {
    fn check(&self) -> Result<()> {
        check_inputs(BACKWARD, &[("x", &self.x), ("dy", &self.dy)], ("dx", &self.dx))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let value = format!("dy * ({})", self.function.slope(T::COMPUTED_IN));
        let name = format!("slope_of_{}", self.function.name());
        let program =
            ElementProgram { name: &name, computed_in: T::COMPUTED_IN, value: &value, scalars: Vec::new() };
        program.plan(plan, &[Input::new("x", &self.x)?, Input::new("dy", &self.dy)?], &self.dx)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(BACKWARD.0).with("x", &self.x).with("dy", &self.dy).with("dx", &self.dx)
    }

    fn home(&self) -> StreamKey {
        self.dx.home()
    }
}
