//! Traces of collectives: recorded from calls, written, read and timed.

use std::time::Duration;

use kiln::group::{CollectiveKind, CollectiveTrace, Reduction, Topology, TracedCollective};

use crate::rig::Rig;

#[test]
fn what_a_rank_submits_is_recorded() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&Default::default()).unwrap();
    let mut traces = [CollectiveTrace::default(), CollectiveTrace::default()];
    for (trace, rank) in traces.iter_mut().zip(&ranks) {
        let gpu = rank.runtime();
        let (one, two) = (gpu.zeros::<f32>(100).unwrap(), gpu.zeros::<f32>(200).unwrap());
        trace.compute(Duration::from_micros(3));
        trace.compute(Duration::from_micros(4));
        trace.submit(rank.all_reduce_in_place(&one, Reduction::Sum)).unwrap();
        trace.submit(rank.all_gather(&one, &two)).unwrap();
        trace.submit(rank.all_gather(&one, &two)).unwrap();
        trace.submit(rank.barrier()).unwrap();
        // What is refused is not recorded.
        assert!(trace.submit(rank.all_gather(&one, &one)).is_err());
        gpu.synchronize_within(Duration::ZERO).unwrap();
    }
    let step = |kind, bytes, count, us| TracedCollective {
        kind,
        bytes,
        count,
        compute: Duration::from_micros(us),
        overlaps: false,
    };
    let expected = [
        step(CollectiveKind::AllReduce, 400, 1, 7),
        step(CollectiveKind::AllGather, 800, 2, 0),
        step(CollectiveKind::Barrier, 0, 1, 0),
    ];
    for trace in &traces {
        assert_eq!(trace.steps(), expected);
        assert_eq!(trace.to_string().parse::<CollectiveTrace>().as_ref(), Ok(trace));
    }
    drop(ranks);
    rig.finish();
}

#[test]
fn a_trace_takes_the_sum_of_its_estimates() {
    let text = "
        # forward and backward of a layer, then its gradients
        all_reduce bytes=450MB count=48 compute=2ms
        barrier
    ";
    let trace: CollectiveTrace = text.parse().unwrap();
    let topology: Topology = "8x nvlink(450GB/s, 1us)".parse().unwrap();
    let time = trace.time_on(&topology);
    assert_eq!(time.compute.as_millis(), 48 * 2);
    // 48 times 14 steps of 126 us, and 14 steps of the barrier.
    assert_eq!(time.communication.as_micros(), 48 * 14 * 126 + 14);
    assert!((time.efficiency() - 0.531).abs() < 0.001, "{}", time.efficiency());
    let alone = topology.with_ranks(1).unwrap();
    assert!((trace.time_on(&alone).efficiency() - 1.0).abs() < 1e-12);
}

#[test]
fn what_is_no_trace_is_told_with_its_line() {
    for (text, line, what) in [
        ("all_reduce", 1, "no bytes="),
        ("\n# x\nall_red bytes=1", 3, "no collective"),
        ("send bytes=1 bytes", 1, "`bytes`"),
        ("send bytes=1.5", 1, "`bytes=1.5`"),
        ("send bytes=99999999999999999999", 1, "bytes="),
        ("send bytes=99999999999GB", 1, "bytes="),
        ("send bytes=1 count=0", 1, "`count=0`"),
        ("send bytes=1 compute=3", 1, "`compute=3`"),
        ("send bytes=1 rank=3", 1, "`rank=3`"),
    ] {
        let error = text.parse::<CollectiveTrace>().unwrap_err();
        assert_eq!(error.line, line, "{text}");
        assert!(error.what.contains(what), "{text}: {error}");
    }
}

#[test]
fn ranks_fill_hosts() {
    let cluster: Topology = "8x nvlink per host, 1 host over 8x 400Gb/s".parse().unwrap();
    let shape = |ranks| cluster.with_ranks(ranks).map(|it| (it.ranks(), it.hosts(), it.ranks_per_host()));
    assert_eq!((shape(3), shape(8), shape(1024)), (Ok((3, 1, 3)), Ok((8, 1, 8)), Ok((1024, 128, 8))));
    assert!(shape(12).is_err() && shape(0).is_err());
}

#[test]
fn computing_and_collectives_overlap_where_the_trace_says_so() {
    // 14 steps of 126 us: 1764 us for each collective.
    let topology: Topology = "8x nvlink(450GB/s, 1us)".parse().unwrap();
    let total = |text: &str| text.parse::<CollectiveTrace>().unwrap().time_on(&topology);
    let one = 1764;
    // Computing takes longer: only the last collective is seen.
    let hidden = total("all_reduce bytes=450MB count=10 compute=2ms overlap");
    assert_eq!((hidden.total.as_micros(), hidden.exposed().as_micros()), (20_000 + one, one));
    assert_eq!(hidden.communication.as_micros(), 10 * one);
    // Communication takes longer: it follows the first computing without a gap.
    let busy = total("all_reduce bytes=450MB count=10 compute=1ms overlap");
    assert_eq!(busy.total.as_micros(), 1_000 + 10 * one);
    // A collective that is waited for comes after all before it, and computing after it.
    let mixed =
        total("all_reduce bytes=450MB count=2 compute=1ms overlap\nbarrier compute=5ms\nbarrier compute=1ms");
    assert_eq!(mixed.total.as_micros(), 2_000 + 5_000 + 14 + 1_000 + 14);
    assert!((mixed.efficiency() - 8_000.0 / 8_028.0).abs() < 1e-9);
    // The same, collective by collective.
    let same = total(&"all_reduce bytes=450MB compute=1ms overlap\n".repeat(10));
    assert_eq!(same, busy);
    let plain: CollectiveTrace = "all_reduce bytes=450MB count=10 compute=1ms".parse().unwrap();
    assert_eq!(plain.overlapped().time_on(&topology), busy);
    assert_eq!(plain.overlapped().to_string().parse::<CollectiveTrace>(), Ok(plain.overlapped()));
}

#[test]
fn overlapping_calls_are_recorded_as_such() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&Default::default()).unwrap();
    for rank in &ranks {
        let mut trace = CollectiveTrace::default();
        let buffer = rank.runtime().zeros::<f32>(100).unwrap();
        for _ in 0..3 {
            trace.compute(Duration::from_micros(3));
            trace.submit_overlapping(rank.all_reduce_in_place(&buffer, Reduction::Sum)).unwrap();
        }
        trace.submit(rank.barrier()).unwrap();
        let steps: Vec<_> = trace.steps().iter().map(|step| (step.count, step.overlaps)).collect();
        assert_eq!(steps, [(3, true), (1, false)]);
        assert!(trace.submit_overlapping(rank.all_gather(&buffer, &buffer)).is_err());
        assert_eq!(trace.steps().len(), 2);
    }
    rig.group.synchronize().unwrap();
}

#[test]
fn what_is_computed_after_the_last_collective_is_written_and_read_again() {
    let mut trace: CollectiveTrace = "all_reduce bytes=4MiB compute=1ms".parse().unwrap();
    trace.compute(Duration::from_millis(100));
    let read: CollectiveTrace = trace.to_string().parse().unwrap();
    assert_eq!(read, trace);
    let topology: Topology = "8x nvlink".parse().unwrap();
    assert_eq!(read.time_on(&topology), trace.time_on(&topology));
    assert_eq!(read.time_on(&topology).compute, Duration::from_millis(101));
    for (wrong, why) in [
        ("compute=1ms\nbarrier", "line 2: `compute=` without a collective is the last line"),
        ("barrier\ncompute=1ms\ncompute=1ms", "line 3: `compute=` without a collective is the last line"),
        ("compute=fast", "line 1: `compute=fast` is no time"),
        ("compute=1ms overlap", "line 1: `compute=1ms overlap` is no time"),
    ] {
        let error = wrong.parse::<CollectiveTrace>().unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn times_that_do_not_fit_are_written_as_the_longest_that_can_be_read() {
    let mut trace = CollectiveTrace::default();
    trace.compute(Duration::MAX);
    trace.compute(Duration::from_secs(1));
    assert_eq!(trace.to_string().parse::<CollectiveTrace>().as_ref(), Ok(&trace));
    let (kind, bytes, count) = (CollectiveKind::AllReduce, 4, 1);
    let step = TracedCollective { kind, bytes, count, compute: Duration::MAX, overlaps: true };
    let trace = CollectiveTrace::new([step]);
    assert_eq!(trace.steps()[0].compute, Duration::from_nanos(u64::MAX));
    assert_eq!(trace.to_string().parse::<CollectiveTrace>().as_ref(), Ok(&trace));
}
