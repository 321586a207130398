//! Kernels that wait in a loop for memory.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{
    Command, Driver, DriverExt, Image, LaunchCommand, MemoryRequest, Pattern, StreamRequest, Timeout,
    Vouched, WaitTarget,
};
use kiln_sim::{Machine, MachineConfig, PtxEngine, SimDevice};

/// `spin(flag)` waits until the flag is not 0.
const SPIN: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 flag) {
    .reg .pred %p; .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}
";

fn machine(seed: u64) -> (Machine, Arc<SimDevice>) {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let device = machine.device(0).unwrap();
    (machine, device)
}

/// A flag that is 0, and a launch of `spin` on it that is queued on its stream.
fn spin(device: &SimDevice) -> (kiln_driver::StreamId, kiln_driver::DeviceMemory) {
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let flag = device.allocate(MemoryRequest::Direct { bytes: 4 }).unwrap();
    set(device, stream, flag, 0);
    device.synchronize(stream).unwrap();
    let module = device.load(&Image::Ptx(SPIN)).unwrap();
    let launch = LaunchCommand {
        function: device.function(module, "spin").unwrap().id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &flag.address.0.to_le_bytes(),
        declared: None,
        // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
        vouched: unsafe { Vouched::new() },
    };
    device.submit(stream, &Command::Launch(launch)).unwrap();
    (stream, flag)
}

fn set(device: &SimDevice, stream: kiln_driver::StreamId, flag: kiln_driver::DeviceMemory, value: u32) {
    let fill = Command::Fill { to: flag.id.into(), pattern: Pattern::U32(value), count: 1 };
    device.submit(stream, &fill).unwrap();
}

#[test]
fn a_kernel_that_waits_for_another_stream_ends_whichever_runs_first() {
    for seed in 0..20 {
        let (_machine, device) = machine(seed);
        let (stream, flag) = spin(&device);
        let other = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        set(&device, other, flag, 1);
        device.synchronize(stream).unwrap();
    }
}

#[test]
fn a_kernel_that_waits_for_work_of_another_host_thread_ends() {
    let (_machine, device) = machine(1);
    let (stream, flag) = spin(&device);
    let (waiting, began) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let device = &device;
        scope.spawn(move || {
            began.recv().unwrap();
            let other = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
            set(device, other, flag, 1);
        });
        waiting.send(()).unwrap();
        device.synchronize(stream).unwrap();
    });
}

#[test]
fn a_kernel_that_waits_for_memory_that_nothing_changes_is_found_with_its_line() {
    let (machine, device) = machine(1);
    let (stream, _) = spin(&device);
    let error = device.synchronize(stream).unwrap_err();
    let text = error.to_string();
    let expected = "waits here in a loop for memory that no thread of the launch will change";
    assert!(error.is_sticky() && text.contains("702") && text.contains(expected), "{text}");
    assert!(text.contains("spin at PTX line") && text.contains("thread (0,0,0)"), "{text}");
    assert_eq!(machine.findings().len(), 1, "one mistake, one finding: {:#?}", machine.findings());
}

#[test]
fn launches_of_two_streams_that_wait_for_each_other_are_found() {
    for seed in 0..4 {
        let (machine, device) = machine(seed);
        let ((first, _), (second, _)) = (spin(&device), spin(&device));
        let errors = [first, second].map(|stream| device.synchronize(stream).unwrap_err().to_string());
        let expected = "waits here in a loop for memory that no thread of the launch will change";
        assert!(errors.iter().any(|text| text.contains(expected)), "seed {seed}: {errors:#?}");
        assert!(!machine.findings().is_empty());
    }
}

#[test]
fn a_wait_with_a_timeout_runs_into_it() {
    let (_machine, device) = machine(1);
    let (stream, _) = spin(&device);
    let waited = device.wait(WaitTarget::Stream(stream), Timeout::After(Duration::from_secs(1)));
    assert!(!waited.unwrap().is_done());
}
