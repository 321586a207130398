//! Two elements become one.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::element_number::{ElementFloat, ElementNumber};
use super::element_program::{ElementProgram, Input, check_inputs};
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::Plan;
use crate::prims::primitive_call::Operation;

/// How two elements become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Combination {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`; integers wrap.
    Subtract,
    /// `a b`; integers wrap.
    Multiply,
    /// `a / b`. Integers are cut toward zero, and are 0 where `b` is.
    Divide,
    /// The smaller one. Of a number and NaN it is the number, and -0 is below 0.
    Minimum,
    /// The greater one. Of a number and NaN it is the number, and -0 is below 0.
    Maximum,
}

impl Combination {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::Minimum, Self::Maximum];

    const fn program(self) -> (&'static str, &'static str) {
        match self {
            Self::Add => ("added", "a + b"),
            Self::Subtract => ("subtracted", "a - b"),
            Self::Multiply => ("multiplied", "a * b"),
            Self::Divide => ("divided", "a / b"),
            Self::Minimum => ("minimum", "min(a, b)"),
            Self::Maximum => ("maximum", "max(a, b)"),
        }
    }
}

/// A [`combine`](super::Elementwise::combine).
#[derive(Clone, Debug)]
pub struct Combine<T> {
    pub(super) combination: Combination,
    pub(super) a: GpuRef<T>,
    pub(super) b: GpuRef<T>,
    pub(super) c: GpuRef<T>,
}

const CHECK: Check = Check("elementwise.combine");

impl<T: ElementFloat> PrimitiveCall<'_, Combine<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(CHECK.0, T::TYPE, 1))
    }
}

impl<T: ElementNumber> Operation for Combine<T> {
    fn check(&self) -> Result<()> {
        check_inputs(CHECK, &[("a", &self.a), ("b", &self.b)], ("c", &self.c))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (name, value) = self.combination.program();
        let program = ElementProgram { name, computed_in: T::COMPUTED_IN, value, scalars: Vec::new() };
        program.plan(plan, &[Input::new("a", &self.a)?, Input::new("b", &self.b)?], &self.c)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0).with("a", &self.a).with("b", &self.b).with("c", &self.c)
    }

    fn home(&self) -> StreamKey {
        self.c.home()
    }
}
