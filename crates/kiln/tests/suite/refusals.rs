//! Requests that cannot be right: a typed error, nothing queued, nothing stamped.

use std::sync::Arc;

use kiln::{
    DeviceRuntime, Error, GpuRef, RuntimeConfig, Ticket,
    buffer::{LastWrite, Stale},
    error::{ErrorKind, Misuse},
    launch::{Mismatch, Number, Parameter, ParameterKind, Signature},
    recovery::{Cause, Phase},
};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Layered};
use kiln_driver::{
    Access, Code, Driver, Error as DriverError, EventRequest, Fault, ForeignHandle, Image, Object,
    StreamRequest,
};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use crate::order::kernels::{Kernels, LIBRARY, library};

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
            launch.grid(1).block(1);
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
        launch.grid(1).block(1);
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
    assert!(matches!(misuse(&error), Misuse::CopyOverlap), "{error}");
    assert!(error.to_string().contains("the source and the destination of the copy share bytes"), "{error}");
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
    for (cluster, grid) in [((0, 1, 1), 8), ((3, 1, 1), 8), ((2, 2, 1), 8), ((64, 1, 1), 64)] {
        let error = scene.launch_refused("a cluster the grid has no whole number of", |launch| {
            launch.cluster(cluster).grid(grid).read_write(to).read(from).value(8_u32).value(1_u32);
        });
        assert!(matches!(mismatch(&error), Mismatch::Shape { what: "cluster", .. }), "{error}");
    }
    let exceeded = |mismatch: &Mismatch| {
        matches!(mismatch, Mismatch::CooperativeResidencyExceeded { blocks: 1_000_000, .. })
    };
    assert!(exceeded(mismatch(&error)), "{error}");
    scene.close();
}

#[test]
fn kinds_of_launches_that_the_device_has_not() {
    let machine = Machine::new(MachineConfig::seeded(3).device(DeviceConfig::small()).library(library()));
    {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let (to, from) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.upload(&[2_u32; LEN]).unwrap());
        let kernels = Kernels::load(&gpu);
        let before = driver.layer().counts();
        let launch = |ask: fn(&mut kiln::Launch<'_>)| {
            let mut launch = gpu.launch(&kernels.mix);
            launch.grid(1).block(1);
            ask(launch.read_write(&to).read(&from).value(8_u32).value(1_u32));
            // SAFETY: the launch is refused before it is queued.
            unsafe { launch.submit() }.unwrap_err()
        };
        let error = launch(|launch| {
            launch.cluster(1);
        });
        assert!(matches!(mismatch(&error), Mismatch::Shape { what: "cluster", .. }), "{error}");
        let error = launch(|launch| {
            launch.cooperative();
        });
        assert!(error.driver().is_some_and(|error| error.is_unsupported()), "{error}");
        assert!(error.to_string().starts_with("kernel `mix`: "), "{error}");
        assert_eq!(driver.layer().counts().since(&before).of(CallKind::Submit), 0, "nothing was queued");
    }
    assert!(machine.finish().is_clean());
}

#[test]
fn signatures_that_are_not_the_kernels() {
    let scene = Scene::new();
    let parameter = |offset, bytes| {
        let (kind, number) = (ParameterKind::Unknown, Number::Unknown);
        Parameter { name: None, offset, bytes, kind, number }
    };
    let right = vec![parameter(0, 8), parameter(8, 8), parameter(16, 4), parameter(20, 4)];
    let change = |at: usize, other| {
        let mut all = right.clone();
        all[at] = other;
        all
    };
    for (what, parameters) in [
        ("too few", right[..3].to_vec()),
        ("another size", change(3, parameter(20, 8))),
        ("another place", change(3, parameter(24, 4))),
        ("a place past everything", change(0, parameter(u32::MAX, u32::MAX))),
    ] {
        let error = scene.refused(what, |scene| {
            let signature = Signature::new(parameters);
            scene.gpu.load_kernel(&Image::HostKernels(LIBRARY), "mix", Some(signature)).map(drop)
        });
        assert!(matches!(mismatch(&error), Mismatch::Layout { .. }), "{what}: {error}");
        assert!(error.to_string().starts_with("kernel `mix` takes 8 bytes at 0, 8 bytes at 8, "), "{error}");
    }
    assert!(scene.gpu.load_kernel(&Image::HostKernels(LIBRARY), "mix", Some(Signature::new(right))).is_ok());
    scene.close();
}

#[test]
fn work_of_the_callers_own_is_refused_by_the_same_rules() {
    let scene = Scene::new();
    let Scene { gpu, to, from, other, foreign, .. } = &scene;
    let (ours, theirs) = (gpu.main_stream(), other.main_stream());
    let uses = [to.used_as(Access::Write), foreign.used_as(Access::Read)];
    let own = [to.used_as(Access::Write)];
    let mut recorder = gpu.recorder(ours);
    recorder.write(to).read(foreign);
    for error in [
        scene.refused("a first use of a foreign block", |_| {
            gpu.prepare_first_use(ours, foreign, Access::Write).map(drop)
        }),
        scene.refused("a record of a foreign block", |_| gpu.record_block_use(ours, &uses).map(drop)),
        scene.refused("an address of a foreign block", |_| {
            gpu.raw_device_ptr(ours, foreign, Access::Read).map(drop)
        }),
        scene.refused("a recorder with a foreign block", |_| recorder.preflight().map(drop)),
    ] {
        assert!(matches!(misuse(&error), Misuse::ForeignBlock { .. }), "{error}");
    }
    let elsewhere = gpu.recorder(theirs);
    for error in [
        scene.refused("a use", |_| gpu.prepare_block_use(theirs, &own).map(drop)),
        scene.refused("a first use", |_| gpu.prepare_first_use(theirs, to, Access::Write).map(drop)),
        scene.refused("a record", |_| gpu.record_block_use(theirs, &own).map(drop)),
        scene.refused("an address", |_| gpu.raw_device_ptr(theirs, to, Access::Read).map(drop)),
        scene.refused("a recorder", |_| elsewhere.preflight().map(drop)),
        scene.refused("an allocation", |_| gpu.allocate_on::<u32>(theirs, 1).map(drop)),
        scene.refused("a download", |_| from.download_into_on(theirs, &mut [0; LEN])),
        scene.refused("a copy", |_| to.copy_from_on(theirs, from).map(drop)),
        scene.refused("a fill", |_| to.fill_on(theirs, 7).map(drop)),
        scene
            .refused("a copy of pinned memory", |_| gpu.pinned::<u32>(LEN)?.copy_to_on(theirs, to).map(drop)),
    ] {
        assert!(matches!(misuse(&error), Misuse::ForeignStream { .. }), "on a foreign stream: {error}");
    }
    let (low, high) = (to.view(..5).unwrap(), to.view(4..).unwrap());
    let twice = [low.used_as(Access::Write), high.used_as(Access::ReadWrite)];
    let mut recorder = gpu.recorder(ours);
    recorder.write(&low).read_write(&high);
    for error in [
        scene.refused("bytes written twice", |_| gpu.prepare_block_use(ours, &twice).map(drop)),
        scene.refused("bytes recorded twice", |_| gpu.record_block_use(ours, &twice).map(drop)),
        scene.refused("a recorder of them", |_| recorder.preflight().map(drop)),
    ] {
        assert!(matches!(misuse(&error), Misuse::Overlap { first: 0, second: 1 }), "{error}");
    }
    assert_eq!(gpu.unfinished_uses(), 0, "what was refused needs no end");
    drop((low, high));
    scene.close();
}

#[test]
fn everything_after_shutdown() {
    let scene = Scene::new();
    let Scene { gpu, driver, to, from, .. } = &scene;
    let stream = gpu.stream().unwrap();
    let event = driver.create_event(EventRequest::Plain).unwrap();
    let theirs = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    // SAFETY: both are destroyed at the end, when the names kiln has for them are given back.
    let handle = |object: Object| unsafe { ForeignHandle::new(driver.native(object).unwrap()) };
    let lent = gpu.import_event(handle(event.into())).unwrap();
    let mut pinned = gpu.pinned::<u32>(LEN).unwrap();
    let none = gpu.allocate::<u32>(0).unwrap();
    let ticket = to.fill(1).unwrap();
    let uses = [to.used_as(Access::Write)];
    let mut recorder = gpu.recorder(&stream);
    recorder.read(from);
    assert!(gpu.shutdown(std::time::Duration::from_secs(10)).unwrap());
    let mut refused: Vec<(&str, Error)> = Vec::new();
    let mut refuse = |what: &'static str, request: &mut dyn FnMut() -> kiln::Result<()>| {
        refused.push((what, scene.refused(what, |_| request())));
    };
    refuse("a launch", &mut || {
        let mut launch = gpu.launch(&scene.kernels.mix);
        launch.grid(1).block(1);
        launch.on(&stream).read_write(to).read(from).value(8_u32).value(1_u32);
        // SAFETY: the launch is refused before it is queued.
        unsafe { launch.submit() }.map(drop)
    });
    refuse("an allocation", &mut || gpu.allocate::<u32>(1).map(drop));
    refuse("an upload", &mut || to.upload_on(&stream, &[0; LEN]).map(drop));
    refuse("a download", &mut || from.download_into_on(&stream, &mut [0; LEN]));
    refuse("a copy", &mut || to.copy_from_on(&stream, from).map(drop));
    refuse("a fill", &mut || to.fill(1).map(drop));
    refuse("a fill of nothing", &mut || none.fill(1).map(drop));
    refuse("an upload of nothing", &mut || none.upload(&[]).map(drop));
    refuse("a copy to pinned memory", &mut || pinned.copy_from(from).map(drop));
    refuse("a written mark", &mut || to.record_write(&stream).map(drop));
    refuse("a prepared use", &mut || gpu.prepare_block_use(&stream, &uses).map(drop));
    refuse("a first use", &mut || gpu.prepare_first_use(&stream, to, Access::Write).map(drop));
    refuse("a recorded use", &mut || gpu.record_block_use(&stream, &uses).map(drop));
    refuse("a foreign use", &mut || gpu.record_foreign_use(&stream, &uses, &lent).map(drop));
    refuse("a recorder", &mut || recorder.preflight().map(drop));
    refuse("an address", &mut || gpu.raw_device_ptr(&stream, to, Access::Read).map(drop));
    refuse("a wait for a ticket", &mut || stream.wait_for(&ticket));
    refuse("a wait for an event", &mut || stream.wait_event(&lent));
    refuse("a signal", &mut || stream.signal_event(&lent));
    refuse("a stream", &mut || gpu.stream().map(drop));
    refuse("a foreign stream", &mut || gpu.streams().import(handle(theirs.into())).map(drop));
    refuse("a foreign event", &mut || gpu.import_event(handle(event.into())).map(drop));
    for (what, error) in refused {
        assert!(matches!(error.kind(), ErrorKind::Stale(Stale::ShuttingDown)), "{what}: {error}");
    }
    assert!(ticket.is_done().unwrap(), "tickets still answer");
    assert_eq!(to.last_write_stream(), LastWrite::Stream(gpu.main_stream().key()));
    drop((lent, pinned, none, stream));
    driver.destroy(event.into()).unwrap();
    driver.destroy(theirs.into()).unwrap();
    let Scene { machines, driver, gpu, kernels, to, from, other, foreign } = scene;
    drop((gpu, driver, kernels, to, from, other, foreign));
    assert!(machines.iter().all(|machine| machine.finish().is_clean()));
}

#[test]
fn the_alternate_form_of_an_error_says_a_cause_once() {
    let lost =
        DriverError::lost("wait", Fault { code: Code::ILLEGAL_ADDRESS, detail: "its worker ended".into() });
    let cause = Arc::new(Cause::new(lost.clone()));
    let not_ready = ErrorKind::NotReady { phase: Phase::Rebuilding, cause: cause.clone() };
    for kind in [not_ready, ErrorKind::Faulted { cause }] {
        let error = Error::new(kind);
        assert_eq!(format!("{error:#}"), format!("{error}: {lost}"));
    }
}
