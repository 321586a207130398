//! Training of the example's model: losses and gradients against plain Rust, updates, and losses that fall.

use kiln::DeviceRuntime;

use crate::model::queue::Device;
use crate::model::shape::Shape;
use crate::model::survive;
use crate::model::text::{Batch, TEXT, Vocabulary};
use crate::model::trainer::Trainer;
use crate::model::weights::{ranges, weight_count};
use crate::model_reference::Reference;
use crate::rig::everywhere;

/// Half of the distance over which a loss is differentiated.
const STEP: f64 = 1e-4;

const TINY: Shape = Shape { vocabulary: 7, context: 5, width: 8, heads: 2, layers: 2, batch: 3 };

fn batch(shape: &Shape, seed: u32) -> Batch {
    let made_up = |salt: u32| {
        (0..shape.rows() as u32).map(move |at| (at * at + seed * at + salt) % shape.vocabulary as u32)
    };
    Batch { tokens: made_up(seed).collect(), targets: made_up(3 * seed + 1).collect() }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// Every gradient is the slope of the loss, as it is found by changing the weight a little.
fn check_gradients(gpu: &DeviceRuntime) {
    let device = Device::new(gpu).unwrap();
    let (trainer, batch) = (Trainer::new(&device, TINY, 3).unwrap(), batch(&TINY, 5));
    trainer.differentiate(&batch).unwrap();
    let mut weights = wide(&trainer.weights().all.download().unwrap());
    let gradients = trainer.gradients().all.download().unwrap();
    let loss = |weights: &[f64]| Reference::new(TINY, weights).loss(&batch);
    let (found, exact) = (f64::from(trainer.loss().unwrap()), loss(&weights));
    assert!((found - exact).abs() < 1e-5, "the loss is {exact}, and {found} was computed");
    for (part, range) in ranges(&TINY).into_iter().enumerate() {
        let mut largest: f64 = 0.0;
        for at in range {
            let weight = weights[at];
            weights[at] = weight + STEP;
            let above = loss(&weights);
            weights[at] = weight - STEP;
            let slope = (above - loss(&weights)) / (2.0 * STEP);
            weights[at] = weight;
            let found = f64::from(gradients[at]);
            assert!(
                (found - slope).abs() < 1e-5 + 1e-4 * slope.abs(),
                "weight {at} in part {part}: the slope is {slope}, and {found} was computed"
            );
            largest = largest.max(slope.abs());
        }
        assert!(largest > 1e-3, "part {part} has no slope to check");
    }
}

#[test]
fn gradients_of_the_model_are_the_slopes_of_its_loss() {
    everywhere("gradients_of_the_model_are_the_slopes_of_its_loss", check_gradients);
}

/// Three steps, each against the formula of AdamW with the gradients that the device had.
fn check_updates(gpu: &DeviceRuntime) {
    let device = Device::new(gpu).unwrap();
    let mut trainer = Trainer::new(&device, TINY, 4).unwrap();
    let count = weight_count(&TINY);
    let (mut mean, mut square) = (vec![0.0; count], vec![0.0; count]);
    for step in 1..4 {
        let before = wide(&trainer.weights().all.download().unwrap());
        trainer.step(&batch(&TINY, step), || {}).unwrap();
        let after = wide(&trainer.weights().all.download().unwrap());
        let gradients = wide(&trainer.gradients().all.download().unwrap());
        for at in 0..count {
            mean[at] = 0.9 * mean[at] + 0.1 * gradients[at];
            square[at] = 0.99 * square[at] + 0.01 * gradients[at] * gradients[at];
            let corrected = mean[at] / (1.0 - 0.9_f64.powi(step as i32));
            let deviation = (square[at] / (1.0 - 0.99_f64.powi(step as i32))).sqrt();
            let expected = before[at] - 0.01 * (0.01 * before[at] + corrected / (deviation + 1e-8));
            assert!(
                (after[at] - expected).abs() < 1e-6,
                "step {step}, weight {at} is {}, and should be {expected}",
                after[at]
            );
        }
    }
}

#[test]
fn updates_of_the_model_follow_adamw() {
    everywhere("updates_of_the_model_follow_adamw", check_updates);
}

#[test]
fn training_makes_the_loss_fall() {
    everywhere("training_makes_the_loss_fall", |gpu| {
        let (device, vocabulary) = (Device::new(gpu).unwrap(), Vocabulary::of(TEXT));
        let shape = Shape::small(vocabulary.len());
        let (_, losses) = survive::train(&device, shape, &vocabulary.encode(TEXT), 20, |_| {}).unwrap();
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        let (first, last) = (mean(&losses[..5]), mean(&losses[15..]));
        assert!(last < 0.8 * first, "{losses:?}");
    });
}
