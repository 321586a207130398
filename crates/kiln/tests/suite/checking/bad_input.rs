//! Declarations that contradict each other, and findings without end: typed errors and a count.

use std::sync::Arc;

use kiln::error::{ErrorKind, Misuse};
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::kernels::KERNELS;

const MILLION: u32 = 1 << 20;

fn device(seed: u64) -> DeviceRuntime {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    let config = RuntimeConfig { findings: kiln::checking::Findings::Report, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

#[test]
fn a_buffer_that_is_declared_as_read_and_as_written_may_be_written() {
    let gpu = device(1);
    let store = gpu.kernel(KERNELS, "store").unwrap();
    let (data, all) = (gpu.zeros::<u32>(8).unwrap(), gpu.zeros::<u32>(8).unwrap());
    for written_first in [false, true] {
        let mut launch = gpu.launch(&store);
        launch.threads(8).write(&data).value(8_u32);
        match written_first {
            true => launch.also_write(&all).also_read(&all),
            false => launch.also_read(&all).also_write(&all),
        };
        // SAFETY: inside the buffers.
        unsafe { launch.submit() }.unwrap().wait().unwrap();
    }
    assert_eq!(gpu.findings().findings.len(), 0);
}

#[test]
fn a_buffer_that_is_declared_as_written_twice_is_refused_and_nothing_is_queued() {
    let gpu = device(2);
    let store = gpu.kernel(KERNELS, "store").unwrap();
    let (data, all) = (gpu.zeros::<u32>(8).unwrap(), gpu.zeros::<u32>(8).unwrap());
    gpu.synchronize().unwrap();
    let mut launch = gpu.launch(&store);
    launch.threads(8).write(&data).value(8_u32).also_write(&all).also_write(&all);
    // SAFETY: nothing is launched.
    let error = unsafe { launch.submit() }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Overlap { .. })), "{error}");
    assert_eq!(data.download().unwrap(), [0; 8], "the kernel did not run");
}

#[test]
fn a_million_wrong_accesses_are_one_finding_with_a_count() {
    let gpu = device(3);
    let store = gpu.kernel(KERNELS, "store").unwrap();
    let all = gpu.zeros::<u32>(MILLION as usize).unwrap();
    let first = all.view(0..1).unwrap();
    let mut launch = gpu.launch(&store);
    launch.threads(u64::from(MILLION)).write(&first).value(MILLION);
    // SAFETY: inside the memory of the device, which checks it.
    unsafe { launch.submit() }.unwrap().wait().unwrap();
    let list = gpu.findings();
    assert_eq!((list.findings.len(), list.dropped), (1, 0), "{list:?}");
    let text = list.findings[0].to_string();
    let times: u64 = text.split_once("(and ").unwrap().1.split_once(" more)").unwrap().0.parse().unwrap();
    assert!(times >= u64::from(MILLION) / 32 - 1, "{text}");
    assert!(text.len() < 1_000, "{text}");
}
