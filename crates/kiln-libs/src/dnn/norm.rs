//! Normalisation of rows.

use kiln_mem::StreamKey;
use kiln_runtime::{Element, GpuRef};

use super::row_launch_shape::{Rows, THREADS};
use super::tensor::NetworkElement;
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// What is added to the mean square before its root is taken, unless a call says otherwise.
pub(super) const EPSILON: f32 = 1e-5;

/// A [`layer_norm`](super::Dnn::layer_norm) or [`rms_norm`](super::Dnn::rms_norm).
#[derive(Clone, Debug)]
pub struct Norm<T> {
    pub(super) x: GpuRef<T>,
    pub(super) columns: usize,
    pub(super) y: GpuRef<T>,
    /// Whether the mean is subtracted.
    pub(super) is_centred: bool,
    pub(super) weight: Option<GpuRef<T>>,
    pub(super) bias: Option<GpuRef<T>>,
    pub(super) epsilon: f32,
    pub(super) means: Option<GpuRef<f32>>,
    pub(super) scales: Option<GpuRef<f32>>,
}

impl<T: NetworkElement> PrimitiveCall<'_, Norm<T>> {
    /// Multiplies each column with an element of this. It has the type of the input.
    pub fn weight(mut self, weight: &GpuRef<T>) -> Self {
        self.operation.weight = Some(weight.clone());
        self
    }

    /// Adds an element of this to each column. It has the type of the input.
    pub fn bias(mut self, bias: &GpuRef<T>) -> Self {
        self.operation.bias = Some(bias.clone());
        self
    }

    /// What is added to the variance (layer norm) or the mean square (RMS norm) before its root is taken; 1e-5 unless something else is said.
    pub fn epsilon(mut self, epsilon: f32) -> Self {
        self.operation.epsilon = epsilon;
        self
    }

    /// Writes the mean of each row, which the gradient of a layer norm needs. An RMS norm has none and is refused with them.
    pub fn means(mut self, means: &GpuRef<f32>) -> Self {
        self.operation.means = Some(means.clone());
        self
    }

    /// Writes the factor of each row, which gradients need: `1 / √(variance + epsilon)`, of an RMS norm `1 / √(mean of squares + epsilon)`.
    pub fn scales(mut self, scales: &GpuRef<f32>) -> Self {
        self.operation.scales = Some(scales.clone());
        self
    }
}

impl<T: NetworkElement> PrimitiveCall<'_, Norm<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        self.operation.check()?;
        Ok(KernelOperation::sum(self.operation.name().0, T::TYPE, self.operation.columns as u64))
    }
}

/// A buffer that is read, or none.
pub(super) fn read_some<T: Element>(buffer: Option<&GpuRef<T>>) -> Result<Argument> {
    buffer.map_or(Ok(Argument::Null), Argument::read)
}

impl<T: NetworkElement> Norm<T> {
    fn name(&self) -> Check {
        Check(if self.is_centred { "dnn.layer_norm" } else { "dnn.rms_norm" })
    }
}

impl<T: NetworkElement> Operation for Norm<T> {
    fn check(&self) -> Result<()> {
        let check = self.name();
        let rows = Rows::of(check, ("x", &self.x), ("columns", self.columns))?;
        check.length_of(("y", &self.y), ("x", &self.x))?;
        check.apart(("x", &self.x), ("y", &self.y))?;
        if !(self.epsilon >= 0.0 && self.epsilon.is_finite()) {
            return check.refuse(format!("an epsilon of {}", self.epsilon), "use a small positive number");
        }
        if self.means.is_some() && !self.is_centred {
            return check.refuse(
                "means, which this norm does not compute".to_owned(),
                "leave them out, or use `layer_norm`",
            );
        }
        for (name, vector) in [("weight", &self.weight), ("bias", &self.bias)] {
            let Some(vector) = vector else { continue };
            check.length(name, vector, self.columns)?;
            check.apart((name, vector), ("y", &self.y))?;
        }
        for (name, numbers) in [("means", &self.means), ("scales", &self.scales)] {
            let Some(numbers) = numbers else { continue };
            check.length(name, numbers, rows.rows as usize)?;
            check.apart((name, numbers), ("x", &self.x))?;
            check.apart((name, numbers), ("y", &self.y))?;
            for (vector_name, vector) in [("weight", &self.weight), ("bias", &self.bias)] {
                let Some(vector) = vector else { continue };
                check.apart((name, numbers), (vector_name, vector))?;
            }
        }
        match (&self.means, &self.scales) {
            (Some(means), Some(scales)) => check.apart(("means", means), ("scales", scales)),
            _ => Ok(()),
        }
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(self.name(), ("x", &self.x), ("columns", self.columns))?;
        if rows.rows == 0 {
            return Ok(());
        }
        let arguments = vec![
            Argument::read(&self.x)?,
            read_some(self.weight.as_ref())?,
            read_some(self.bias.as_ref())?,
            Argument::value(rows.rows),
            Argument::value(rows.columns),
            Argument::value(self.epsilon),
            Argument::value(u32::from(self.is_centred)),
            Argument::write(&self.y)?,
            Argument::write_some(self.means.as_ref())?,
            Argument::write_some(self.scales.as_ref())?,
        ];
        let entry = if rows.are_short() { "norm_warp" } else { "norm_block" };
        plan.launch(("norm", T::TYPE.name(), entry), rows.blocks(), THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(self.name().0)
            .with("x", &self.x)
            .with("y", &self.y)
            .with_some("weight", self.weight.as_ref())
            .with_some("bias", self.bias.as_ref())
            .with_some("means", self.means.as_ref())
            .with_some("scales", self.scales.as_ref())
    }

    fn home(&self) -> StreamKey {
        self.y.home()
    }
}
