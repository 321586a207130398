//! The matrix product of cudarc's examples, twice: by a kernel, as it is there, and by a library call.
//!
//! `cargo run -p kiln-libs --example port_cudarc_matmul` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::DeviceRuntime;
use kiln::program::{Backend, Program, ProgramValue, Read, Typed, Write};
use kiln_libs::blas::{Blas, Matrix};

/// Rows and columns.
const N: usize = 2;
/// Threads of a block, along each side.
const TILE: usize = 16;

/// A thread for each element. A store outside of `c` would do nothing; the comparison is there for the columns past the end, which are elements of the next row.
const MATMUL: &str = "
kernel matmul(in a: f32[], in b: f32[], out c: f32[], n: u64) block(16, 16) {
    let row = global.y;
    let column = global.x;
    var sum = 0.0f32;
    for i in 0..n { sum = fma(a[row * n + i], b[i * n + column], sum); }
    if (row < n) & (column < n) { c[row * n + column] = sum; }
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
    let b = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
    let (by_kernel, by_library) = (gpu.allocate::<f32>(N * N)?, gpu.allocate::<f32>(N * N)?);

    // By a kernel. Its parameters are types, so that what does not fit them does not compile.
    type Matmul = Typed<(Read<f32>, Read<f32>, Write<f32>, ProgramValue<u64>)>;
    let matmul: Matmul = Backend::over(gpu.clone()).compile_typed(&Program::parse(MATMUL)?)?;
    let blocks = N.div_ceil(TILE) as u32;
    matmul.call((&a, &b, &by_kernel, N as u64)).grid([blocks, blocks]).submit()?;
    println!("by a kernel:  {:?}", by_kernel.download()?);

    // By a library: cuBLASLt on a GPU.
    let blas = Blas::new(gpu);
    let square = |buffer| Matrix::new(buffer, N, N);
    blas.matmul(square(&a), square(&b), square(&by_library)).submit()?;
    println!("by a library: {:?}", by_library.download()?);
    assert_eq!(by_kernel.download()?, [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(by_library.download()?, [7.0, 10.0, 15.0, 22.0]);

    // Shapes that do not fit are refused before anything is queued.
    let wrong = blas.matmul(square(&a), Matrix::new(&b, 4, 1), square(&by_library)).submit();
    println!("refused: {}", wrong.err().ok_or("shapes that do not fit were accepted")?);
    Ok(())
}
