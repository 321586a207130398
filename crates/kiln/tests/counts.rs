//! What a piece of work may cost: driver calls and heap allocations, counted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod order {
    pub(crate) mod kernels;
}

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::Access;
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Layered};
use kiln_sim::{Machine, MachineConfig};
use order::kernels::{Kernels, library};

/// Counts the allocations of each thread apart, so that tests beside this one do not matter.
struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is forwarded to the system allocator, which keeps the contract.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Bench {
    machine: Machine,
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
}

fn bench() -> Bench {
    let machine = Machine::new(MachineConfig::seeded(1).library(library()));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    Bench { machine, driver, gpu }
}

fn launch(
    gpu: &DeviceRuntime,
    kernels: &Kernels,
    stream: &kiln::Stream,
    to: &GpuRef<u32>,
    from: &GpuRef<u32>,
) {
    let mut launch = gpu.launch(&kernels.mix);
    launch.on(stream).read_write(to).read(from).value(4_u32).value(3_u32);
    // SAFETY: the kernel touches four elements, which both buffers have.
    unsafe { launch.submit() }.unwrap();
}

#[test]
fn work_that_stays_on_its_stream_costs_one_driver_call() {
    let Bench { machine, driver, gpu } = bench();
    let kernels = Kernels::load(&gpu);
    let (to, from) = (gpu.upload(&[1_u32; 4]).unwrap(), gpu.upload(&[2_u32; 4]).unwrap());
    let stream = gpu.main_stream();
    launch(&gpu, &kernels, stream, &to, &from);
    let before = driver.layer().counts();
    for _ in 0..10 {
        launch(&gpu, &kernels, stream, &to, &from);
    }
    let counts = driver.layer().counts().since(&before);
    assert_eq!((counts.total(), counts.of(CallKind::Submit)), (10, 10));
    drop((to, from, kernels, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn thirty_two_buffers_cost_one_driver_call_and_no_planning_allocation() {
    let Bench { machine, driver, gpu } = bench();
    let buffers: Vec<GpuRef<u32>> = (0..32).map(|_| gpu.upload(&[1; 4]).unwrap()).collect();
    let stream = gpu.main_stream();
    let prepare = || {
        let uses: [_; 8] = std::array::from_fn(|at| buffers[at].used_as(Access::Read));
        let allocations = ALLOCATIONS.get();
        gpu.prepare_block_use(stream, &uses).unwrap().finish().unwrap();
        ALLOCATIONS.get() - allocations
    };
    prepare();
    let before = driver.layer().counts();
    assert_eq!(prepare(), 0, "planning and publishing allocate nothing");
    assert_eq!(driver.layer().counts().since(&before).total(), 0, "and call no driver when there is no work");
    drop((buffers, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_new_edge_costs_a_record_and_a_wait_and_the_next_one_nothing() {
    let Bench { machine, driver, gpu } = bench();
    let kernels = Kernels::load(&gpu);
    let (to, from, other) = (
        gpu.upload(&[1_u32; 4]).unwrap(),
        gpu.upload(&[2_u32; 4]).unwrap(),
        gpu.upload(&[3_u32; 4]).unwrap(),
    );
    let second = gpu.stream().unwrap();
    launch(&gpu, &kernels, gpu.main_stream(), &to, &from);
    let before = driver.layer().counts();
    launch(&gpu, &kernels, &second, &to, &from);
    assert_eq!(driver.layer().counts().since(&before).of(CallKind::Submit), 3, "signal, wait, launch");
    let before = driver.layer().counts();
    launch(&gpu, &kernels, &second, &other, &from);
    assert_eq!(
        driver.layer().counts().since(&before).total(),
        1,
        "what the first edge brought along is free"
    );
    gpu.main_stream().synchronize().unwrap();
    let third = gpu.stream().unwrap();
    second.synchronize().unwrap();
    let before = driver.layer().counts();
    launch(&gpu, &kernels, &third, &to, &other);
    assert_eq!(driver.layer().counts().since(&before).total(), 1, "what the host waited for needs no event");
    drop((to, from, other, kernels, second, third, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
