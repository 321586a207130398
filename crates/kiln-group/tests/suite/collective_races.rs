//! Buffers of collectives that are used without an order, through the driver interface alone.

use std::sync::Arc;

use kiln::sim::{Machine, SimDevice};
use kiln_driver::{
    Base, Command, DeviceMemory, DevicePlace, Dim3, Driver, DriverExt, FunctionId, Image, LaunchCommand,
    MemoryRequest, Pattern, StreamId, StreamRequest, Vouched,
};

use crate::rig::machine;

struct Rank {
    device: Arc<SimDevice>,
    memory: DeviceMemory,
    function: FunctionId,
    streams: [StreamId; 2],
}

fn ranks(machine: &Machine) -> Vec<Rank> {
    let made = std::sync::OnceLock::new();
    machine.device(0).unwrap().load(&Image::CommunicatorId { id: &made }).unwrap();
    let id: String = made.get().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let rank = |rank: u32| {
        let device = machine.device(rank).unwrap();
        let text = format!("communicator id={id} rank={rank} size=2 deadline_ms=1000");
        let module = device.load(&Image::Communicator(&text)).unwrap();
        let name = "all_reduce element=u32 reduction=sum in_place=true";
        let function = device.function(module, name).unwrap().id;
        let stream = || device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let streams = [stream(), stream()];
        let memory = device.allocate(MemoryRequest::Direct { bytes: 16 }).unwrap();
        device.fill(streams[0], memory.id.into(), 1, 16).unwrap();
        device.synchronize(streams[0]).unwrap();
        Rank { device, memory, function, streams }
    };
    vec![rank(0), rank(1)]
}

fn reduce(rank: &Rank) {
    let arguments: Vec<u8> = [rank.memory.address.0, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    let launch = LaunchCommand {
        function: rank.function,
        grid: Dim3::new(1, 1, 1),
        block: Dim3::new(1, 1, 1),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &arguments,
        declared: None,
        // SAFETY: a simulated device checks every access.
        vouched: unsafe { Vouched::new() },
    };
    rank.device.submit(rank.streams[0], &Command::Launch(launch)).unwrap();
}

#[test]
fn a_buffer_that_is_reused_before_its_collective_is_done() {
    let machine = machine(2, 1, kiln::sim::Links::all(), kiln::sim::FaultPlan::none());
    let ranks = ranks(&machine);
    ranks.iter().for_each(reduce);
    // Another stream, and no event in between.
    let to = DevicePlace { base: Base::Memory(ranks[1].memory.id), offset: 0 };
    ranks[1]
        .device
        .submit(ranks[1].streams[1], &Command::Fill { to, pattern: Pattern::U8(9), count: 4 })
        .unwrap();
    for rank in &ranks {
        rank.streams.iter().for_each(|stream| rank.device.synchronize(*stream).unwrap());
    }
    let findings = machine.findings();
    assert!(!findings.is_empty());
    for found in &findings {
        assert!(found.kind.is_race(), "{found}");
        assert_eq!(found.device, 1);
        assert!(found.to_string().contains("launch all_reduce element=u32"), "{found}");
    }
}

#[test]
fn a_collective_alone_is_no_race_with_itself() {
    for seed in 0..20 {
        let machine = machine(2, seed, kiln::sim::Links::all(), kiln::sim::FaultPlan::none());
        let ranks = ranks(&machine);
        (0..3).for_each(|_| ranks.iter().for_each(reduce));
        ranks.iter().for_each(|rank| rank.device.synchronize(rank.streams[0]).unwrap());
        assert_eq!(machine.findings(), []);
    }
}
