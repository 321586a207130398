//! Laws about building graphs.

use kiln_driver::{Command, DeviceMemory, DevicePlace, DriverExt, GraphNode, LaunchCommand, Pattern, Place};

use super::{copy, store};
use crate::expect::{equal, out_of_range, refused_somehow, stale};
use crate::fixture::{Rig, at, plain_launch};
use crate::kernels::Arguments;
use crate::law::LawVerdict;

pub(super) fn duplicate_edges(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let (value, more) = (rig.kernel("store_value")?, rig.kernel("increment")?);
    let (three, one) =
        (Arguments::new().address(word.address).u32(3), Arguments::new().address(word.address).u32(1));
    let nodes = [
        GraphNode { command: store(value.id, &three), after: &[] },
        GraphNode { command: store(more.id, &one), after: &[0, 0, 0] },
        GraphNode { command: store(more.id, &one), after: &[1, 0, 1] },
    ];
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("a chain with edges named twice", rig.get_words(&word, 1)?, vec![5])
}

pub(super) fn nested(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let (value, more) = (rig.kernel("store_value")?, rig.kernel("increment")?);
    let (four, one) =
        (Arguments::new().address(word.address).u32(4), Arguments::new().address(word.address).u32(1));
    let inner = rig.graph(&[
        GraphNode { command: store(more.id, &one), after: &[] },
        GraphNode { command: store(more.id, &one), after: &[0] },
    ])?;
    let outer = rig.graph(&[
        GraphNode { command: store(value.id, &four), after: &[] },
        GraphNode { command: Command::Graph(inner), after: &[0] },
        GraphNode { command: store(more.id, &one), after: &[1] },
        GraphNode { command: Command::Graph(inner), after: &[2] },
    ])?;
    rig.driver.submit(stream, &Command::Graph(outer))?;
    rig.driver.submit(stream, &Command::Graph(inner))?;
    rig.driver.synchronize(stream)?;
    equal("graphs in a graph", rig.get_words(&word, 1)?, vec![11])
}

pub(super) fn arguments_are_taken_at_once(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let value = rig.kernel("store_value")?;
    let none = Arguments::new();
    let mut buffer = Arguments::new().address(word.address).u32(8).bytes().to_vec();
    let launch = LaunchCommand { arguments: &buffer, ..plain_launch(value.id, 1, 1, &none) };
    let graph = rig.graph(&[GraphNode { command: Command::Launch(launch), after: &[] }])?;
    buffer.fill(0xff);
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("what the graph wrote", rig.get_words(&word, 1)?, vec![8])?;
    let mut buffer = Arguments::new().address(word.address).u32(9).bytes().to_vec();
    let launch = LaunchCommand { arguments: &buffer, ..plain_launch(value.id, 1, 1, &none) };
    rig.driver.update_graph(graph, 0, &Command::Launch(launch))?;
    buffer.fill(0xff);
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("what the updated graph wrote", rig.get_words(&word, 1)?, vec![9])
}

pub(super) fn build_refused(rig: &Rig<'_>) -> LawVerdict {
    let event = rig.event()?;
    let word = rig.words(1)?;
    let fill = Command::Fill { to: word.id.into(), pattern: Pattern::U8(1), count: 4 };
    let node = |after| GraphNode { command: fill, after };
    refused_somehow("a graph without nodes", rig.driver.build_graph(&[]))?;
    refused_somehow("an edge to itself", rig.driver.build_graph(&[node(&[0])]))?;
    refused_somehow("an edge forwards", rig.driver.build_graph(&[node(&[1]), node(&[])]))?;
    refused_somehow("an edge to nowhere", rig.driver.build_graph(&[node(&[]), node(&[0, 7])]))?;
    refused_somehow("an edge far away", rig.driver.build_graph(&[node(&[]), node(&[u32::MAX])]))?;
    for command in [Command::Signal(event), Command::Wait(event)] {
        let nodes = [node(&[]), GraphNode { command, after: &[0] }];
        refused_somehow(format!("a {} as a node", command.name()), rig.driver.build_graph(&nodes))?;
    }
    equal("the word nothing wrote", rig.get_words(&word, 1)?, vec![0])
}

pub(super) fn commands_are_checked(rig: &Rig<'_>) -> LawVerdict {
    let (memory, other) = (rig.memory_with(&[1; 64])?, rig.memory_with(&[2; 64])?);
    let good = GraphNode { command: copy(&memory, &other, 64), after: &[] };
    let build = |command| rig.driver.build_graph(&[good, GraphNode { command, after: &[0] }]);
    out_of_range("a node that copies past the end", build(copy(&memory, &other, 65)))?;
    let fill = Command::Fill { to: at(memory.id, 60), pattern: Pattern::U32(1), count: 2 };
    out_of_range("a node that fills past the end", build(fill))?;
    let value = rig.kernel("store_value")?;
    let arguments = Arguments::new().address(memory.address).u32(1);
    let limit = rig.driver.info().limits.max_threads_per_block;
    let launch = Command::Launch(plain_launch(value.id, 1, limit + 1, &arguments));
    refused_somehow("a node with too large a block", build(launch))?;
    let gone = rig.memory(64)?;
    rig.free(gone.id, None)?;
    let from = Place::Device(gone.id.into());
    stale("a node", build(Command::Copy { from, to: Place::Device(memory.id.into()), bytes: 64 }))?;
    let another = rig.another()?;
    let theirs = another.memory(64)?;
    let from = Place::Device(theirs.id.into());
    let answer = build(Command::Copy { from, to: Place::Device(memory.id.into()), bytes: 64 });
    crate::expect::foreign("a node", answer)?;
    another.finish()?;
    let graph = rig.graph(&[good])?;
    let update = rig.driver.update_graph(graph, 0, &copy(&memory, &other, 65));
    out_of_range("an update that copies past the end", update)?;
    let stream = rig.stream()?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    crate::expect::same_bytes("what the graph copied", &rig.get(other.id, 64)?, &[1; 64])
}

pub(super) fn destroyed_is_stale(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let fill = Command::Fill { to: word.id.into(), pattern: Pattern::U8(1), count: 4 };
    let node = GraphNode { command: fill, after: &[] };
    let graph = rig.graph(&[node])?;
    rig.destroy(graph)?;
    stale("a submission", rig.driver.submit(stream, &Command::Graph(graph)))?;
    stale("an update", rig.driver.update_graph(graph, 0, &fill))?;
    let nested = GraphNode { command: Command::Graph(graph), after: &[] };
    stale("a node", rig.driver.build_graph(&[nested]))?;
    stale("a second destroy", rig.driver.destroy(graph.into()))?;
    let newer = rig.graph(&[node])?;
    stale("the old handle", rig.driver.submit(stream, &Command::Graph(graph)))?;
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 0)?;
    rig.driver.submit(stream, &Command::Graph(newer))?;
    rig.driver.synchronize(stream)?;
    equal("what the newer graph wrote", rig.get_words(&word, 1)?, vec![0x0101_0101])
}

pub(super) fn large(rig: &Rig<'_>) -> LawVerdict {
    const NODES: u32 = 300;
    let stream = rig.stream()?;
    let words = rig.words(u64::from(NODES) + 1)?;
    // Each node hands one word on; the first arrives at the end only if all of them run in order.
    let hand_on = |at: u64| {
        let place = |word: u64| Place::Device(at_word(&words, word));
        Command::Copy { from: place(at), to: place(at + 1), bytes: 4 }
    };
    let edges: Vec<[u32; 1]> = (0..NODES).map(|at| [at.saturating_sub(1)]).collect();
    let node =
        |at: usize| GraphNode { command: hand_on(at as u64), after: if at == 0 { &[] } else { &edges[at] } };
    let nodes: Vec<_> = (0..NODES as usize).map(node).collect();
    let graph = rig.graph(&nodes)?;
    for value in [77u32, 78] {
        rig.put(words.id, &value.to_le_bytes())?;
        rig.driver.submit(stream, &Command::Graph(graph))?;
        rig.driver.synchronize(stream)?;
        equal(
            "the end of a long chain",
            rig.get_words(&words, u64::from(NODES) + 1)?,
            vec![value; NODES as usize + 1],
        )?;
    }
    Ok(())
}

fn at_word(words: &DeviceMemory, word: u64) -> DevicePlace {
    at(words.id, 4 * word)
}
