//! The cross entropy of rows with their labels, and its gradient.
//!
//! The kernels are programs of kiln-ir, the same bits on every device. A row belongs to a warp.

use kiln_mem::StreamKey;
use kiln_operation::ElementType;
use kiln_runtime::GpuRef;

use super::row_index::{RowIndex, single, stored, wide};
use super::row_launch_shape::{Rows, THREADS};
use super::tensor::NetworkElement;
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// A [`cross_entropy`](super::Dnn::cross_entropy).
#[derive(Clone, Debug)]
pub struct CrossEntropy<T, I> {
    pub(super) logits: GpuRef<T>,
    pub(super) classes: usize,
    pub(super) labels: GpuRef<I>,
    pub(super) losses: GpuRef<f32>,
}

/// A [`cross_entropy_backward`](super::Dnn::cross_entropy_backward).
#[derive(Clone, Debug)]
pub struct CrossEntropyBackward<T, I> {
    pub(super) logits: GpuRef<T>,
    pub(super) classes: usize,
    pub(super) labels: GpuRef<I>,
    pub(super) loss_gradients: GpuRef<f32>,
    pub(super) logit_gradients: GpuRef<T>,
}

const FORWARD: Check = Check("dnn.cross_entropy");
const BACKWARD: Check = Check("dnn.cross_entropy_backward");

/// Rows of a block.
const ROWS: u64 = THREADS as u64 / 32;

impl<T: NetworkElement, I: RowIndex> PrimitiveCall<'_, CrossEntropy<T, I>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of). Losses are `f32`.
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(FORWARD.0, ElementType::F32, self.operation.classes as u64))
    }
}

impl<T: NetworkElement, I: RowIndex> PrimitiveCall<'_, CrossEntropyBackward<T, I>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(BACKWARD.0, T::TYPE, self.operation.classes as u64))
    }
}

/// The greatest number of a row and the sum of the powers of distances from it, which all lanes know; and whether the label is a class. What lies behind the last
/// row is read as 0, and not written.
fn row_text<T: NetworkElement, I: RowIndex>() -> String {
    let (logit, label) = (single(T::TYPE.name(), "logits[start + at]"), wide::<I>("labels[row]"));
    format!(
        "let row = global.x / 32;
        let start = row * classes;
        let label = {label};
        let is_class = (label >= 0) & (u64(label) < classes);
        var most = f32#ff800000;
        for at in u64(lane)..classes step 32 {{
            most = max(most, {logit});
        }}
        let greatest = warp_max(most);
        var part = 0.0f32;
        for at in u64(lane)..classes step 32 {{
            part = part + exp({logit} - greatest);
        }}
        let sum = warp_add(part);"
    )
}

impl<T: NetworkElement, I: RowIndex> Operation for CrossEntropy<T, I> {
    fn check(&self) -> Result<()> {
        let rows = Rows::of(FORWARD, ("logits", &self.logits), ("classes", self.classes))?;
        FORWARD.length("labels", &self.labels, rows.rows as usize)?;
        FORWARD.length("losses", &self.losses, rows.rows as usize)?;
        FORWARD.apart(("logits", &self.logits), ("losses", &self.losses))?;
        FORWARD.apart(("labels", &self.labels), ("losses", &self.losses))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(FORWARD, ("logits", &self.logits), ("classes", self.classes))?;
        if rows.rows == 0 {
            return Ok(());
        }
        let (of, index) = (T::TYPE.name(), I::NAME);
        let name = format!("cross_entropy_{of}_{index}");
        let text = || {
            let chosen = single(of, "logits[start + select(is_class, u64(label), 0u64)]");
            format!(
                "kernel {name}(in logits: {of}[], in labels: {index}[], inout losses: f32[], classes: u64) block({THREADS}) {{
                {}
                let loss = log(sum) - ({chosen} - greatest);
                if lane == 0 {{
                    losses[row] = select(label < 0, 0.0f32, select(is_class, loss, f32#7fc00000));
                }}
            }}",
                row_text::<T, I>()
            )
        };
        let arguments = vec![
            Argument::read(&self.logits)?,
            Argument::value(self.logits.len() as u64),
            Argument::read(&self.labels)?,
            Argument::value(rows.rows),
            Argument::write(&self.losses)?,
            Argument::value(rows.rows),
            Argument::value(rows.columns),
        ];
        plan.launch_program((&name, text), rows.rows.div_ceil(ROWS), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(FORWARD.0)
            .with("logits", &self.logits)
            .with("labels", &self.labels)
            .with("losses", &self.losses)
    }

    fn home(&self) -> StreamKey {
        self.losses.home()
    }
}

impl<T: NetworkElement, I: RowIndex> Operation for CrossEntropyBackward<T, I> {
    fn check(&self) -> Result<()> {
        let rows = Rows::of(BACKWARD, ("logits", &self.logits), ("classes", self.classes))?;
        let result = ("logit_gradients", &self.logit_gradients);
        BACKWARD.length("labels", &self.labels, rows.rows as usize)?;
        BACKWARD.length("loss_gradients", &self.loss_gradients, rows.rows as usize)?;
        BACKWARD.length_of(result, ("logits", &self.logits))?;
        BACKWARD.apart(("logits", &self.logits), result)?;
        BACKWARD.apart(("labels", &self.labels), result)?;
        BACKWARD.apart(("loss_gradients", &self.loss_gradients), result)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(BACKWARD, ("logits", &self.logits), ("classes", self.classes))?;
        if rows.rows == 0 {
            return Ok(());
        }
        let (of, index) = (T::TYPE.name(), I::NAME);
        let name = format!("cross_entropy_backward_{of}_{index}");
        let text = || {
            let logit = single(of, "logits[start + at]");
            let gradient = stored(of, "select(label < 0, 0.0f32, select(is_class, gradient, f32#7fc00000))");
            format!(
                "kernel {name}(in logits: {of}[], in labels: {index}[], in loss_gradients: f32[], inout result: {of}[], classes: u64) block({THREADS}) {{
                {}
                let factor = loss_gradients[row];
                for at in u64(lane)..classes step 32 {{
                    let share = exp({logit} - greatest) / sum;
                    let gradient = factor * (share - select(at == u64(label), 1.0f32, 0.0f32));
                    result[start + at] = {gradient};
                }}
            }}",
                row_text::<T, I>()
            )
        };
        let arguments = vec![
            Argument::read(&self.logits)?,
            Argument::value(self.logits.len() as u64),
            Argument::read(&self.labels)?,
            Argument::value(rows.rows),
            Argument::read(&self.loss_gradients)?,
            Argument::value(rows.rows),
            Argument::write(&self.logit_gradients)?,
            Argument::value(self.logits.len() as u64),
            Argument::value(rows.columns),
        ];
        plan.launch_program((&name, text), rows.rows.div_ceil(ROWS), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(BACKWARD.0)
            .with("logits", &self.logits)
            .with("labels", &self.labels)
            .with("loss_gradients", &self.loss_gradients)
            .with("logit_gradients", &self.logit_gradients)
    }

    fn home(&self) -> StreamKey {
        self.logit_gradients.home()
    }
}
