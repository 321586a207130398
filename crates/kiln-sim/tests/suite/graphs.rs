//! Graphs: edges are kept, branches interleave, updates and nesting do what they say.

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Driver, DriverExt, GraphNode, Pattern, Place, Refusal,
};
use kiln_sim::{ExploreCoverage, Machine, MachineConfig, explore};

use crate::rig::{Kernel, Rig, bytes_of, config, pack};

fn fill(memory: DeviceMemory, offset: u64, value: u8, count: u64) -> Command<'static> {
    Command::Fill { to: DevicePlace::from(memory.id).plus(offset), pattern: Pattern::U8(value), count }
}

fn copy(from: DeviceMemory, to: DeviceMemory, bytes: u64) -> Command<'static> {
    let (from, to) = (Place::Device(from.id.into()), Place::Device(to.id.into()));
    Command::Copy { from, to, bytes }
}

fn contents(rig: &Rig, memory: DeviceMemory) -> Vec<u8> {
    let host = rig.host(memory.bytes);
    rig.download(0, memory.id, &host);
    rig.sync(0);
    bytes_of(&host)
}

#[test]
fn a_diamond_keeps_its_edges_in_every_order() {
    let seen = explore(config(0), 100_000, |machine| {
        let rig = Rig::new(machine, 1);
        let (x, y) = (rig.block(8), rig.block(8));
        let bump = pack(Kernel::Bump, &[x.address.0, 4]);
        let nodes = [
            GraphNode { command: fill(x, 0, 1, 8), after: &[] },
            GraphNode { command: rig.command(Kernel::Bump, &bump), after: &[0] },
            GraphNode { command: fill(x, 4, 9, 4), after: &[0] },
            GraphNode { command: copy(x, y, 8), after: &[1, 2] },
        ];
        let graph = rig.device.build_graph(&nodes).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        let bytes = contents(&rig, y);
        let steps: Vec<_> = machine.timeline().iter().filter_map(|span| span.node).collect();
        rig.close();
        (bytes, steps)
    });
    assert_eq!(
        (seen.verdict, seen.runs_with_findings),
        (ExploreCoverage::Complete, 0),
        "{:?}",
        seen.findings
    );
    let outcomes: Vec<_> = seen.outcomes.into_keys().collect();
    let bytes = vec![2, 2, 2, 2, 9, 9, 9, 9];
    assert_eq!(outcomes, [(bytes.clone(), vec![0, 1, 2, 3]), (bytes, vec![0, 2, 1, 3])]);
}

#[test]
fn an_update_changes_the_next_launch_and_not_the_queued_one() {
    for seed in 0..50 {
        let rig = Rig::seeded(seed, 1);
        let (x, y) = (rig.block(8), rig.block(8));
        let nodes = [
            GraphNode { command: fill(x, 0, 1, 8), after: &[] },
            GraphNode { command: fill(y, 0, 2, 8), after: &[] },
        ];
        let graph = rig.device.build_graph(&nodes).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        rig.device.update_graph(graph, 0, &fill(x, 0, 7, 4)).unwrap();
        assert_eq!(contents(&rig, x), [1; 8]);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        assert_eq!(contents(&rig, x), [7, 7, 7, 7, 1, 1, 1, 1]);
        assert_eq!(contents(&rig, y), [2; 8]);

        assert!(rig.device.update_graph(graph, 2, &fill(x, 0, 1, 1)).unwrap_err().is_refused());
        assert!(rig.device.update_graph(graph, 0, &copy(x, y, 8)).unwrap_err().is_refused());
        let event = rig.event();
        assert!(rig.device.update_graph(graph, 0, &Command::Signal(event)).unwrap_err().is_refused());
        assert!(rig.device.update_graph(graph, 0, &fill(x, 0, 1, 9)).unwrap_err().is_refused());
        let machine = rig.machine.clone();
        rig.close();
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_graph_in_a_graph_runs_between_what_it_is_after_and_what_is_after_it() {
    let seen = explore(config(0), 100_000, |machine| {
        let rig = Rig::new(machine, 1);
        let (x, y) = (rig.block(4), rig.block(4));
        let bump = pack(Kernel::Bump, &[x.address.0, 2]);
        let other = pack(Kernel::Bump, &[x.address.0 + 2, 2]);
        let inner = [
            GraphNode { command: rig.command(Kernel::Bump, &bump), after: &[] },
            GraphNode { command: rig.command(Kernel::Bump, &other), after: &[] },
        ];
        let inner = rig.device.build_graph(&inner).unwrap();
        let outer = [
            GraphNode { command: fill(x, 0, 1, 4), after: &[] },
            GraphNode { command: Command::Graph(inner), after: &[0] },
            GraphNode { command: copy(x, y, 4), after: &[1] },
        ];
        let graph = rig.device.build_graph(&outer).unwrap();
        rig.give_back_later(graph);
        // The inner graph was taken over when the outer one was built.
        rig.device.destroy(inner.into()).unwrap();
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        let bytes = contents(&rig, y);
        rig.close();
        bytes
    });
    assert_eq!(
        (seen.verdict, seen.runs_with_findings),
        (ExploreCoverage::Complete, 0),
        "{:?}",
        seen.findings
    );
    assert!(seen.runs > 2, "the branches change places");
    assert_eq!(seen.outcomes.into_keys().collect::<Vec<_>>(), [vec![2; 4]]);
}

#[test]
fn a_nested_graph_is_updated_as_a_whole() {
    let rig = Rig::seeded(0, 1);
    let x = rig.block(4);
    let build = |value| {
        let node = GraphNode { command: fill(x, 0, value, 4), after: &[] };
        let graph = rig.device.build_graph(&[node]).unwrap();
        rig.give_back_later(graph);
        graph
    };
    let (one, two) = (build(1), build(2));
    let outer = rig.device.build_graph(&[GraphNode { command: Command::Graph(one), after: &[] }]).unwrap();
    rig.give_back_later(outer);
    rig.device.update_graph(outer, 0, &Command::Graph(two)).unwrap();
    rig.device.submit(rig.streams[0], &Command::Graph(outer)).unwrap();
    assert_eq!(contents(&rig, x), [2; 4]);
    let pair = [
        GraphNode { command: fill(x, 0, 1, 4), after: &[] },
        GraphNode { command: fill(x, 0, 1, 4), after: &[0] },
    ];
    let other_shape = rig.device.build_graph(&pair).unwrap();
    rig.give_back_later(other_shape);
    assert!(rig.device.update_graph(outer, 0, &Command::Graph(other_shape)).unwrap_err().is_refused());
    rig.close();
}

#[test]
fn what_cannot_be_a_graph_is_refused() {
    let mut config: MachineConfig = config(0);
    config.limits.graph_nodes = 1_000;
    let rig = Rig::new(&Machine::new(config), 1);
    let x = rig.block(4);
    let event = rig.event();
    let refused = |nodes: &[GraphNode<'_>]| {
        let error = rig.device.build_graph(nodes).unwrap_err();
        assert!(error.is_refused(), "{error}");
        error
    };
    refused(&[]);
    refused(&[GraphNode { command: fill(x, 0, 1, 4), after: &[0] }]);
    refused(&[GraphNode { command: Command::Wait(event), after: &[] }]);
    refused(&[GraphNode { command: fill(x, 1, 1, 4), after: &[] }]);
    // Each graph holds the one before twice: the tenth would have more nodes than are allowed.
    let mut graph = rig.device.build_graph(&[GraphNode { command: fill(x, 0, 1, 1), after: &[] }]).unwrap();
    rig.give_back_later(graph);
    let doubled = |graph| {
        let command = Command::Graph(graph);
        rig.device.build_graph(&[GraphNode { command, after: &[] }, GraphNode { command, after: &[0] }])
    };
    let refusal = loop {
        match doubled(graph) {
            Ok(next) => {
                rig.give_back_later(next);
                graph = next;
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal.refusal(), Some(Refusal::Limit { limit: 1_000, .. })), "{refusal}");
    rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
    rig.device.synchronize(rig.streams[0]).unwrap();
    assert_eq!(rig.machine.timeline().len(), 512);
    rig.close();
}

#[test]
fn a_wide_graph_and_a_long_one_stay_cheap() {
    const NODES: u32 = 2_000;
    let rig = Rig::seeded(0, 1);
    let x = rig.block(u64::from(NODES));
    let chain: Vec<[u32; 1]> = (0..NODES).map(|at| [at]).collect();
    let wide = |at: u32| GraphNode { command: fill(x, u64::from(at), 1, 1), after: &[] };
    let long = |at: u32| GraphNode {
        command: fill(x, 0, at as u8, u64::from(NODES)),
        after: if at == 0 { &[] } else { &chain[at as usize - 1] },
    };
    for nodes in [(0..NODES).map(wide).collect::<Vec<_>>(), (0..NODES).map(long).collect()] {
        let graph = rig.device.build_graph(&nodes).unwrap();
        rig.give_back_later(graph);
        for _ in 0..3 {
            rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        }
    }
    assert_eq!(contents(&rig, x), vec![(NODES - 1) as u8; NODES as usize]);
    let machine = rig.machine.clone();
    rig.close();
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
