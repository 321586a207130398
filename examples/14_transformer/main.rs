//! A small transformer that learns a text, character by character, and continues it.
//!
//! `cargo run --release -p kiln-libs --example 14_transformer` runs on the GPU where there is one, and on the simulated device otherwise. With `-- large` the
//! model is one for a GPU, and `-- large 300` trains it for 300 steps.
//!
//! Products, sums and random numbers are those of `kiln_libs`; the rest are twelve kernels of the model, written as programs of kiln. The files in
//! reading order: `shape`, `text`, `weights`, `kernels`, `queue`, `forward`, `backward`, `trainer`, `generator`, `survive`.
//!
//! The device lives in a worker process. Both training and generation run twice, and the second time the worker is killed in the middle: losses and text are the same.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]
#![allow(unreachable_pub, reason = "what a module shows to the others is `pub`, as in a library")]

mod backward;
mod forward;
mod generator;
mod kernels;
mod queue;
mod shape;
mod survive;
mod text;
mod trainer;
mod weights;

use std::time::Instant;

use generator::Submission;
use kiln::recovery::{Isolation, Process};
use kiln::{DeviceRuntime, RuntimeConfig};
use queue::Device;
use shape::Shape;
use text::{TEXT, Vocabulary};

/// Steps of training, unless the second argument says another number.
const STEPS: usize = 30;
/// What the model is asked to continue.
const PROMPT: &str = "the c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In the worker process this serves and never returns.
    kiln::worker_entry();

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let vocabulary = Vocabulary::of(TEXT);
    let shape = match arguments.first().map(String::as_str) {
        Some("large") => Shape::large(vocabulary.len()),
        _ => Shape::small(vocabulary.len()),
    };
    let steps = arguments.get(1).map_or(Ok(STEPS), |steps| steps.parse())?;
    let gpu = open()?;
    println!("{gpu:?}\n{shape:?}");
    let device = Device::new(&gpu)?;
    let text = vocabulary.encode(TEXT);

    let started = Instant::now();
    let (trained, losses) = survive::train(&device, shape, &text, steps, |_| {})?;
    report(&losses, started);
    let (_, disturbed) = survive::train(&device, shape, &text, steps, kill_once(&gpu, steps / 2))?;
    assert_eq!(disturbed, losses, "training that lost its worker took another way");
    println!("the same losses when the worker is killed at step {}", steps / 2);

    let prompt = vocabulary.encode(PROMPT);
    let generate = |submission, queued: &mut dyn FnMut(usize)| {
        survive::generate(&device, &shape, trained.weights(), &prompt, shape.context, submission, queued)
    };
    let continued = generate(Submission::Graph, &mut |_| {})?;
    println!("{:?}", vocabulary.decode(&continued));
    assert_eq!(generate(Submission::CallByCall, &mut |_| {})?, continued, "a graph gave another text");
    println!("the same text without a graph");
    let mut kill = kill_once(&gpu, shape.context / 2);
    assert_eq!(generate(Submission::Graph, &mut kill)?, continued, "generation that lost its worker");
    println!("the same text when the worker is killed at character {}", shape.context / 2);
    println!("{} workers were lost", gpu.post_mortems().len());
    Ok(())
}

/// The device in a worker process, with another one ready.
fn open() -> kiln::Result<DeviceRuntime> {
    let device = kiln::probe::worker_device()?;
    let isolation = Isolation::Process(Process { standby: true, ..Process::default() });
    DeviceRuntime::open(&device, RuntimeConfig { isolation, ..RuntimeConfig::default() })
}

/// Kills the worker the first time it is called with this number: work is then queued, and not yet done.
fn kill_once(gpu: &DeviceRuntime, number: usize) -> impl FnMut(usize) + '_ {
    let mut is_killed = false;
    move |at| {
        if at == number && !std::mem::replace(&mut is_killed, true) {
            gpu.isolated_device().into_iter().for_each(|device| device.kill_worker());
        }
    }
}

/// Prints some of the losses.
fn report(losses: &[f32], started: Instant) {
    for (step, loss) in losses.iter().enumerate().step_by((losses.len() / 6).max(1)) {
        println!("step {step:3}: loss {loss:.3}");
    }
    let last = losses.last().copied().unwrap_or(f32::NAN);
    println!("after {} steps: loss {last:.3}, in {:.1} s", losses.len(), started.elapsed().as_secs_f64());
}
