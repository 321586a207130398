//! Launches that wait for memory, and memory that goes to another machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_driver::fd::AsFd;
use kiln_driver::{
    Access, Command, DeviceMemory, Driver, DriverExt, FunctionId, GraphNode, Image, LaunchCommand,
    MemoryRequest, Pattern, Protection, ReserveRequest, StreamId, StreamRequest, Vouched,
};
use kiln_sim::{
    FindingKind, HostKernel, KernelLibrary, LaunchReadiness, Machine, MachineConfig, Mode, SimDevice,
};

const BYTES: u64 = 4096;

/// A device whose kernels set words and wait for them.
struct Words {
    machine: Machine,
    device: Arc<SimDevice>,
    set: FunctionId,
    wait: FunctionId,
    flags: DeviceMemory,
    data: DeviceMemory,
}

fn library() -> KernelLibrary {
    let set = HostKernel::new("set").pointer(Access::ReadWrite).value::<u64>().body(|launch| {
        launch.reads_nothing();
        launch.port().atomic_u64(launch.address(0)?)?.store(launch.value(1)?, Ordering::Release);
        Ok(())
    });
    let wait = HostKernel::new("wait")
        .pointer(Access::ReadWrite)
        .value::<u64>()
        .when(|arguments, memory| {
            let word = |at: usize| u64::from_le_bytes(arguments[8 * at..8 * at + 8].try_into().unwrap());
            match memory.port().load_u64(word(0)) {
                Ok(is) if is < word(1) => LaunchReadiness::Waiting(format!("the word is {is}")),
                _ => LaunchReadiness::Ready,
            }
        })
        .body(|launch| {
            launch.port().atomic_u64(launch.address(0)?)?;
            Ok(())
        });
    KernelLibrary::new("words").kernel(set).kernel(wait)
}

fn words(config: MachineConfig) -> Words {
    let mut config = config.library(library());
    config.limits.idle_host = Duration::from_millis(50);
    let machine = Machine::new(config);
    let device = machine.device(0).unwrap();
    let module = device.load(&Image::HostKernels("words")).unwrap();
    let of = |name: &str| device.function(module, name).unwrap().id;
    let (set, wait) = (of("set"), of("wait"));
    let memory = || device.allocate(MemoryRequest::Direct { bytes: BYTES }).unwrap();
    let (flags, data) = (memory(), memory());
    let words = Words { machine, device, set, wait, flags, data };
    let stream = words.stream();
    words.fill(stream, words.flags, 0);
    words.device.synchronize(stream).unwrap();
    words
}

impl Words {
    fn stream(&self) -> StreamId {
        self.device.create_stream(StreamRequest::New { priority: 0 }).unwrap()
    }

    fn arguments(&self, flag: u64, value: u64) -> [u8; 16] {
        let mut packed = [0; 16];
        packed[..8].copy_from_slice(&(self.flags.address.0 + 8 * flag).to_le_bytes());
        packed[8..].copy_from_slice(&value.to_le_bytes());
        packed
    }

    fn launch(&self, stream: StreamId, function: FunctionId, flag: u64, value: u64) {
        let packed = self.arguments(flag, value);
        self.device.submit(stream, &Command::Launch(command(function, &packed))).unwrap();
    }

    fn set(&self, stream: StreamId, flag: u64, value: u64) {
        self.launch(stream, self.set, flag, value);
    }

    fn wait(&self, stream: StreamId, flag: u64, value: u64) {
        self.launch(stream, self.wait, flag, value);
    }

    fn fill(&self, stream: StreamId, memory: DeviceMemory, value: u8) {
        let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(value), count: BYTES };
        self.device.submit(stream, &fill).unwrap();
    }

    fn kinds(&self) -> Vec<FindingKind> {
        self.machine.findings().into_iter().map(|finding| finding.kind).collect()
    }
}

fn command(function: FunctionId, arguments: &[u8]) -> LaunchCommand<'_> {
    LaunchCommand {
        function,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        declared: None,
        // SAFETY: the kernels reach memory through checked ports only.
        vouched: unsafe { Vouched::new() },
    }
}

#[test]
fn a_wait_holds_back_its_stream_alone_and_orders_what_follows() {
    for seed in 0..20 {
        let words = words(MachineConfig::seeded(seed));
        let [a, b, c] = [(); 3].map(|()| words.stream());
        words.wait(b, 0, 1);
        words.fill(b, words.data, 2);
        words.set(b, 1, 1);
        // Each of these can go on only when another has.
        words.wait(c, 1, 1);
        words.fill(c, words.data, 3);
        words.set(c, 2, 1);
        words.fill(a, words.data, 1);
        words.set(a, 0, 1);
        words.wait(a, 2, 1);
        words.fill(a, words.data, 4);
        words.device.synchronize(a).unwrap();
        // The host knows of all three streams now.
        words.device.free(words.data.id, None).unwrap();
        assert_eq!(words.kinds(), [], "seed {seed}");
    }
}

#[test]
fn work_before_a_wait_and_work_after_a_write_are_not_ordered() {
    for seed in 0..4 {
        let words = words(MachineConfig::seeded(seed));
        let [a, b] = [(); 2].map(|()| words.stream());
        words.set(a, 0, 1);
        words.fill(a, words.data, 1);
        words.wait(b, 0, 1);
        words.fill(b, words.data, 2);
        for stream in [a, b] {
            words.device.synchronize(stream).unwrap();
        }
        assert_eq!(words.kinds(), [FindingKind::WriteAfterWrite], "seed {seed}");
    }
}

#[test]
fn two_waits_for_one_word_do_not_order_each_other() {
    let words = words(MachineConfig::seeded(3));
    let [a, b, c] = [(); 3].map(|()| words.stream());
    words.fill(b, words.data, 1);
    words.wait(b, 0, 1);
    words.wait(c, 0, 1);
    words.fill(c, words.data, 2);
    words.set(a, 0, 1);
    for stream in [a, b, c] {
        words.device.synchronize(stream).unwrap();
    }
    assert_eq!(words.kinds(), [FindingKind::WriteAfterWrite]);
}

#[test]
fn a_node_of_a_graph_waits() {
    for config in [MachineConfig::seeded(1), MachineConfig::seeded(2).mode(Mode::Threaded { workers: 2 })] {
        let words = words(config);
        let [a, b] = [(); 2].map(|()| words.stream());
        let packed = words.arguments(0, 1);
        let wait = Command::Launch(command(words.wait, &packed));
        let fill =
            |value| Command::Fill { to: words.data.id.into(), pattern: Pattern::U8(value), count: BYTES };
        let nodes = [GraphNode { command: wait, after: &[] }, GraphNode { command: fill(2), after: &[0] }];
        let graph = words.device.build_graph(&nodes).unwrap();
        words.device.submit(b, &Command::Graph(graph)).unwrap();
        words.fill(b, words.data, 3);
        words.fill(a, words.data, 1);
        words.set(a, 0, 1);
        words.device.synchronize(b).unwrap();
        assert_eq!(words.kinds(), []);
    }
}

#[test]
fn a_wait_that_nothing_ends_is_told_with_its_words() {
    let words = words(MachineConfig::seeded(0));
    let stream = words.stream();
    words.wait(stream, 0, 7);
    let error = words.device.synchronize(stream).unwrap_err();
    assert!(error.is_sticky(), "{error}");
    let findings = words.machine.findings();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].kind, FindingKind::Hang);
    let told = findings[0].to_string();
    assert!(told.contains("launch wait") && told.contains("the word is 0"), "{told}");
}

#[test]
fn another_thread_ends_a_wait() {
    let words = words(MachineConfig::seeded(0));
    let [a, b] = [(); 2].map(|()| words.stream());
    words.wait(a, 0, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(10));
            words.set(b, 0, 1);
        });
        words.device.synchronize(a).unwrap();
    });
    assert_eq!(words.kinds(), []);
}

#[test]
#[cfg(target_os = "linux")]
fn allocated_memory_goes_to_another_machine_and_stays_where_it_is() {
    let words = words(MachineConfig::seeded(0));
    let stream = words.stream();
    let memory = words.device.allocate(MemoryRequest::Direct { bytes: 100 }).unwrap();
    let fill = |value| Command::Fill { to: memory.id.into(), pattern: Pattern::U8(value), count: 50 };
    words.device.submit(stream, &fill(5)).unwrap();
    words.device.synchronize(stream).unwrap();
    let before = words.device.memory_info().unwrap().free_bytes;
    let file = words.machine.export_memory(0, memory.id).unwrap();
    assert_eq!(words.device.memory_info().unwrap().free_bytes, before);
    let bytes = Machine::exported_bytes(file.as_fd()).unwrap();
    assert!(bytes >= 100);

    let other = Machine::new(MachineConfig::seeded(1)).device(0).unwrap();
    let there = other.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let pages = other.import_pages(file.as_fd(), bytes).unwrap();
    let reservation = other.reserve(ReserveRequest { bytes, at: None }).unwrap();
    other.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
    let host = other.allocate_host(100).unwrap();
    other.download(there, reservation.id.into(), &host, 100).unwrap();
    other.fill(there, reservation.id.into(), 6, 100).unwrap();
    other.synchronize(there).unwrap();
    let mut seen = [0; 100];
    assert!(host.read(0, &mut seen));
    assert_eq!((seen[0], seen[49], seen[50]), (5, 5, 0));

    // What the other one wrote is here, and counts as written.
    let host = words.device.allocate_host(100).unwrap();
    words.device.download(stream, memory.id.into(), &host, 100).unwrap();
    words.device.synchronize(stream).unwrap();
    assert!(host.read(0, &mut seen));
    assert_eq!(seen, [6; 100]);
    assert_eq!(words.kinds(), []);

    // The same file again, and what cannot be exported.
    words.machine.export_memory(0, memory.id).unwrap();
    assert!(words.machine.export_memory(9, memory.id).unwrap_err().is_refused());
    words.device.free(memory.id, None).unwrap();
    assert!(words.machine.export_memory(0, memory.id).unwrap_err().is_refused());
    let pool = words.device.allocate(MemoryRequest::Pool { bytes: 64, stream }).unwrap();
    assert!(words.machine.export_memory(0, pool.id).unwrap_err().is_refused());
}

/// Another process ends a wait at any moment, also between two looks at memory, and nothing here makes a call: what follows still runs.
#[test]
fn a_wait_that_ends_between_two_looks_is_seen() {
    const MOST_LOOKS: usize = 12;
    for workers in [0, 2] {
        for looks in 1..MOST_LOOKS {
            let (tell, told) = channel();
            let (tell, seen) = (Mutex::new(tell), AtomicUsize::new(0));
            let wait = HostKernel::new("wait").when(move |_, _| match seen.fetch_add(1, Ordering::Relaxed) {
                at if at < looks => LaunchReadiness::OtherProcess("another process writes".into()),
                _ => LaunchReadiness::Ready,
            });
            let tell = HostKernel::new("tell").on_host_thread().body(move |_| {
                tell.lock().unwrap().send(()).unwrap();
                Ok(())
            });
            let config =
                MachineConfig::seeded(1).library(KernelLibrary::new("looks").kernel(wait).kernel(tell));
            let config = if workers > 0 { config.mode(Mode::Threaded { workers }) } else { config };
            let machine = Machine::new(config);
            let device = machine.device(0).unwrap();
            let module = device.load(&Image::HostKernels("looks")).unwrap();
            let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
            for name in ["wait", "tell"] {
                let function = device.function(module, name).unwrap().id;
                device.submit(stream, &Command::Launch(command(function, &[]))).unwrap();
            }
            // No call is made from here on.
            let is_told = told.recv_timeout(Duration::from_secs(10)).is_ok();
            assert!(is_told, "{workers} workers, the wait ends after {looks} looks");
        }
    }
}
