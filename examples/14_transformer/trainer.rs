//! Training: one step after the other, and checkpoints to go back to.

use kiln::{GpuRef, Result};

use super::backward::{Backward, BackwardMemory};
use super::forward::{Activations, attend_batch, forward};
use super::queue::Device;
use super::shape::Shape;
use super::text::Batch;
use super::weights::{Weights, weight_count};

/// How fast weights change.
const LEARNING_RATE: f32 = 0.01;
/// How much of a weight is taken off at each step, before the learning rate.
const WEIGHT_DECAY: f32 = 0.01;

/// A model that is being trained.
pub struct Trainer<'d> {
    device: &'d Device,
    shape: Shape,
    weights: Weights,
    gradients: Weights,
    /// Running means of the gradients, and of their squares.
    moments: [GpuRef<f32>; 2],
    state: Activations,
    memory: BackwardMemory,
    tokens: GpuRef<u32>,
    targets: GpuRef<u32>,
    losses: GpuRef<f32>,
    loss: GpuRef<f32>,
    steps: usize,
}

/// A copy of what training changes, on the device. The memory of a device in a worker process outlives the worker.
pub struct Checkpoint {
    /// Steps that were done.
    pub steps: usize,
    weights: GpuRef<f32>,
    moments: [GpuRef<f32>; 2],
}

impl<'d> Trainer<'d> {
    /// A model with random weights.
    pub fn new(device: &'d Device, shape: Shape, seed: u64) -> Result<Self> {
        let count = weight_count(&shape);
        let moments = [device.gpu.zeros(count)?, device.gpu.zeros(count)?];
        Self::with(device, shape, Weights::random(&device.gpu, &shape, seed)?, moments, 0)
    }

    /// The model of a checkpoint. Everything that it writes is new memory, so it does not matter what became of the old.
    pub fn restore(device: &'d Device, shape: Shape, from: &Checkpoint) -> Result<Self> {
        let copied = |from: &GpuRef<f32>| -> Result<GpuRef<f32>> {
            let to = device.gpu.allocate(from.len())?;
            to.copy_from(from)?;
            Ok(to)
        };
        let weights = Weights::over(&shape, &copied(&from.weights)?)?;
        let [mean, square] = &from.moments;
        Self::with(device, shape, weights, [copied(mean)?, copied(square)?], from.steps)
    }

    fn with(
        device: &'d Device,
        shape: Shape,
        weights: Weights,
        moments: [GpuRef<f32>; 2],
        steps: usize,
    ) -> Result<Self> {
        let (gpu, n) = (&device.gpu, shape.rows());
        Ok(Self {
            device,
            shape,
            weights,
            gradients: Weights::over(&shape, &gpu.zeros(weight_count(&shape))?)?,
            moments,
            state: Activations::new(gpu, &shape, n)?,
            memory: BackwardMemory::new(gpu, &shape)?,
            tokens: gpu.allocate(n)?,
            targets: gpu.allocate(n)?,
            losses: gpu.allocate(n)?,
            loss: gpu.allocate(1)?,
            steps,
        })
    }

    /// The weights as they are.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The gradients of the last step.
    #[allow(dead_code, reason = "the tests compare them")]
    pub fn gradients(&self) -> &Weights {
        &self.gradients
    }

    /// Steps that were done.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Queues the loss of a batch and its gradients.
    pub fn differentiate(&self, batch: &Batch) -> Result<()> {
        let Self { shape, weights, gradients, state, memory, .. } = self;
        self.tokens.upload(&batch.tokens)?;
        self.targets.upload(&batch.targets)?;
        let mut queue = self.device.queue();
        forward(&mut queue, shape, weights, &self.tokens, state, |queue, _, layer| {
            attend_batch(queue, shape, &state.first, layer)
        })?;
        let judged = (&state.logits, &self.targets, &self.losses, shape.vocabulary as u64);
        queue.run(self.device.kernels.cross_entropy.call(judged).grid(shape.rows() as u32))?;
        queue.sum(&self.losses, &self.loss)?;
        Backward { shape, weights, gradients, state, memory }.run(&mut queue, &self.tokens)
    }

    /// The mean loss of the batch that was differentiated last.
    pub fn loss(&self) -> Result<f32> {
        Ok(self.loss.download()?.first().copied().unwrap_or(f32::NAN) / self.shape.rows() as f32)
    }

    /// Does one step and returns its loss; the weights may still be changing then. `queued` is called when all work of the step is on its way to the device.
    pub fn step(&mut self, batch: &Batch, queued: impl FnOnce()) -> Result<f32> {
        self.differentiate(batch)?;
        let done = self.steps as i32 + 1;
        let (mean_known, square_known) = (1.0 - 0.9_f32.powi(done), 1.0 - 0.99_f32.powi(done));
        let [mean, square] = &self.moments;
        let (weights, gradients) = (&self.weights.all, &self.gradients.all);
        let update =
            (weights, gradients, mean, square, LEARNING_RATE, WEIGHT_DECAY, mean_known, square_known);
        self.device.queue().run(self.device.kernels.adamw.call(update))?;
        queued();
        let loss = self.loss()?;
        self.steps += 1;
        Ok(loss)
    }

    /// Copies what training changes, and waits until the copies are whole.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let copied = |from: &GpuRef<f32>| -> Result<GpuRef<f32>> {
            let to = self.device.gpu.allocate(from.len())?;
            to.copy_from(from)?.wait()?;
            Ok(to)
        };
        let [mean, square] = &self.moments;
        let moments = [copied(mean)?, copied(square)?];
        Ok(Checkpoint { steps: self.steps, weights: copied(&self.weights.all)?, moments })
    }
}
