//! Memory on a device: get it, look at it, give it back.
//!
//! `cargo run -p kiln --example 01_allocate` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::DeviceRuntime;
use kiln::memory::AllocTag;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One runtime per device and process. It owns the memory, the streams and the order of work.
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    println!("memory comes from: {}", gpu.memory());

    // Room for a million numbers, with nothing known of their values, and a thousand zeros.
    let big = gpu.allocate::<f32>(1_000_000)?;
    let zeros = gpu.zeros::<f64>(1_000)?;
    println!("{big:?}\n{zeros:?}");
    assert_eq!(zeros.download()?, vec![0.0; 1_000]);

    // A handle is small and can be cloned, sent and shared; all clones are the same memory.
    let again = big.clone();
    assert_eq!(again.block_id(), big.block_id());

    // A view is a handle of a part; a cast is the same bytes as another type. Neither copies.
    let middle = big.view(250_000..750_000)?;
    middle.fill(1.5)?;
    let words = middle.cast::<u32>()?;
    assert_eq!(words.view(..1)?.download()?, [1.5f32.to_bits()]);
    println!("{middle:?} and as words: {words:?}");

    // No elements are an ordinary case.
    assert!(gpu.upload::<u8>(&[])?.download()?.is_empty());

    // What is allocated under a tag is counted under it.
    let weights = gpu.allocate_tagged::<u8>(gpu.main_stream(), 1 << 20, AllocTag::new("weights")?)?;
    println!("outstanding with {} bytes of weights: {} bytes", weights.bytes(), gpu.bytes_outstanding());

    // What cannot be had is an error that says so, and nothing has changed.
    let too_large = gpu.allocate::<u64>(usize::MAX).err().ok_or("no device holds that much")?;
    let past_the_end = big.view(0..1_000_001).err().ok_or("the view ends past the buffer")?;
    println!("refused: {too_large}\nrefused: {past_the_end}");

    // The last handle frees the memory after the last work that uses it, without waiting.
    drop((big, again, middle, words, zeros, weights));
    gpu.synchronize()?;
    gpu.reap_pending()?;
    println!("outstanding at the end: {} bytes", gpu.bytes_outstanding());
    assert_eq!(gpu.bytes_outstanding(), 0);
    Ok(())
}
