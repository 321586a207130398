//! A standby has the client's objects before it is needed, and releases what the client releases.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rig::held::Held;
use crate::rig::{self, Scene};
use kiln_driver::{
    Command, Driver, DriverExt, EventRequest, Function, GraphNode, Image, MemoryRequest, ModuleId,
    PageRequest, Pattern, Protection, ReserveRequest, StreamRequest,
};
use kiln_isolate::{
    IsolatedDevice, IsolationConfig, ObjectCounts, RestartPolicy, TakeoverError, WorkerEvent,
};

const NEW: StreamRequest = StreamRequest::New { priority: 0 };

fn listening(config: IsolationConfig) -> (IsolationConfig, Receiver<WorkerEvent>) {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    (config.observe(move |news| drop(tell.lock().unwrap().send(news.clone()))), told)
}

/// Waits until the standby's object counts match.
fn prepared(told: &Receiver<WorkerEvent>, wanted: impl Fn(&ObjectCounts) -> bool) -> ObjectCounts {
    loop {
        let news = told.recv_timeout(Duration::from_secs(60)).expect("an event of the standby");
        if let WorkerEvent::Prepared { has, .. } = news
            && wanted(&has)
        {
            return has;
        }
    }
}

#[test]
fn a_takeover_finds_everything_done() {
    let _turn = rig::turn();
    let before = Held::settled();
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 61);
    let event = device.create_event(EventRequest::Timed).unwrap();
    let fill = Command::Fill { to: scene.reservation.id.into(), pattern: Pattern::U8(8), count: 16 };
    let graph = device.build_graph(&[GraphNode { command: fill, after: &[] }]).unwrap();
    let all = prepared(&told, |has| has.graphs == 1);
    assert_eq!((all.pages, all.ranges, all.mappings, all.hosts), (2, 1, 2, 1));
    assert_eq!((all.modules, all.kernels, all.streams, all.events), (1, 1, 1, 1));

    for generation in 2..4 {
        device.kill_worker();
        let takeover = device.take_over().unwrap();
        assert!(takeover.standby, "generation {generation}");
        assert_eq!((takeover.prepared, takeover.rebuilt), (all, ObjectCounts::default()));
        assert_eq!(takeover.kept_bytes, 2 * scene.granule);
        assert_eq!(scene.download(&device, 0).unwrap(), [61; 64]);
        scene.play(&device, 61);
        prepared(&told, |has| has.graphs == 1);
    }
    device.submit(scene.stream, &Command::Signal(event)).unwrap();
    device.submit(scene.stream, &Command::Graph(graph)).unwrap();
    device.synchronize(scene.stream).unwrap();
    assert_eq!(scene.download(&device, 0).unwrap()[..16], [8; 16]);
    drop((scene, device));
    before.assert_restored("at the end");
}

/// Operations of three libraries, of which one takes workspace.
const OPERATIONS: [(&str, &str); 3] = [
    ("blas.axpy", "blas.axpy element=f32 n=4 x_step=1 y_step=1"),
    ("fft", "fft kind=forward element=f32 shape=2 batch=1 in_place=true"),
    ("solve.potrf", "solve.potrf element=f32 n=2 triangle=lower leading=2"),
];

#[test]
fn a_standby_has_the_operations_of_libraries_loaded() {
    let _turn = rig::turn();
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    let (axpy, modules) = load_operations(&device);
    // The kernel of the scene is another module.
    let loaded = OPERATIONS.len() + 1;
    let all = prepared(&told, |has| has.kernels == loaded);
    assert_eq!(all.modules, loaded);
    for generation in 2..4 {
        device.kill_worker();
        let takeover = device.take_over().unwrap();
        assert!(takeover.standby, "generation {generation}");
        assert_eq!((takeover.prepared, takeover.rebuilt), (all, ObjectCounts::default()));
        add(&device, &scene, &axpy);
        prepared(&told, |has| has.kernels == loaded);
    }
    // What is unloaded is unloaded in the standby, too.
    for module in modules {
        device.destroy(module.into()).unwrap();
    }
    prepared(&told, |has| (has.modules, has.kernels) == (1, 1));
}

/// Loads all operations; the first one as a function.
fn load_operations(device: &IsolatedDevice) -> (Function, Vec<ModuleId>) {
    let load = |(name, text): (&str, &str)| {
        let module = device.load(&Image::Library(text)).unwrap();
        (module, device.function(module, name).unwrap())
    };
    let loaded = OPERATIONS.map(load);
    let modules = loaded.iter().map(|(module, _)| *module).collect();
    let [(_, axpy), ..] = loaded;
    (axpy, modules)
}

/// Adds two times the numbers at the start of the memory to those behind them, and looks at the sums.
fn add(device: &IsolatedDevice, scene: &Scene, axpy: &Function) {
    let numbers = [1.0_f32, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert!(scene.host.write(0, &bytes));
    device.upload(scene.stream, &scene.host, scene.reservation.id.into(), bytes.len() as u64).unwrap();
    let x = scene.reservation.address.0;
    let words = [x, x + 16, 2.0_f64.to_bits()];
    let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    device.submit(scene.stream, &rig::launch(axpy, &arguments)).unwrap();
    let found = scene.download(device, 16).unwrap();
    let sums: Vec<f32> = found.as_chunks().0.iter().take(4).map(|word| f32::from_le_bytes(*word)).collect();
    assert_eq!(sums, [12.0, 24.0, 36.0, 48.0]);
}

#[test]
fn what_changes_and_ends_does_so_in_the_standby() {
    let _turn = rig::turn();
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let granule = device.info().limits.page_granularity_bytes;
    let range = device.reserve(ReserveRequest { bytes: 4 * granule, at: None }).unwrap();
    let make = || device.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap();
    let pages = [make(), make(), make()];
    device.map(range.id, 0, &pages, Protection::ReadWrite).unwrap();
    let (stream, host) = (device.create_stream(NEW).unwrap(), device.allocate_host(64).unwrap());
    let module = device.load(&Image::HostKernels("test")).unwrap();
    let store = device.function(module, "store").unwrap();
    let fill = |byte| Command::Fill { to: range.id.into(), pattern: Pattern::U8(byte), count: 16 };
    let graph = device.build_graph(&[GraphNode { command: fill(1), after: &[] }]).unwrap();
    let gone = device.create_stream(NEW).unwrap();
    prepared(&told, |has| (has.mappings, has.streams, has.kernels, has.graphs) == (3, 2, 1, 1));

    // The first and the last pages are swapped, the second become read-only, one stream and one host block are destroyed.
    device.unmap(range.id, 0, granule).unwrap();
    device.unmap(range.id, 2 * granule, granule).unwrap();
    device.map(range.id, 0, &[pages[2]], Protection::ReadWrite).unwrap();
    device.map(range.id, 3 * granule, &[pages[0]], Protection::ReadWrite).unwrap();
    device.protect(range.id, granule, granule, Protection::Read).unwrap();
    device.update_graph(graph, 0, &fill(2)).unwrap();
    device.destroy(gone.into()).unwrap();
    device.destroy(host.id().into()).unwrap();
    device.fill(stream, kiln_driver::DevicePlace::from(range.id).plus(3 * granule), 77, 64).unwrap();
    device.synchronize(stream).unwrap();
    let has = prepared(&told, |has| (has.streams, has.hosts, has.mappings) == (1, 0, 3));
    assert_eq!((has.pages, has.graphs), (3, 1));

    device.kill_worker();
    let takeover = device.take_over().unwrap();
    assert!(takeover.standby);
    assert!(takeover.rebuilt.is_empty(), "{}", takeover.rebuilt);
    device.submit(stream, &Command::Graph(graph)).unwrap();
    let host = device.allocate_host(64).unwrap();
    let read = |offset| {
        let from = kiln_driver::DevicePlace::from(range.id).plus(offset);
        device.download(stream, from, &host, 64).unwrap();
        device.synchronize(stream).unwrap();
        let mut bytes = [0; 64];
        assert!(host.read(0, &mut bytes));
        bytes
    };
    assert_eq!(read(0)[..16], [2; 16]);
    assert_eq!(read(3 * granule), [77; 64]);
    let mut arguments = (range.address.0 + granule).to_le_bytes().to_vec();
    arguments.extend(1u32.to_le_bytes());
    device.submit(stream, &rig::launch(&store, &arguments)).unwrap();
    assert!(device.synchronize(stream).unwrap_err().is_sticky(), "the second pages are read-only");

    // When everything is destroyed the standby has nothing, also one that is being prepared.
    device.take_over().unwrap();
    device.unmap(range.id, 0, 4 * granule).unwrap();
    for pages in pages {
        device.destroy(pages.into()).unwrap();
    }
    device.destroy(graph.into()).unwrap();
    device.destroy(module.into()).unwrap();
    device.destroy(stream.into()).unwrap();
    device.destroy(host.id().into()).unwrap();
    device.destroy(range.id.into()).unwrap();
    prepared(&told, ObjectCounts::is_empty);
}

#[test]
fn a_standby_may_end_at_every_step_of_its_preparation() {
    let _turn = rig::turn();
    let kill_step = rig::path("standby");
    let patient = RestartPolicy { pause: Duration::ZERO, ..RestartPolicy::default() };
    let mut fell = 0;
    let before = Held::settled();
    for step in 1.. {
        let config = rig::killed_at_step(rig::config().restarts(patient).standby(true), &kill_step);
        let (config, told) = listening(config);
        let device: Arc<IsolatedDevice> = IsolatedDevice::open(config).unwrap();
        // The worker in use may reach that step as well, and is recovered from.
        std::fs::write(&kill_step, step.to_string()).unwrap();
        let scene = Scene::build(&device);
        scene.play(&device, 9);
        let lost = device.allocate(MemoryRequest::Direct { bytes: 64 });
        prepared(&told, |has| has.kernels == 1 && has.streams == 1);
        device.kill_worker();
        rig::recover(&device);
        assert_eq!(scene.download(&device, 0).unwrap_or([9; 64]), [9; 64], "step {step}");
        scene.play(&device, 10);
        let reached = std::fs::remove_file(&kill_step).is_err();
        drop((scene, device, lost));
        before.assert_restored(format_args!("step {step}"));
        if !reached {
            break;
        }
        fell += 1;
    }
    assert!(fell >= 15, "{fell}");
}

#[test]
fn changes_while_a_standby_is_told_are_not_lost() {
    let _turn = rig::turn();
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let granule = device.info().limits.page_granularity_bytes;
    let range = device.reserve(ReserveRequest { bytes: 8 * granule, at: None }).unwrap();
    // Four threads map, unmap and destroy in separate parts while the standby follows.
    std::thread::scope(|scope| {
        for part in 0..4 {
            let device = &device;
            scope.spawn(move || {
                for _ in 0..40 {
                    let pages =
                        device.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap();
                    device.map(range.id, 2 * part * granule, &[pages], Protection::ReadWrite).unwrap();
                    device.unmap(range.id, 2 * part * granule, granule).unwrap();
                    device.destroy(pages.into()).unwrap();
                }
            });
        }
    });
    let last = device.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap();
    device.map(range.id, 7 * granule, &[last], Protection::ReadWrite).unwrap();
    let has = prepared(&told, |has| (has.pages, has.mappings) == (1, 1));
    assert_eq!(has.ranges, 1);
    device.memory_info().unwrap();
    device.kill_worker();
    assert!(device.take_over().unwrap().rebuilt.is_empty());
}

#[test]
fn an_address_that_is_taken_is_told_and_the_next_worker_is_tried() {
    let _turn = rig::turn();
    let file = rig::path("taken");
    let (config, told) = listening(rig::with_reserved_address(rig::config().standby(true), &file));
    let restarts =
        RestartPolicy { pause: Duration::ZERO, longest_pause: Duration::ZERO, ..RestartPolicy::default() };
    let device = IsolatedDevice::open(config.restarts(restarts)).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 65);
    prepared(&told, |has| has.mappings == 2);
    std::fs::write(&file, scene.reservation.address.0.to_string()).unwrap();
    device.kill_worker();
    assert!(device.take_over().unwrap().standby, "it was started before");
    scene.play(&device, 66);
    // The next standby has another reservation there.
    let error = loop {
        let news = told.recv_timeout(Duration::from_secs(60)).expect("a standby that lacks something");
        if let WorkerEvent::Unprepared { error, .. } = news {
            break error;
        }
    };
    assert!(error.is_refused(), "{error}");
    device.kill_worker();
    for _ in 0..2 {
        let error = device.take_over().unwrap_err();
        assert!(matches!(&error, TakeoverError::Rebuild { .. }) && error.is_retryable(), "{error}");
    }
    assert!(scene.download(&device, 0).unwrap_err().is_sticky(), "lost as before");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(device.take_over().unwrap().generation, 3);
    assert_eq!(scene.download(&device, 0).unwrap(), [66; 64]);
    scene.play(&device, 67);
}
