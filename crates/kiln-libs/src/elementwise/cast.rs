//! Elements in another type.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::element_number::ElementNumber;
use super::element_program::{ElementProgram, Input};
use crate::Result;
use crate::operands::Operands;
use crate::prims::check::Check;
use crate::prims::plan::Plan;
use crate::prims::primitive_call::Operation;

/// A [`cast`](super::Elementwise::cast).
#[derive(Clone, Debug)]
pub struct Cast<A, B> {
    pub(super) x: GpuRef<A>,
    pub(super) y: GpuRef<B>,
}

const CHECK: Check = Check("elementwise.cast");

impl<A: ElementNumber, B: ElementNumber> Operation for Cast<A, B> {
    fn check(&self) -> Result<()> {
        CHECK.length_of(("y", &self.y), ("x", &self.x))?;
        CHECK.apart(("x", &self.x), ("y", &self.y))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        if A::NAME == B::NAME {
            return plan.copy(&self.x.cast::<u8>()?, &self.y.cast::<u8>()?);
        }
        // Rounded once, from the type that is stored to the type that is stored.
        let value = format!("{}(x)", B::NAME);
        let program =
            ElementProgram { name: "cast", computed_in: B::NAME, value: &value, scalars: Vec::new() };
        program.plan(plan, &[Input::stored("x", &self.x)?], &self.y)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHECK.0).with("x", &self.x).with("y", &self.y)
    }

    fn home(&self) -> StreamKey {
        self.y.home()
    }
}
