//! Mistakes around library operations: they are found as those of kernels are.

use kiln_driver::{Command, Driver, DriverExt, Image, LaunchCommand, Vouched};
use kiln_sim::FindingKind;

use super::check;
use crate::rig::Rig;

/// Launches `y = x + y` of eight numbers.
fn axpy(rig: &Rig, stream: usize, x: u64, y: u64) {
    let module = rig.device.load(&Image::Library("blas.axpy element=f32 n=8 x_step=1 y_step=1")).unwrap();
    rig.give_back_later(module);
    let function = rig.device.function(module, "blas.axpy").unwrap().id;
    let words = [x, y, 1.0_f64.to_bits()];
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let command = Command::Launch(LaunchCommand {
        function,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &packed,
        declared: None,
        // SAFETY: the simulated device checks every access of an operation.
        vouched: unsafe { Vouched::new() },
    });
    rig.device.submit(rig.streams[stream], &command).unwrap();
}

#[test]
fn a_library_call_that_reads_what_another_stream_writes() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, y) = (rig.block(32), rig.block(32));
        rig.device.fill(rig.streams[0], y.id.into(), 0, 32).unwrap();
        rig.sync(0);
        rig.write(1, x, 0);
        if !broken {
            rig.order(1, 0);
        }
        axpy(&rig, 0, x.address.0, y.address.0);
        rig.close();
    });
}

#[test]
fn a_copy_over_what_a_library_call_reads() {
    check(FindingKind::WriteAfterRead, |rig, broken| {
        let (x, y) = (rig.block(32), rig.block(32));
        for block in [x, y] {
            rig.device.fill(rig.streams[0], block.id.into(), 0, 32).unwrap();
        }
        rig.sync(0);
        axpy(&rig, 0, x.address.0, y.address.0);
        if !broken {
            rig.order(0, 1);
        }
        rig.device.fill(rig.streams[1], x.id.into(), 1, 32).unwrap();
        rig.close();
    });
}

#[test]
fn a_library_call_on_memory_that_was_never_written() {
    check(FindingKind::Uninitialised, |rig, broken| {
        let (x, y) = (rig.block(32), rig.block(32));
        rig.device.fill(rig.streams[0], y.id.into(), 0, 32).unwrap();
        rig.device.fill(rig.streams[0], x.id.into(), 0, if broken { 28 } else { 32 }).unwrap();
        axpy(&rig, 0, x.address.0, y.address.0);
        rig.close();
    });
}
