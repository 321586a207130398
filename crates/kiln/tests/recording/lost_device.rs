//! Devices that are lost and not brought back.

use kiln::recovery::Phase;
use kiln::telemetry::DeviceTimes;
use kiln::trace::TraceEvent;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{Code, Image};
use kiln_sim::{FaultPlan, HostKernel, KernelLibrary, Machine, MachineConfig, PlannedFault};

use crate::Recorded;

const LIBRARY: &str = "failing";

/// A device that is lost when it runs its first kernel.
fn failing() -> (Machine, DeviceRuntime) {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let library = KernelLibrary::new(LIBRARY).kernel(HostKernel::new("nothing").body(|_| Ok(())));
    let config = MachineConfig::seeded(1).library(library).faults(FaultPlan::none().on(0, fault));
    let machine = Machine::new(config);
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    (machine, gpu)
}

/// Queues the kernel that loses the device.
fn launch(gpu: &DeviceRuntime) {
    let kernel = gpu.load_kernel(&Image::HostKernels(LIBRARY), "nothing", None).unwrap();
    // SAFETY: the kernel touches nothing.
    unsafe { gpu.launch(&kernel).grid(1).block(1).submit() }.unwrap();
}

/// Waits for it.
fn lose(gpu: &DeviceRuntime) {
    assert!(gpu.synchronize().unwrap_err().is_sticky());
    assert_eq!(gpu.state().phase(), Phase::Failed);
}

#[test]
fn a_device_that_is_lost_is_refused_and_the_file_stays() {
    let file = Recorded::new();
    let (_machine, gpu) = failing();
    launch(&gpu);
    lose(&gpu);
    for times in [DeviceTimes::HostOnly, DeviceTimes::Events { every: 1 }] {
        std::fs::write(&file, "what was recorded before").unwrap();
        let error = gpu.trace_with(&file, times).unwrap_err();
        assert!(error.is_sticky(), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), b"what was recorded before", "{error}");
        std::fs::remove_file(&file).unwrap();
        assert!(gpu.trace_with(&file, times).is_err() && !file.0.exists());
    }
    assert!(gpu.trace_path().is_none());
}

#[test]
fn a_loss_by_work_that_was_queued_before_is_in_the_recording() {
    let file = Recorded::new();
    let (_machine, gpu) = failing();
    launch(&gpu);
    // It does not wait for that, and so does not meet the loss.
    gpu.trace(&file).unwrap();
    lose(&gpu);
    drop(gpu);
    let mut faults = 0;
    file.each(|event| faults += u32::from(matches!(event, TraceEvent::Fault(_))));
    assert_eq!(faults, 1);
}

#[test]
fn a_device_that_was_not_brought_back_is_not_said_to_have_been() {
    let file = Recorded::new();
    let (_machine, gpu) = failing();
    gpu.trace(&file).unwrap();
    launch(&gpu);
    lose(&gpu);
    drop(gpu);
    let text = file.explained().to_string();
    assert!(text.contains("The device was lost, and was not brought back."), "{text}");
    let told = text.split_once("\nPost-mortem of device 0:\n  device lost: ").map(|(_, told)| told);
    let told = told.unwrap_or_else(|| panic!("{text}"));
    for said in
        ["lost_device.rs:", "under way stream ", "lost      all memory of the device", "\nTo repeat it"]
    {
        assert!(told.contains(said), "{said}: {text}");
    }
    assert_eq!(text.matches("device lost: ").count(), 1, "{text}");
    assert!(!text.contains("lost and brought back"), "{text}");
}

#[test]
fn a_loss_is_one_fault_however_many_calls_meet_it() {
    let file = Recorded::new();
    let (_machine, gpu) = failing();
    gpu.trace(&file).unwrap();
    let buffer = gpu.zeros::<u32>(4).unwrap();
    launch(&gpu);
    lose(&gpu);
    for value in 0..5 {
        assert!(gpu.synchronize().is_err() && buffer.fill(value).is_err() && buffer.download().is_err());
    }
    drop((buffer, gpu));
    let mut faults = Vec::new();
    file.each(|event| {
        if let TraceEvent::Fault(fault) = event {
            faults.push(fault.message.to_owned());
        }
    });
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn a_fault_is_told_whole_with_kernel_and_place() {
    const WILD: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry wild() {
            .reg .b64 %rd<2>;
            mov.u64 %rd0, 64;
            st.global.u32 [%rd0], 1;
            ret;
        }";
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let kernel = gpu.load_kernel(&Image::Ptx(WILD), "wild", None).unwrap();
    // SAFETY: the simulated device has no memory there, and says so.
    unsafe { gpu.launch(&kernel).grid(1).block(1).submit() }.unwrap();
    let told = gpu.synchronize().unwrap_err().to_string();
    drop((kernel, gpu));
    let text = file.explained().to_string();
    for word in ["wild", "PTX line", "thread"] {
        assert!(told.contains(word), "{word}: {told}");
        assert!(text.split("Faults:").nth(1).is_some_and(|faults| faults.contains(word)), "{word}: {text}");
    }
}
