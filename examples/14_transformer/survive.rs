//! Training and generation that go on when the worker process of the device is lost.
//!
//! Memory that unfinished work was writing is lost with a worker; everything else is kept under the same handles. So nothing here is saved to the host:
//! training goes back to a checkpoint on the device, and generation reads the text it has once more, with the weights where they were.

use std::time::Duration;

use kiln::buffer::Stale;
use kiln::error::ErrorKind;
use kiln::recovery::{Phase, Status};
use kiln::{DeviceRuntime, Error, Result};

use super::generator::{Generator, Submission};
use super::queue::Device;
use super::shape::Shape;
use super::text::Batch;
use super::trainer::Trainer;
use super::weights::Weights;

/// Steps from one checkpoint to the next.
const CHECKPOINT_STEPS: usize = 5;
/// How long another worker may take.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(60);

/// Trains for so many steps, and returns the loss of each. `queued` is called with the number of each step whose work is on its way.
pub fn train<'d>(
    device: &'d Device,
    shape: Shape,
    text: &[u32],
    steps: usize,
    mut queued: impl FnMut(usize),
) -> Result<(Trainer<'d>, Vec<f32>)> {
    let (mut losses, mut checkpoint) = (Vec::new(), None);
    let mut advance = || -> Result<Trainer<'d>> {
        let mut trainer = match &checkpoint {
            None => Trainer::new(device, shape, 1)?,
            Some(checkpoint) => Trainer::restore(device, shape, checkpoint)?,
        };
        losses.truncate(trainer.steps());
        while trainer.steps() < steps {
            let at = trainer.steps();
            let batch = Batch::of_step(text, at, shape.batch, shape.context);
            losses.push(trainer.step(&batch, || queued(at))?);
            if trainer.steps().is_multiple_of(CHECKPOINT_STEPS) {
                checkpoint = Some(trainer.checkpoint()?);
            }
        }
        device.gpu.synchronize()?;
        Ok(trainer)
    };
    let trainer = loop {
        match advance() {
            Ok(trainer) => break trainer,
            Err(error) => await_worker(&device.gpu, error)?,
        }
    };
    Ok((trainer, losses))
}

/// Continues a text until it has `length` characters, or fills the context. `queued` is called with the number of characters when the work for the next is on its way.
pub fn generate(
    device: &Device,
    shape: &Shape,
    weights: &Weights,
    prompt: &[u32],
    length: usize,
    submission: Submission,
    mut queued: impl FnMut(usize),
) -> Result<Vec<u32>> {
    let (mut text, length) = (prompt.to_vec(), length.min(shape.context));
    while text.len() < length {
        let mut advance = || -> Result<()> {
            // After a loss this reads what is there already, which fills the cache again.
            let generator = Generator::new(device, shape, weights, &text, submission)?;
            for _ in 1..text.len() {
                generator.step()?;
            }
            while text.len() < length {
                generator.step()?;
                queued(text.len());
                text = generator.text()?;
            }
            Ok(())
        };
        if let Err(error) = advance() {
            await_worker(&device.gpu, error)?;
        }
    }
    Ok(text)
}

/// Waits until another worker has taken over. Returns the error if it has another reason, or if no worker comes: the device is in this process, or workers were
/// lost too often.
fn await_worker(gpu: &DeviceRuntime, error: Error) -> Result<()> {
    let is_lost_memory = matches!(error.kind(), ErrorKind::Stale(Stale::Lost));
    if !(error.is_lost() || error.is_retryable() || is_lost_memory) {
        return Err(error);
    }
    let settled = |status: &Status| status.phase() == Phase::Ready || status.phase().is_over();
    let status = gpu.watch().wait_until(settled, Some(TAKEOVER_LIMIT));
    if status.phase() == Phase::Ready { Ok(()) } else { Err(error) }
}
