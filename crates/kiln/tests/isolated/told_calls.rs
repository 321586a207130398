//! What a program is told that loses its device in a request: the request, and not the calls of the driver that it is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln::{DeviceRuntime, Error, GpuRef, Result, RuntimeConfig};
use kiln_driver::call::{Call, CallKind};
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Code, Driver, Fault};
use kiln_sim::{Machine, MachineConfig};

/// Loses the device where a call needs host memory, once it is told to.
#[derive(Default)]
struct Losing {
    is_armed: AtomicBool,
    has_successor: bool,
}

impl Layer for Losing {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        if call.kind() != CallKind::AllocateHost || !self.is_armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let fault = Fault { code: Code::LAUNCH_FAILED, detail: "its worker was killed".to_owned() };
        Err(kiln_driver::Error::lost("allocate_host", fault).with_successor(self.has_successor))
    }
}

/// What is told of a request that loses the device.
fn told(has_successor: bool, request: fn(&DeviceRuntime, &GpuRef<u32>) -> Result<()>) -> Error {
    let machine = Machine::new(MachineConfig::seeded(1));
    let losing = Losing { has_successor, ..Losing::default() };
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), losing));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let buffer = gpu.zeros::<u32>(4).unwrap();
    gpu.synchronize().unwrap();
    driver.layer().is_armed.store(true, Ordering::Relaxed);
    request(&gpu, &buffer).unwrap_err()
}

#[test]
fn a_transfer_that_loses_the_device_is_told_as_the_program_asked_for_it() {
    type Request = fn(&DeviceRuntime, &GpuRef<u32>) -> Result<()>;
    let requests: [(&str, Request); 6] = [
        ("upload", |gpu, _| gpu.upload(&[1_u32; 4]).map(drop)),
        ("upload", |_, buffer| buffer.upload(&[1; 4]).map(drop)),
        ("upload", |gpu, buffer| buffer.upload_on(gpu.main_stream(), &[1; 4]).map(drop)),
        ("download", |_, buffer| buffer.download().map(drop)),
        ("download", |_, buffer| buffer.download_into(&mut [0; 4])),
        ("download", |gpu, buffer| buffer.download_into_on(gpu.main_stream(), &mut [0; 4])),
    ];
    for (at, (name, request)) in requests.into_iter().enumerate() {
        for has_successor in [false, true] {
            let error = told(has_successor, request);
            let text = error.to_string();
            assert!(error.is_lost() && error.is_sticky() != has_successor, "{at}: {text}");
            assert!(text.contains("its worker was killed"), "{at}: {text}");
            assert_eq!(error.call(), Some(name), "{at}: {text}");
            assert!(!text.contains("allocate_host"), "{at}: {text}");
            if has_successor {
                assert!(text.starts_with(&format!("{name}: ")), "{at}: {text}");
                assert_eq!(text.matches(&format!("{name}: ")).count(), 1, "{at}: {text}");
            }
        }
    }
}
