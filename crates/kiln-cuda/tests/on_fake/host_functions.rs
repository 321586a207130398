//! Functions of the host in the order of a stream, and in graphs.

use std::sync::{Mutex, PoisonError};

use kiln_cuda::HostFunctions;
use kiln_driver::{
    Code, Command, Driver, DriverExt, Function, GraphId, GraphNode, Image, LaunchCommand, Refusal,
};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, launch};

/// What was called, with its words and what it was told.
static CALLED: Mutex<Vec<(&str, Vec<u64>, Code)>> = Mutex::new(Vec::new());

fn note(name: &'static str, words: &[u64], told: Code) {
    CALLED.lock().unwrap_or_else(PoisonError::into_inner).push((name, words.to_vec(), told));
}

fn called() -> Vec<(&'static str, Vec<u64>, Code)> {
    std::mem::take(&mut CALLED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A device with the functions `two` and `none` and the callback `told`.
fn bench() -> (Bench, impl Fn(&Bench, &str) -> Function) {
    let bench = Bench::new();
    let functions = HostFunctions::new("tests")
        .function("two", 2, |words| note("two", words, Code::SUCCESS))
        .function("none", 0, |words| note("none", words, Code::SUCCESS))
        .callback("told", 1, |words, code| note("told", words, code));
    bench.device.add_host_functions(functions);
    let module = bench.device.load(&Image::HostKernels("tests")).unwrap();
    (bench, move |bench, name| bench.device.function(module, name).unwrap())
}

fn words<const COUNT: usize>(words: [u64; COUNT]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn run(bench: &Bench, graph: GraphId) {
    bench.device.submit(bench.stream, &Command::Graph(graph)).unwrap();
    bench.device.synchronize(bench.stream).unwrap();
}

on_machine! {
    fn a_stream_calls_with_the_words_of_the_launch() on Machine::fake() => {
        let (bench, function) = bench();
        let arguments = words([7, u64::MAX]);
        bench.device.submit(bench.stream, &Command::Launch(launch(&function(&bench, "two"), &arguments))).unwrap();
        bench.device.submit(bench.stream, &Command::Launch(launch(&function(&bench, "none"), &[]))).unwrap();
        let last = words([3]);
        let number = bench.device.submit(bench.stream, &Command::Launch(launch(&function(&bench, "told"), &last))).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        let expected = [("two", vec![7, u64::MAX], Code::SUCCESS), ("none", vec![], Code::SUCCESS), ("told", vec![3], Code::SUCCESS)];
        assert_eq!((called(), number.0), (expected.to_vec(), 3));
        assert_eq!((calls("cuLaunchHostFunc").len(), calls("cuStreamAddCallback")), (2, vec!["0".to_owned()]));
    }

    fn what_is_no_call_is_refused() on Machine::fake().plan("cuLaunchHostFunc=1@1") => {
        let (bench, function) = bench();
        let two = function(&bench, "two");
        let spans = two.attributes.parameters.clone().unwrap();
        assert_eq!(spans.iter().map(|span| (span.offset, span.bytes)).collect::<Vec<_>>(), [(0, 8), (8, 8)]);
        let arguments = words([1, 2]);
        let right = launch(&two, &arguments);
        for wrong in [
            LaunchCommand { arguments: &arguments[..8], ..right },
            LaunchCommand { arguments: &arguments[..15], ..right },
            LaunchCommand { grid: 2.into(), ..right },
            LaunchCommand { block: 2.into(), ..right },
            LaunchCommand { cluster: Some(1.into()), ..right },
            LaunchCommand { cooperative: true, ..right },
            LaunchCommand { dynamic_shared_bytes: 4, ..right },
        ] {
            assert!(bench.device.submit(bench.stream, &Command::Launch(wrong)).unwrap_err().is_refused());
        }
        // The driver says no to the first one, and takes the second.
        assert!(bench.device.submit(bench.stream, &Command::Launch(right)).unwrap_err().is_refused());
        bench.device.submit(bench.stream, &Command::Launch(right)).unwrap();
        assert_eq!(called().len(), 1);
        assert_eq!(bench.device.occupancy(two.id, 1, 0).unwrap().blocks_per_multiprocessor, 1);
        let module = bench.device.load(&Image::HostKernels("tests")).unwrap();
        let error = bench.device.function(module, "three").unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::NotFound { known, .. }) if known.len() == 3), "{error}");
        assert!(bench.device.global(module, "two").unwrap_err().is_refused());
        assert!(bench.device.load(&Image::HostKernels("others")).unwrap_err().is_unsupported());
        bench.device.destroy(module.into()).unwrap();
    }

    fn a_graph_calls_at_each_launch() on Machine::fake() => {
        let (bench, function) = bench();
        let (two, none) = (function(&bench, "two"), function(&bench, "none"));
        let (first, second) = (words([1, 2]), words([3, 4]));
        let graph = bench.device.build_graph(&[
            GraphNode { command: Command::Launch(launch(&two, &first)), after: &[] },
            GraphNode { command: Command::Launch(launch(&none, &[])), after: &[0] },
        ]).unwrap();
        let outer = bench.device.build_graph(&[GraphNode { command: Command::Graph(graph), after: &[] }]).unwrap();
        run(&bench, graph);
        run(&bench, graph);
        let once = [("two", vec![1, 2], Code::SUCCESS), ("none", vec![], Code::SUCCESS)].to_vec();
        assert_eq!(called(), [once.clone(), once.clone()].concat());

        bench.device.update_graph(graph, 0, &Command::Launch(launch(&two, &second))).unwrap();
        bench.device.update_graph(graph, 1, &Command::Launch(launch(&two, &first))).unwrap();
        run(&bench, graph);
        assert_eq!(called(), [("two", vec![3, 4], Code::SUCCESS), ("two", vec![1, 2], Code::SUCCESS)]);
        // The outer one has its own copy.
        run(&bench, outer);
        assert_eq!(called(), once);

        let kernel = bench.function("nothing");
        let wrong = bench.device.update_graph(graph, 0, &Command::Launch(launch(&kernel, &[])));
        assert!(wrong.unwrap_err().is_refused());
        let told = words([0]);
        let callback = Command::Launch(launch(&function(&bench, "told"), &told));
        let wrong = bench.device.build_graph(&[GraphNode { command: callback, after: &[] }]);
        assert!(wrong.unwrap_err().is_refused());
    }

    fn a_callback_is_told_of_a_failure_and_a_function_is_not_called() on Machine::fake() => {
        let (bench, function) = bench();
        let (told, none) = (function(&bench, "told"), function(&bench, "none"));
        bench.run("crash").unwrap();
        let arguments = words([9]);
        bench.device.submit(bench.stream, &Command::Launch(launch(&told, &arguments))).unwrap();
        assert!(bench.device.submit(bench.stream, &Command::Launch(launch(&none, &[]))).unwrap_err().is_sticky());
        assert_eq!(called(), [("told", vec![9], Code::ILLEGAL_ADDRESS)]);
    }
}
