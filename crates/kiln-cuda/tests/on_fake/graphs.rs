//! Graphs: built, run, changed, and put into each other.

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Driver, DriverExt, Function, GraphId, GraphNode, LaunchCommand,
    Pattern, Place, Refusal,
};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, launch, set_arguments};

fn fill(to: DeviceMemory, value: u8) -> Command<'static> {
    Command::Fill { to: to.id.into(), pattern: Pattern::U8(value), count: to.bytes }
}

fn copy(from: DeviceMemory, to: DeviceMemory) -> Command<'static> {
    Command::Copy { from: Place::Device(from.id.into()), to: Place::Device(to.id.into()), bytes: to.bytes }
}

fn set<'a>(function: &Function, arguments: &'a [u8]) -> Command<'a> {
    Command::Launch(launch(function, arguments))
}

fn run(bench: &Bench, graph: GraphId) {
    bench.device.submit(bench.stream, &Command::Graph(graph)).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
}

on_machine! {
    fn nodes_run_and_can_be_changed() on Machine::fake() => {
        let bench = Bench::new();
        let (from, to) = (bench.memory(8), bench.memory(8));
        let kernel = bench.function("set");
        let arguments = set_arguments(from, 0x0202_0202, 1);
        let graph = bench.device.build_graph(&[
            GraphNode { command: fill(from, 1), after: &[] },
            GraphNode { command: set(&kernel, &arguments), after: &[0] },
            GraphNode { command: copy(from, to), after: &[0, 1] },
        ]).unwrap();
        assert_eq!(calls("cuGraphAddMemcpyNode"), ["2 8 c0000"]);
        run(&bench, graph);
        assert_eq!(bench.read(to.id, 8), [2, 2, 2, 2, 1, 1, 1, 1]);

        let arguments = set_arguments(from, 0x0303_0303, 1);
        bench.device.update_graph(graph, 0, &fill(from, 4)).unwrap();
        bench.device.update_graph(graph, 1, &set(&kernel, &arguments)).unwrap();
        run(&bench, graph);
        assert_eq!(bench.read(to.id, 8), [3, 3, 3, 3, 4, 4, 4, 4]);
        bench.device.update_graph(graph, 2, &copy(to, from)).unwrap();
        bench.device.destroy(graph.into()).unwrap();
        assert!(bench.device.submit(bench.stream, &Command::Graph(graph)).unwrap_err().is_refused());
        assert_eq!((calls("cuGraphDestroy").len(), calls("cuGraphExecDestroy").len()), (1, 1));
    }

    fn updates_that_change_the_kind_are_refused_and_change_nothing() on Machine::fake() => {
        let bench = Bench::new();
        let (from, to) = (bench.memory(4), bench.memory(4));
        let block = bench.host(&[0; 4]);
        let kernel = bench.function("nothing");
        let graph = bench.device.build_graph(&[
            GraphNode { command: fill(from, 1), after: &[] },
            GraphNode { command: copy(from, to), after: &[0] },
            GraphNode { command: set(&kernel, &[]), after: &[] },
        ]).unwrap();
        let up = Command::Copy {
            from: Place::Host { block: block.id(), offset: 0 },
            to: Place::Device(to.id.into()),
            bytes: 4,
        };
        let cooperative = Command::Launch(LaunchCommand { cooperative: true, ..launch(&kernel, &[]) });
        let event = bench.device.create_event(kiln_driver::EventRequest::Plain).unwrap();
        for (node, command) in [
            (0, copy(from, to)),
            (1, fill(from, 1)),
            (1, up),
            (2, cooperative),
            (3, fill(from, 1)),
            (0, Command::Signal(event)),
            (0, Command::Graph(graph)),
        ] {
            let error = bench.device.update_graph(graph, node, &command).unwrap_err();
            assert!(error.is_refused() && error.call() == "update_graph", "{error}");
        }
        let past = Command::Fill { to: DevicePlace::from(from.id).plus(1), pattern: Pattern::U8(0), count: 4 };
        let error = bench.device.update_graph(graph, 0, &past).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::OutOfRange { .. })));
        run(&bench, graph);
        assert_eq!(bench.read(to.id, 4), [1; 4]);
    }

    fn what_cannot_be_built_leaves_nothing_behind() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(4);
        let past = Command::Fill { to: DevicePlace::from(memory.id).plus(1), pattern: Pattern::U8(0), count: 4 };
        let node = |command, after| GraphNode { command, after };
        for nodes in [
            vec![],
            vec![node(fill(memory, 1), &[0][..])],
            vec![node(fill(memory, 1), &[]), node(past, &[0])],
            vec![node(Command::Wait(bench.device.create_event(kiln_driver::EventRequest::Plain).unwrap()), &[])],
        ] {
            assert!(bench.device.build_graph(&nodes).unwrap_err().is_refused());
        }
        assert_eq!(calls("cuGraphCreate").len(), calls("cuGraphDestroy").len());
        assert_eq!(calls("cuGraphInstantiateWithFlags").len(), 0);
    }

    fn a_graph_inside_a_graph_is_a_copy_that_can_be_replaced() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(4);
        let node = |command| [GraphNode { command, after: &[] }];
        let child = bench.device.build_graph(&node(fill(memory, 1))).unwrap();
        bench.device.update_graph(child, 0, &fill(memory, 2)).unwrap();
        let parent = bench.device.build_graph(&node(Command::Graph(child))).unwrap();
        bench.device.update_graph(child, 0, &fill(memory, 3)).unwrap();
        run(&bench, parent);
        assert_eq!(bench.read(memory.id, 4), [2; 4], "the child as it was when the parent was built");

        bench.device.update_graph(parent, 0, &Command::Graph(child)).unwrap();
        run(&bench, parent);
        assert_eq!(bench.read(memory.id, 4), [3; 4]);
        let error = bench.device.build_graph(&node(Command::Graph(parent))).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Busy { .. })), "{error}");
    }

    fn a_graph_keeps_the_code_it_runs() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(4);
        let arguments = set_arguments(memory, 0x0606_0606, 1);
        let kernel = bench.function("set");
        let node = GraphNode { command: set(&kernel, &arguments), after: &[] };
        let graph = bench.device.build_graph(&[node]).unwrap();
        bench.device.destroy(bench.module.into()).unwrap();
        assert_eq!(calls("cuModuleUnload").len(), 0);
        run(&bench, graph);
        assert_eq!(bench.read(memory.id, 4), [6; 4]);
        bench.device.destroy(graph.into()).unwrap();
        assert_eq!(calls("cuModuleUnload").len(), 1);
    }

    fn shaped_launches_keep_their_shape_in_a_graph() on Machine::fake() => {
        let bench = Bench::new();
        let kernel = bench.function("nothing");
        let both = LaunchCommand { grid: 4.into(), cluster: Some(2.into()), cooperative: true, ..launch(&kernel, &[]) };
        let node = GraphNode { command: Command::Launch(both), after: &[] };
        let graph = bench.device.build_graph(&[node]).unwrap();
        assert_eq!(calls("cuGraphKernelNodeSetAttribute"), ["2 1", "4 2"]);
        run(&bench, graph);
    }

    fn a_cooperative_node_gets_its_arguments_one_by_one() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(4);
        let kernel = bench.function("set");
        let arguments = [set_arguments(memory, 0x0505_0505, 1), set_arguments(memory, 0x0606_0606, 1)];
        let command = |at: usize| {
            Command::Launch(LaunchCommand { cooperative: true, ..launch(&kernel, &arguments[at]) })
        };
        let graph = bench.device.build_graph(&[GraphNode { command: command(0), after: &[] }]).unwrap();
        run(&bench, graph);
        assert_eq!(bench.read(memory.id, 4), [5; 4]);
        bench.device.update_graph(graph, 0, &command(1)).unwrap();
        run(&bench, graph);
        assert_eq!(bench.read(memory.id, 4), [6; 4]);
    }

    fn nothing_to_copy_is_an_empty_node() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(4);
        let nothing = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(0), count: 0 };
        let graph = bench.device.build_graph(&[GraphNode { command: nothing, after: &[] }]).unwrap();
        assert_eq!(calls("cuGraphAddEmptyNode").len(), 1);
        bench.device.update_graph(graph, 0, &nothing).unwrap();
        assert!(bench.device.update_graph(graph, 0, &fill(memory, 1)).unwrap_err().is_refused());
        run(&bench, graph);
    }
}
