//! Communicators: which calls NCCL gets for each collective, and what is said of an NCCL that cannot be used or of ranks that do not come.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kiln_driver::{
    Command, Driver, DriverExt, Error, GraphNode, Image, ModuleId, Object, Refusal, StreamId, Submission,
    Timeout, WaitTarget, Waited,
};

use crate::machine::{Machine, calls};
use crate::opened::{Bench, device, launch};

fn with_nccl() -> Machine {
    Machine::fake().with_library("KILN_NCCL", include_str!("libnccl/nccl.c"))
}

fn text(rank: u32, size: u32, deadline_ms: u64) -> String {
    let id: String = (0..128).map(|byte| format!("{byte:02x}")).collect();
    format!("communicator id={id} rank={rank} size={size} deadline_ms={deadline_ms}")
}

fn rank(bench: &Bench, rank: u32, size: u32) -> ModuleId {
    bench.device.load(&Image::Communicator(&text(rank, size, 5_000))).unwrap()
}

fn submit(bench: &Bench, module: ModuleId, name: &str, arguments: &[u64]) -> Result<Submission, Error> {
    submit_on(bench, bench.stream, module, name, arguments)
}

fn submit_on(
    bench: &Bench,
    stream: StreamId,
    module: ModuleId,
    name: &str,
    arguments: &[u64],
) -> Result<Submission, Error> {
    let function = bench.device.function(module, name)?;
    let packed: Vec<u8> = arguments.iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.device.submit(stream, &Command::Launch(launch(&function, &packed)))
}

fn unusable(error: &Error) -> String {
    let Some(Refusal::Library { library: "NCCL", why }) = error.refusal() else { panic!("{error}") };
    why.clone()
}

/// Waits until the stand-in has logged a call of this name.
fn wait_for(name: &str) {
    let began = Instant::now();
    while calls(name).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{name} is not called");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// No communicator was freed while a call used it, nor used afterwards.
fn assert_not_misused() {
    assert_eq!(calls("ncclMisused"), [""; 0]);
}

/// A call for the log: addresses as C prints them.
fn line(arguments: &[u64]) -> String {
    arguments.iter().map(|address| format!("{address:#x}")).collect::<Vec<_>>().join(" ")
}

on_machine! {
    fn a_missing_nccl_is_named_with_the_way_to_get_it() on Machine::fake().with("KILN_NCCL", "/no/such/file") => {
        let why = unusable(&device().load(&Image::Communicator(&text(0, 2, 100))).unwrap_err());
        assert!(why.contains("/no/such/file") && why.contains("nvidia-nccl-cu13"), "{why}");
    }

    fn an_nccl_that_is_too_old_is_named_with_its_version() on with_nccl().with("FAKE_NCCL_VERSION", "21403") => {
        let why = unusable(&device().load(&Image::Communicator(&text(0, 2, 100))).unwrap_err());
        assert!(why.contains("NCCL at /") && why.contains(" is too old: version 2.14.3, kiln needs 2.18 or newer; install"), "{why}");
        assert!(calls("ncclCommInitRankConfig").is_empty());
    }

    fn an_nccl_without_an_entry_point_is_refused() on {
        Machine::fake().with_library("KILN_NCCL", "int ncclGetVersion(int *v) { *v = 22809; return 0; }")
    } => {
        let id = OnceLock::new();
        let why = unusable(&device().load(&Image::CommunicatorId { id: &id }).unwrap_err());
        assert!(why.contains(" has no `ncclGetUniqueId`, which NCCL 2.18 has"), "{why}");
    }

    fn an_id_has_the_bytes_of_nccl() on with_nccl() => {
        let id = OnceLock::new();
        let device = device();
        let module = device.load(&Image::CommunicatorId { id: &id }).unwrap();
        assert_eq!(id.get().unwrap(), &(0..128).collect::<Vec<u8>>());
        assert!(device.function(module, "barrier").unwrap_err().is_refused());
    }

    fn a_rank_is_made_without_waiting_and_aborted_at_its_end() on with_nccl().with("FAKE_NCCL_LATE", "300") => {
        let bench = Bench::new();
        let began = Instant::now();
        let module = rank(&bench, 1, 3);
        assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
        wait_for("ncclCommInitRankConfig");
        let made = calls("ncclCommInitRankConfig");
        let wanted = format!("1 of 3 id 0..127 size 48 magic cafebeef version 21800 blocking 1 min {}", i32::MIN);
        assert_eq!(made, [wanted]);
        let buffer = bench.memory(64).address.0;
        submit(&bench, module, "broadcast element=f32 root=2", &[buffer, 16]).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        bench.device.destroy(Object::Module(module)).unwrap();
        drop(bench);
        assert_eq!(calls("ncclCommAbort").len(), 1);
        assert_not_misused();
    }

    fn a_rank_that_is_dropped_while_it_is_made_is_aborted() on with_nccl().with("FAKE_NCCL_WAITS", "ncclCommInitRankConfig") => {
        let bench = Bench::new();
        let module = rank(&bench, 1, 3);
        wait_for("ncclCommInitRankConfig");
        bench.device.destroy(Object::Module(module)).unwrap();
        drop(bench);
        wait_for("ncclCommAbort");
        assert_not_misused();
    }

    fn numbers_of_8_bits_are_reduced_by_an_nccl_that_can() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        submit(&bench, module, "all_reduce element=f8e4m3 reduction=sum in_place=true", &[buffer, 4]).unwrap();
        submit(&bench, module, "broadcast element=f8e4m3 root=0", &[buffer, 4]).unwrap();
        assert_eq!(calls("ncclAllReduce"), [format!("{buffer:#x} {buffer:#x} 4 10 0")]);
        // What is only moved is moved as bytes.
        assert_eq!(calls("ncclBroadcast"), [format!("{buffer:#x} {buffer:#x} 4 1 0")]);
    }

    fn numbers_of_8_bits_are_not_reduced_by_an_older_nccl() on with_nccl().with("FAKE_NCCL_VERSION", "22304") => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        let refused = bench.device.function(module, "all_reduce element=f8e4m3 reduction=sum in_place=true").unwrap_err();
        assert!(refused.is_unsupported() && refused.to_string().contains("from version 2.24 on; reduce f16 or bf16"), "{refused}");
        submit(&bench, module, "broadcast element=f8e4m3 root=0", &[buffer, 4]).unwrap();
        assert_eq!(calls("ncclBroadcast").len(), 1);
    }

    fn a_submission_asks_nccl_for_nothing_but_its_work() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        let function = bench.device.function(module, "all_reduce element=f32 reduction=sum in_place=true").unwrap();
        let packed: Vec<u8> = [buffer, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let began = Instant::now();
        let mut queued = 0;
        while began.elapsed() < Duration::from_millis(300) {
            bench.device.submit(bench.stream, &Command::Launch(launch(&function, &packed))).unwrap();
            queued += 1;
        }
        assert_eq!(calls("ncclAllReduce").len(), queued);
        assert_eq!((calls("ncclGroupStart").len(), calls("ncclGroupEnd").len()), (0, 0));
        // A separate thread looks at the communicator now and then.
        let asked = calls("ncclCommGetAsyncError");
        assert!(!asked.is_empty() && asked.len() < 20, "{}", asked.len());
        assert!(asked.iter().all(|thread| thread == "kiln-nccl-watch"), "{asked:?}");
        bench.device.synchronize(bench.stream).unwrap();
    }

    fn every_collective_is_the_call_of_its_name() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 1, 3);
        let (a, b) = (bench.memory(256).address.0, bench.memory(256).address.0);
        let run = |name: &str, arguments: &[u64]| {
            submit(&bench, module, name, arguments).unwrap();
        };
        run("all_reduce element=f16 reduction=max in_place=false", &[a, b, 5]);
        run("all_reduce element=bf16 reduction=average in_place=true", &[a, 5]);
        run("barrier", &[a, 1]);
        assert_eq!(calls("ncclAllReduce"), [
            format!("{} 5 6 2", line(&[a, b])), format!("{} 5 9 4", line(&[a, a])), format!("{} 1 1 0", line(&[a, a])),
        ]);
        run("reduce element=i64 reduction=product root=1 in_place=false", &[a, b, 2]);
        run("reduce element=u64 reduction=min root=0 in_place=false", &[a, 2]);
        assert_eq!(calls("ncclReduce"), [format!("{} 2 4 1 1", line(&[a, b])), format!("{a:#x} (nil) 2 5 3 0")]);
        run("broadcast element=u16 root=1", &[a, 6]);
        assert_eq!(calls("ncclBroadcast"), [format!("{} 12 1 1", line(&[a, a]))]);
        run("all_gather element=f64 in_place=false", &[a, b, 2]);
        run("all_gather element=u32 in_place=true", &[a, 2]);
        assert_eq!(calls("ncclAllGather"), [format!("{} 2 8", line(&[a, b])), format!("{} 2 3", line(&[a + 8, a]))]);
        run("reduce_scatter element=i8 reduction=sum in_place=false", &[a, b, 4]);
        run("reduce_scatter element=i32 reduction=sum in_place=true", &[a, 4]);
        assert_eq!(calls("ncclReduceScatter"), [format!("{} 4 0 0", line(&[a, b])), format!("{} 4 2 0", line(&[a, a + 16]))]);
        assert!(calls("ncclGroupStart").is_empty(), "one call is no group");
        assert!(calls("ncclSend").is_empty());
    }

    fn what_nccl_has_no_call_for_is_sends_and_receives() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 1, 3);
        let (a, b) = (bench.memory(256).address.0, bench.memory(256).address.0);
        let sent = |before: usize| calls("ncclSend").split_off(before);
        let received = |before: usize| calls("ncclRecv").split_off(before);
        let run = |name: &str, arguments: &[u64]| {
            submit(&bench, module, name, arguments).unwrap();
        };
        let block = |at: u64, base: u64| format!("{:#x} 2 7 {at}", base + 8 * at);
        run("all_to_all element=f32", &[a, b, 2]);
        assert_eq!(sent(0), [block(0, a), block(1, a), block(2, a)]);
        assert_eq!(received(0), [block(0, b), block(1, b), block(2, b)]);
        run("gather element=f32 root=1 in_place=false", &[a, b, 2]);
        assert_eq!((sent(3), received(3)), (vec![format!("{a:#x} 2 7 1")], vec![block(0, b), block(1, b), block(2, b)]));
        run("gather element=f32 root=1 in_place=true", &[a, 2]);
        assert_eq!((sent(4), received(6)), (vec![], vec![block(0, a), block(2, a)]));
        run("gather element=f32 root=2 in_place=true", &[a, 2]);
        assert_eq!((sent(4), received(8)), (vec![format!("{a:#x} 2 7 2")], vec![]));
        run("scatter element=f32 root=1 in_place=false", &[a, b, 2]);
        assert_eq!((sent(5), received(8)), (vec![block(0, a), block(1, a), block(2, a)], vec![format!("{b:#x} 2 7 1")]));
        run("scatter element=f32 root=0 in_place=false", &[b, 2]);
        assert_eq!((sent(8), received(9)), (vec![], vec![format!("{b:#x} 2 7 0")]));
        let groups = calls("ncclGroupStart").len();
        let exchange = "send element=f32 peer=0; recv element=f32 peer=0; send element=f32 peer=2; recv element=f32 peer=2; barrier";
        run(exchange, &[a, 2, b, 2, a, 2, b + 8, 2, a, 1]);
        assert_eq!(calls("ncclGroupStart").len(), groups + 1, "one launch is one group");
        assert_eq!(received(10), [format!("{b:#x} 2 7 0"), format!("{:#x} 2 7 2", b + 8)]);
    }

    fn ranks_that_do_not_come_end_the_first_launch_by_the_deadline() on {
        with_nccl().with("FAKE_NCCL_WAITS", "ncclCommInitRankConfig")
    } => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Communicator(&text(0, 4, 100))).unwrap();
        let buffer = bench.memory(64).address.0;
        let began = Instant::now();
        let name = "all_reduce element=f32 reduction=sum in_place=true";
        for _ in 0..2 {
            let why = unusable(&submit(&bench, module, name, &[buffer, 4]).unwrap_err());
            assert!(why.contains("rank 0 of 4") && why.contains("waited 0.1 s for the other ranks"), "{why}");
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(calls("ncclCommAbort").len(), 1, "it is aborted once, and says the same afterwards");
        assert!(calls("ncclAllReduce").is_empty());
        assert_not_misused();
    }

    fn a_call_that_waits_for_ranks_ends_by_the_deadline() on with_nccl().with("FAKE_NCCL_WAITS", "ncclAllReduce") => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Communicator(&text(0, 4, 100))).unwrap();
        let buffer = bench.memory(64).address.0;
        let began = Instant::now();
        let name = "all_reduce element=f32 reduction=sum in_place=true";
        for _ in 0..2 {
            let why = unusable(&submit(&bench, module, name, &[buffer, 4]).unwrap_err());
            assert!(why.contains("rank 0 of 4") && why.contains("waited 0.1 s for the other ranks"), "{why}");
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!((calls("ncclCommAbort").len(), calls("ncclAllReduce").len()), (1, 1));
        assert_not_misused();
    }

    fn an_abort_ends_a_call_that_waits_for_ranks_within_a_second() on with_nccl().with("FAKE_NCCL_WAITS", "ncclAllReduce") => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Communicator(&text(0, 4, 3_600_000))).unwrap();
        let buffer = bench.memory(64).address.0;
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| {
                let name = "all_reduce element=f32 reduction=sum in_place=true";
                submit(&bench, module, name, &[buffer, 4]).unwrap_err()
            });
            wait_for("ncclAllReduce");
            let began = Instant::now();
            submit_on(&bench, bench.stream(), module, "abort", &[]).unwrap();
            let why = unusable(&waiting.join().unwrap());
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
            assert!(why.contains("rank 0 of 4") && why.contains("was aborted; make another communicator"), "{why}");
        });
        assert_eq!(calls("ncclCommAbort").len(), 1);
        // What it has was freed when the call had returned.
        assert_not_misused();
    }

    // Those free a communicator at once, also while a call uses it.
    fn an_older_nccl_is_not_aborted_while_a_call_is_inside() on {
        with_nccl().with("FAKE_NCCL_WAITS", "ncclAllReduce").with("FAKE_NCCL_VERSION", "22105")
    } => {
        // The thread that waits has them until the process ends.
        let bench: &Bench = Box::leak(Box::new(Bench::new()));
        let module = bench.device.load(&Image::Communicator(&text(0, 4, 3_600_000))).unwrap();
        let buffer = bench.memory(64).address.0;
        let name = "all_reduce element=f32 reduction=sum in_place=true";
        std::thread::spawn(move || submit(bench, module, name, &[buffer, 4]));
        wait_for("ncclAllReduce");
        let why = unusable(&submit_on(bench, bench.stream(), module, "abort", &[]).unwrap_err());
        assert!(why.contains("a call of NCCL has not returned within 2.0 s") && why.contains("end this process"), "{why}");
        assert!(calls("ncclCommAbort").is_empty());
    }

    fn a_call_that_nccl_refuses_is_named_and_fails_the_communicator() on with_nccl().with("FAKE_NCCL_FAILS", "ncclBroadcast") => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        let why = unusable(&submit(&bench, module, "broadcast element=u8 root=0", &[buffer, 4]).unwrap_err());
        assert!(why.contains("ncclBroadcast answered ncclInvalidUsage (5)"), "{why}");
        assert!(why.contains("invalid usage: what the log says"), "{why}");
        let again = unusable(&submit(&bench, module, "barrier", &[buffer, 1]).unwrap_err());
        assert!(again.contains("ncclBroadcast answered ncclInvalidUsage (5) for barrier"), "{again}");
        // What it has queued before may still end well; `abort` ends it.
        assert!(calls("ncclCommAbort").is_empty() && calls("ncclAllReduce").is_empty());
        submit(&bench, module, "abort", &[]).unwrap();
        assert_eq!(calls("ncclCommAbort").len(), 1);
    }

    fn an_abort_ends_a_collective_that_runs() on with_nccl().with("FAKE_NCCL_RUNS", "1") => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        submit(&bench, module, "broadcast element=u8 root=0", &[buffer, 4]).unwrap();
        let soon = Timeout::After(Duration::from_millis(20));
        assert_eq!(bench.device.wait(WaitTarget::Stream(bench.stream), soon).unwrap(), Waited::TimedOut);
        submit_on(&bench, bench.stream(), module, "abort", &[]).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
        assert_eq!(calls("ncclCommAbort").len(), 1);
        bench.run("nothing").unwrap();
    }

    fn an_abort_ends_a_wait_for_ranks_that_do_not_come() on {
        with_nccl().with("FAKE_NCCL_WAITS", "ncclCommInitRankConfig")
    } => {
        let bench = Bench::new();
        let module = bench.device.load(&Image::Communicator(&text(0, 4, 3_600_000))).unwrap();
        let buffer = bench.memory(64).address.0;
        let began = Instant::now();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                submit_on(&bench, bench.stream(), module, "abort", &[]).unwrap();
            });
            let name = "all_reduce element=f32 reduction=sum in_place=true";
            let why = unusable(&submit(&bench, module, name, &[buffer, 4]).unwrap_err());
            assert!(why.contains("rank 0 of 4") && why.contains("was aborted; make another communicator"), "{why}");
        });
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(calls("ncclCommAbort").len(), 1);
        assert_not_misused();
    }

    fn an_aborted_rank_takes_nothing_more() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        submit(&bench, module, "broadcast element=u8 root=0", &[buffer, 4]).unwrap();
        let aborting = || bench.device.global(module, "abort").unwrap_err().is_unsupported();
        assert!(!aborting(), "there is none yet");
        submit(&bench, module, "abort", &[]).unwrap();
        submit(&bench, module, "abort", &[]).unwrap();
        assert!(!aborting(), "it has returned");
        let why = unusable(&submit(&bench, module, "broadcast element=u8 root=0", &[buffer, 4]).unwrap_err());
        assert!(why.contains("was aborted; make another communicator"), "{why}");
        assert_eq!((calls("ncclCommAbort").len(), calls("ncclBroadcast").len()), (1, 1));
        bench.device.synchronize(bench.stream).unwrap();
    }

    fn an_error_of_another_rank_fails_the_communicator() on with_nccl().with("FAKE_NCCL_STATE", "6") => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        let failure = || bench.device.global(module, "failure").unwrap_err();
        // It is noticed in the background, also while nothing is submitted.
        let began = Instant::now();
        while !matches!(failure().refusal(), Some(Refusal::Library { .. })) {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(unusable(&failure()).contains("ncclRemoteError (6) for the communicator"), "{}", failure());
        let why = unusable(&submit(&bench, module, "broadcast element=u8 root=0", &[buffer, 4]).unwrap_err());
        assert!(why.contains("ncclRemoteError (6)") && why.contains("what the log says"), "{why}");
        assert!(calls("ncclBroadcast").is_empty());
        submit(&bench, module, "abort", &[]).unwrap();
        assert_eq!(calls("ncclCommAbort").len(), 1);
    }

    fn an_abort_that_nccl_refuses_is_told() on with_nccl().with("FAKE_NCCL_FAILS", "ncclCommAbort") => {
        let bench = Bench::new();
        let module = rank(&bench, 1, 2);
        for _ in 0..2 {
            let why = unusable(&submit(&bench, module, "abort", &[]).unwrap_err());
            assert!(why.contains("ncclCommAbort answered ncclInvalidUsage (5) for abort"), "{why}");
        }
        assert_eq!(calls("ncclCommAbort").len(), 1);
    }

    fn an_abort_that_does_not_return_is_told_and_the_communicator_left() on {
        with_nccl().with("FAKE_NCCL_HANGS", "ncclCommAbort")
    } => {
        let bench = Bench::new();
        let module = rank(&bench, 1, 2);
        let began = Instant::now();
        std::thread::scope(|threads| {
            let first = threads.spawn(|| submit(&bench, module, "abort", &[]).unwrap_err());
            while calls("ncclCommAbort").is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The abort keeps no other thread from its stream.
            bench.run("nothing").unwrap();
            bench.device.synchronize(bench.stream).unwrap();
            assert!(!first.is_finished());
            assert!(bench.device.global(module, "abort").unwrap_err().is_unsupported(), "it is under way");
            for error in [first.join().unwrap(), submit(&bench, module, "abort", &[]).unwrap_err()] {
                let why = unusable(&error);
                assert!(why.contains("ncclCommAbort of rank 1 of 2") && why.contains("did not return within 2.0 s"), "{why}");
            }
        });
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(calls("ncclCommAbort").len(), 1);
        assert!(bench.device.global(module, "abort").unwrap_err().is_unsupported(), "it has not returned");
        bench.device.destroy(Object::Module(module)).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
    }

    fn an_abort_does_not_wait_for_ever_for_a_call_that_hangs() on with_nccl().with("FAKE_NCCL_HANGS", "ncclBroadcast") => {
        // The thread that hangs has them until the process ends.
        let bench: &Bench = Box::leak(Box::new(Bench::new()));
        let module = rank(bench, 0, 2);
        let buffer = bench.memory(64).address.0;
        std::thread::spawn(move || submit(bench, module, "broadcast element=u8 root=0", &[buffer, 4]));
        wait_for("ncclBroadcast");
        let why = unusable(&submit_on(bench, bench.stream(), module, "abort", &[]).unwrap_err());
        assert!(why.contains("rank 0 of 2") && why.contains("has not returned within 2.0 s"), "{why}");
        // It was told to stop, and is not freed while the call is inside.
        assert_eq!((calls("ncclCommAbort").len(), calls("ncclGroupEnd").len()), (1, 0));
    }

    fn an_abort_is_no_node_of_a_graph() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let abort = bench.device.function(module, "abort").unwrap();
        let node = GraphNode { command: Command::Launch(launch(&abort, &[])), after: &[] };
        let error = bench.device.build_graph(&[node]).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("the abort of a communicator in a graph"), "{error}");
        assert!(calls("ncclCommAbort").is_empty());
    }

    fn a_graph_of_an_aborted_rank_is_not_replayed() on {
        Machine::fake_with_capture().with_library("KILN_NCCL", include_str!("libnccl/nccl.c"))
    } => {
        let bench = Bench::new();
        let (module, other) = (rank(&bench, 0, 2), rank(&bench, 1, 2));
        let packed: Vec<u8> = [bench.memory(64).address.0, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let broadcast = |module| bench.device.function(module, "broadcast element=u8 root=0").unwrap();
        let (function, other_function) = (broadcast(module), broadcast(other));
        let node = |function| GraphNode { command: Command::Launch(launch(function, &packed)), after: &[] };
        let graph = bench.device.build_graph(&[node(&function)]).unwrap();
        let around = bench.device.build_graph(&[GraphNode { command: Command::Graph(graph), after: &[] }]).unwrap();
        let apart = bench.device.build_graph(&[node(&other_function)]).unwrap();
        let replay = |graph| bench.device.submit(bench.stream, &Command::Graph(graph));
        for graph in [graph, around, apart] {
            replay(graph).unwrap();
        }
        submit(&bench, module, "abort", &[]).unwrap();
        let launches = calls("cuGraphLaunch").len();
        for graph in [graph, around] {
            let why = unusable(&replay(graph).unwrap_err());
            assert!(why.contains("a graph with its collectives is not done: rank 0 of 2"), "{why}");
            assert!(why.contains("was aborted; make another communicator"), "{why}");
        }
        assert_eq!(calls("cuGraphLaunch").len(), launches);
        replay(apart).unwrap();
        // A node that is given to another rank needs the first no more.
        bench.device.update_graph(graph, 0, &Command::Launch(launch(&other_function, &packed))).unwrap();
        replay(graph).unwrap();
        bench.device.synchronize(bench.stream).unwrap();
    }

    fn a_graph_of_a_rank_that_failed_says_why_it_is_not_replayed() on {
        Machine::fake_with_capture().with_library("KILN_NCCL", include_str!("libnccl/nccl.c"))
    } => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        let packed: Vec<u8> = [bench.memory(64).address.0, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let function = bench.device.function(module, "broadcast element=u8 root=0").unwrap();
        let node = GraphNode { command: Command::Launch(launch(&function, &packed)), after: &[] };
        let graph = bench.device.build_graph(&[node]).unwrap();
        // SAFETY: no other thread reads or writes the environment now.
        unsafe { std::env::set_var("FAKE_NCCL_STATE", "6") };
        let began = Instant::now();
        while submit(&bench, module, "barrier", &[bench.memory(64).address.0, 1]).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
        let why = unusable(&bench.device.submit(bench.stream, &Command::Graph(graph)).unwrap_err());
        assert!(why.contains("ncclRemoteError (6) for a graph with its collectives"), "{why}");
    }

    fn bad_names_and_texts_are_refused() on with_nccl() => {
        let bench = Bench::new();
        let module = rank(&bench, 0, 2);
        for name in ["", "all_reduce", "broadcast element=f32 root=2", "send element=f32 peer=0", "barrier; nonsense"] {
            assert!(bench.device.function(module, name).unwrap_err().is_refused(), "{name}");
        }
        assert!(bench.device.global(module, "x").unwrap_err().is_refused());
        for text in ["", "communicator", &text(2, 2, 100), &text(0, 0, 100), &text(0, 2, 0)] {
            assert!(bench.device.load(&Image::Communicator(text)).unwrap_err().is_refused(), "{text}");
        }
    }
}
