//! The backward pass: the gradient of the mean loss for each weight, in the opposite order of the forward pass.

use kiln::{DeviceRuntime, GpuRef, Result};
use kiln_libs::blas::Matrix;

use super::forward::{
    Activations, LayerActivations, QkvViews, mixed_head, qkv_head, score_matrix, scores_of,
};
use super::queue::{Queue, rows};
use super::shape::Shape;
use super::weights::{LayerWeights, Weights};

/// What flows back through a layer. All layers use the same memory, one after the other.
pub struct BackwardMemory {
    /// The gradient of the rows between two layers.
    rows: GpuRef<f32>,
    /// The gradient of normed rows, and later of mixed values.
    normed: GpuRef<f32>,
    /// Each row's share of the gradient of a gain.
    gains: GpuRef<f32>,
    qkv: GpuRef<f32>,
    scores: GpuRef<f32>,
    up: GpuRef<f32>,
    /// A row of characters for each token.
    one_hot: GpuRef<f32>,
    /// As many ones as there are rows: a product with them is a sum over rows.
    ones: GpuRef<f32>,
}

impl BackwardMemory {
    /// Memory for a batch.
    pub fn new(gpu: &DeviceRuntime, shape: &Shape) -> Result<Self> {
        let n = shape.rows();
        let wide = |times: usize| gpu.allocate::<f32>(n * shape.width * times);
        Ok(Self {
            rows: wide(1)?,
            normed: wide(1)?,
            gains: wide(1)?,
            qkv: wide(3)?,
            scores: gpu.allocate(shape.heads * n * shape.context)?,
            up: wide(4)?,
            one_hot: gpu.allocate(n * shape.vocabulary)?,
            ones: gpu.upload(&vec![1.0; n])?,
        })
    }
}

/// One backward pass: what it reads, and where it writes.
pub struct Backward<'b> {
    pub shape: &'b Shape,
    pub weights: &'b Weights,
    pub gradients: &'b Weights,
    pub state: &'b Activations,
    pub memory: &'b BackwardMemory,
}

impl Backward<'_> {
    /// Computes all gradients. The logits of the state have become the gradient of the logits.
    pub fn run(&self, queue: &mut Queue<'_>, tokens: &GpuRef<u32>) -> Result<()> {
        let (n, width, memory, state) = (self.shape.rows(), self.shape.width, self.memory, self.state);
        let (weights, gradients) = (self.weights, self.gradients);
        let dlogits = rows(&state.logits, n);
        queue.matmul(rows(&state.normed, n).transposed(), dlogits, rows(&gradients.head, width))?;
        queue.matmul(dlogits, rows(&weights.head, width).transposed(), rows(&memory.normed, n))?;
        queue.clear(&memory.rows)?;
        let norm = Norm { input: &state.output, factor: &state.factor, gain: &weights.norm };
        self.norm(queue, &norm, &gradients.norm)?;
        let layers = state.layers.iter().zip(&weights.layers).zip(&gradients.layers);
        for ((layer, weights), gradients) in layers.rev() {
            self.perceptron(queue, layer, weights, gradients)?;
            self.attention(queue, layer, weights, gradients)?;
        }
        self.embedding(queue, tokens)
    }

    /// Adds the gradient of `memory.normed` to that of the rows, and sums that of the gain.
    fn norm(&self, queue: &mut Queue<'_>, norm: &Norm<'_>, gain: &GpuRef<f32>) -> Result<()> {
        let (n, memory) = (self.shape.rows(), self.memory);
        let Norm { input, factor, gain: weight } = norm;
        let call = (*input, *weight, *factor, &memory.normed, &memory.rows, &memory.gains);
        queue.run(queue.kernels().rms_norm_backward.call(call).grid(n as u32))?;
        queue.matmul(rows(&memory.ones, 1), rows(&memory.gains, n), rows(gain, 1))
    }

    fn perceptron(
        &self,
        queue: &mut Queue<'_>,
        layer: &LayerActivations,
        weights: &LayerWeights,
        gradients: &LayerWeights,
    ) -> Result<()> {
        let (n, width, memory) = (self.shape.rows(), self.shape.width, self.memory);
        let (drows, dup) = (rows(&memory.rows, n), rows(&memory.up, n));
        queue.matmul(rows(&layer.active, n).transposed(), drows, rows(&gradients.down, 4 * width))?;
        queue.matmul(drows, rows(&weights.down, 4 * width).transposed(), dup)?;
        queue.run(queue.kernels().gelu_backward.call((&layer.up, &memory.up)))?;
        queue.matmul(rows(&layer.perceptron_normed, n).transposed(), dup, rows(&gradients.up, width))?;
        queue.matmul(dup, rows(&weights.up, width).transposed(), rows(&memory.normed, n))?;
        let norm =
            Norm { input: &layer.middle, factor: &layer.perceptron_factor, gain: &weights.perceptron_norm };
        self.norm(queue, &norm, &gradients.perceptron_norm)
    }

    fn attention(
        &self,
        queue: &mut Queue<'_>,
        layer: &LayerActivations,
        weights: &LayerWeights,
        gradients: &LayerWeights,
    ) -> Result<()> {
        let (n, width, memory) = (self.shape.rows(), self.shape.width, self.memory);
        let drows = rows(&memory.rows, n);
        queue.matmul(rows(&layer.mixed, n).transposed(), drows, rows(&gradients.mix, width))?;
        queue.matmul(drows, rows(&weights.mix, width).transposed(), rows(&memory.normed, n))?;
        self.heads(queue, layer)?;
        let dqkv = rows(&memory.qkv, n);
        queue.matmul(rows(&layer.attention_normed, n).transposed(), dqkv, rows(&gradients.qkv, width))?;
        queue.matmul(dqkv, rows(&weights.qkv, width).transposed(), rows(&memory.normed, n))?;
        let norm =
            Norm { input: &layer.input, factor: &layer.attention_factor, gain: &weights.attention_norm };
        self.norm(queue, &norm, &gradients.attention_norm)
    }

    /// From the gradient of mixed values, in `memory.normed`, to that of queries, keys and values.
    fn heads(&self, queue: &mut Queue<'_>, layer: &LayerActivations) -> Result<()> {
        let (shape, memory) = (self.shape, self.memory);
        for head in 0..shape.heads {
            let [_, _, value] = QkvViews::new(shape, &layer.qkv, head)?.0;
            let [_, _, dvalue] = QkvViews::new(shape, &memory.qkv, head)?.0;
            let mixed = memory.normed.view(head * shape.head_width()..)?;
            let dmixed = mixed_head(shape, &mixed);
            let (scores, probabilities) =
                (scores_of(shape, &memory.scores, head)?, scores_of(shape, &layer.probabilities, head)?);
            let probabilities = score_matrix(shape, &probabilities);
            queue.matmul(dmixed, qkv_head(shape, &value).transposed(), score_matrix(shape, &scores))?;
            queue.matmul(probabilities.transposed(), dmixed, qkv_head(shape, &dvalue))?;
        }
        let softmax = (&layer.probabilities, &memory.scores, shape.context as u64, shape.score_scale());
        let queries = (shape.heads * shape.rows()) as u32;
        queue.run(queue.kernels().softmax_backward.call(softmax).grid(queries))?;
        for head in 0..shape.heads {
            let [query, key, _] = QkvViews::new(shape, &layer.qkv, head)?.0;
            let [dquery, dkey, _] = QkvViews::new(shape, &memory.qkv, head)?.0;
            let scores = scores_of(shape, &memory.scores, head)?;
            let dscores = score_matrix(shape, &scores);
            queue.matmul(dscores, qkv_head(shape, &key), qkv_head(shape, &dquery))?;
            queue.matmul(dscores.transposed(), qkv_head(shape, &query), qkv_head(shape, &dkey))?;
        }
        Ok(())
    }

    /// Sums over the rows of each character and of each position.
    fn embedding(&self, queue: &mut Queue<'_>, tokens: &GpuRef<u32>) -> Result<()> {
        let (shape, memory, gradients) = (self.shape, self.memory, self.gradients);
        let n = shape.rows();
        let one_hot = (tokens, &memory.one_hot, shape.vocabulary as u64);
        queue.run(queue.kernels().one_hot.call(one_hot))?;
        let drows = rows(&memory.rows, n);
        queue.matmul(
            rows(&memory.one_hot, n).transposed(),
            drows,
            rows(&gradients.embedding, shape.vocabulary),
        )?;
        let ones = Matrix::new(&memory.ones, 1, shape.batch);
        queue.matmul(ones, rows(&memory.rows, shape.batch), rows(&gradients.positions, 1))
    }
}

/// A norm of the forward pass.
struct Norm<'n> {
    input: &'n GpuRef<f32>,
    factor: &'n GpuRef<f32>,
    gain: &'n GpuRef<f32>,
}
