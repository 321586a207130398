//! Cross entropy and embeddings: programs of kiln-ir, the same on every device.

use kiln_runtime::GpuRef;

use super::cross_entropy::{CrossEntropy, CrossEntropyBackward};
use super::embedding::{Embedding, EmbeddingBackward};
use super::handle::Dnn;
use super::row_index::RowIndex;
use super::tensor::NetworkElement;
use crate::prims::PrimitiveCall;

impl Dnn {
    /// `loss = log Σ exp(x) - x[label]` for each row of `classes` logits, in `f32`.
    ///
    /// A label below 0 is left out: its loss is 0. A label that is no class otherwise has a loss of NaN, and so has a row with NaN or infinity.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::dnn::Dnn;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let dnn = Dnn::new(&gpu);
    /// let logits = gpu.upload(&[0.0_f32, 0.0, 0.0, 0.0])?; // two rows of two classes
    /// let (labels, losses) = (gpu.upload(&[1_i32, -1])?, gpu.allocate::<f32>(2)?);
    /// dnn.cross_entropy(&logits, 2, &labels, &losses).submit()?;
    /// let found = losses.download()?;
    /// assert!((found[0] - 2.0_f32.ln()).abs() < 1e-6 && found[1] == 0.0);
    ///
    /// let ones = gpu.upload(&[1.0_f32; 2])?; // the gradient of the sum of all losses
    /// let gradients = gpu.allocate::<f32>(4)?;
    /// dnn.cross_entropy_backward(&logits, 2, &labels, &ones, &gradients).submit()?;
    /// assert_eq!(gradients.download()?, [0.5, -0.5, 0.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cross_entropy<T: NetworkElement, I: RowIndex>(
        &self,
        logits: &GpuRef<T>,
        classes: usize,
        labels: &GpuRef<I>,
        losses: &GpuRef<f32>,
    ) -> PrimitiveCall<'_, CrossEntropy<T, I>> {
        let (logits, labels, losses) = (logits.clone(), labels.clone(), losses.clone());
        PrimitiveCall::new(&self.kernels, CrossEntropy { logits, classes, labels, losses })
    }

    /// The gradients of the logits of a [`cross_entropy`](Self::cross_entropy), of those of the losses: `dx = dl (softmax(x) - [label])`. Rows without a label have
    /// gradients of 0, and rows whose label is no class of NaN.
    pub fn cross_entropy_backward<T: NetworkElement, I: RowIndex>(
        &self,
        logits: &GpuRef<T>,
        classes: usize,
        labels: &GpuRef<I>,
        loss_gradients: &GpuRef<f32>,
        logit_gradients: &GpuRef<T>,
    ) -> PrimitiveCall<'_, CrossEntropyBackward<T, I>> {
        let (logits, labels) = (logits.clone(), labels.clone());
        let (loss_gradients, logit_gradients) = (loss_gradients.clone(), logit_gradients.clone());
        let operation = CrossEntropyBackward { logits, classes, labels, loss_gradients, logit_gradients };
        PrimitiveCall::new(&self.kernels, operation)
    }

    /// Rows of a table of rows of `columns` elements: row `i` of the result is the row of the table that index `i` names. An index that is no row gives a row of
    /// NaN.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::dnn::Dnn;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let dnn = Dnn::new(&gpu);
    /// let table = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?; // two rows of two
    /// let (indices, rows) = (gpu.upload(&[1_i64, 0, 1])?, gpu.allocate::<f32>(6)?);
    /// dnn.embedding(&table, 2, &indices, &rows).submit()?;
    /// assert_eq!(rows.download()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    ///
    /// let gradients = gpu.allocate::<f32>(4)?;
    /// dnn.embedding_backward(&indices, 2, &rows, &gradients).submit()?;
    /// assert_eq!(gradients.download()?, [1.0, 2.0, 6.0, 8.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn embedding<T: NetworkElement, I: RowIndex>(
        &self,
        table: &GpuRef<T>,
        columns: usize,
        indices: &GpuRef<I>,
        rows: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Embedding<T, I>> {
        let (table, indices, rows) = (table.clone(), indices.clone(), rows.clone());
        PrimitiveCall::new(&self.kernels, Embedding { table, columns, indices, rows })
    }

    /// The gradients of the table of an [`embedding`](Self::embedding), of those of its rows: for each row of the table the sum of all rows that it was chosen for, added in `f32` in
    /// their order. Rows that were not chosen get 0. Indices that are no row are left out.
    pub fn embedding_backward<T: NetworkElement, I: RowIndex>(
        &self,
        indices: &GpuRef<I>,
        columns: usize,
        row_gradients: &GpuRef<T>,
        table_gradients: &GpuRef<T>,
    ) -> PrimitiveCall<'_, EmbeddingBackward<T, I>> {
        let indices = indices.clone();
        let (row_gradients, table_gradients) = (row_gradients.clone(), table_gradients.clone());
        let operation = EmbeddingBackward { indices, columns, row_gradients, table_gradients };
        PrimitiveCall::new(&self.kernels, operation)
    }
}
