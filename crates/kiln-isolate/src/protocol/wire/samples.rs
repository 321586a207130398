//! One message of each kind, and a function that runs every decoder; for tests with random and damaged bytes.

use kiln_driver::{DeviceAddress, DeviceInfo, Dim3, FunctionAttributes, PartKind, Pattern, Protection};

use super::{
    Ask, Farewell, Hello, Reader, Request, Take, TimesAsk, ToldTimes, Welcome, WireBoxes, WireCommand,
    WireLaunch, WireNode, WireObject, WirePart, WirePlace, WireTensorMap, take_error, take_tensor_map,
};

/// Everything a client can send, at least one of each kind.
pub(crate) fn requests(numbers: [u64; 4], bytes: &[u8]) -> Vec<Request<'_>> {
    let [a, b, c, d] = numbers;
    let (from, to) = (WirePlace::Host { id: a, offset: b }, WirePlace::Memory { id: c, offset: d });
    let launch = WireLaunch {
        function: a,
        grid: Dim3::new(b as u32, 2, 3),
        block: Dim3::new(4, c as u32, 6),
        cluster: (a % 2 == 0).then_some(Dim3::new(1, 1, d as u32)),
        dynamic_shared_bytes: b as u32,
        cooperative: c % 2 == 0,
        arguments: bytes,
        declared: (a % 3 == 0).then_some(bytes),
    };
    let commands = [
        WireCommand::Copy { from, to, bytes: d },
        WireCommand::Copy { from: to, to: WirePlace::Reservation { id: a, offset: c }, bytes: b },
        WireCommand::Fill { to, pattern: Pattern::U8(a as u8), count: b },
        WireCommand::Fill { to, pattern: Pattern::U16(a as u16), count: b },
        WireCommand::Fill { to, pattern: Pattern::U32(a as u32), count: b },
        WireCommand::Launch(launch),
        WireCommand::Signal { event: a, ticket: b },
        WireCommand::Wait { event: c },
        WireCommand::Graph { graph: d },
    ];
    let nodes = commands.map(|command| WireNode { command, after: vec![a as u32, b as u32] });
    let protection = if a % 2 == 0 { Protection::Read } else { Protection::ReadWrite };
    let asks = [
        Ask::MemoryInfo,
        Ask::Reserve { id: a, bytes: b, at: (c % 2 == 0).then_some(DeviceAddress(d)) },
        Ask::CreatePages { id: a, bytes: b, keep: c % 2 == 0 },
        Ask::ImportPages { id: a, bytes: b },
        Ask::Map { reservation: a, offset: b, pages: vec![c, d], protection },
        Ask::Unmap { reservation: a, offset: b, bytes: c },
        Ask::Protect { reservation: a, offset: b, bytes: c, protection },
        Ask::DestroyReservation { id: a },
        Ask::Allocate { id: a, bytes: b, stream: (c % 2 == 0).then_some(d) },
        Ask::TrimPool { keep_bytes: a },
        Ask::RegisterHost { id: a, bytes: b },
        Ask::Elapsed { from: a, to: b },
        Ask::Load { id: a, kind: b as u8, bytes: c },
        Ask::Function { id: a, module: b, name: "axpy" },
        Ask::Global { id: a, module: b, name: "ä variable" },
        Ask::Occupancy { function: a, block_threads: b as u32, dynamic_shared_bytes: c as u32 },
        Ask::BuildGraph { id: a, nodes: nodes.to_vec() },
        Ask::UpdateGraph { graph: a, node: b as u32, command: commands[5] },
        Ask::Ready,
        Ask::Findings,
        Ask::Times(if a % 2 == 0 { TimesAsk::Take } else { TimesAsk::FlushAll }),
    ];
    let batch = Ask::Batch { asks: asks.to_vec() };
    let mut all: Vec<Request<'_>> =
        commands.iter().map(|command| Request::Submit { stream: a, number: b, command: *command }).collect();
    let asks = asks.into_iter().chain(more_asks(numbers)).chain([batch]);
    all.extend(asks.map(|ask| Request::Ask { number: d, ask }));
    all.extend([
        Request::CreateStream { id: a, cell: b as u32, priority: c as i32, start: d },
        Request::CreateEvent { id: a, cell: b as u32, timed: c % 2 == 0 },
        Request::Destroy { object: WireObject::Graph, id: a },
        Request::Free { memory: a, stream: Some(b) },
        Request::WatchStream { stream: a, number: b },
        Request::WatchEvent { event: a, ticket: b },
        Request::Examine { number: a },
        Request::Parcel { number: a, bytes: b },
        Request::Bye,
        Request::ResumeStream { id: a, start: b },
        Request::BeginPart { id: a, part: part([b, c, d]) },
        Request::NumberWork { stream: a, number: (b % 2 == 0).then_some(c) },
    ]);
    all
}

fn part([bytes, stream, kind]: [u64; 3]) -> WirePart<'static> {
    let kinds = [PartKind::NewBlock, PartKind::KeptBlock, PartKind::Inspection];
    WirePart {
        place: WirePlace::Reservation { id: bytes, offset: stream },
        bytes,
        stream: (stream % 2 == 0).then_some(stream),
        kind: kinds[(kind % 3) as usize],
        label: "ä",
    }
}

fn tensor_map(address: u64, size: u64, boxes: WireBoxes) -> WireTensorMap {
    WireTensorMap {
        address,
        element: size as u32,
        dimensions: vec![size, address],
        strides: vec![address],
        element_strides: vec![1, size as u32],
        boxes,
        interleave: 0,
        swizzle: address as u32,
        fill: 1,
    }
}

fn more_asks([a, b, c, d]: [u64; 4]) -> [Ask<'static>; 3] {
    let (lower_corner, upper_corner) = (vec![a as i32], vec![b as i32, -1]);
    let columns = WireBoxes::Im2col { lower_corner, upper_corner, channels: c as u32, pixels: d as u32 };
    let tile = WireBoxes::Tile(vec![b as u32, c as u32]);
    let [tile, columns] = [tensor_map(a, b, tile), tensor_map(c, d, columns)].map(Ask::TensorMap);
    [tile, columns, Ask::Times(TimesAsk::Start)]
}

/// Runs every decoder.
pub(crate) fn read_all(bytes: &[u8]) {
    if let Ok(Request::Submit { command: WireCommand::Launch(launch), .. }) = Request::take(bytes) {
        let _ = launch.declared();
    }
    let _ = Hello::take(&mut Reader::new(bytes));
    let _ = Welcome::take(&mut Reader::new(bytes));
    let _ = Farewell::take(&mut Reader::new(bytes));
    let _ = DeviceInfo::take(&mut Reader::new(bytes));
    let _ = FunctionAttributes::take(&mut Reader::new(bytes));
    let _ = take_error(&mut Reader::new(bytes));
    let _ = ToldTimes::take(&mut Reader::new(bytes));
    let _ = take_tensor_map(&mut Reader::new(bytes));
}
