//! Functions of the host in the order of streams.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_driver::{
    Code, Command, Driver, DriverExt, EventRequest, FunctionId, GraphNode, Image, LaunchCommand,
    MemoryRequest, Pattern, StreamId, StreamRequest, Timeout, Vouched, WaitTarget,
};
use kiln_sim::{FaultPlan, HostKernel, KernelLibrary, Machine, MachineConfig, PlannedFault, SimDevice};

/// Longer than any of it takes.
const LIMIT: Duration = Duration::from_secs(20);

/// What a function told, with its argument.
#[derive(PartialEq, Eq, Debug)]
enum Told {
    Began(u64),
    Lost(u64, Code),
}

struct Host {
    device: Arc<SimDevice>,
    machine: Machine,
    function: FunctionId,
    told: Receiver<Told>,
    /// A function with an odd argument ends when it gets something from here.
    go_on: Sender<()>,
}

fn host(config: MachineConfig) -> Host {
    let (tell, told) = channel();
    let (go_on, went_on) = channel();
    let (tell, went_on) = (Mutex::new(tell), Mutex::new(went_on));
    let tell = Arc::new(tell);
    let lost = tell.clone();
    let function = HostKernel::new("function")
        .value::<u64>()
        .on_host_thread()
        .body(move |launch| {
            let number = launch.value::<u64>(0)?;
            tell.lock().unwrap().send(Told::Began(number)).unwrap();
            if number % 2 == 1 {
                went_on.lock().unwrap().recv_timeout(LIMIT).unwrap();
            }
            Ok(())
        })
        .if_lost(move |arguments, code| {
            let number = u64::from_le_bytes(arguments.try_into().unwrap());
            lost.lock().unwrap().send(Told::Lost(number, code)).unwrap();
        });
    let machine = Machine::new(config.library(KernelLibrary::new("host").kernel(function)));
    let device = machine.device(0).unwrap();
    let module = device.load(&Image::HostKernels("host")).unwrap();
    let function = device.function(module, "function").unwrap().id;
    Host { device, machine, function, told, go_on }
}

impl Host {
    fn stream(&self) -> StreamId {
        self.device.create_stream(StreamRequest::New { priority: 0 }).unwrap()
    }

    fn command<'a>(&self, argument: &'a [u8; 8]) -> Command<'a> {
        Command::Launch(LaunchCommand {
            function: self.function,
            grid: 1.into(),
            block: 1.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: argument,
            declared: None,
            // SAFETY: the function touches no memory of the device.
            vouched: unsafe { Vouched::new() },
        })
    }

    fn call(&self, stream: StreamId, number: u64) {
        self.device.submit(stream, &self.command(&number.to_le_bytes())).unwrap();
    }

    fn next(&self) -> Told {
        self.told.recv_timeout(LIMIT).unwrap()
    }
}

#[test]
fn a_function_runs_after_what_is_before_it_and_without_a_call() {
    let host = host(MachineConfig::seeded(1));
    let (stream, block) = (host.stream(), host.device.allocate_host(4).unwrap());
    let memory = host.device.allocate(MemoryRequest::Direct { bytes: 4 }).unwrap();
    host.device.fill(stream, memory.id.into(), 7, 4).unwrap();
    host.device.download(stream, memory.id.into(), &block, 4).unwrap();
    host.call(stream, 2);
    assert_eq!(host.next(), Told::Began(2));
    // The program knows from the function that the copy is done, so that this is no race.
    let mut bytes = [0; 4];
    assert!(block.read(0, &mut bytes));
    assert_eq!(bytes, [7; 4]);
    host.device.synchronize(stream).unwrap();
    assert!(host.machine.findings().is_empty(), "{:?}", host.machine.findings());
}

#[test]
fn what_is_behind_a_function_waits_for_it_and_other_streams_do_not() {
    for seed in 0..5 {
        let host = host(MachineConfig::seeded(seed));
        let (held, free, waits) = (host.stream(), host.stream(), host.stream());
        let memory = host.device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
        let event = host.device.create_event(EventRequest::Plain).unwrap();
        host.call(held, 1);
        host.device.fill(held, memory.id.into(), 1, 64).unwrap();
        host.device.order(held, event, waits).unwrap();
        host.call(waits, 4);
        assert_eq!(host.next(), Told::Began(1));
        host.device.synchronize(free).unwrap();
        for _ in 0..50 {
            assert!(!host.device.is_done(event).unwrap());
            let progress = host.device.progress(held).unwrap();
            assert!(progress.completed < progress.submitted);
        }
        assert!(host.told.recv_timeout(Duration::from_millis(20)).is_err(), "it did not wait");
        host.go_on.send(()).unwrap();
        assert_eq!(host.next(), Told::Began(4));
        assert!(host.device.wait(WaitTarget::Stream(waits), Timeout::Never).unwrap().is_done());
        assert!(host.machine.findings().is_empty(), "{:?}", host.machine.findings());
    }
}

#[test]
fn a_function_is_a_node_of_a_graph_in_each_of_its_launches() {
    let host = host(MachineConfig::seeded(3));
    let stream = host.stream();
    let memory = host.device.allocate(MemoryRequest::Direct { bytes: 64 }).unwrap();
    let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(3), count: 64 };
    let two = 2_u64.to_le_bytes();
    let nodes = [
        GraphNode { command: fill, after: &[] },
        GraphNode { command: host.command(&two), after: &[0] },
        GraphNode { command: fill, after: &[1] },
    ];
    let graph = host.device.build_graph(&nodes).unwrap();
    host.device.submit(stream, &Command::Graph(graph)).unwrap();
    assert_eq!(host.next(), Told::Began(2));
    let six = 6_u64.to_le_bytes();
    host.device.update_graph(graph, 1, &host.command(&six)).unwrap();
    host.device.submit(stream, &Command::Graph(graph)).unwrap();
    host.device.synchronize(stream).unwrap();
    assert_eq!(host.next(), Told::Began(6));
    assert!(host.machine.findings().is_empty(), "{:?}", host.machine.findings());
}

#[test]
fn a_function_of_a_lost_device_is_told_so() {
    let mut config = MachineConfig::seeded(4);
    config.faults = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS });
    let ill = HostKernel::new("ill");
    let host = host(config.library(KernelLibrary::new("ill").kernel(ill)));
    let module = host.device.load(&Image::HostKernels("ill")).unwrap();
    let ill = host.device.function(module, "ill").unwrap().id;
    let stream = host.stream();
    let Command::Launch(launch) = host.command(&[0; 8]) else { unreachable!() };
    let launch = LaunchCommand { function: ill, arguments: &[], ..launch };
    host.device.submit(stream, &Command::Launch(launch)).unwrap();
    // Either the device is lost while these are queued, which tells them, or they are refused.
    let queued: Vec<u64> = (1..4_u64)
        .map(|at| at * 2)
        .filter(|number| host.device.submit(stream, &host.command(&number.to_le_bytes())).is_ok())
        .collect();
    assert!(host.device.synchronize(stream).unwrap_err().is_sticky());
    for number in queued {
        assert_eq!(host.next(), Told::Lost(number, Code::ILLEGAL_ADDRESS));
    }
}
