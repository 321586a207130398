//! The forward pass: from characters to the logits of the next ones.

use kiln::{DeviceRuntime, GpuRef, Result};
use kiln_libs::blas::Matrix;

use super::queue::{Queue, rows};
use super::shape::Shape;
use super::weights::{LayerWeights, Weights};

/// What the layers compute for some rows, kept for the backward pass.
pub struct Activations {
    /// Rows: a batch of texts in training, one character in generation.
    pub rows: usize,
    /// The position of the first row.
    pub first: GpuRef<u32>,
    pub layers: Vec<LayerActivations>,
    /// What the last layer gives.
    pub output: GpuRef<f32>,
    pub normed: GpuRef<f32>,
    pub factor: GpuRef<f32>,
    pub logits: GpuRef<f32>,
}

/// The same for one layer.
pub struct LayerActivations {
    pub input: GpuRef<f32>,
    pub attention_normed: GpuRef<f32>,
    pub attention_factor: GpuRef<f32>,
    /// Queries, keys and values.
    pub qkv: GpuRef<f32>,
    /// Head after head: how much each query takes of each key.
    pub probabilities: GpuRef<f32>,
    pub mixed: GpuRef<f32>,
    /// The input and what the attention adds to it.
    pub middle: GpuRef<f32>,
    pub perceptron_normed: GpuRef<f32>,
    pub perceptron_factor: GpuRef<f32>,
    pub up: GpuRef<f32>,
    pub active: GpuRef<f32>,
}

impl Activations {
    /// Memory for so many rows.
    pub fn new(gpu: &DeviceRuntime, shape: &Shape, rows: usize) -> Result<Self> {
        let wide = |times: usize| gpu.allocate::<f32>(rows * shape.width * times);
        let mut layers = Vec::new();
        for _ in 0..shape.layers {
            layers.push(LayerActivations {
                input: wide(1)?,
                attention_normed: wide(1)?,
                attention_factor: gpu.allocate(rows)?,
                qkv: wide(3)?,
                probabilities: gpu.allocate(shape.heads * rows * shape.context)?,
                mixed: wide(1)?,
                middle: wide(1)?,
                perceptron_normed: wide(1)?,
                perceptron_factor: gpu.allocate(rows)?,
                up: wide(4)?,
                active: wide(4)?,
            });
        }
        let (output, normed, factor) = (wide(1)?, wide(1)?, gpu.allocate(rows)?);
        let logits = gpu.allocate(rows * shape.vocabulary)?;
        Ok(Self { rows, first: gpu.zeros(1)?, layers, output, normed, factor, logits })
    }

    /// Where the output of a layer goes: to the next one, or out.
    fn output_of(&self, layer: usize) -> &GpuRef<f32> {
        self.layers.get(layer + 1).map_or(&self.output, |next| &next.input)
    }
}

/// Computes the logits of some tokens. `attend` mixes the values of a layer: over a batch in training, over a cache in generation.
pub fn forward(
    queue: &mut Queue<'_>,
    shape: &Shape,
    weights: &Weights,
    tokens: &GpuRef<u32>,
    state: &Activations,
    attend: impl Fn(&mut Queue<'_>, usize, &LayerActivations) -> Result<()>,
) -> Result<()> {
    let (kernels, n) = (queue.kernels(), state.rows);
    let first = state.layers.first().map_or(&state.output, |layer| &layer.input);
    let embedded = (tokens, &state.first, &weights.embedding, &weights.positions, first, shape.width as u64);
    queue.run(kernels.embed.call(embedded))?;
    for (at, (layer, weights)) in state.layers.iter().zip(&weights.layers).enumerate() {
        let normed =
            (&layer.input, &weights.attention_norm, &layer.attention_normed, &layer.attention_factor);
        queue.run(kernels.rms_norm.call(normed).grid(n as u32))?;
        queue.matmul(
            rows(&layer.attention_normed, n),
            rows(&weights.qkv, shape.width),
            rows(&layer.qkv, n),
        )?;
        attend(queue, at, layer)?;
        queue.copy(&layer.input, &layer.middle)?;
        queue.matmul_add(rows(&layer.mixed, n), rows(&weights.mix, shape.width), rows(&layer.middle, n))?;
        perceptron(queue, shape, weights, layer, state.output_of(at), n)?;
    }
    let normed = (&state.output, &weights.norm, &state.normed, &state.factor);
    queue.run(kernels.rms_norm.call(normed).grid(n as u32))?;
    queue.matmul(rows(&state.normed, n), rows(&weights.head, shape.width), rows(&state.logits, n))
}

/// The second half of a layer.
fn perceptron(
    queue: &mut Queue<'_>,
    shape: &Shape,
    weights: &LayerWeights,
    layer: &LayerActivations,
    output: &GpuRef<f32>,
    n: usize,
) -> Result<()> {
    let kernels = queue.kernels();
    let normed =
        (&layer.middle, &weights.perceptron_norm, &layer.perceptron_normed, &layer.perceptron_factor);
    queue.run(kernels.rms_norm.call(normed).grid(n as u32))?;
    queue.matmul(rows(&layer.perceptron_normed, n), rows(&weights.up, shape.width), rows(&layer.up, n))?;
    queue.run(kernels.gelu.call((&layer.up, &layer.active)))?;
    queue.copy(&layer.middle, output)?;
    queue.matmul_add(rows(&layer.active, n), rows(&weights.down, 4 * shape.width), rows(output, n))
}

/// Attention over a batch: each character takes from itself and from those before it.
pub fn attend_batch(
    queue: &mut Queue<'_>,
    shape: &Shape,
    first: &GpuRef<u32>,
    layer: &LayerActivations,
) -> Result<()> {
    for head in 0..shape.heads {
        let [query, key, _] = QkvViews::new(shape, &layer.qkv, head)?.0;
        let scores = scores_of(shape, &layer.probabilities, head)?;
        queue.matmul(
            qkv_head(shape, &query),
            qkv_head(shape, &key).transposed(),
            score_matrix(shape, &scores),
        )?;
    }
    let (queries, keys) = (shape.context as u64, shape.context as u64);
    let softmax = (&layer.probabilities, first, queries, keys, shape.score_scale());
    let queries_of_all = (shape.heads * shape.rows()) as u32;
    queue.run(queue.kernels().causal_softmax.call(softmax).grid(queries_of_all))?;
    for head in 0..shape.heads {
        let [_, _, value] = QkvViews::new(shape, &layer.qkv, head)?.0;
        let probabilities = scores_of(shape, &layer.probabilities, head)?;
        let mixed = layer.mixed.view(head * shape.head_width()..)?;
        queue.matmul(
            score_matrix(shape, &probabilities),
            qkv_head(shape, &value),
            mixed_head(shape, &mixed),
        )?;
    }
    Ok(())
}

/// Queries, keys and values of one head, as views that begin at its columns.
pub struct QkvViews(pub [GpuRef<f32>; 3]);

impl QkvViews {
    pub fn new(shape: &Shape, qkv: &GpuRef<f32>, head: usize) -> Result<Self> {
        let column = |part: usize| qkv.view(part * shape.width + head * shape.head_width()..);
        Ok(Self([column(0)?, column(1)?, column(2)?]))
    }
}

/// The columns of a head in queries, keys or values: a matrix for each text of the batch.
pub fn qkv_head<'v>(shape: &Shape, view: &'v GpuRef<f32>) -> Matrix<'v, f32> {
    let (row, text) = (3 * shape.width, 3 * shape.width * shape.context);
    Matrix::new(view, shape.context, shape.head_width()).leading(row).batch(shape.batch).stride(text)
}

/// The columns of a head in the mixed values.
pub fn mixed_head<'v>(shape: &Shape, view: &'v GpuRef<f32>) -> Matrix<'v, f32> {
    let (row, text) = (shape.width, shape.width * shape.context);
    Matrix::new(view, shape.context, shape.head_width()).leading(row).batch(shape.batch).stride(text)
}

/// The scores or probabilities of a head.
pub fn scores_of(shape: &Shape, all: &GpuRef<f32>, head: usize) -> Result<GpuRef<f32>> {
    let count = shape.rows() * shape.context;
    all.view(head * count..(head + 1) * count)
}

/// A matrix of queries and keys for each text of the batch.
pub fn score_matrix<'v>(shape: &Shape, scores: &'v GpuRef<f32>) -> Matrix<'v, f32> {
    Matrix::new(scores, shape.context, shape.context).batch(shape.batch)
}
