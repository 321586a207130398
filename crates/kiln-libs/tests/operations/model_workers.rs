//! Training and generation of the example's model when the worker process is killed in the middle: losses and text are those of an undisturbed run.

use kiln::DeviceRuntime;
use kiln::recovery::{DeviceSpec, Process};

use crate::model::generator::Submission;
use crate::model::queue::Device;
use crate::model::shape::Shape;
use crate::model::survive;
use crate::model::text::{TEXT, Vocabulary};
use crate::rig::{in_worker, process};

const STEPS: usize = 12;

/// Trains and generates; kills the worker at these steps, and at this character.
fn run(gpu: &DeviceRuntime, kill_steps: &[usize], kill_character: Option<usize>) -> (Vec<f32>, Vec<u32>) {
    let (device, vocabulary) = (Device::new(gpu).unwrap(), Vocabulary::of(TEXT));
    let shape = Shape { context: 8, layers: 1, ..Shape::small(vocabulary.len()) };
    let mut left = kill_steps.to_vec();
    let kill = || gpu.isolated_device().unwrap().kill_worker();
    let (trainer, losses) = survive::train(&device, shape, &vocabulary.encode(TEXT), STEPS, |step| {
        if left.first() == Some(&step) {
            left.remove(0);
            kill();
        }
    })
    .unwrap();
    let prompt = vocabulary.encode("the");
    let mut kill_character = kill_character;
    let text =
        survive::generate(&device, &shape, trainer.weights(), &prompt, 8, Submission::Graph, |length| {
            if kill_character == Some(length) {
                kill_character = None;
                kill();
            }
        })
        .unwrap();
    assert!(left.is_empty() && kill_character.is_none(), "a worker was not killed");
    (losses, text)
}

fn check(device: &DeviceSpec) {
    let expected = run(&in_worker(device, process()), &[], None);
    assert_eq!((expected.0.len(), expected.1.len()), (STEPS, 8));
    // In the first step, right behind a checkpoint, twice on the way to the next one, and in the last step.
    let plans: [(&[usize], usize); 4] = [(&[0], 3), (&[5], 5), (&[6, 8], 7), (&[STEPS - 1], 4)];
    for (at, (steps, character)) in plans.into_iter().enumerate() {
        let gpu = in_worker(device, Process { standby: at % 2 == 0, ..process() });
        assert_eq!(run(&gpu, steps, Some(character)), expected, "killed at {steps:?} and {character}");
        assert_eq!(gpu.post_mortems().len(), steps.len() + 1);
    }
}

#[test]
fn training_and_generation_go_on_when_a_worker_is_killed() {
    check(&DeviceSpec::simulated(3));
}

#[test]
fn training_and_generation_on_a_gpu_go_on_when_a_worker_is_killed() {
    let label = "training_and_generation_on_a_gpu_go_on_when_a_worker_is_killed";
    match kiln::probe::gpu_for_test(label).unwrap() {
        kiln::probe::TestGate::Ready(_) => check(&DeviceSpec::cuda(0)),
        kiln::probe::TestGate::Skipped(absence) => println!("skipped: {absence}"),
    }
}
