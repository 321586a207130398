//! What a piece of work may cost: driver calls and heap allocations, counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::call::{Answer, Call, CallKind};
use kiln_driver::layer::{Counting, Layer, Layered};
use kiln_driver::{Access, Driver, Image};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig, SimChecks};

use crate::order::kernels::{Kernels, library};

/// Counts the allocations of each thread apart, so that tests beside this one do not matter.
struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static INSIDE: Cell<u64> = const { Cell::new(0) };
    static ENTERED_AT: Cell<u64> = const { Cell::new(0) };
}

/// Counts what is allocated inside of the driver apart: the simulated one keeps its queue on the heap.
struct Inside;

impl Layer for Inside {
    fn before(&self, _: &dyn Driver, _: &Call<'_>) -> kiln_driver::Result<()> {
        ENTERED_AT.set(ALLOCATIONS.get());
        Ok(())
    }

    fn after(&self, _: &Call<'_>, _: Result<Answer<'_>, &kiln_driver::Error>) {
        INSIDE.set(INSIDE.get() + ALLOCATIONS.get() - ENTERED_AT.get());
    }
}

/// Allocations outside of the driver that a piece of work makes.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get() - INSIDE.get();
    work();
    ALLOCATIONS.get() - INSIDE.get() - before
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
    // As on hardware, which does not ask what a launch may touch.
    let checks = SimChecks { declarations: false, ..SimChecks::default() };
    let config = MachineConfig::seeded(1).checks(checks).library(library()).library(many_buffers());
    let machine = Machine::new(config);
    let inside = Arc::new(Layered::new(machine.device(0).unwrap(), Inside));
    let driver = Arc::new(Layered::new(inside, Counting::default()));
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
    launch.grid(1).block(1);
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
    let allocated = allocations(|| (0..10).for_each(|_| launch(&gpu, &kernels, stream, &to, &from)));
    let counts = driver.layer().counts().since(&before);
    assert_eq!((counts.total(), counts.of(CallKind::Submit)), (10, 10));
    assert_eq!(allocated, 0, "nothing goes to the heap");
    drop((to, from, kernels, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_launch_that_is_recorded_takes_nothing_from_the_heap() {
    let Bench { machine, gpu, .. } = bench();
    let path = std::env::temp_dir().join(format!("kiln-counts-{}.kiln", std::process::id()));
    gpu.trace(&path).unwrap();
    let kernels = Kernels::load(&gpu);
    let (to, from) = (gpu.upload(&[1_u32; 4]).unwrap(), gpu.upload(&[2_u32; 4]).unwrap());
    let streams = [gpu.main_stream().clone(), gpu.stream().unwrap()];
    // A wait of the host may allocate, and is not counted.
    let launches = |count: usize| {
        let mut allocated = 0;
        for at in 0..count {
            allocated += allocations(|| launch(&gpu, &kernels, &streams[at / 8 % 2], &to, &from));
            if at % 64 == 63 {
                gpu.synchronize().unwrap();
            }
        }
        allocated
    };
    // Lanes, and events for the times, are made with the first.
    launches(512);
    assert_eq!(launches(256), 0, "nothing goes to the heap");
    drop((to, from, kernels, streams, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
    std::fs::remove_file(path).unwrap();
}

const MANY: usize = 32;

/// `many(p0, ..., p31)` reads the first word behind each.
fn many_buffers() -> KernelLibrary {
    let declared = (0..MANY).fold(HostKernel::new("many"), |kernel, _| kernel.pointer(Access::Read));
    let many = declared.body(|launch| {
        for at in 0..MANY {
            let address = launch.address(at)?;
            let _ = launch.port().load::<u32>(address)?;
        }
        Ok(())
    });
    KernelLibrary::new("many buffers").kernel(many)
}

#[test]
fn a_launch_that_reads_thirty_two_buffers_costs_one_driver_call_and_no_heap() {
    let Bench { machine, driver, gpu } = bench();
    let many = gpu.load_kernel(&Image::HostKernels("many buffers"), "many", None).unwrap();
    let buffers: Vec<GpuRef<u32>> = (0..MANY).map(|_| gpu.upload(&[1; 4]).unwrap()).collect();
    let launch = || {
        let mut launch = gpu.launch(&many);
        launch.grid(1).block(1);
        for buffer in &buffers {
            launch.read(buffer);
        }
        // SAFETY: the kernel reads one word of each buffer.
        unsafe { launch.submit() }.unwrap();
    };
    launch();
    let before = driver.layer().counts();
    assert_eq!(allocations(launch), 0);
    let counts = driver.layer().counts().since(&before);
    assert_eq!((counts.total(), counts.of(CallKind::Submit)), (1, 1));
    drop((buffers, many, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn thirty_two_blocks_of_foreign_work_cost_no_driver_call_and_no_heap() {
    let Bench { machine, driver, gpu } = bench();
    let buffers: Vec<GpuRef<u32>> = (0..MANY).map(|_| gpu.upload(&[1; 4]).unwrap()).collect();
    let stream = gpu.main_stream();
    let prepare = || {
        let uses: [_; MANY] = std::array::from_fn(|at| buffers[at].used_as(Access::Read));
        gpu.prepare_block_use(stream, &uses).unwrap().finish().unwrap();
    };
    prepare();
    let before = driver.layer().counts();
    assert_eq!(allocations(prepare), 0, "planning and publishing allocate nothing");
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
