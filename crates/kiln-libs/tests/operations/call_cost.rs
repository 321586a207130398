//! What a library call costs the host once its operation is loaded: heap allocations and driver calls, counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Driver;
use kiln_driver::call::{Answer, Call, CallKind};
use kiln_driver::layer::{Counting, Layer, Layered};
use kiln_libs::blas::{Activation, Blas, Determinism, Math, Matrix};
use kiln_libs::fft::Fft;
use kiln_sim::{Machine, MachineConfig, SimChecks};

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

struct Rig {
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
    _machine: Machine,
}

impl Rig {
    fn new() -> Self {
        // As on hardware, which does not ask what a launch may touch.
        let checks = SimChecks { declarations: false, ..SimChecks::default() };
        let machine = Machine::new(MachineConfig::seeded(1).checks(checks));
        let inside = Arc::new(Layered::new(machine.device(0).unwrap(), Inside));
        let driver = Arc::new(Layered::new(inside, Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        Self { driver, gpu, _machine: machine }
    }

    /// Allocations outside of the driver, submissions and other calls of the driver that a piece of work makes.
    fn cost(&self, work: impl FnOnce()) -> (u64, u64, u64) {
        let (calls, before) = (self.driver.layer().counts(), ALLOCATIONS.get() - INSIDE.get());
        work();
        let allocations = ALLOCATIONS.get() - INSIDE.get() - before;
        let calls = self.driver.layer().counts().since(&calls);
        let submitted = calls.of(CallKind::Submit);
        (allocations, submitted, calls.total() - submitted)
    }

    /// The cost of ten calls after two that load the operation.
    fn warm(&self, call: impl Fn()) -> (u64, u64, u64) {
        call();
        call();
        self.gpu.synchronize().unwrap();
        self.cost(|| (0..10).for_each(|_| call()))
    }
}

const TEN_SUBMISSIONS: (u64, u64, u64) = (0, 10, 0);

#[test]
fn a_warm_product_is_one_submission_and_no_allocation() {
    let rig = Rig::new();
    let (gpu, blas) = (&rig.gpu, Blas::new(&rig.gpu));
    let (a, b) = (gpu.upload(&[1.0_f32; 64]).unwrap(), gpu.upload(&[2.0_f32; 64]).unwrap());
    let (bias, c) = (gpu.upload(&[3.0_f32; 8]).unwrap(), gpu.allocate::<f32>(64).unwrap());
    let square = |buffer| Matrix::new(buffer, 8, 8);
    let plain = || {
        blas.matmul(square(&a), square(&b), square(&c)).submit().unwrap();
    };
    assert_eq!(rig.warm(plain), TEN_SUBMISSIONS);
    let epilogue = || {
        let product = blas.matmul(square(&a), square(&b).transposed(), square(&c)).beta(1.0);
        product.bias(&bias).activation(Activation::Relu).submit().unwrap();
    };
    assert_eq!(rig.warm(epilogue), TEN_SUBMISSIONS);
    // Parts of longer buffers cost as much.
    let part = || {
        let small = |buffer| Matrix::new(buffer, 4, 4);
        blas.matmul(small(&a), small(&b), small(&c)).submit().unwrap();
    };
    assert_eq!(rig.warm(part), TEN_SUBMISSIONS);
    assert_eq!(c.download().unwrap()[..16], [8.0; 16]);
}

#[test]
fn a_prepared_product_is_one_submission_and_no_allocation() {
    let rig = Rig::new();
    let (gpu, blas) = (&rig.gpu, Blas::new(&rig.gpu));
    let (a, b) = (gpu.upload(&[1.0_f32; 64]).unwrap(), gpu.upload(&[2.0_f32; 64]).unwrap());
    let (bias, c) = (gpu.upload(&[3.0_f32; 8]).unwrap(), gpu.zeros::<f32>(64).unwrap());
    let square = |buffer| Matrix::new(buffer, 8, 8);
    let plain = blas.matmul(square(&a), square(&b), square(&c)).prepare().unwrap();
    assert_eq!(rig.warm(|| assert!(plain.submit(&a, &b, &c).is_ok())), TEN_SUBMISSIONS);
    assert_eq!(c.download().unwrap(), [16.0; 64]);
    let product = blas.matmul(square(&a), square(&b).transposed(), square(&c)).beta(0.5);
    let epilogue = product.bias(&bias).activation(Activation::Relu).prepare().unwrap();
    c.fill(0.0).unwrap();
    assert_eq!(rig.warm(|| assert!(epilogue.submit(&a, &b, &c).is_ok())), TEN_SUBMISSIONS);
    let sum = (0..12).fold(0.0_f32, |sum, _| sum / 2.0 + 19.0);
    assert_eq!(c.download().unwrap(), [sum; 64]);
}

#[test]
fn other_warm_calls_are_one_submission_and_no_allocation() {
    let rig = Rig::new();
    let (gpu, blas, fft) = (&rig.gpu, Blas::new(&rig.gpu), Fft::new(&rig.gpu));
    let (x, y) = (gpu.upload(&[1.0_f64; 100]).unwrap(), gpu.upload(&[2.0_f64; 100]).unwrap());
    let dot = gpu.allocate::<f64>(1).unwrap();
    let axpy = || {
        blas.axpy(0.5, &x, &y).submit().unwrap();
    };
    assert_eq!(rig.warm(axpy), TEN_SUBMISSIONS);
    let inner = || {
        blas.dot(&x, &y, &dot).submit().unwrap();
    };
    assert_eq!(rig.warm(inner), TEN_SUBMISSIONS);
    // A transform has a workspace, which it takes and keeps again.
    let signal = gpu.upload(&[[1.0_f32, 0.0]; 64]).unwrap();
    let transform = || {
        fft.transform(&[64]).forward_in_place(&signal).submit().unwrap();
    };
    assert!(fft.transform(&[64]).forward_in_place(&signal).load().unwrap() > 0);
    assert_eq!(rig.warm(transform), TEN_SUBMISSIONS);
}

#[test]
fn calls_with_different_shapes_take_turns_at_no_cost() {
    let rig = Rig::new();
    let (gpu, blas) = (&rig.gpu, Blas::new(&rig.gpu));
    let (a, b) = (gpu.upload(&[1.0_f32; 4096]).unwrap(), gpu.upload(&[1.0_f32; 4096]).unwrap());
    let c = gpu.allocate::<f32>(4096).unwrap();
    let all = || {
        for n in 1..=10 {
            for k in 1..=4 {
                let product =
                    blas.matmul(Matrix::new(&a, 2, k), Matrix::new(&b, k, n), Matrix::new(&c, 2, n));
                product.submit().unwrap();
            }
        }
    };
    all();
    gpu.synchronize().unwrap();
    assert_eq!(rig.cost(all), (0, 40, 0));
    assert_eq!(c.download().unwrap()[..20], [4.0; 20]);
}

/// What a simulated device computes alike, and a library does not: the handle must not take one for the other.
#[test]
fn calls_that_ask_for_another_precision_or_order_load_another_operation() {
    let rig = Rig::new();
    let (gpu, blas) = (&rig.gpu, Blas::new(&rig.gpu));
    let [a, b, c] = [1.0_f32; 3].map(|value| gpu.upload(&[value; 64]).unwrap());
    let product = || {
        let square = |buffer| Matrix::new(buffer, 8, 8);
        blas.matmul(square(&a), square(&b), square(&c))
    };
    let all = || {
        product().submit().unwrap();
        product().determinism(Determinism::RunToRun).submit().unwrap();
        product().math(Math::Tf32).submit().unwrap();
        product().math(Math::Bf16x9).submit().unwrap();
        product().math(Math::Tf32).determinism(Determinism::RunToRun).submit().unwrap();
        product().workspace_limit_bytes(1 << 20).submit().unwrap();
    };
    let loads = || rig.driver.layer().counts().of(CallKind::Load);
    let before = loads();
    all();
    assert_eq!(loads() - before, 6, "each is loaded");
    all();
    assert_eq!(loads() - before, 6, "once");
}

#[test]
fn results_on_different_streams_do_not_share_a_workspace() {
    let rig = Rig::new();
    let (gpu, fft) = (&rig.gpu, Fft::new(&rig.gpu));
    let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
    let signals = streams.each_ref().map(|stream| gpu.allocate_on::<[f32; 2]>(stream, 64).unwrap());
    for signal in &signals {
        signal.fill([1.0, 0.0]).unwrap();
    }
    let both = || {
        for signal in &signals {
            fft.transform(&[64]).forward_in_place(signal).submit().unwrap();
        }
    };
    // One submission for each: neither stream waits for the other.
    assert_eq!(rig.warm(both), (0, 20, 0));
}
