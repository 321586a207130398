//! What is refused when it is submitted, with the refusal and without: without it the device is lost.

use std::sync::Arc;

use kiln_driver::{
    Command, Driver, DriverExt, Error, Image, LaunchCommand, MemoryRequest, Pattern, Refusal, StreamRequest,
    Vouched,
};
use kiln_sim::{FindingKind, KernelLog, Machine, MachineConfig, PtxEngine};

/// `fence` has an instruction that the executor does not run.
const FENCE: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry fence() {
    tcgen05.wait::ld.sync.aligned;
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
        assert!(refused.is_unsupported() && refused.to_string().contains("tcgen05.wait"), "{refused}");
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

/// `sixteen` waits at a barrier that no block has.
const SIXTEEN: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry sixteen() { bar.sync 16; ret; }
.visible .entry nothing() { ret; }
";

#[test]
fn a_module_with_a_wrong_kernel_is_refused_or_that_kernel_alone() {
    let load = |engine: PtxEngine| {
        let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(engine)));
        let device = machine.device(0).unwrap();
        device.load(&Image::Ptx(SIXTEEN)).map(|module| {
            ["sixteen", "nothing", "neither"].map(|name| device.function(module, name).map(|_| ()))
        })
    };
    let whole = load(PtxEngine::default()).unwrap_err();
    assert!(whole.to_string().contains("uses barrier 16"), "{whole}");
    let log = KernelLog::default();
    let [sixteen, nothing, neither] = load(PtxEngine::default().refuse_kernels_alone().log(&log)).unwrap();
    let (sixteen, neither) = (sixteen.unwrap_err(), neither.unwrap_err());
    assert!(matches!(sixteen.refusal(), Some(Refusal::Image { log, .. }) if log.contains("uses barrier 16")));
    assert!(nothing.is_ok(), "{nothing:?}");
    assert!(matches!(neither.refusal(), Some(Refusal::NotFound { .. })), "{neither}");
    assert!(matches!(&log.refused_kernels()[..], [only] if only.contains("sixteen")));
}

#[test]
fn a_machine_without_an_engine_says_how_to_give_it_one() {
    let device = Machine::new(MachineConfig::seeded(1)).device(0).unwrap();
    let text = device.load(&Image::Ptx(FENCE)).unwrap_err().to_string();
    assert!(text.contains(".engine(Arc::new(PtxEngine::default()))"), "{text}");
}
