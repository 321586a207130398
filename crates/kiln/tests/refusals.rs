//! Requests that cannot be right: a typed error, nothing queued, nothing stamped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod order {
    pub(crate) mod kernels;
}

use std::sync::Arc;

use kiln::{DeviceRuntime, Error, ErrorKind, GpuRef, Mismatch, Misuse, Number, RuntimeConfig, Stale, Ticket};
use kiln_driver::Access;
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Layered};
use kiln_sim::{Machine, MachineConfig};
use order::kernels::{Kernels, library};

const LEN: usize = 8;

/// A runtime, what it has, and a runtime of another device.
struct Scene {
    machines: [Machine; 2],
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
    kernels: Kernels,
    to: GpuRef<u32>,
    from: GpuRef<u32>,
    other: DeviceRuntime,
    foreign: GpuRef<u32>,
}

impl Scene {
    fn new() -> Self {
        let machines = [1, 2].map(|seed| Machine::new(MachineConfig::seeded(seed).library(library())));
        let driver = Arc::new(Layered::new(machines[0].device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let other = machines[1].device(0).unwrap();
        let other = DeviceRuntime::from_driver(other, RuntimeConfig::default()).unwrap();
        let (to, from) = (gpu.upload(&[1; LEN]).unwrap(), gpu.upload(&[2; LEN]).unwrap());
        gpu.synchronize().unwrap();
        let foreign = other.upload(&[3; LEN]).unwrap();
        Self { machines, driver, kernels: Kernels::load(&gpu), gpu, to, from, other, foreign }
    }

    /// Makes a request, which must be refused and must leave nothing behind.
    #[track_caller]
    fn refused<T>(&self, what: &str, request: impl FnOnce(&Self) -> kiln::Result<T>) -> Error {
        let stamp = || self.gpu.main_stream().ticket().unwrap().stamp();
        let (counts, before) = (self.driver.layer().counts(), stamp());
        let writers = (self.to.last_write_stream(), self.from.last_write_stream());
        let Err(error) = request(self) else { panic!("{what} was not refused") };
        let queued = self.driver.layer().counts().since(&counts).of(CallKind::Submit);
        assert_eq!(queued, 0, "{what}: something was queued ({error})");
        assert_eq!(stamp(), before, "{what}: something was stamped ({error})");
        assert_eq!(writers, (self.to.last_write_stream(), self.from.last_write_stream()), "{what}");
        error
    }

    /// As [`refused`](Self::refused), for a launch of `mix(to, from, n, k)`.
    #[track_caller]
    fn launch_refused<'a>(&'a self, what: &str, give: impl FnOnce(&mut kiln::Launch<'a>)) -> Error {
        self.refused(what, |_| {
            let mut launch = self.gpu.launch(&self.kernels.mix);
            give(&mut launch);
            // SAFETY: the launch is refused before it is queued.
            unsafe { launch.submit() }
        })
    }

    /// Everything is as it was, and still works.
    fn close(self) {
        let Self { machines, driver, gpu, kernels, to, from, other, foreign } = self;
        assert_eq!((to.download().unwrap(), from.download().unwrap()), (vec![1; LEN], vec![2; LEN]));
        assert_eq!(foreign.download().unwrap(), [3; LEN]);
        drop((gpu, driver, kernels, to, from, other, foreign));
        for machine in machines {
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }
}

#[track_caller]
fn mismatch(error: &Error) -> &Mismatch {
    let ErrorKind::Mismatch(mismatch) = error.kind() else { panic!("expected a mismatch, got {error}") };
    mismatch
}

#[track_caller]
fn misuse(error: &Error) -> &Misuse {
    let ErrorKind::Misuse(misuse) = error.kind() else { panic!("expected a misuse, got {error}") };
    misuse
}

#[test]
fn arguments_of_another_count_kind_or_size() {
    let scene = Scene::new();
    let Scene { to, from, .. } = &scene;
    let error = scene.launch_refused("one too few", |launch| {
        launch.read_write(to).read(from).value(8_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Count { wanted: 4, given: 3, .. }), "{error}");
    let error = scene.launch_refused("one too many", |launch| {
        launch.read_write(to).read(from).value(8_u32).value(1_u32).read(from);
    });
    assert!(matches!(mismatch(&error), Mismatch::Count { wanted: 4, given: 5, .. }), "{error}");
    let error = scene.launch_refused("a value for a pointer", |launch| {
        launch.read_write(to).value(0_u64).value(8_u32).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Kind { wanted: "a pointer", .. }), "{error}");
    let error = scene.launch_refused("a pointer for a value", |launch| {
        launch.read_write(to).read(from).read(from).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Kind { wanted: "a value", .. }), "{error}");
    let error = scene.launch_refused("a value of another size", |launch| {
        launch.read_write(to).read(from).value(8_u32).value(1.0_f64);
    });
    assert!(matches!(mismatch(&error), Mismatch::Size { wanted: 4, given: 8, .. }), "{error}");
    let error = scene.launch_refused("a float for an integer", |launch| {
        launch.read_write(to).read(from).value(8_u32).value(1.0_f32);
    });
    let (wanted, given) = (Number::Whole, Number::Float);
    assert!(
        matches!(mismatch(&error), Mismatch::Number { wanted: w, given: g, bytes: 4, .. } if (*w, *g) == (wanted, given)),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "kernel `mix`, parameter 3: it is a whole number of 4 bytes, and a floating point number of 4 bytes was given; convert it"
    );
    let error = scene.launch_refused("a written pointer declared as read", |launch| {
        launch.read(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Access { .. }), "{error}");
    scene.close();
}

#[test]
fn buffers_streams_kernels_and_tickets_of_another_device() {
    let scene = Scene::new();
    let Scene { to, from, foreign, other, .. } = &scene;
    let error = scene.launch_refused("a foreign buffer", |launch| {
        launch.read_write(to).read(foreign).value(8_u32).value(1_u32);
    });
    assert!(matches!(misuse(&error), Misuse::ForeignBlock { .. }), "{error}");
    let error = scene.launch_refused("a foreign stream", |launch| {
        launch.on(other.main_stream()).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(misuse(&error), Misuse::ForeignStream { .. }), "{error}");
    let kernels = Kernels::load(other);
    let error = scene.refused("a foreign kernel", |scene| {
        let mut launch = scene.gpu.launch(&kernels.mix);
        launch.read_write(to).read(from).value(8_u32).value(1_u32);
        // SAFETY: the launch is refused before it is queued.
        unsafe { launch.submit() }
    });
    assert!(matches!(mismatch(&error), Mismatch::ForeignKernel { .. }), "{error}");
    let error = scene.refused("a copy between devices", |_| to.copy_from(foreign));
    assert!(matches!(misuse(&error), Misuse::ForeignBlock { .. }), "{error}");
    let uses = [to.used_as(Access::Write), foreign.used_as(Access::Read)];
    let error = scene.refused("a foreign block", |scene| {
        scene.gpu.prepare_block_use(scene.gpu.main_stream(), &uses).map(drop)
    });
    assert!(matches!(misuse(&error), Misuse::ForeignBlock { .. }), "{error}");
    let error = scene.refused("a write on a foreign stream", |_| to.record_write(other.main_stream()));
    assert!(matches!(misuse(&error), Misuse::ForeignStream { .. }), "{error}");
    let ticket: Ticket = foreign.fill(3).unwrap();
    let error = scene.refused("a foreign ticket", |scene| scene.gpu.main_stream().wait_for(&ticket));
    assert!(matches!(misuse(&error), Misuse::ForeignTicket), "{error}");
    drop((kernels, ticket));
    scene.close();
}

#[test]
fn handles_of_a_runtime_that_was_dropped() {
    let scene = Scene::new();
    let machine = Machine::new(MachineConfig::seeded(9).library(library()));
    let (stale, stream) = {
        let gone = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        (gone.upload(&[5_u32; LEN]).unwrap(), gone.stream().unwrap())
    };
    let is_stale = |error: &Error| matches!(error.kind(), ErrorKind::Stale(Stale::DeviceDropped));
    let Scene { to, from, .. } = &scene;
    let error = scene.launch_refused("a stale buffer", |launch| {
        launch.read_write(to).read(&stale).value(8_u32).value(1_u32);
    });
    assert!(is_stale(&error), "{error}");
    let uses = [to.used_as(Access::Write), stale.used_as(Access::Read)];
    let error = scene.refused("a stale block", |scene| {
        scene.gpu.prepare_block_use(scene.gpu.main_stream(), &uses).map(drop)
    });
    assert!(is_stale(&error), "{error}");
    assert!(is_stale(&scene.refused("a copy from it", |_| to.copy_from(&stale))));
    assert!(is_stale(&scene.refused("a fill of it", |_| stale.fill(1))));
    assert!(is_stale(&scene.refused("a download", |_| stale.download())));
    let error = scene.launch_refused("a stream after shutdown", |launch| {
        launch.on(&stream).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(misuse(&error), Misuse::ForeignStream { .. }), "{error}");
    for error in [
        scene.refused("a ticket of it", |_| stream.ticket()),
        scene.refused("a wait for it", |_| stream.synchronize()),
        scene.refused("a wait on it", |scene| stream.wait_for(&scene.gpu.main_stream().ticket()?)),
    ] {
        assert!(matches!(misuse(&error), Misuse::RuntimeGone), "{error}");
    }
    drop((stale, stream));
    assert!(machine.finish().is_clean());
    scene.close();
}

#[test]
fn views_out_of_range_and_bytes_written_twice() {
    let scene = Scene::new();
    let Scene { to, .. } = &scene;
    let error = scene.refused("a view past the end", |_| to.view(4..9));
    assert!(matches!(misuse(&error), Misuse::ViewOutOfRange { start: 4, end: 9, len: 8 }), "{error}");
    let error = scene.refused("a view that ends at the largest number", |_| to.view(0..=usize::MAX));
    assert!(matches!(misuse(&error), Misuse::ViewOutOfRange { .. }), "{error}");
    let error = scene.refused("words of three bytes", |_| to.view(0..1)?.cast::<[u8; 3]>());
    assert!(matches!(misuse(&error), Misuse::Cast { bytes: 4, .. }), "{error}");
    // On another stream, so that a stamp would show as another writer.
    let (low, high, second) = (to.view(0..5).unwrap(), to.view(4..8).unwrap(), scene.gpu.stream().unwrap());
    let before = second.ticket().unwrap().stamp();
    let error = scene.launch_refused("one element written twice", |launch| {
        launch.on(&second).read_write(&low).read_write(&high).value(1_u32).value(1_u32);
    });
    assert!(matches!(misuse(&error), Misuse::Overlap { first: 0, second: 1 }), "{error}");
    let error = scene.launch_refused("a buffer written twice", |launch| {
        launch.on(&second).read_write(to).write(to).value(1_u32).value(1_u32);
    });
    assert!(matches!(misuse(&error), Misuse::Overlap { first: 0, second: 1 }), "{error}");
    assert_eq!(second.ticket().unwrap().stamp(), before, "a refused step uses up no number");
    let spare = scene.gpu.allocate_on::<u32>(&second, LEN).unwrap();
    let next = spare.copy_from_on(&second, &scene.from).unwrap().stamp();
    assert_eq!(next.number, before.number + 1);
    scene.gpu.synchronize().unwrap();
    let error = scene.refused("a copy onto itself", |_| to.view(2..6)?.copy_from(&to.view(0..4)?));
    assert!(matches!(misuse(&error), Misuse::Overlap { .. }), "{error}");
    let error = scene.refused("too much data", |_| to.upload(&[0; LEN + 1]));
    assert!(matches!(misuse(&error), Misuse::Length { buffer: LEN, given: 9 }), "{error}");
    drop((low, high, spare, second));
    scene.close();
}

#[test]
fn shapes_outside_of_the_limits() {
    let scene = Scene::new();
    let Scene { to, from, .. } = &scene;
    let error = scene.launch_refused("an empty grid", |launch| {
        launch.grid(0).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Shape { what: "grid", .. }), "{error}");
    let error = scene.launch_refused("a block of too many threads", |launch| {
        launch.block((1024, 2)).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Shape { what: "block", .. }), "{error}");
    let error = scene.launch_refused("too much shared memory", |launch| {
        launch.shared(1 << 30).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    assert!(matches!(mismatch(&error), Mismatch::Shared { .. }), "{error}");
    let error = scene.launch_refused("more blocks than can be resident", |launch| {
        launch.cooperative().grid(1_000_000).read_write(to).read(from).value(8_u32).value(1_u32);
    });
    let exceeded = |mismatch: &Mismatch| {
        matches!(mismatch, Mismatch::CooperativeResidencyExceeded { blocks: 1_000_000, .. })
    };
    assert!(exceeded(mismatch(&error)), "{error}");
    scene.close();
}
