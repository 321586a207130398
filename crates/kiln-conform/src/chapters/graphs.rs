//! Laws about graphs.

mod building;
mod updating;

use kiln_driver::{
    Command, DeviceMemory, DriverExt, FunctionId, GraphNode, Pattern, Place, Timeout, WaitTarget,
};

use crate::expect::{equal, same_bytes};
use crate::fixture::{Rig, plain_launch, read_host};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law { name: "graphs.edges", says: "a node runs after the nodes it names", run: edges },
    Law { name: "graphs.diamond", says: "branches of a graph come together", run: diamond },
    Law { name: "graphs.no_edges", says: "nodes without edges all run", run: no_edges },
    Law { name: "graphs.every_kind", says: "copies, fills and launches are nodes", run: every_kind },
    Law {
        name: "graphs.in_stream_order",
        says: "a graph as a whole has its place in the stream",
        run: in_stream_order,
    },
    Law {
        name: "graphs.again_and_again",
        says: "a graph can be submitted again, on any stream",
        run: again_and_again,
    },
    Law {
        name: "graphs.duplicate_edges",
        says: "an edge named twice is one edge",
        run: building::duplicate_edges,
    },
    Law { name: "graphs.nested", says: "a graph can be a node of another", run: building::nested },
    Law {
        name: "graphs.arguments_are_taken_at_once",
        says: "packed arguments may change once a graph is built or updated",
        run: building::arguments_are_taken_at_once,
    },
    Law {
        name: "graphs.build_refused",
        says: "no nodes, edges that lead forwards, and edges as nodes are refused",
        run: building::build_refused,
    },
    Law {
        name: "graphs.commands_are_checked",
        says: "a node is refused for what submit would refuse",
        run: building::commands_are_checked,
    },
    Law {
        name: "graphs.destroyed_is_stale",
        says: "a destroyed graph is gone",
        run: building::destroyed_is_stale,
    },
    Law {
        name: "graphs.large",
        says: "a graph of hundreds of nodes runs them all in order",
        run: building::large,
    },
    Law { name: "graphs.update", says: "a node can be replaced by one of its kind", run: updating::update },
    Law {
        name: "graphs.update_leaves_queued_launches_alone",
        says: "what was queued before an update runs as it was",
        run: updating::update_leaves_queued_launches_alone,
    },
    Law {
        name: "graphs.cooperative",
        says: "blocks of a cooperative launch are resident together in a graph too, also when the node was replaced",
        run: updating::cooperative,
    },
    Law {
        name: "graphs.update_refused",
        says: "an unknown node or another kind of command is refused and the graph unchanged",
        run: updating::update_refused,
    },
    Law {
        name: "graphs.update_keeps_the_shape",
        says: "a launch that is cooperative or clustered otherwise, a copy with other ends, and work on no bytes instead of some are refused as replacements",
        run: updating::update_keeps_the_shape,
    },
];

/// A node that writes a word.
fn store<'b>(function: FunctionId, arguments: &'b Arguments) -> Command<'b> {
    Command::Launch(plain_launch(function, 1, 1, arguments))
}

/// A node that copies between two blocks.
fn copy<'b>(from: &DeviceMemory, to: &DeviceMemory, bytes: u64) -> Command<'b> {
    Command::Copy { from: Place::Device(from.id.into()), to: Place::Device(to.id.into()), bytes }
}

fn edges(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let (spin, value, more) = (rig.kernel("spin")?, rig.kernel("store_value")?, rig.kernel("increment")?);
    let clocks = Arguments::new().u64(500_000);
    let five = Arguments::new().address(word.address).u32(5);
    let one = Arguments::new().address(word.address).u32(1);
    let nodes = [
        GraphNode { command: store(spin.id, &clocks), after: &[] },
        GraphNode { command: store(value.id, &five), after: &[0] },
        GraphNode { command: store(more.id, &one), after: &[1] },
        GraphNode { command: store(more.id, &one), after: &[2] },
    ];
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("a chain of nodes", rig.get_words(&word, 1)?, vec![7])
}

fn diamond(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (top, left, right, bottom) =
        (rig.words(64)?, rig.words(64)?, rig.words(64)?, rig.memory_with(&[0; 512])?);
    let more = rig.kernel("increment")?;
    let on = |memory: &DeviceMemory| Arguments::new().address(memory.address).u32(64);
    let (on_top, on_left) = (on(&top), on(&left));
    let launch = |arguments| Command::Launch(plain_launch(more.id, 1, 64, arguments));
    let to_half = |from: &DeviceMemory, half: u64| Command::Copy {
        from: Place::Device(from.id.into()),
        to: Place::Device(crate::fixture::at(bottom.id, half * 256)),
        bytes: 256,
    };
    let nodes = [
        GraphNode { command: launch(&on_top), after: &[] },
        GraphNode { command: copy(&top, &left, 256), after: &[0] },
        GraphNode { command: copy(&top, &right, 256), after: &[0] },
        GraphNode { command: launch(&on_left), after: &[1] },
        GraphNode { command: to_half(&left, 0), after: &[3] },
        GraphNode { command: to_half(&right, 1), after: &[2] },
        GraphNode {
            command: Command::Fill { to: top.id.into(), pattern: Pattern::U8(0), count: 256 },
            after: &[4, 5],
        },
    ];
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    let found = rig.get(bottom.id, 512)?;
    same_bytes("the longer branch", &found[..256], &[2, 0, 0, 0].repeat(64))?;
    same_bytes("the shorter branch", &found[256..], &[1, 0, 0, 0].repeat(64))?;
    equal("what the last node cleared", rig.get_words(&top, 64)?, vec![0; 64])
}

fn no_edges(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let words = rig.words(20)?;
    let value = rig.kernel("store_value")?;
    let arguments: Vec<_> = (0..20u32)
        .map(|at| {
            let address = kiln_driver::DeviceAddress(words.address.0 + 4 * u64::from(at));
            Arguments::new().address(address).u32(at + 1)
        })
        .collect();
    let nodes: Vec<_> = arguments
        .iter()
        .map(|arguments| GraphNode { command: store(value.id, arguments), after: &[] })
        .collect();
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("what twenty free nodes wrote", rig.get_words(&words, 20)?, (1..=20).collect())
}

fn every_kind(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (from, to) = (rig.host_with(&[10, 0, 0, 0].repeat(32))?, rig.host(256)?);
    let memory = rig.memory_with(&[0xee; 256])?;
    let more = rig.kernel("increment")?;
    let arguments = Arguments::new().address(memory.address).u32(64);
    let device = |offset| crate::fixture::at(memory.id, offset);
    let nodes = [
        GraphNode {
            command: Command::Copy {
                from: crate::fixture::host_at(&from, 0),
                to: Place::Device(device(0)),
                bytes: 128,
            },
            after: &[],
        },
        GraphNode {
            command: Command::Fill { to: device(128), pattern: Pattern::U32(20), count: 32 },
            after: &[],
        },
        GraphNode { command: Command::Launch(plain_launch(more.id, 1, 64, &arguments)), after: &[0, 1] },
        GraphNode {
            command: Command::Copy {
                from: Place::Device(device(0)),
                to: crate::fixture::host_at(&to, 0),
                bytes: 256,
            },
            after: &[2],
        },
    ];
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    let mut expected = [11, 0, 0, 0].repeat(32);
    expected.extend([21, 0, 0, 0].repeat(32));
    same_bytes("what the graph brought back", &read_host(&to)?, &expected)
}

fn in_stream_order(rig: &Rig<'_>) -> LawVerdict {
    let (stream, other) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let (word, seen) = (rig.words(1)?, rig.host(4)?);
    let (spin, more) = (rig.kernel("spin")?, rig.kernel("increment")?);
    let (clocks, one) = (Arguments::new().u64(500_000), Arguments::new().address(word.address).u32(1));
    let nodes = [
        GraphNode { command: store(spin.id, &clocks), after: &[] },
        GraphNode { command: store(more.id, &one), after: &[0] },
    ];
    let graph = rig.graph(&nodes)?;
    rig.busy(stream)?;
    rig.store(stream, &word, 100)?;
    equal("the number of a graph", rig.driver.submit(stream, &Command::Graph(graph))?.0, 3)?;
    rig.increment(stream, &word, 1)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.order(stream, event, other)?;
    rig.driver.download(other, word.id.into(), &seen, 4)?;
    let waited = rig.driver.wait(WaitTarget::Stream(other), Timeout::Never)?;
    equal("a wait behind the graph", waited.is_done(), true)?;
    same_bytes("graphs between other work", &read_host(&seen)?, &103u32.to_le_bytes())
}

fn again_and_again(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let words = rig.words(64)?;
    let more = rig.kernel("increment")?;
    let arguments = Arguments::new().address(words.address).u32(64);
    let node = GraphNode { command: Command::Launch(plain_launch(more.id, 1, 64, &arguments)), after: &[] };
    let graph = rig.graph(&[node])?;
    for _ in 0..10 {
        rig.driver.submit(first, &Command::Graph(graph))?;
    }
    rig.driver.order(first, rig.event()?, second)?;
    for _ in 0..5 {
        rig.driver.submit(second, &Command::Graph(graph))?;
    }
    rig.driver.synchronize(second)?;
    equal("fifteen runs of one graph", rig.get_words(&words, 64)?, vec![15; 64])
}
