//! Another worker takes the place of one that faulted, hung or was killed.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::rig::{self, Scene};
use kiln_driver::{
    Code, Command, Driver, DriverExt, EventRequest, GraphNode, Image, MemoryRequest, PageRequest, Pattern,
    Place, Protection, Refusal, StreamRequest, Submission, Timeout, WaitTarget, Waited,
};
use kiln_isolate::{IsolatedDevice, IsolationConfig, LossCause, RestartPolicy, TakeoverError, WorkerEvent};
use rustix::process::{Pid, Signal, kill_process};

const NEW: StreamRequest = StreamRequest::New { priority: 0 };

fn is_stale<T>(answer: kiln_driver::Result<T>) -> bool {
    answer.is_err_and(|error| matches!(error.refusal(), Some(Refusal::Stale { .. })))
}

#[test]
fn a_fault_costs_what_the_worker_alone_had() {
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 21);
    let module = device.load(&Image::HostKernels("test")).unwrap();
    let fault = device.function(module, "fault").unwrap();
    let direct = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    let (guilty, event) =
        (device.create_stream(NEW).unwrap(), device.create_event(EventRequest::Timed).unwrap());
    device.fill(guilty, direct.id.into(), 1, 64).unwrap();
    device.synchronize(guilty).unwrap();
    device.submit(guilty, &rig::launch(&fault, &[])).unwrap();
    device.submit(guilty, &Command::Signal(event)).unwrap();
    let error = device.synchronize(guilty).unwrap_err();
    assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS));
    let site = error.site().unwrap();
    assert_eq!((site.stream, site.submission), (guilty, Submission(2)), "{error}");
    assert!(device.fill(scene.stream, direct.id.into(), 1, 64).unwrap_err().is_sticky());

    let takeover = device.take_over().unwrap();
    assert!(
        matches!(&takeover.cause, LossCause::Fault(error) if error.code() == Some(Code::ILLEGAL_ADDRESS))
    );
    assert_eq!((takeover.generation, device.generation()), (2, 2));
    let [unfinished] = takeover.unfinished[..] else { panic!("{:?}", takeover.unfinished) };
    assert_eq!(unfinished.stream, guilty);
    assert_eq!(unfinished.progress.submitted, Submission(3));
    assert_eq!(unfinished.progress.completed, Submission(1));
    assert_eq!(takeover.lost_memory, [direct.id]);
    assert_eq!(takeover.kept_bytes, 2 * scene.granule);
    assert!(is_stale(device.fill(guilty, direct.id.into(), 1, 64)));
    assert_eq!(scene.download(&device, 0).unwrap(), [21; 64]);
    assert_eq!(scene.download(&device, scene.granule).unwrap()[..4], 64u32.to_le_bytes());
    // Queued work counts as completed, and the stream continues its numbering.
    assert_eq!(device.wait(WaitTarget::Event(event), Timeout::Never).unwrap(), Waited::Done);
    assert_eq!(device.progress(guilty).unwrap().completed, Submission(3));
    assert_eq!(device.submit(guilty, &Command::Signal(event)).unwrap(), Submission(4));
    device.synchronize(guilty).unwrap();
    assert_eq!(device.progress(guilty).unwrap().completed, Submission(4));
    scene.play(&device, 22);
    assert!(matches!(device.take_over(), Err(TakeoverError::NotLost)));
}

#[test]
fn work_that_hangs_is_noticed() {
    let config = rig::config().watchdog(Duration::from_secs(1));
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 31);
    let module = device.load(&Image::HostKernels("test")).unwrap();
    let hang = device.function(module, "hang").unwrap();
    let stream = device.create_stream(NEW).unwrap();
    device.submit(stream, &rig::launch(&hang, &[])).unwrap();
    let error = device.synchronize(stream).unwrap_err();
    assert_eq!(error.code(), Some(Code::LAUNCH_TIMEOUT), "{error}");
    assert!(matches!(device.cause(), Some(LossCause::Hung { .. })));
    let takeover = device.take_over().unwrap();
    assert_eq!(takeover.unfinished.len(), 1);
    assert_eq!(scene.download(&device, 0).unwrap(), [31; 64]);
    device.synchronize(stream).unwrap();
}

#[test]
fn a_takeover_may_take_longer_than_work_that_hangs() {
    let config = rig::paced(rig::config(), 30).watchdog(Duration::from_millis(1200));
    let device = IsolatedDevice::open(config).unwrap();
    let modules: Vec<_> = (0..50).map(|_| device.load(&Image::HostKernels("test")).unwrap()).collect();
    let fault = device.function(modules[0], "fault").unwrap();
    let stream = device.create_stream(NEW).unwrap();
    device.submit(stream, &rig::launch(&fault, &[])).unwrap();
    assert_eq!(device.synchronize(stream).unwrap_err().code(), Some(Code::ILLEGAL_ADDRESS));
    // The progress of the stream stands still until the new worker has everything else.
    let takeover = device.take_over().unwrap();
    assert!(takeover.phases.code > Duration::from_millis(1200), "{:?}", takeover.phases);
    device.synchronize(stream).unwrap();
}

#[test]
fn waits_end_when_the_worker_is_killed() {
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let module = device.load(&Image::HostKernels("test")).unwrap();
    let hang = device.function(module, "hang").unwrap();
    let (stream, event) =
        (device.create_stream(NEW).unwrap(), device.create_event(EventRequest::Plain).unwrap());
    device.submit(stream, &rig::launch(&hang, &[])).unwrap();
    device.submit(stream, &Command::Signal(event)).unwrap();
    std::thread::scope(|scope| {
        let targets = [WaitTarget::Stream(stream), WaitTarget::Event(event), WaitTarget::Stream(stream)];
        let device = &device;
        let waiters = targets.map(|target| scope.spawn(move || device.wait(target, Timeout::Never)));
        std::thread::sleep(Duration::from_millis(50));
        device.kill_worker();
        for waiter in waiters {
            assert!(waiter.join().unwrap().unwrap_err().is_sticky());
        }
    });
    assert!(matches!(device.cause(), Some(LossCause::Killed)));
}

fn listening(config: IsolationConfig) -> (IsolationConfig, Receiver<WorkerEvent>) {
    let (tell, told) = mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    (config.observe(move |news| drop(tell.lock().unwrap().send(news.clone()))), told)
}

/// The process of the next standby.
fn next_standby(told: &Receiver<WorkerEvent>) -> u32 {
    loop {
        if let WorkerEvent::Started { process, standby: true } =
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        {
            return process;
        }
    }
}

/// The process of the next worker that is put to use.
fn next_worker(told: &Receiver<WorkerEvent>) -> u32 {
    loop {
        if let WorkerEvent::Started { process, standby: false } =
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        {
            return process;
        }
    }
}

#[test]
fn a_worker_that_may_still_write_has_ended_before_the_next_one_works() {
    for standby in [false, true] {
        let (config, told) = listening(rig::heavy(rig::config()).standby(standby));
        let device = IsolatedDevice::open(config).unwrap();
        let module = device.load(&Image::HostKernels("test")).unwrap();
        let hang = device.function(module, "hang").unwrap();
        let stream = device.create_stream(NEW).unwrap();
        for _ in 0..3 {
            let process = next_worker(&told);
            if standby {
                next_standby(&told);
            }
            device.submit(stream, &rig::launch(&hang, &[])).unwrap();
            device.kill_worker();
            assert_eq!(device.take_over().unwrap().standby, standby);
            assert!(!std::path::Path::new(&format!("/proc/{process}")).exists(), "standby {standby}");
        }
    }
}

#[test]
fn a_standby_takes_over_and_is_replaced_itself() {
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 41);
    next_standby(&told);
    device.kill_worker();
    assert!(device.take_over().unwrap().standby);
    assert_eq!(scene.download(&device, 0).unwrap(), [41; 64]);
    // A standby that ends before it is needed is replaced, too.
    let second = next_standby(&told);
    kill_process(Pid::from_raw(second as i32).unwrap(), Signal::KILL).unwrap();
    let third = next_standby(&told);
    assert_ne!(second, third);
    scene.play(&device, 42);
    device.kill_worker();
    let takeover = device.take_over().unwrap();
    assert!(takeover.standby && takeover.phases.total() > Duration::ZERO);
    scene.play(&device, 43);
}

/// Loading an operation opens a library and can take 100 ms: a standby has done it before it is needed.
#[test]
fn a_standby_has_the_operations_of_libraries_before_it_is_needed() {
    let (config, told) = listening(rig::config().standby(true));
    let device = IsolatedDevice::open(config).unwrap();
    let standby = next_standby(&told);
    let module = device.load(&Image::Library("blas.scal element=f32 n=4 x_step=1")).unwrap();
    let scal = device.function(module, "blas.scal").unwrap();
    let mut seen = None;
    while seen != Some((1, 1)) {
        match told.recv_timeout(Duration::from_secs(20)) {
            Ok(WorkerEvent::Prepared { process, has }) if process == standby => {
                seen = Some((has.modules, has.kernels));
            }
            Ok(_) => {}
            Err(_) => panic!("the standby has {seen:?} modules and kernels"),
        }
    }
    device.kill_worker();
    assert!(device.take_over().unwrap().standby);
    // The handles are those from before.
    let (stream, x) =
        (device.create_stream(NEW).unwrap(), device.allocate(MemoryRequest::Direct { bytes: 16 }).unwrap());
    let three = Pattern::U32(3.0_f32.to_bits());
    device.submit(stream, &Command::Fill { to: x.id.into(), pattern: three, count: 4 }).unwrap();
    let words = [x.address.0, 2.0_f64.to_bits()];
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    device.submit(stream, &rig::launch(&scal, &packed)).unwrap();
    let host = device.allocate_host(16).unwrap();
    device.download(stream, x.id.into(), &host, 16).unwrap();
    device.synchronize(stream).unwrap();
    let mut bytes = [0; 16];
    assert!(host.read(0, &mut bytes));
    assert_eq!(bytes, [6.0_f32.to_le_bytes(); 4].concat()[..]);
}

#[test]
fn too_many_restarts_end_in_giving_up() {
    let policy = RestartPolicy { limit: 2, pause: Duration::ZERO, ..RestartPolicy::default() };
    let device = IsolatedDevice::open(rig::config().restarts(policy)).unwrap();
    for generation in [2, 3] {
        device.kill_worker();
        assert_eq!(device.take_over().unwrap().generation, generation);
    }
    device.kill_worker();
    let error = device.take_over().unwrap_err();
    assert!(matches!(error, TakeoverError::GivenUp { limit: 2, cause: LossCause::Killed, .. }), "{error}");
    assert!(!error.is_retryable() && device.create_stream(NEW).unwrap_err().is_sticky());
}

#[test]
fn mappings_graphs_and_names_are_made_again_as_they_were() {
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let scene = Scene::build(&device);
    scene.play(&device, 51);
    let (first, second) = (device.create_stream(NEW).unwrap(), device.create_stream(NEW).unwrap());
    let base = scene.reservation.id;
    let fill = Command::Fill { to: base.into(), pattern: Pattern::U8(7), count: 16 };
    let kept = device.build_graph(&[GraphNode { command: fill, after: &[] }]).unwrap();
    let direct = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    let from = Place::Device(base.into());
    let copy = Command::Copy { from, to: Place::Device(direct.id.into()), bytes: 16 };
    let lost = device.build_graph(&[GraphNode { command: copy, after: &[] }]).unwrap();
    let newer = Command::Fill { to: base.into(), pattern: Pattern::U8(9), count: 16 };
    device.update_graph(kept, 0, &newer).unwrap();
    // Pages whose handle was destroyed, in another range; and the second granule read-only.
    let more = device.create_pages(PageRequest { bytes: scene.granule, exportable: true }).unwrap();
    let other = device.reserve(kiln_driver::ReserveRequest { bytes: scene.granule, at: None }).unwrap();
    device.map(other.id, 0, &[more], Protection::ReadWrite).unwrap();
    device.fill(first, other.id.into(), 77, 64).unwrap();
    device.synchronize(first).unwrap();
    device.destroy(more.into()).unwrap();
    device.protect(base, scene.granule, scene.granule, Protection::Read).unwrap();

    device.kill_worker();
    // What is destroyed while there is no worker is not made in the next one.
    device.destroy(second.into()).unwrap();
    let takeover = device.take_over().unwrap();
    assert_eq!(takeover.lost_graphs, [lost]);
    assert_eq!(takeover.kept_bytes, 3 * scene.granule);
    assert!(is_stale(device.submit(first, &Command::Graph(lost))) && is_stale(device.progress(second)));
    device.submit(first, &Command::Graph(kept)).unwrap();
    device.synchronize(first).unwrap();
    let bytes = scene.download(&device, 0).unwrap();
    assert_eq!(bytes[..16], [9; 16]);
    assert_eq!(bytes[16..], [51; 48]);
    let host = device.allocate_host(64).unwrap();
    device.download(first, other.id.into(), &host, 64).unwrap();
    device.synchronize(first).unwrap();
    let mut bytes = [0; 64];
    assert!(host.read(0, &mut bytes));
    assert_eq!(bytes, [77; 64]);
    // Still read-only: a kernel that writes there faults.
    let mut arguments = (scene.reservation.address.0 + scene.granule).to_le_bytes().to_vec();
    arguments.extend(1u32.to_le_bytes());
    device.submit(first, &rig::launch(&scene.store, &arguments)).unwrap();
    assert!(device.synchronize(first).unwrap_err().is_sticky());
    assert_eq!(device.take_over().unwrap().generation, 3);
    assert_eq!(scene.download(&device, scene.granule).unwrap()[..4], 154u32.to_le_bytes());
}

#[test]
fn a_full_ring_holds_its_writers_back_and_loses_nothing() {
    const THREADS: u64 = 4;
    const EACH: u64 = 8_000;
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let event = device.create_event(EventRequest::Plain).unwrap();
    let streams: Vec<_> = (0..THREADS).map(|_| device.create_stream(NEW).unwrap()).collect();
    std::thread::scope(|scope| {
        for stream in &streams {
            let device = &device;
            scope.spawn(move || {
                for number in 1..=EACH {
                    let submitted = device.submit(*stream, &Command::Wait(event)).unwrap();
                    assert_eq!(submitted, Submission(number));
                }
            });
        }
    });
    for stream in streams {
        device.synchronize(stream).unwrap();
        assert_eq!(device.progress(stream).unwrap().completed, Submission(EACH));
    }
}

#[test]
fn what_the_driver_refuses_later_names_its_submission() {
    let device = IsolatedDevice::open(rig::config()).unwrap();
    let scene = Scene::build(&device);
    // Twelve bytes are the arguments; four more are padding to the client and too many to the simulator.
    let arguments = [0; 16];
    let stream = device.create_stream(NEW).unwrap();
    let event = device.create_event(EventRequest::Plain).unwrap();
    device.submit(stream, &Command::Signal(event)).unwrap();
    assert_eq!(device.submit(stream, &rig::launch(&scene.store, &arguments)).unwrap(), Submission(2));
    assert_eq!(device.submit(stream, &Command::Signal(event)).unwrap(), Submission(3));
    let error = device.synchronize(stream).unwrap_err();
    assert!(error.is_refused() && !error.is_sticky(), "{error}");
    assert_eq!(error.site().map(|site| (site.stream, site.submission)), Some((stream, Submission(2))));
    // It is reported once; the stream continues, and its numbers have no gap.
    device.synchronize(stream).unwrap();
    assert_eq!(device.progress(stream).unwrap().completed, Submission(3));
}
