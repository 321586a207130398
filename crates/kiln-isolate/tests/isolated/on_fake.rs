//! The laws on CUDA in a worker process, over a library that stands in for the driver.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use kiln_conform::{Chapter, Kernels, Opened, Subject};
use kiln_driver::{Driver, DriverExt, Error, Image, MemoryRequest, Refusal, StreamRequest};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig, WorkerEntry};

use crate::machine::{Machine, log};
use crate::rig;

fn hold(chapter: Chapter, test: &str) {
    let subject = Subject::new("a worker with CUDA on the stand-in", Kernels::ptx(), |_| {
        let mut config = IsolationConfig::new(DeviceSpec::cuda(0)).entry(WorkerEntry::Test("worker".into()));
        config.inherited_variables = vec!["FAKE_CUDA_DEVICES".into(), "FAKE_CUDA_PLAN".into()];
        IsolatedDevice::open(config).map(|device| Opened::new(device)).map_err(|error| error.to_string())
    });
    let summary = kiln_conform::run_test(&subject, chapter, module_path!(), test);
    println!("{summary}");
    assert!(summary.holds(), "{summary}");
}

on_machine! {
    fn device() on Machine::fake().quiet() => { hold(Chapter::Device, "device") }
    fn pages() on Machine::fake().quiet() => { hold(Chapter::Pages, "pages") }
    fn memory() on Machine::fake().quiet() => { hold(Chapter::Memory, "memory") }
    fn host() on Machine::fake().quiet() => { hold(Chapter::Host, "host") }
    fn streams() on Machine::fake().quiet() => { hold(Chapter::Streams, "streams") }
    fn code() on Machine::fake().quiet() => { hold(Chapter::Code, "code") }
    fn work() on Machine::fake().quiet() => { hold(Chapter::Work, "work") }
    fn order() on Machine::fake().quiet() => { hold(Chapter::Order, "order") }
    fn graphs() on Machine::fake().quiet() => { hold(Chapter::Graphs, "graphs") }
    fn peers() on Machine::fake().quiet() => { hold(Chapter::Peers, "peers") }
    fn collectives() on Machine::fake().quiet() => { hold(Chapter::Collectives, "collectives") }
    fn handles() on Machine::fake().quiet() => { hold(Chapter::Handles, "handles") }
    fn threads() on Machine::fake().quiet() => { hold(Chapter::Threads, "threads") }
    fn loss() on Machine::fake().quiet() => { hold(Chapter::Loss, "loss") }

    fn nccl_is_called_in_the_worker_alone() on with_nccl() => {
        let device = IsolatedDevice::open(config()).unwrap();
        let id = OnceLock::new();
        device.load(&Image::CommunicatorId { id: &id }).unwrap();
        assert_eq!(id.get().unwrap(), &(0..128).collect::<Vec<u8>>());
        let rank = device.load(&Image::Communicator(&text())).unwrap();
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let buffer = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap().address.0;
        let packed: Vec<u8> = [buffer, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let broadcast = device.function(rank, "broadcast element=u8 root=0").unwrap();
        device.submit(stream, &rig::launch(&broadcast, &packed)).unwrap();
        device.synchronize(stream).unwrap();
        let abort = device.function(rank, "abort").unwrap();
        device.submit(stream, &rig::launch(&abort, &[])).unwrap();
        device.synchronize(stream).unwrap();
        // What NCCL refuses is told with its words.
        device.submit(stream, &rig::launch(&broadcast, &packed)).unwrap();
        let error = device.synchronize(stream).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Library { library: "NCCL", why }) if why.contains("was aborted")), "{error}");
        let expected = ["ncclGetUniqueId", "ncclCommInitRankConfig", "ncclBroadcast", "ncclGroupStart", "ncclCommAbort", "ncclGroupEnd"];
        let (calls, processes) = nccl_calls();
        assert_eq!(calls, expected);
        assert!(!processes.contains(&std::process::id()), "{processes:?}");
        assert_eq!(processes.len(), 1);
    }

    fn a_worker_takes_an_abort_while_ranks_have_not_joined() on with_nccl().with("FAKE_NCCL_WAITS", "ncclCommInitRankConfig") => {
        let mut config = config();
        config.inherited_variables.push("FAKE_NCCL_WAITS".into());
        let device = IsolatedDevice::open(config).unwrap();
        let rank = device.load(&Image::Communicator(&text())).unwrap();
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let began = Instant::now();
        // A client that waits for the ranks asks, and does not keep the worker.
        for _ in 0..20 {
            assert!(device.global(rank, "failure").unwrap_err().is_unsupported());
        }
        let abort = device.function(rank, "abort").unwrap();
        device.submit(stream, &rig::launch(&abort, &[])).unwrap();
        device.synchronize(stream).unwrap();
        let buffer = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap().address.0;
        let packed: Vec<u8> = [buffer, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let broadcast = device.function(rank, "broadcast element=u8 root=0").unwrap();
        device.submit(stream, &rig::launch(&broadcast, &packed)).unwrap();
        let error = device.synchronize(stream).unwrap_err();
        assert!(error.to_string().contains("was aborted"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(4), "long before the deadline: {:?}", began.elapsed());
        assert!(nccl_calls().0.contains(&"ncclCommAbort".to_owned()));
    }

    // The main loop of the worker is inside of the library, and a second question waits behind it.
    fn an_abort_reaches_a_worker_that_waits_inside_of_nccl_and_the_worker_goes_on() on with_nccl().with("FAKE_NCCL_WAITS", "ncclBroadcast") => {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = told.clone();
        let mut config = config().watchdog(Duration::from_secs(30)).observe(move |news| listener.lock().unwrap().push(format!("{news:?}")));
        config.inherited_variables.push("FAKE_NCCL_WAITS".into());
        let device = IsolatedDevice::open(config).unwrap();
        let rank = device.load(&Image::Communicator(&text_with(60_000))).unwrap();
        let other = device.load(&Image::Communicator(&text_with(60_000))).unwrap();
        let (stream, beside) = (device.create_stream(StreamRequest::New { priority: 0 }).unwrap(), device.create_stream(StreamRequest::New { priority: 0 }).unwrap());
        let memory = device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
        device.fill(beside, memory.id.into(), 7, 64).unwrap();
        device.synchronize(beside).unwrap();
        let broadcast = device.function(rank, "broadcast element=u8 root=0").unwrap();
        let packed: Vec<u8> = [memory.address.0, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        device.submit(stream, &rig::launch(&broadcast, &packed)).unwrap();
        let began = Instant::now();
        while !nccl_calls().0.contains(&"ncclBroadcast".to_owned()) {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::scope(|threads| {
            let asks = threads.spawn(|| device.function(other, "barrier").map(drop));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!asks.is_finished(), "the worker answers no question");
            let began = Instant::now();
            let abort = device.function(rank, "abort").unwrap();
            device.submit(beside, &rig::launch(&abort, &[])).unwrap();
            asks.join().unwrap().unwrap();
            assert!(began.elapsed() < Duration::from_secs(10), "long before the deadline: {:?}", began.elapsed());
        });
        let error = device.synchronize(stream).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Library { library: "NCCL", why }) if why.contains("was aborted")), "{error}");
        device.synchronize(beside).unwrap();
        let host = device.allocate_host(64).unwrap();
        device.download(beside, memory.id.into(), &host, 64).unwrap();
        device.synchronize(beside).unwrap();
        let mut bytes = [0; 64];
        assert!(host.read(0, &mut bytes) && bytes == [7; 64]);
        // The other communicator of the worker was left alone, and no worker was lost or started.
        let aborts = nccl_calls().0.iter().filter(|call| *call == "ncclCommAbort").count();
        assert_eq!(aborts, 1);
        let told = told.lock().unwrap();
        assert!(!told.iter().any(|news| news.contains("Lost") || news.contains("Closed")), "{told:?}");
        assert_eq!(told.iter().filter(|news| news.contains("Started")).count(), 1, "{told:?}");
    }

    // A standby and a successor have everything else; the rank would join twice.
    fn a_rank_is_lost_with_its_worker_and_is_not_made_again() on with_nccl() => {
        let device = IsolatedDevice::open(config().standby(true)).unwrap();
        let rank = device.load(&Image::Communicator(&text())).unwrap();
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let barrier = device.function(rank, "barrier").unwrap();
        let kept = device.load(&Image::Ptx(PTX)).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        device.kill_worker();
        while device.take_over().is_err() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_stale = |error: Error| matches!(error.refusal(), Some(Refusal::Stale { .. }));
        assert!(is_stale(device.submit(stream, &rig::launch(&barrier, &[])).unwrap_err()));
        assert!(is_stale(device.function(rank, "barrier").unwrap_err()));
        device.function(kept, "nothing").unwrap();
        device.synchronize(stream).unwrap();
        let (calls, _) = nccl_calls();
        assert_eq!(calls, ["ncclCommInitRankConfig"]);
    }
}

const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

fn with_nccl() -> Machine {
    Machine::fake().with_library("KILN_NCCL", include_str!("../../../kiln-cuda/tests/on_fake/libnccl/nccl.c"))
}

fn config() -> IsolationConfig {
    let mut config = IsolationConfig::new(DeviceSpec::cuda(0)).entry(WorkerEntry::Test("worker".into()));
    config.inherited_variables = vec!["FAKE_CUDA_LOG".into()];
    config
}

/// One rank of two.
fn text() -> String {
    text_with(5_000)
}

/// The same with a deadline.
fn text_with(deadline_ms: u64) -> String {
    let id: String = (0..128).map(|byte| format!("{byte:02x}")).collect();
    format!("communicator id={id} rank=0 size=2 deadline_ms={deadline_ms}")
}

/// The calls of NCCL, without those that look at a communicator now and then, and the processes that made them.
fn nccl_calls() -> (Vec<String>, std::collections::BTreeSet<u32>) {
    let is_call = |line: &String| line.contains(" nccl") && !line.contains(" ncclCommGetAsyncError ");
    let lines = log().into_iter().filter(is_call);
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let process: u32 = words.next().unwrap().parse().unwrap();
            (words.next().unwrap().to_owned(), process)
        })
        .unzip()
}
