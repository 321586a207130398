//! Matrix products through cudarc's `CudaBlasLT`, as B1 of `kiln-bench` measures them: one JSON object a line, for its `--peers`.
//!
//! A host without a GPU or without cuBLASLt is a line that begins with `absent:` and not a failure.

mod product;
#[path = "../../peers/row.rs"]
mod row;

use std::panic::catch_unwind;

use half::bf16;

use crate::product::Product;

type Failure = Box<dyn std::error::Error>;

/// The name in rows, and in rows that are missing.
const PEER: &str = "cudarc";
/// Rows and columns of matrices whose calls are timed on the host, and of those that are timed on the device.
const CALL_SIZES: [usize; 2] = [64, 1024];
const DEVICE_SIZES: [usize; 5] = [64, 512, 1024, 4096, 16_384];

fn main() {
    // What is loaded at run time and not found is a panic in cudarc.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(measure);
    let why = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure.to_string(),
        Err(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "a panic without words".to_owned(),
        },
    };
    row::absent(PEER, &why.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn measure() -> Result<(), Failure> {
    for n in CALL_SIZES {
        let calls = Product::<bf16>::new(n, true)?.call_time()?;
        row::print(&format!("b1.bf16.{n}.call"), PEER, calls, "ns");
    }
    for n in DEVICE_SIZES {
        let device = Product::<bf16>::new(n, false)?.device_time()?;
        row::print(&format!("b1.bf16.{n}.device"), PEER, device, "ns");
        // cudarc multiplies f32 with tf32.
        let device = Product::<f32>::new(n, false)?.device_time()?;
        row::print(&format!("b1.tf32.{n}.device"), PEER, device, "ns");
    }
    Ok(())
}
