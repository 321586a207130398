//! Which errors a program may answer by asking again.

use std::io;
use std::sync::Arc;

use kiln::error::{ErrorKind, Misuse, OutOfHostMemory};
use kiln::libraries::{Library, MissingLibrary};
use kiln::probe::{Absence, CudaAbsence, ProbeError};
use kiln::program::ProgramError;
use kiln::recovery::{SealError, WorkerStartError};
use kiln::{
    DeviceRuntime, Error, Policy, RuntimeConfig, buffer::Stale, code::CodeError, graph::GraphError,
    launch::Mismatch, memory::MemoryConfig,
};
use kiln_driver::{Code, DeviceKind, Error as DriverError, Fault, Refusal};
use kiln_sim::{Machine, MachineConfig};

fn out_of_memory() -> DriverError {
    DriverError::out_of_memory("cuMemAlloc", 64, Some(0))
}

fn lost() -> DriverError {
    DriverError::lost("wait", Fault { code: Code::ILLEGAL_ADDRESS, detail: String::new() })
}

fn busy() -> DriverError {
    DriverError::refused("free", Refusal::Busy { handle: "block 1".into(), why: "a copy".into() })
}

fn refused() -> DriverError {
    DriverError::refused("cuInit", Refusal::Driver(Code::NOT_INITIALIZED))
}

fn unsupported() -> DriverError {
    DriverError::unsupported("map", "mapping", "the device has no such pages")
}

/// Kinds that hold an error of the driver.
fn kinds_of_the_driver() -> Vec<(ErrorKind, bool)> {
    let kind = DeviceKind::Cuda;
    let context = |cause| ProbeError::Context { kind, ordinal: 0, cause }.into();
    let listing = |cause| ProbeError::Listing { kind, cause }.into();
    vec![
        (out_of_memory().into(), true),
        (busy().into(), true),
        (lost().with_successor(true).into(), true),
        (lost().into(), false),
        (refused().into(), false),
        (unsupported().into(), false),
        (context(out_of_memory()), true),
        (context(refused()), true),
        (context(lost()), false),
        (context(unsupported()), false),
        (listing(out_of_memory()), true),
        (listing(refused()), false),
        (listing(lost()), false),
        (kiln_mem::Error::from(out_of_memory()).into(), true),
        (kiln_mem::Error::from(busy()).into(), true),
        (kiln_mem::Error::from(lost()).into(), false),
        (kiln_mem::Error::from(lost().with_successor(true)).into(), true),
    ]
}

/// Kinds that say what to change, or that nothing helps.
fn kinds_that_stay() -> Vec<ErrorKind> {
    let program = ProgramError::NotConverged { program: "p".into(), steps: 3 };
    let mismatch = Mismatch::Count { kernel: "k".into(), wanted: 2, given: 1 };
    let library = MissingLibrary { kind: Library::Nvrtc, tried: Vec::new(), variable: None };
    vec![
        Absence::from(CudaAbsence::NoDevice).into(),
        CodeError::NoPtx.into(),
        Misuse::RuntimeGone.into(),
        Misuse::WaitWhileHealing.into(),
        mismatch.into(),
        GraphError::ForeignHandle { what: "node" }.into(),
        ErrorKind::Other(Arc::new(program)),
        SealError::InProcess.into(),
        library.into(),
        ProbeError::UnknownDevice { kind: DeviceKind::Cuda, wanted: "ordinal 9".into(), known: 1 }.into(),
        ProbeError::UnknownSelection { text: "x".into() }.into(),
        "x".parse::<Policy>().unwrap_err().into(),
        ProbeError::Environment { variable: "KILN_POLICY", text: "x".into(), wanted: "a policy" }.into(),
        ProbeError::PolicyConflict { in_force: Policy::Off, wanted: Policy::Auto }.into(),
        ProbeError::Forked.into(),
        ProbeError::Recursion.into(),
        ErrorKind::ConfigInUse { open: None },
        ErrorKind::JobPanicked { message: "planned".into() },
        WorkerStartError::NoEntry.into(),
        ErrorKind::Other(Arc::new(io::Error::other("no disk"))),
        ErrorKind::Other(Arc::new(Error::new(Misuse::RuntimeGone))),
    ]
}

#[test]
fn every_kind_says_whether_the_same_request_may_succeed_later() {
    let mut kinds = kinds_of_the_driver();
    kinds.extend(kinds_that_stay().into_iter().map(|kind| (kind, false)));
    kinds.extend([
        (ErrorKind::StreamsExhausted { limit: 2 }, true),
        (OutOfHostMemory { bytes: 8, what: "a download" }.into(), true),
        (WorkerStartError::Ended { status: None }.into(), true),
        (ErrorKind::Other(Arc::new(Error::from(out_of_memory()))), true),
        (Stale::Rebuilding.into(), true),
        (Stale::Lost.into(), false),
        (Stale::Failed.into(), false),
        (Stale::ShuttingDown.into(), false),
        (Stale::DeviceDropped.into(), false),
    ]);
    for (kind, retryable) in kinds {
        let error = Error::new(kind);
        assert_eq!(error.is_retryable(), retryable, "{:?}: {error:#}", error.kind());
        assert!(!(error.is_retryable() && error.is_sticky()), "{error:#}");
        assert_eq!(error.clone().labelled("solver").is_retryable(), retryable);
    }
}

#[test]
fn memory_may_be_free_later_unless_the_request_exceeds_the_whole_limit() {
    const LIMIT: u64 = 64 << 20;
    let memory = MemoryConfig { stack: "limit(64MiB, heap)".parse().unwrap(), ..MemoryConfig::default() };
    let machine = Machine::new(MachineConfig::seeded(1));
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let held = gpu.allocate::<u8>(LIMIT as usize - (4 << 20)).unwrap();
    let error = gpu.allocate::<u8>(32 << 20).unwrap_err();
    assert!(error.is_oom() && error.is_retryable(), "{error}");
    drop(held);
    assert!(gpu.allocate::<u8>(32 << 20).is_ok());
    let error = gpu.allocate::<u8>(LIMIT as usize + 1).unwrap_err();
    assert!(error.is_oom() && !error.is_retryable(), "{error}");
}
