//! A runtime's memory is what its configuration says.

use std::sync::Arc;

use kiln::{DeviceRuntime, RuntimeConfig, memory::MemoryConfig};
use kiln_driver::Driver;
use kiln_mem::resource_stack::StackContext;
use kiln_mem::{AllocTag, Budget, Heap, HeapConfig, Stack};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

const MIB: usize = 1 << 20;

fn device(memory_bytes: u64) -> (Machine, Arc<dyn Driver>) {
    let machine = Machine::new(MachineConfig::seeded(1).device(DeviceConfig::with_memory(memory_bytes)));
    let device = machine.device(0).unwrap();
    (machine, device)
}

fn config(memory: MemoryConfig) -> RuntimeConfig {
    RuntimeConfig { memory, ..RuntimeConfig::default() }
}

#[test]
fn the_stack_of_the_configuration_is_built() {
    let (_machine, driver) = device(256 << 20);
    let stack: Stack = "limit(4 MiB, stats(heap))".parse().unwrap();
    let gpu = DeviceRuntime::from_driver(driver, config(MemoryConfig { stack, ..MemoryConfig::default() }))
        .unwrap();
    assert_eq!(gpu.memory().to_string(), "limit(4 MiB, stats(heap))");
    let held = gpu.zeros::<u8>(3 * MIB).unwrap();
    let error = gpu.zeros::<u8>(2 * MIB).unwrap_err();
    assert!(error.is_oom(), "{error}");
    drop(held);
    assert!(gpu.zeros::<u8>(2 * MIB).is_ok());
}

#[test]
fn a_stack_the_device_cannot_have_is_an_error() {
    let (_machine, driver) = device(256 << 20);
    let stack: Stack = "guard(host)".parse().unwrap();
    let memory = MemoryConfig { stack, ..MemoryConfig::default() };
    assert!(DeviceRuntime::from_driver(driver, config(memory)).is_err());
}

#[test]
fn a_limit_counts_what_is_taken_from_the_device() {
    let (_machine, driver) = device(256 << 20);
    let limit_bytes = Some(8 * MIB as u64);
    let gpu =
        DeviceRuntime::from_driver(driver, config(MemoryConfig { limit_bytes, ..MemoryConfig::default() }))
            .unwrap();
    let held = gpu.zeros::<u8>(6 * MIB).unwrap();
    let error = gpu.allocate_tagged::<u8>(gpu.main_stream(), 4 * MIB, AllocTag::default()).unwrap_err();
    assert!(error.is_oom() && error.to_string().contains("a limit of 8388608"), "{error}");
    drop(held);
}

#[test]
fn all_runtimes_of_a_device_share_its_budget() {
    let (_machine, driver) = device(64 << 20);
    let (_other_machine, other) = device(64 << 20);
    let first = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let second = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let elsewhere = DeviceRuntime::from_driver(other, RuntimeConfig::default()).unwrap();
    let budget = Budget::of_device(driver.info());
    budget.set_limit(16 << 20);
    let held = first.zeros::<u8>(10 * MIB).unwrap();
    assert!(budget.used_bytes() >= 10 << 20 && second.budget().used_bytes() == budget.used_bytes());
    let error = second.zeros::<u8>(10 * MIB).unwrap_err();
    assert!(error.is_oom(), "{error}");
    assert!(elsewhere.zeros::<u8>(30 * MIB).is_ok(), "another device has a separate budget");
    drop((held, first));
    assert!(second.zeros::<u8>(10 * MIB).is_ok(), "what a runtime gave back is there for the others");
    drop(second);
    assert_eq!(budget.used_bytes(), 0);
}

/// What a program can see of a runtime's memory.
fn behaviour(gpu: &DeviceRuntime) -> Vec<String> {
    let mut seen = vec![gpu.memory().to_string()];
    let buffer = gpu.upload(&[7_u32; 5000]).unwrap();
    seen.push(format!("{} outstanding", gpu.bytes_outstanding()));
    let stream = gpu.stream().unwrap();
    let on_stream = gpu.allocate_on::<u32>(&stream, 5000).unwrap();
    on_stream.copy_from(&buffer).unwrap();
    assert_eq!(on_stream.download().unwrap(), [7; 5000]);
    drop((buffer, on_stream));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    seen.push(format!("{} outstanding", gpu.bytes_outstanding()));
    seen.push(gpu.zeros::<u8>(1 << 40).unwrap_err().is_oom().to_string());
    seen.push(format!("{:?}", gpu.zeros::<u8>(0).unwrap().len()));
    let other = DeviceRuntime::simulated(5).unwrap();
    seen.push(format!("{}", gpu.allocate_on::<u8>(other.main_stream(), 1).is_err()));
    seen
}

#[test]
fn a_stack_of_the_callers_own_behaves_like_the_one_of_the_configuration() {
    let (_machine, driver) = device(256 << 20);
    let configured = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let own = DeviceRuntime::with_resource(driver.clone(), RuntimeConfig::default(), |driver, order| {
        Ok(Arc::new(Heap::over_pages(driver.clone(), order, HeapConfig::default())?))
    })
    .unwrap();
    let from_text = DeviceRuntime::with_resource(driver, RuntimeConfig::default(), |driver, order| {
        Ok(Stack::default().build(&StackContext::new(driver.clone(), order))?)
    })
    .unwrap();
    assert_eq!(behaviour(&configured), behaviour(&own));
    assert_eq!(behaviour(&configured), behaviour(&from_text));
}

#[test]
fn a_stack_of_another_device_is_refused() {
    let (_machine, driver) = device(64 << 20);
    let (_other_machine, other) = device(64 << 20);
    let refused = DeviceRuntime::with_resource(driver, RuntimeConfig::default(), |_, order| {
        Ok(Arc::new(Heap::over_pages(other.clone(), order, HeapConfig::default())?))
    });
    assert!(refused.is_err());
}

#[test]
fn a_guard_in_the_configuration_watches_the_runtimes_buffers() {
    let (machine, driver) = device(64 << 20);
    let stack: Stack = "guard(256B, 1MiB, stats(heap))".parse().unwrap();
    let gpu = DeviceRuntime::from_driver(driver, config(MemoryConfig { stack, ..MemoryConfig::default() }))
        .unwrap();
    let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
    let mut buffers = Vec::new();
    for round in 0..20_u8 {
        let buffer = gpu.allocate_on::<u8>(&streams[usize::from(round % 2)], 1000).unwrap();
        buffer.fill_bytes(round).unwrap();
        if let Some(last) = buffers.pop() {
            buffer.copy_from(&last).unwrap();
        }
        buffers.push(buffer);
    }
    assert_eq!(buffers[0].download().unwrap(), [0; 1000]);
    drop(buffers);
    assert!(gpu.synchronize_within(std::time::Duration::from_secs(60)).unwrap());
    drop((streams, gpu));
    assert!(machine.findings().is_empty(), "{:?}", machine.findings());
}

#[test]
fn a_buffer_of_no_elements_that_is_dropped_frees_no_other_buffer() {
    kiln::testing::check(0..4, |gpu| {
        let values = gpu.upload(&[1_u32, 2, 3])?;
        drop(gpu.allocate::<u32>(0)?);
        assert_eq!(values.download()?, [1, 2, 3]);
        Ok(())
    })
    .unwrap();
}
