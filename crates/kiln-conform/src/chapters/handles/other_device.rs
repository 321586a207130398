//! Handles of another device. Each law opens a second driver, offers its handles to the first, and then shows that
//! they still work where they belong.

use kiln_driver::{
    Command, DriverExt, GraphNode, MemoryRequest, Pattern, Place, Protection, Timeout, WaitTarget,
};

use crate::expect::{equal, foreign, same_bytes};
use crate::fixture::{Rig, host_at, plain_launch, read_host};
use crate::kernels::Arguments;
use crate::law::LawVerdict;

pub(super) fn commands(rig: &Rig<'_>) -> LawVerdict {
    let other = rig.another()?;
    let (stream, theirs) = (rig.stream()?, other.stream()?);
    let (memory, their_memory) = (rig.memory_with(&[1; 64])?, other.memory_with(&[2; 64])?);
    let (host, their_host) = (rig.host_with(&[3; 64])?, other.host_with(&[4; 64])?);
    let their_event = other.event()?;
    let device = |id: kiln_driver::MemoryId| Place::Device(id.into());
    let commands = [
        Command::Copy { from: device(their_memory.id), to: device(memory.id), bytes: 64 },
        Command::Copy { from: device(memory.id), to: device(their_memory.id), bytes: 64 },
        Command::Copy { from: host_at(&their_host, 0), to: device(memory.id), bytes: 64 },
        Command::Copy { from: device(memory.id), to: host_at(&their_host, 0), bytes: 64 },
        Command::Copy { from: device(their_memory.id), to: device(memory.id), bytes: 0 },
        Command::Fill { to: their_memory.id.into(), pattern: Pattern::U8(0), count: 64 },
        Command::Signal(their_event),
        Command::Wait(their_event),
    ];
    for command in &commands {
        foreign(format!("a {}", command.name()), rig.driver.submit(stream, command))?;
    }
    let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(9), count: 64 };
    foreign("a fill on a stream", rig.driver.submit(theirs, &fill))?;
    equal("submissions here", rig.driver.progress(stream)?.submitted.0, 0)?;
    equal("submissions there", other.driver.progress(theirs)?.submitted.0, 0)?;
    same_bytes("memory here", &rig.get(memory.id, 64)?, &[1; 64])?;
    same_bytes("memory there", &other.get(their_memory.id, 64)?, &[2; 64])?;
    same_bytes("host memory here", &read_host(&host)?, &[3; 64])?;
    same_bytes("host memory there", &read_host(&their_host)?, &[4; 64])?;
    other.finish()
}

pub(super) fn memory(rig: &Rig<'_>) -> LawVerdict {
    let other = rig.another()?;
    let (memory, theirs) = (rig.memory_with(&[1; 64])?, other.memory_with(&[2; 64])?);
    let their_stream = other.stream()?;
    foreign("a free", rig.driver.free(theirs.id, None))?;
    if rig.driver.info().features.memory_pool {
        let request = MemoryRequest::Pool { bytes: 64, stream: their_stream };
        foreign("an allocation on a stream", rig.driver.allocate(request))?;
    }
    if rig.driver.info().features.pages && other.driver.info().features.pages {
        let granule = rig.granule();
        let (reservation, their_reservation) = (rig.reservation(1)?, other.reservation(1)?);
        let (pages, their_pages) = (rig.pages(1)?, other.pages(1)?);
        let map = |into, pages| rig.driver.map(into, 0, &[pages], Protection::ReadWrite);
        foreign("a map of pages", map(reservation.id, their_pages))?;
        foreign("a map into a reservation", map(their_reservation.id, pages))?;
        other.map(their_reservation.id, 0, their_pages, 1)?;
        foreign("an unmap", rig.driver.unmap(their_reservation.id, 0, granule))?;
        let answer = rig.driver.protect(their_reservation.id, 0, granule, Protection::Read);
        foreign("a protect", answer)?;
        foreign("an export", rig.driver.export_pages(their_pages))?;
        other.put(their_reservation.id, &[3; 64])?;
        same_bytes("pages there", &other.get(their_reservation.id, 64)?, &[3; 64])?;
    }
    same_bytes("memory here", &rig.get(memory.id, 64)?, &[1; 64])?;
    same_bytes("memory there", &other.get(theirs.id, 64)?, &[2; 64])?;
    other.finish()
}

pub(super) fn streams_and_events(rig: &Rig<'_>) -> LawVerdict {
    let other = rig.another()?;
    let (stream, event) = (other.stream()?, other.event()?);
    let word = other.words(1)?;
    other.busy(stream)?;
    other.store(stream, &word, 4)?;
    other.driver.submit(stream, &Command::Signal(event))?;
    for timeout in [Timeout::Poll, Timeout::Never] {
        foreign("a wait for a stream", rig.driver.wait(WaitTarget::Stream(stream), timeout))?;
        foreign("a wait for an event", rig.driver.wait(WaitTarget::Event(event), timeout))?;
    }
    foreign("progress", rig.driver.progress(stream))?;
    foreign("a time", rig.driver.elapsed(event, event))?;
    other.driver.synchronize(stream)?;
    equal("work there", other.get_words(&word, 1)?, vec![4])?;
    other.finish()
}

pub(super) fn code(rig: &Rig<'_>) -> LawVerdict {
    let other = rig.another()?;
    let (stream, their_stream) = (rig.stream()?, other.stream()?);
    let (word, their_word) = (rig.words(1)?, other.words(1)?);
    let module = other.load()?;
    let kernel = other.driver.function(module, "store_value")?;
    foreign("a lookup", rig.driver.function(module, "store_value"))?;
    foreign("a lookup of a variable", rig.driver.global(module, "law_variable"))?;
    foreign("an occupancy", rig.driver.occupancy(kernel.id, 32, 0))?;
    let arguments = Arguments::new().address(word.address).u32(1);
    foreign("a launch", rig.launch(stream, kernel.id, 1, 1, &arguments))?;
    let launch = Command::Launch(plain_launch(kernel.id, 1, 1, &arguments));
    foreign("a node", rig.driver.build_graph(&[GraphNode { command: launch, after: &[] }]))?;
    let fill = Command::Fill { to: their_word.id.into(), pattern: Pattern::U8(1), count: 4 };
    let graph = other.graph(&[GraphNode { command: fill, after: &[] }])?;
    foreign("a graph", rig.driver.submit(stream, &Command::Graph(graph)))?;
    foreign(
        "a graph as a node",
        rig.driver.build_graph(&[GraphNode { command: Command::Graph(graph), after: &[] }]),
    )?;
    foreign("an update", rig.driver.update_graph(graph, 0, &fill))?;
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 0)?;
    equal("the word here", rig.get_words(&word, 1)?, vec![0])?;
    other.driver.submit(their_stream, &Command::Graph(graph))?;
    other.driver.synchronize(their_stream)?;
    equal("the word there", other.get_words(&their_word, 1)?, vec![0x0101_0101])?;
    other.finish()
}

pub(super) fn destroy(rig: &Rig<'_>) -> LawVerdict {
    let other = rig.another()?;
    let word = other.words(1)?;
    let fill = Command::Fill { to: word.id.into(), pattern: Pattern::U8(2), count: 4 };
    let graph = other.graph(&[GraphNode { command: fill, after: &[] }])?;
    let (stream, event, host, module) = (other.stream()?, other.event()?, other.host(16)?, other.load()?);
    let mut objects = vec![stream.into(), event.into(), host.id().into(), module.into(), graph.into()];
    if other.driver.info().features.pages {
        objects.push(other.reservation(1)?.id.into());
        objects.push(other.pages(1)?.into());
    }
    for object in objects {
        foreign(format!("a destroy of {object}"), rig.driver.destroy(object))?;
    }
    other.driver.submit(stream, &Command::Graph(graph))?;
    other.driver.order(stream, event, stream)?;
    other.driver.download(stream, word.id.into(), &host, 4)?;
    other.driver.synchronize(stream)?;
    other.driver.function(module, "spin")?;
    same_bytes("work with all of them", &read_host(&host)?[..4], &[2; 4])?;
    other.finish()
}
