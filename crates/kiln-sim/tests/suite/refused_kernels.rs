//! What is refused when it is submitted, with the refusal and without: without it the device is lost.

use std::sync::Arc;

use kiln_driver::{
    Command, Driver, DriverExt, Error, Image, LaunchCommand, MemoryRequest, Pattern, StreamRequest, Vouched,
};
use kiln_sim::{FindingKind, Machine, MachineConfig, PtxEngine};

/// `fence` has an instruction that the executor does not run.
const FENCE: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry fence() {
    wgmma.fence.sync.aligned;
    ret;
}
";

/// Submits a launch of `fence` and a fill behind it; what was answered to the launch, to a wait for both, and the findings of the machine.
fn launch(engine: PtxEngine, seed: u64) -> (Result<(), Error>, Result<(), Error>, Vec<FindingKind>) {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(engine)));
    let device = machine.device(0).unwrap();
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let memory = device.allocate(MemoryRequest::Direct { bytes: 4 }).unwrap();
    let module = device.load(&Image::Ptx(FENCE)).unwrap();
    let command = LaunchCommand {
        function: device.function(module, "fence").unwrap().id,
        grid: 1.into(),
        block: 32.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &[],
        declared: None,
        // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
        vouched: unsafe { Vouched::new() },
    };
    let launched = device.submit(stream, &Command::Launch(command)).map(|_| ());
    let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U32(7), count: 1 };
    let filled = device.submit(stream, &fill).map(|_| ());
    let waited = filled.and_then(|()| device.synchronize(stream).map(|_| ()));
    (launched, waited, machine.findings().iter().map(|finding| finding.kind.clone()).collect())
}

#[test]
fn a_kernel_with_an_instruction_that_is_not_executed_is_refused_and_the_device_lives_on() {
    for seed in 0..4 {
        let (launched, waited, findings) = launch(PtxEngine::default(), seed);
        let refused = launched.unwrap_err();
        assert!(refused.is_unsupported() && refused.to_string().contains("wgmma.fence"), "{refused}");
        assert!(waited.is_ok() && findings.is_empty(), "{waited:?} {findings:?}");
    }
}

#[test]
fn without_the_refusal_the_device_is_lost() {
    for seed in 0..4 {
        let (launched, waited, findings) = launch(PtxEngine::default().run_unsupported(), seed);
        assert!(launched.is_ok(), "{launched:?}");
        assert!(waited.unwrap_err().is_sticky());
        assert!(!findings.is_empty());
    }
}
