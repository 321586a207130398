//! A device that outlives its faults.
//!
//! `cargo run -p kiln --example 08_survive` runs on the GPU where there is one, and on the simulated device otherwise. The context lives in a worker
//! process, which is this very program: the first line of `main` makes it one.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use kiln::recovery::Phase;
use kiln::recovery::{Isolation, Process, Replay};
use kiln::{DeviceRuntime, RuntimeConfig, buffer::Stale};

const KERNELS: &str = include_str!("vectors.ptx");
/// Stores to an address that is not mapped.
const WILD: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry wild(.param .u64 out) {
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, 1;
    st.global.u32 [%rd0], %r0;
    mov.u64 %rd0, 64;
    st.global.u32 [%rd0], %r0;
    ret;
}";

const LEN: u32 = 100_000;
const BLOCK: u32 = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // In the worker process this serves and never returns.
    kiln::worker_entry();

    let gpu = open()?;
    println!("{gpu:?}");
    let axpy = gpu.kernel(KERNELS, "axpy")?;
    let x = gpu.upload(&vec![2.0_f32; LEN as usize])?;
    let y = gpu.upload(&vec![1.0_f32; LEN as usize])?;
    let add = || {
        let mut launch = gpu.launch(&axpy);
        launch.grid(LEN.div_ceil(BLOCK)).block(BLOCK).value(3.0_f32).read(&x).read_write(&y).value(LEN);
        // SAFETY: the kernel touches the first `LEN` elements of both buffers, which have as many.
        unsafe { launch.submit() }
    };
    add()?.wait()?;

    // A kernel that strays. In one process this would be the end of every buffer on the device.
    let (scratch, result) = (gpu.zeros::<u32>(1)?, gpu.zeros::<u32>(1)?);
    let wild = gpu.kernel(WILD, "wild")?;
    // SAFETY: it is not; that is what is shown.
    let ticket = unsafe { gpu.launch(&wild).grid(1).block(1).write(&scratch).submit() }?;
    // Queued behind it. If it had not started when the worker was lost, the next worker does it.
    let behind = result.fill(3);
    let error = ticket.wait().err().ok_or("a wild store went unnoticed")?;
    println!("the launch failed: {error}");
    println!("what was queued behind it: {:?}", behind.and_then(|ticket| ticket.wait()));

    // The runtime replaces the worker by itself. Wait until it is ready.
    let ready = |status: &kiln::recovery::Status| status.generation.0 == 1 && status.phase() == Phase::Ready;
    let status = gpu.watch().wait_until(ready, Some(Duration::from_secs(60)));
    println!("{status}");
    for report in gpu.post_mortems() {
        println!("{report}");
    }

    // What the kernel had declared to write is lost, and says so. Everything else is as it was, under the same handles.
    assert_eq!(scratch.access(), Err(Stale::Lost));
    add()?;
    let right = y.download()?.iter().all(|value| *value == 13.0);
    if !right || status.phase() != Phase::Ready {
        return Err("the data did not survive".into());
    }
    println!("{LEN} elements survived and go on");
    Ok(())
}

/// The device in a worker process, with another one ready.
fn open() -> kiln::Result<DeviceRuntime> {
    let device = kiln::probe::worker_device()?;
    let watchdog = Some(Duration::from_secs(10));
    let process = Process { standby: true, watchdog, replay: Replay::NotStarted, ..Process::default() };
    let isolation = Isolation::Process(process);
    DeviceRuntime::open(&device, RuntimeConfig { isolation, ..RuntimeConfig::default() })
}
