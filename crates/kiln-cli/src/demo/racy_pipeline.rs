//! The pipeline of the demo with one dependency left out on purpose.
//!
//! An upload on one stream and a kernel on another that reads the same buffer, with nothing that orders the two. On a GPU this works
//! most of the time. The simulated device reports it every time, with both commands.

use std::sync::Arc;

use kiln_driver::{
    Command, Dim3, Driver, DriverExt, Image, LaunchCommand, MemoryRequest, Object, StreamRequest, Timeout,
    Vouched, WaitTarget,
};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::kernels::{AXPY, BLOCK_THREADS, PTX};

const ELEMENTS: u32 = 1024;
const BYTES: u64 = ELEMENTS as u64 * 4;

/// Runs it on a simulated device and returns the findings.
///
/// # Errors
/// The device failed; a missing dependency is a finding and no error.
pub(crate) fn run(seed: u64) -> kiln::Result<kiln_sim::SimReport> {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let device = machine.device(0)?;
    let uploads = device.create_stream(StreamRequest::New { priority: 0 })?;
    let compute = device.create_stream(StreamRequest::New { priority: 0 })?;
    let module = device.load(&Image::Ptx(PTX))?;
    let axpy = device.function(module, AXPY)?;
    let memory = [
        device.allocate(MemoryRequest::Direct { bytes: BYTES })?,
        device.allocate(MemoryRequest::Direct { bytes: BYTES })?,
    ];
    let [x, y] = memory;
    let host = device.allocate_host(BYTES)?;
    for memory in memory {
        device.fill(uploads, memory.id.into(), 0, BYTES)?;
    }
    let _ = device.wait(WaitTarget::Stream(uploads), Timeout::Never)?;

    device.upload(uploads, &host, x.id.into(), BYTES)?;
    // Left out here: an event that `uploads` signals and `compute` waits for.
    let arguments = packed(0.5, x.address.0, y.address.0);
    device.submit(
        compute,
        &Command::Launch(LaunchCommand {
            function: axpy.id,
            grid: Dim3::from(ELEMENTS / BLOCK_THREADS),
            block: Dim3::from(BLOCK_THREADS),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &arguments,
            declared: None,
            // SAFETY: the simulated device executes `axpy` with every access checked, and the arguments have the layout of
            // its parameters.
            vouched: unsafe { Vouched::new() },
        }),
    )?;
    for stream in [uploads, compute] {
        device.synchronize(stream)?;
    }
    for memory in memory {
        device.free(memory.id, None)?;
    }
    for object in
        [Object::Host(host.id()), Object::Module(module), Object::Stream(uploads), Object::Stream(compute)]
    {
        device.destroy(object)?;
    }
    Ok(machine.finish())
}

/// The arguments of `axpy` at the offsets of its parameters.
fn packed(a: f32, x: u64, y: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(28);
    bytes.extend(a.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(x.to_le_bytes());
    bytes.extend(y.to_le_bytes());
    bytes.extend(ELEMENTS.to_le_bytes());
    bytes
}
