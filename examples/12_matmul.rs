//! A matrix product by a library: cuBLASLt on a GPU, the CPU on the simulated device.
//!
//! `cargo run -p kiln-libs --example 12_matmul` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::blas::{Activation, Blas, Math, Matrix};
use kiln_libs::rand::{Normal, Sampler};

const M: usize = 64;
const K: usize = 96;
const N: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    let (a, b) = (gpu.allocate::<f32>(M * K)?, gpu.allocate::<f32>(K * N)?);
    let (bias, c) = (gpu.upload(&[0.5_f32; N])?, gpu.allocate::<f32>(M * N)?);
    let random = Sampler::new(gpu);
    random.draw(1).fill(&a, Normal { mean: 0.0, deviation: 1.0 })?;
    random.draw(2).fill(&b, Normal { mean: 0.0, deviation: 1.0 })?;

    // c = relu(a b + bias). Precision is a matter of the call, and not of the process.
    let blas = Blas::new(gpu);
    let product = || {
        blas.matmul(Matrix::new(&a, M, K), Matrix::new(&b, K, N), Matrix::new(&c, M, N))
            .bias(&bias)
            .activation(Activation::Relu)
            .math(Math::Tf32)
    };
    let operation = product().operation()?;
    println!("{operation}");
    println!("it takes {} bytes of workspace", product().load()?);
    product().submit()?;

    // The same by hand, and how far a device may be off.
    let (a, b, found) = (a.download()?, b.download()?, c.download()?);
    let tolerance = Tolerance::of(&operation);
    let mut worst: f64 = 0.0;
    for (at, found) in found.iter().enumerate() {
        let terms = (0..K).map(|k| f64::from(a[at / N * K + k]) * f64::from(b[k * N + at % N]));
        let (sum, magnitude) = terms.fold((0.5, 0.5), |(sum, of), term| (sum + term, of + term.abs()));
        let exact = sum.max(0.0);
        worst = worst.max((f64::from(*found) - exact).abs() / tolerance.bound(magnitude, exact));
    }
    println!("{} elements; the largest error is {:.1} % of the tolerance", found.len(), 100.0 * worst);
    assert!(worst <= 1.0, "a result is further off than the tolerance allows");

    // Recorded once, replayed as often as one likes.
    let mut graph = gpu.graph();
    product().record(&mut graph)?;
    let graph = graph.build()?;
    for _ in 0..100 {
        graph.replay()?;
    }
    assert_eq!(c.download()?, found);
    println!("100 replays of a graph give the same");
    Ok(())
}
