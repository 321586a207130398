//! A multiple of each element, and a number added to it.

use kiln_mem::StreamKey;
use kiln_operation::ElementType;
use kiln_runtime::GpuRef;

use super::element_number::ElementFloat;
use super::element_program::{ElementProgram, Input, check_inputs};
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::scalar_argument::checked;

/// An [`affine`](super::Elementwise::affine).
#[derive(Clone, Debug)]
pub struct Affine<T> {
    pub(super) scale: f64,
    pub(super) x: GpuRef<T>,
    pub(super) shift: f64,
    pub(super) y: GpuRef<T>,
}

const CHECK: Check = Check("elementwise.affine");

impl<T: ElementFloat> PrimitiveCall<'_, Affine<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(CHECK.0, T::TYPE, 1))
    }
}

impl<T: ElementFloat> Operation for Affine<T> {
    fn check(&self) -> Result<()> {
        let computed = if T::COMPUTED_IN == "f64" { ElementType::F64 } else { ElementType::F32 };
        checked(CHECK.0, "scale", computed, self.scale)?;
        checked(CHECK.0, "shift", computed, self.shift)?;
        check_inputs(CHECK, &[("x", &self.x)], ("y", &self.y))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let of = T::COMPUTED_IN;
        let number = |value: f64| match of {
            "f64" => Argument::value(value),
            _ => Argument::value(value as f32),
        };
        let scalars = vec![("scale", of, number(self.scale)), ("shift", of, number(self.shift))];
        let program = ElementProgram { name: "affine", computed_in: of, value: "x * scale + shift", scalars };
        program.plan(plan, &[Input::new("x", &self.x)?], &self.y)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0).with("x", &self.x).with("y", &self.y)
    }

    fn home(&self) -> StreamKey {
        self.y.home()
    }
}
