//! Generation: one character after the other, with a cache of keys and values. A character is one replay of a graph.

use kiln::{GpuRef, Graph, Result};
use kiln_libs::blas::Matrix;

use super::forward::{Activations, LayerActivations, forward};
use super::queue::{Device, Queue};
use super::shape::Shape;
use super::weights::Weights;

/// How the work of a character gets to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submission {
    /// Recorded once, and replayed for each character.
    Graph,
    /// Submitted call by call.
    CallByCall,
}

/// A text that grows on the device: position, text and cache are there, and a step needs nothing from the host.
pub struct Generator<'w> {
    device: &'w Device,
    weights: &'w Weights,
    memory: Memory,
    graph: Option<Graph>,
}

/// What a step changes.
struct Memory {
    /// The sizes, for a batch of one text.
    shape: Shape,
    prompt: usize,
    /// The prompt, and what was generated behind it.
    text: GpuRef<u32>,
    /// For one row; its first position is that of the character the next step reads.
    state: Activations,
    caches: Vec<Cache>,
    best: GpuRef<u64>,
}

/// Keys and values of one layer, a row for each position.
struct Cache {
    keys: GpuRef<f32>,
    values: GpuRef<f32>,
}

impl<'w> Generator<'w> {
    /// Begins a text with a prompt.
    pub fn new(
        device: &'w Device,
        shape: &Shape,
        weights: &'w Weights,
        prompt: &[u32],
        submission: Submission,
    ) -> Result<Self> {
        let gpu = &device.gpu;
        let mut text = prompt.to_vec();
        text.resize(shape.context, 0);
        let cache = || {
            Ok(Cache {
                keys: gpu.zeros(shape.context * shape.width)?,
                values: gpu.zeros(shape.context * shape.width)?,
            })
        };
        let memory = Memory {
            shape: Shape { batch: 1, ..*shape },
            prompt: prompt.len(),
            text: gpu.upload(&text)?,
            state: Activations::new(gpu, shape, 1)?,
            caches: (0..shape.layers).map(|_| cache()).collect::<Result<_>>()?,
            best: gpu.allocate(1)?,
        };
        let graph = match submission {
            Submission::CallByCall => None,
            Submission::Graph => {
                let mut builder = gpu.graph();
                memory.queue_step(&mut device.record(&mut builder), weights)?;
                Some(builder.build()?)
            }
        };
        Ok(Self { device, weights, memory, graph })
    }

    /// Queues one step: reads the character at the position, and puts the next one behind it unless the prompt has one there.
    pub fn step(&self) -> Result<()> {
        match &self.graph {
            Some(graph) => graph.replay().map(drop),
            None => self.memory.queue_step(&mut self.device.queue(), self.weights),
        }
    }

    /// The text so far, once the steps that were queued are done.
    pub fn text(&self) -> Result<Vec<u32>> {
        let position = self.memory.state.first.download()?.first().copied().unwrap_or(0) as usize;
        let mut text = self.memory.text.download()?;
        text.truncate(self.memory.prompt.max(position + 1));
        Ok(text)
    }

    /// The logits of the last step.
    #[allow(dead_code, reason = "the tests compare them")]
    pub fn logits(&self) -> Result<Vec<f32>> {
        self.memory.state.logits.download()
    }
}

impl Memory {
    fn queue_step(&self, queue: &mut Queue<'_>, weights: &Weights) -> Result<()> {
        forward(queue, &self.shape, weights, &self.text, &self.state, |queue, at, layer| {
            self.attend(queue, layer, &self.caches[at])
        })?;
        queue.arg_max(&self.state.logits, &self.best)?;
        let taken = (&self.best, &self.text, &self.state.first, self.prompt as u32);
        queue.run(queue.kernels().take_token.call(taken).grid(1))
    }

    /// Attention of one character over the cache. The products are over the whole cache, so that each step is the same work; what lies behind the
    /// position counts for nothing.
    fn attend(&self, queue: &mut Queue<'_>, layer: &LayerActivations, cache: &Cache) -> Result<()> {
        let Shape { context, width, heads, .. } = self.shape;
        let (head, kernels, position) = (self.shape.head_width(), queue.kernels(), &self.state.first);
        let query = layer.qkv.view(..width)?;
        queue.run(kernels.store_row.call((&layer.qkv.view(width..2 * width)?, position, &cache.keys)))?;
        queue.run(kernels.store_row.call((&layer.qkv.view(2 * width..)?, position, &cache.values)))?;
        // Of each head: its columns of the query, of the cache, and of what comes out.
        let one = |row| Matrix::new(row, 1, head).batch(heads).stride(head);
        let all = |rows| Matrix::new(rows, context, head).leading(width).batch(heads).stride(head);
        let weights = Matrix::new(&layer.probabilities, 1, context).batch(heads);
        queue.matmul(one(&query), all(&cache.keys).transposed(), weights)?;
        let softmax = (&layer.probabilities, position, 1, context as u64, self.shape.score_scale());
        queue.run(kernels.causal_softmax.call(softmax).grid(heads as u32))?;
        queue.matmul(weights, all(&cache.values), one(&layer.mixed))
    }
}
