//! A perceptron with one hidden layer, and one step of its training on a rank.

use kiln::group::{DeviceCommunicator, GroupError};
use kiln::program::{Backend, Parameters, Program, ProgramValue, Read, ReadWrite, Typed, Write};
use kiln::{DeviceRuntime, Error, GpuRef};
use kiln_libs::blas::{Blas, Determinism, MatmulCall, Matrix};

use super::task::{BATCH_SAMPLES, CLASSES, INPUTS, SHARD_SAMPLES, SHARDS, Shard, number};

const HIDDEN: usize = 16;
/// Weights of the first layer, and of both.
const FIRST: usize = INPUTS * HIDDEN;
const WEIGHTS: usize = FIRST + HIDDEN * CLASSES;
/// What a shard gives: a gradient for each weight, and its share of the loss.
const SHARD_RESULTS: usize = WEIGHTS + 1;
const LEARNING_RATE: f32 = 0.5;
/// As many weights as are kept: those a step reads, those it writes, and those of the step before. A rank may be one step ahead of another, never two.
const KEPT: usize = 3;

/// Logits that become their gradients, targets, losses, the number of classes, and the size of the batch.
type CrossEntropy = (ReadWrite<f32>, Read<u32>, Write<f32>, ProgramValue<u64>, ProgramValue<f32>);
/// Weights, their gradients, the new weights, and the learning rate.
type Descend = (Read<f32>, Read<f32>, Write<f32>, ProgramValue<f32>);

/// The kernels of the model, with the types of their parameters.
struct Kernels {
    relu_backward: Typed<(Read<f32>, ReadWrite<f32>)>,
    cross_entropy: Typed<CrossEntropy>,
    sum_in_order: Typed<(Read<f32>, Write<f32>, ProgramValue<u64>)>,
    descend: Typed<Descend>,
}

/// The model on the device of one rank.
pub struct Model {
    kernels: Kernels,
    blas: Blas,
    /// Weights before step `n` are at `n % KEPT`.
    weights: Vec<GpuRef<f32>>,
    points: GpuRef<f32>,
    targets: GpuRef<u32>,
    active: GpuRef<f32>,
    logits: GpuRef<f32>,
    losses: GpuRef<f32>,
    hidden_gradient: GpuRef<f32>,
    /// What one shard gives. It is copied from here, so that a library sees the same addresses whatever the number of ranks.
    result: GpuRef<f32>,
    /// What all shards give, added up.
    total: GpuRef<f32>,
}

impl Model {
    /// A model with the same random weights on every rank.
    pub fn new(gpu: &DeviceRuntime) -> kiln::Result<Self> {
        let backend = Backend::over(gpu.clone());
        let kernels = Kernels {
            relu_backward: compile(&backend, include_str!("kernels/relu_backward.kir"))?,
            cross_entropy: compile(&backend, include_str!("kernels/cross_entropy.kir"))?,
            sum_in_order: compile(&backend, include_str!("kernels/sum_in_order.kir"))?,
            descend: compile(&backend, include_str!("kernels/descend.kir"))?,
        };
        let initial: Vec<f32> = (0..WEIGHTS).map(|at| number(2, at) * 0.5).collect();
        let weights = (0..KEPT).map(|_| gpu.upload(&initial)).collect::<kiln::Result<_>>()?;
        Ok(Self {
            kernels,
            blas: Blas::new(gpu),
            weights,
            points: gpu.zeros(SHARD_SAMPLES * INPUTS)?,
            targets: gpu.zeros(SHARD_SAMPLES)?,
            active: gpu.zeros(SHARD_SAMPLES * HIDDEN)?,
            logits: gpu.zeros(SHARD_SAMPLES * CLASSES)?,
            losses: gpu.zeros(SHARD_SAMPLES)?,
            hidden_gradient: gpu.zeros(SHARD_SAMPLES * HIDDEN)?,
            result: gpu.zeros(SHARD_RESULTS)?,
            total: gpu.zeros(SHARD_RESULTS)?,
        })
    }

    /// Makes memory usable again that was to be written behind a collective which was ended. All of it is computed anew, but for the weights of a step that was not done,
    /// which that step writes.
    pub fn renew(&self) -> kiln::Result<()> {
        let scratch =
            [&self.active, &self.logits, &self.losses, &self.hidden_gradient, &self.result, &self.total];
        let ended = self.weights.iter().chain(scratch).filter(|buffer| buffer.access().is_err());
        for buffer in ended {
            buffer.fill(0.0)?;
        }
        Ok(())
    }

    /// Does one step with all ranks, and returns the loss of the batch before it. `queued` is called when the collective is on its way.
    ///
    /// Each rank takes its shards of the batch. Their gradients are gathered and added in the order of the shards by a kernel. So no sum depends on the number of
    /// ranks, nor on how a library reduces: a gather moves bytes and adds nothing.
    pub fn step(
        &self,
        rank: &DeviceCommunicator,
        step: usize,
        queued: impl FnOnce(),
    ) -> Result<f32, GroupError> {
        let size = rank.size() as usize;
        let of_rank = SHARDS.div_ceil(size);
        let failed = |source: Error| GroupError::Rank { rank: rank.rank(), source };
        let gpu = rank.runtime();
        // A rank may have fewer shards than another; what it sends then ends in zeros that no sum reads.
        let mine = gpu.zeros::<f32>(of_rank * SHARD_RESULTS).map_err(failed)?;
        let all = gpu.zeros::<f32>(size * of_rank * SHARD_RESULTS).map_err(failed)?;
        let first = rank.rank() as usize * of_rank;
        for (at, shard) in (first..SHARDS.min(first + of_rank)).enumerate() {
            let place = mine.view(at * SHARD_RESULTS..(at + 1) * SHARD_RESULTS).map_err(failed)?;
            self.shard(step, shard, &place).map_err(failed)?;
        }
        rank.all_gather(&mine, &all).submit()?;
        queued();
        self.descend(step, &all).map_err(failed)
    }

    /// Queues the gradients and the loss of one shard.
    fn shard(&self, step: usize, shard: usize, into: &GpuRef<f32>) -> kiln::Result<()> {
        let Shard { points, targets } = Shard::of_step(step, shard);
        self.points.upload(&points)?;
        self.targets.upload(&targets)?;
        let weights = &self.weights[step % KEPT];
        let (first, second) = (weights.view(..FIRST)?, weights.view(FIRST..)?);
        let (first, second) = (rows(&first, INPUTS), rows(&second, HIDDEN));
        let (points, active) = (rows(&self.points, SHARD_SAMPLES), rows(&self.active, SHARD_SAMPLES));
        let (logits, back) = (rows(&self.logits, SHARD_SAMPLES), rows(&self.hidden_gradient, SHARD_SAMPLES));
        let (first_gradient, second_gradient) =
            (self.result.view(..FIRST)?, self.result.view(FIRST..WEIGHTS)?);

        product(self.blas.matmul(points, first, active).activation(kiln_libs::blas::Activation::Relu))?;
        product(self.blas.matmul(active, second, logits))?;
        let judged = (&self.logits, &self.targets, &self.losses, CLASSES as u64, BATCH_SAMPLES as f32);
        self.kernels.cross_entropy.call(judged).submit()?;
        product(self.blas.matmul(active.transposed(), logits, rows(&second_gradient, HIDDEN)))?;
        product(self.blas.matmul(logits, second.transposed(), back))?;
        self.kernels.relu_backward.call((&self.active, &self.hidden_gradient)).submit()?;
        product(self.blas.matmul(points.transposed(), back, rows(&first_gradient, INPUTS)))?;
        let loss = self.result.view(WEIGHTS..)?;
        self.kernels.sum_in_order.call((&self.losses, &loss, SHARD_SAMPLES as u64)).submit()?;
        into.copy_from(&self.result).map(drop)
    }

    /// Adds what all shards gave, and makes the weights of the next step. Returns the loss.
    fn descend(&self, step: usize, all: &GpuRef<f32>) -> kiln::Result<f32> {
        self.kernels.sum_in_order.call((all, &self.total, SHARDS as u64)).submit()?;
        let (old, new) = (&self.weights[step % KEPT], &self.weights[(step + 1) % KEPT]);
        let gradient = self.total.view(..WEIGHTS)?;
        self.kernels.descend.call((old, &gradient, new, LEARNING_RATE)).submit()?;
        Ok(self.total.view(WEIGHTS..)?.download()?.first().copied().unwrap_or(f32::NAN))
    }
}

/// A product whose bits are the same each time.
fn product(call: MatmulCall<'_, f32, f32>) -> kiln::Result<()> {
    call.determinism(Determinism::RunToRun).submit().map(drop)?;
    Ok(())
}

/// A buffer as a matrix with so many rows.
fn rows(buffer: &GpuRef<f32>, rows: usize) -> Matrix<'_, f32> {
    Matrix::new(buffer, rows, buffer.len() / rows)
}

/// Parses, verifies and loads one program, and checks that it has these parameters.
fn compile<P: Parameters>(backend: &Backend, text: &str) -> kiln::Result<Typed<P>> {
    backend.compile_typed(&Program::parse(text).map_err(Error::other)?)
}
