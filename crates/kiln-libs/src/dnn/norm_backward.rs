//! Gradients of the normalisation of rows.

use kiln_mem::StreamKey;
use kiln_runtime::GpuRef;

use super::norm::read_some;
use super::row_launch_shape::{Rows, THREADS};
use super::tensor::NetworkElement;
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// Rows that one thread adds at least, and parts at most: fixed, so that sums are the same on every device.
const PART_ROWS: u64 = 32;
const MAX_PARTS: u64 = 128;

/// A [`layer_norm_backward`](super::Dnn::layer_norm_backward) or [`rms_norm_backward`](super::Dnn::rms_norm_backward).
#[derive(Clone, Debug)]
pub struct NormBackward<T> {
    pub(super) x: GpuRef<T>,
    pub(super) dy: GpuRef<T>,
    pub(super) columns: usize,
    /// Of the forward pass; a layer norm has them.
    pub(super) means: Option<GpuRef<f32>>,
    pub(super) scales: GpuRef<f32>,
    pub(super) dx: GpuRef<T>,
    pub(super) weight: Option<GpuRef<T>>,
    pub(super) weight_gradient: Option<GpuRef<T>>,
    pub(super) bias_gradient: Option<GpuRef<T>>,
}

impl<T: NetworkElement> PrimitiveCall<'_, NormBackward<T>> {
    /// The weight of the forward pass.
    pub fn weight(mut self, weight: &GpuRef<T>) -> Self {
        self.operation.weight = Some(weight.clone());
        self
    }

    /// Writes the gradient of the weight.
    pub fn weight_gradient(mut self, gradient: &GpuRef<T>) -> Self {
        self.operation.weight_gradient = Some(gradient.clone());
        self
    }

    /// Writes the gradient of the bias.
    pub fn bias_gradient(mut self, gradient: &GpuRef<T>) -> Self {
        self.operation.bias_gradient = Some(gradient.clone());
        self
    }
}

impl<T: NetworkElement> PrimitiveCall<'_, NormBackward<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of): one bound for all results, whose sums go over columns or rows.
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        let call = &self.operation;
        call.check()?;
        let terms = call.columns.max(call.scales.len());
        Ok(KernelOperation::sum(call.name().0, T::TYPE, terms as u64))
    }
}

impl<T: NetworkElement> NormBackward<T> {
    fn name(&self) -> Check {
        Check(if self.means.is_some() { "dnn.layer_norm_backward" } else { "dnn.rms_norm_backward" })
    }

    fn results(&self) -> impl Iterator<Item = (&'static str, &GpuRef<T>)> {
        let gradients = [("weight_gradient", &self.weight_gradient), ("bias_gradient", &self.bias_gradient)];
        let gradients = gradients.into_iter().filter_map(|(name, buffer)| Some((name, buffer.as_ref()?)));
        std::iter::once(("dx", &self.dx)).chain(gradients)
    }

    /// The gradients of weight and bias: sums over parts of the rows, and then over the parts.
    fn plan_weights(&self, plan: &mut Plan<'_>, rows: Rows) -> Result<()> {
        let part_rows = rows.rows.div_ceil(MAX_PARTS).max(PART_ROWS);
        let parts = rows.rows.div_ceil(part_rows);
        let weight_parts = plan.scratch::<f32>(parts * rows.columns)?;
        let bias_parts = match self.bias_gradient {
            Some(_) => Some(plan.scratch::<f32>(parts * rows.columns)?),
            None => None,
        };
        let arguments = vec![
            Argument::read(&self.x)?,
            Argument::read(&self.dy)?,
            read_some(self.means.as_ref())?,
            Argument::read(&self.scales)?,
            Argument::value(rows.rows),
            Argument::value(rows.columns),
            Argument::value(part_rows),
            Argument::write(&weight_parts)?,
            Argument::write_some(bias_parts.as_ref())?,
        ];
        let (of, tiles) = (T::TYPE.name(), rows.columns.div_ceil(u64::from(THREADS)));
        plan.launch(("norm", of, "norm_weights_parts"), tiles * parts, THREADS, arguments)?;
        let sums = [
            (self.weight_gradient.as_ref(), Some(&weight_parts)),
            (self.bias_gradient.as_ref(), bias_parts.as_ref()),
        ];
        for (result, parts_of) in sums {
            let (Some(result), Some(parts_of)) = (result, parts_of) else { continue };
            let arguments = vec![
                Argument::read(parts_of)?,
                Argument::value(parts),
                Argument::value(rows.columns),
                Argument::write(result)?,
            ];
            plan.launch(("norm", of, "norm_weights"), tiles, THREADS, arguments)?;
        }
        Ok(())
    }
}

impl<T: NetworkElement> Operation for NormBackward<T> {
    fn check(&self) -> Result<()> {
        let check = self.name();
        let rows = Rows::of(check, ("x", &self.x), ("columns", self.columns))?;
        check.length_of(("dy", &self.dy), ("x", &self.x))?;
        check.length_of(("dx", &self.dx), ("x", &self.x))?;
        let vectors = [
            ("weight", &self.weight),
            ("weight_gradient", &self.weight_gradient),
            ("bias_gradient", &self.bias_gradient),
        ];
        for (name, vector) in vectors {
            vector.as_ref().map_or(Ok(()), |vector| check.length(name, vector, self.columns))?;
        }
        check.length("scales", &self.scales, rows.rows as usize)?;
        let means = self.means.as_ref();
        means.map_or(Ok(()), |means| check.length("means", means, rows.rows as usize))?;
        let results: Vec<_> = self.results().collect();
        for (at, (name, result)) in results.iter().enumerate() {
            check.apart((name, result), ("x", &self.x))?;
            check.apart((name, result), ("dy", &self.dy))?;
            check.apart((name, result), ("scales", &self.scales))?;
            means.map_or(Ok(()), |means| check.apart((name, result), ("means", means)))?;
            let weight = self.weight.as_ref();
            weight.map_or(Ok(()), |weight| check.apart((name, result), ("weight", weight)))?;
            for (other_name, other) in &results[at + 1..] {
                check.apart((name, result), (other_name, other))?;
            }
        }
        Ok(())
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let rows = Rows::of(self.name(), ("x", &self.x), ("columns", self.columns))?;
        if rows.rows == 0 {
            // Sums over no rows.
            for (_, result) in self.results() {
                plan.zero(result)?;
            }
            return Ok(());
        }
        let arguments = vec![
            Argument::read(&self.x)?,
            Argument::read(&self.dy)?,
            read_some(self.weight.as_ref())?,
            read_some(self.means.as_ref())?,
            Argument::read(&self.scales)?,
            Argument::value(rows.rows),
            Argument::value(rows.columns),
            Argument::write(&self.dx)?,
        ];
        let entry = if rows.are_short() { "norm_backward_warp" } else { "norm_backward_block" };
        plan.launch(("norm", T::TYPE.name(), entry), rows.blocks(), THREADS, arguments)?;
        if self.weight_gradient.is_some() || self.bias_gradient.is_some() {
            self.plan_weights(plan, rows)?;
        }
        Ok(())
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(self.name().0)
            .with("x", &self.x)
            .with("dy", &self.dy)
            .with_some("means", self.means.as_ref())
            .with("scales", &self.scales)
            .with("dx", &self.dx)
            .with_some("weight", self.weight.as_ref())
            .with_some("weight_gradient", self.weight_gradient.as_ref())
            .with_some("bias_gradient", self.bias_gradient.as_ref())
    }

    fn home(&self) -> StreamKey {
        self.dx.home()
    }
}
