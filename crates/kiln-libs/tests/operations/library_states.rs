//! Library operations on devices that cannot run them: too old for a type, or shut down.

use std::sync::Arc;
use std::time::Duration;

use half::bf16;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Capability;
use kiln_libs::LibraryError;
use kiln_libs::blas::{Blas, F8E4M3, Math, Matrix};
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

fn of_capability(major: u32, minor: u32) -> (Machine, DeviceRuntime) {
    let mut config = MachineConfig::seeded(1);
    let mut device = DeviceConfig::small();
    device.capability = Capability { major, minor };
    config.devices = vec![device];
    let machine = Machine::new(config.engine(Arc::new(PtxEngine::default())));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    (machine, gpu)
}

#[test]
fn types_that_a_device_does_not_multiply_are_refused() {
    for (major, minor, bf16_runs, f8_runs) in [
        (7, 0, false, false),
        (7, 5, false, false),
        (8, 0, true, false),
        (8, 9, true, true),
        (9, 0, true, true),
    ] {
        let (_machine, gpu) = of_capability(major, minor);
        let blas = Blas::new(&gpu);
        let judge = |answer: kiln_libs::Result<kiln::Ticket>, runs: bool, word: &str| match answer {
            Ok(ticket) => assert!(runs && ticket.wait().is_ok(), "{word} on {major}.{minor}"),
            Err(error) => {
                let text = error.to_string();
                assert!(!runs && matches!(error, LibraryError::Argument { .. }), "{text}");
                let told = format!("{word} on a device of compute capability {major}.{minor}; use ");
                assert!(text.contains(&told), "{text}");
            }
        };
        let (x, y) = (gpu.upload(&[bf16::ONE; 256]).unwrap(), gpu.zeros::<bf16>(256).unwrap());
        let (a, c) = (Matrix::new(&x, 16, 16), Matrix::new(&y, 16, 16));
        judge(blas.matmul(a, a, c).submit(), bf16_runs, "bf16");
        let x = gpu.upload(&[F8E4M3(0x38); 256]).unwrap();
        let a = Matrix::new(&x, 16, 16);
        judge(blas.matmul(a, a.transposed(), c).submit(), f8_runs, "f8e4m3");
        let (x, y) = (gpu.upload(&[1.0_f32; 256]).unwrap(), gpu.zeros::<f32>(256).unwrap());
        let (a, c) = (Matrix::new(&x, 16, 16), Matrix::new(&y, 16, 16));
        judge(blas.matmul(a, a, c).math(Math::Bf16x9).submit(), bf16_runs, "bf16x9");
        judge(blas.matmul(a, a, c).submit(), true, "f32");
    }
}

#[test]
fn nothing_is_loaded_after_a_shutdown() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, x) = (Blas::new(&gpu), gpu.upload(&[1.0_f32; 16]).unwrap());
    let y = gpu.zeros::<f32>(16).unwrap();
    let product = || blas.matmul(Matrix::new(&x, 4, 4), Matrix::new(&x, 4, 4), Matrix::new(&y, 4, 4));
    product().load().unwrap();
    gpu.shutdown(Duration::from_secs(10)).unwrap();
    let error = product().load().unwrap_err();
    assert!(error.to_string().contains("shut"), "{error}");
}
