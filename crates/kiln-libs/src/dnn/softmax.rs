//! Softmax of rows, and its gradient.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::row_launch_shape::{Rows, THREADS};
use super::tensor::NetworkElement;
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::{Check, begin_together};
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// A [`softmax`](super::Dnn::softmax).
#[derive(Clone, Debug)]
pub struct Softmax<T> {
    pub(super) x: GpuRef<T>,
    pub(super) columns: usize,
    pub(super) y: GpuRef<T>,
    pub(super) is_log: bool,
}

/// A [`softmax_backward`](super::Dnn::softmax_backward).
#[derive(Clone, Debug)]
pub struct SoftmaxBackward<T> {
    pub(super) y: GpuRef<T>,
    pub(super) dy: GpuRef<T>,
    pub(super) columns: usize,
    pub(super) dx: GpuRef<T>,
    pub(super) is_log: bool,
}

impl<T> PrimitiveCall<'_, Softmax<T>> {
    /// Computes logarithms instead: `x - log Σ exp(x)`.
    pub fn log(mut self) -> Self {
        self.operation.is_log = true;
        self
    }
}

impl<T> PrimitiveCall<'_, SoftmaxBackward<T>> {
    /// Takes the gradient of the logarithm, whose result `y` is.
    pub fn log(mut self) -> Self {
        self.operation.is_log = true;
        self
    }
}

impl<T: NetworkElement> PrimitiveCall<'_, Softmax<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(FORWARD.0, T::TYPE, self.operation.columns as u64))
    }
}

impl<T: NetworkElement> PrimitiveCall<'_, SoftmaxBackward<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(BACKWARD.0, T::TYPE, self.operation.columns as u64))
    }
}

const FORWARD: Check = Check("dnn.softmax");
const BACKWARD: Check = Check("dnn.softmax_backward");

impl<T: NetworkElement> Operation for Softmax<T> {
    fn check(&self) -> Result<()> {
        Rows::of(FORWARD, ("x", &self.x), ("columns", self.columns))?;
        FORWARD.length_of(("y", &self.y), ("x", &self.x))?;
        FORWARD.same_or_apart(("x", &self.x), ("y", &self.y))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(FORWARD, ("x", &self.x), ("columns", self.columns))?;
        if rows.rows == 0 {
            return Ok(());
        }
        let entry = if rows.are_short() { "softmax_warp" } else { "softmax_block" };
        let is_same = begin_together(&self.x, &self.y);
        let arguments = vec![
            if is_same { Argument::Null } else { Argument::read(&self.x)? },
            Argument::value(rows.rows),
            Argument::value(rows.columns),
            if is_same { Argument::read_write(&self.y)? } else { Argument::write(&self.y)? },
            Argument::value(u32::from(self.is_log)),
        ];
        plan.launch(("softmax", T::TYPE.name(), entry), rows.blocks(), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(FORWARD.0).with("x", &self.x).with("y", &self.y)
    }

    fn home(&self) -> StreamKey {
        self.y.home()
    }
}

impl<T: NetworkElement> Operation for SoftmaxBackward<T> {
    fn check(&self) -> Result<()> {
        Rows::of(BACKWARD, ("y", &self.y), ("columns", self.columns))?;
        BACKWARD.length_of(("dy", &self.dy), ("y", &self.y))?;
        BACKWARD.length_of(("dx", &self.dx), ("y", &self.y))?;
        BACKWARD.apart(("y", &self.y), ("dx", &self.dx))?;
        BACKWARD.apart(("dy", &self.dy), ("dx", &self.dx))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(BACKWARD, ("y", &self.y), ("columns", self.columns))?;
        if rows.rows == 0 {
            return Ok(());
        }
        let entry = if rows.are_short() { "softmax_backward_warp" } else { "softmax_backward_block" };
        let arguments = vec![
            Argument::read(&self.y)?,
            Argument::read(&self.dy)?,
            Argument::value(rows.rows),
            Argument::value(rows.columns),
            Argument::write(&self.dx)?,
            Argument::value(u32::from(self.is_log)),
        ];
        plan.launch(("softmax", T::TYPE.name(), entry), rows.blocks(), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(BACKWARD.0).with("y", &self.y).with("dy", &self.dy).with("dx", &self.dx)
    }

    fn home(&self) -> StreamKey {
        self.dx.home()
    }
}
