//! Generation by the example's model: against plain Rust, with a graph and without one.

use kiln::DeviceRuntime;
use kiln::telemetry::Count;

use crate::model::generator::{Generator, Submission};
use crate::model::queue::Device;
use crate::model::shape::Shape;
use crate::model::survive;
use crate::model::weights::Weights;
use crate::model_reference::Reference;
use crate::rig::everywhere;

const SHAPE: Shape = Shape { vocabulary: 11, context: 12, width: 16, heads: 4, layers: 2, batch: 2 };
const PROMPT: [u32; 3] = [3, 10, 0];
/// How far logits of the device may be from those of plain Rust.
const TOLERANCE: f64 = 1e-4;

/// Each character is the best one behind those before it, or one that is as good as the best.
fn check_text(gpu: &DeviceRuntime, submission: Submission) -> Vec<u32> {
    let device = Device::new(gpu).unwrap();
    let weights = Weights::random(gpu, &SHAPE, 6).unwrap();
    let numbers: Vec<f64> = weights.all.download().unwrap().into_iter().map(f64::from).collect();
    let reference = Reference::new(SHAPE, &numbers);
    let generator = Generator::new(&device, &SHAPE, &weights, &PROMPT, submission).unwrap();
    assert_eq!(generator.text().unwrap(), PROMPT);
    for position in 0..SHAPE.context - 1 {
        generator.step().unwrap();
        let (text, found) = (generator.text().unwrap(), generator.logits().unwrap());
        assert_eq!(text.len(), PROMPT.len().max(position + 2));
        let exact = reference.logits(&text[..=position]).pop().unwrap();
        for (found, exact) in found.iter().zip(&exact) {
            assert!((f64::from(*found) - exact).abs() < TOLERANCE, "position {position}: {found} {exact}");
        }
        let best = exact.iter().copied().fold(f64::MIN, f64::max);
        if position + 1 >= PROMPT.len() {
            assert!(exact[text[position + 1] as usize] > best - TOLERANCE, "position {position}: {text:?}");
        }
    }
    let text = generator.text().unwrap();
    assert_eq!(text[..3], PROMPT);
    text
}

#[test]
fn a_generated_text_is_the_most_likely_one() {
    everywhere("a_generated_text_is_the_most_likely_one", |gpu| {
        let replayed = check_text(gpu, Submission::Graph);
        assert_eq!(check_text(gpu, Submission::CallByCall), replayed);
        assert!(
            replayed[3..].iter().any(|token| *token != replayed[3]),
            "a text of one character shows little"
        );
    });
}

#[test]
fn a_character_is_one_replay_and_no_launch() {
    kiln::testing::check(0..1, |gpu| {
        let device = Device::new(gpu)?;
        let weights = Weights::random(gpu, &SHAPE, 6)?;
        let generator = Generator::new(&device, &SHAPE, &weights, &PROMPT, Submission::Graph)?;
        let before = gpu.telemetry().snapshot();
        (0..5).try_for_each(|_| generator.step())?;
        let seen = gpu.telemetry().snapshot().since(&before);
        assert_eq!((seen.count(Count::Replays), seen.count(Count::Launches)), (5, 0));
        let text = survive::generate(&device, &SHAPE, &weights, &PROMPT, 8, Submission::Graph, |_| {})?;
        assert_eq!(text[..6], generator.text()?);
        Ok(())
    })
    .unwrap();
}
