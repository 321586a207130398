//! A graph: work recorded once and replayed with one driver call.
//!
//! `cargo run -p kiln --example 07_graph` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::{
    DeviceRuntime, GpuRef, Kernel,
    graph::{GraphBuilder, NodeId},
};

/// `diffuse(to, from, c, n)`: one step of diffusion on a line.
const KERNELS: &str = include_str!("diffusion.ptx");

const LEN: u32 = 1000;
const BLOCK: u32 = 256;
/// Steps of one replay.
const STEPS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    let diffuse = gpu.kernel(KERNELS, "diffuse")?;

    // Recorded, not run: an upload, steps that go back and forth between two buffers, and a download. The second buffer is the
    // graph's own; it keeps its address and is freed with the graph.
    let line = gpu.allocate::<f32>(LEN as usize)?;
    let mut builder = gpu.graph();
    let other = builder.scratch::<f32>(LEN as usize)?;
    let start = spike(1.0);
    let input = builder.upload(&line, &start)?;
    let mut steps = Vec::new();
    for _ in 0..STEPS / 2 {
        steps.push(step(&mut builder, &diffuse, &line, &other, 0.25)?);
        steps.push(step(&mut builder, &diffuse, &other, &line, 0.25)?);
    }
    let output = builder.download(&line)?;
    let mut graph = builder.build()?;
    println!("{graph:?}");

    // One submission. It is ordered with everything else that uses its buffers, and so is its result.
    graph.replay()?;
    let first = on_host(&start, 0.25);
    assert_eq!(graph.output(&output)?, first);
    assert_eq!(line.download()?, first);

    // The same with other data: the input waits until the replay that reads it is done.
    graph.input(&input)?.copy_from_slice(&spike(8.0));
    let ticket = graph.replay()?;
    ticket.wait()?;
    assert_eq!(graph.output(&output)?, on_host(&spike(8.0), 0.25));

    // The same with another coefficient: each launch is changed in place, with the checks of a launch.
    for node in &steps {
        // SAFETY: the shape and the buffers stay, and the kernel touches what they have whatever the coefficient.
        unsafe { graph.update(*node)?.value(2, 0.125f32).apply()? };
    }
    graph.replay()?;
    assert_eq!(graph.output(&output)?, on_host(&spike(8.0), 0.125));

    // A change the graph's edges do not cover is refused: this copy and this fill run side by side.
    let [a, b, c] = [gpu.zeros::<u32>(8)?, gpu.zeros::<u32>(8)?, gpu.zeros::<u32>(8)?];
    let (mut beside, fill) = gpu.record(|builder| {
        builder.copy(&a, &b)?;
        builder.fill(&c, 7)
    })?;
    let refused = beside.update_fill(fill, &a, 7).err().ok_or("the copy reads it")?;
    println!("refused: {refused}");
    println!("{STEPS} steps of {LEN} elements are right, three times");
    Ok(())
}

/// Records one step.
fn step(
    builder: &mut GraphBuilder,
    diffuse: &Kernel,
    from: &GpuRef<f32>,
    to: &GpuRef<f32>,
    c: f32,
) -> kiln::Result<NodeId> {
    let mut launch = builder.launch(diffuse);
    launch.grid(LEN.div_ceil(BLOCK)).block(BLOCK).write(to).read(from).value(c).value(LEN);
    // SAFETY: diffuse touches the first `LEN` elements of both buffers, which both have, and ends.
    unsafe { launch.record() }
}

/// Nothing but a spike in the middle.
fn spike(height: f32) -> Vec<f32> {
    (0..LEN).map(|at| if at == LEN / 2 { height } else { 0.0 }).collect()
}

/// All steps, rounded as the kernel rounds.
fn on_host(start: &[f32], c: f32) -> Vec<f32> {
    let step = |line: Vec<f32>| {
        let mut next = line.clone();
        for (at, window) in line.windows(3).enumerate() {
            let bend = window[1].mul_add(-2.0, window[0] + window[2]);
            next[at + 1] = c.mul_add(bend, window[1]);
        }
        next
    };
    (0..STEPS).fold(start.to_vec(), |line, _| step(line))
}
