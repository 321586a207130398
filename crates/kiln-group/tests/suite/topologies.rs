//! Topologies from text, and how long collectives take over them. Expected times are computed by hand from the formulas of the documentation.

use std::time::Duration;

use kiln::RuntimeConfig;
use kiln::group::{
    CollectiveAlgorithm, CollectiveKind, DeviceGroup, HostLink, LinkSpeed, Reduction, Topology, TopologyError,
};
use kiln::sim::{DeviceConfig, DeviceLink, Links, Machine, MachineConfig};

fn topology(text: &str) -> Topology {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The time of one algorithm in nanoseconds.
fn time(
    topology: &Topology,
    kind: CollectiveKind,
    bytes: u64,
    algorithm: CollectiveAlgorithm,
) -> Option<u128> {
    let estimates = topology.estimates(kind, bytes);
    estimates.iter().find(|estimate| estimate.algorithm == algorithm).map(|estimate| estimate.time.as_nanos())
}

#[test]
fn texts_say_what_is_connected_how() {
    let cluster = topology("8x nvlink(450GB/s) per host, 4 hosts over 400Gb/s");
    assert_eq!((cluster.ranks(), cluster.hosts(), cluster.ranks_per_host()), (32, 4, 8));
    assert_eq!(cluster.host_link(), HostLink::NvLink);
    assert_eq!(cluster.link(), LinkSpeed { bytes_per_us: 450_000, latency_ns: 1_800 });
    assert_eq!(cluster.network(), Some(LinkSpeed { bytes_per_us: 50_000, latency_ns: 5_000 }));
    assert_eq!(cluster.between(0, 7), Some(cluster.link()));
    assert_eq!(
        (cluster.between(7, 8), cluster.between(3, 3), cluster.between(0, 32)),
        (cluster.network(), None, None)
    );
    assert_eq!(cluster.pairs().count(), 32 * 31 / 2);

    let host = topology("4x pcie(25.5GB/s, 700ns)");
    assert_eq!((host.ranks(), host.host_link(), host.network()), (4, HostLink::Pcie, None));
    assert_eq!(host.link(), LinkSpeed { bytes_per_us: 25_500, latency_ns: 700 });
    assert_eq!(topology("nvlink").ranks(), 1);
    assert_eq!(topology(" 2 X NVLink ( 1TB/s , 1.5us ) per host,1 host").link().latency_ns, 1_500);
    let adapters = topology("8x nvlink per host, 2 hosts over 8x 400Gb/s, 3us");
    assert_eq!(adapters.network(), Some(LinkSpeed { bytes_per_us: 400_000, latency_ns: 3_000 }));
}

#[test]
fn another_number_of_hosts_keeps_the_links() {
    let cluster = topology("8x nvlink(450GB/s, 1us) per host, 4 hosts over 8x 400Gb/s, 5us");
    assert_eq!(cluster.to_string(), "8x nvlink(450GB/s, 1us) per host, 4 hosts over 3200Gb/s, 5us");
    let host = cluster.with_hosts(1).unwrap();
    let estimate = host.estimate(CollectiveKind::AllReduce, 450_000_000);
    assert_eq!(estimate.time, Duration::from_micros(14 * (1 + 125)));
}

#[test]
fn what_is_written_is_read_again() {
    for (text, written) in [
        (
            "8x nvlink(450GB/s) per host, 4 hosts over 400Gb/s",
            "8x nvlink(450GB/s, 1.8us) per host, 4 hosts over 400Gb/s, 5us",
        ),
        ("4x pcie", "4x pcie(55GB/s, 2.5us) per host"),
        (
            "pcie(12.345GB/s, 0ns), 3 hosts over 100Mb/s, 1.25ms",
            "1x pcie(12.345GB/s, 0ns) per host, 3 hosts over 104Mb/s, 1.25ms",
        ),
        (
            "16x nvlink(900MB/s, 2s), 1 host over 10Gb/s",
            "16x nvlink(900MB/s, 2s) per host, 1 host over 10Gb/s, 5us",
        ),
    ] {
        let parsed = topology(text);
        assert_eq!(parsed.to_string(), written);
        assert_eq!(topology(&parsed.to_string()), parsed);
    }
}

#[test]
fn mistakes_are_told_with_their_column() {
    for (text, column) in [
        ("", 1),
        ("8x", 3),
        ("8x ethernet", 4),
        ("8x nvlink(450)", 14),
        ("8x nvlink(450GB)", 14),
        ("8x nvlink(450GB/s", 18),
        ("8x nvlink(450GB/s, 1)", 21),
        ("8x nvlink(450GB/s, fast)", 20),
        ("8x nvlink per rank", 15),
        ("8x nvlink per host 4 hosts", 20),
        ("8x nvlink per host, four hosts", 21),
        ("8x nvlink per host, 4 hosts", 28),
        ("8x nvlink per host, 4 hosts over 400Gb/s and more", 42),
        ("8x nvlink(-1GB/s)", 11),
        ("8x nvlink(1..2GB/s)", 11),
        ("µ", 1),
    ] {
        match text.parse::<Topology>() {
            Err(TopologyError::Unexpected { column: at, .. }) => assert_eq!(at, column, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for (text, column) in [
        ("0x nvlink", 1),
        ("8x nvlink(0GB/s)", 11),
        ("8x nvlink(9999TB/s)", 11),
        ("8x nvlink(1GB/s, 11s)", 18),
        ("8x nvlink per host, 0 hosts over 1Gb/s", 21),
        ("99999999999999999999x pcie", 1),
    ] {
        match text.parse::<Topology>() {
            Err(TopologyError::Range { column: at, .. }) => assert_eq!(at, column, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let many = "1000x nvlink per host, 2000 hosts over 1Gb/s".parse::<Topology>();
    assert!(matches!(many, Err(TopologyError::Range { column: 24, .. })), "{many:?}");
    assert_eq!(
        topology("1000x nvlink, 2 hosts over 1Gb/s").with_hosts(2000),
        Err(TopologyError::TooManyRanks { ranks: 2_000_000 })
    );
    let host = topology("8x nvlink");
    assert_eq!(host.with_hosts(2), Err(TopologyError::NoNetwork { hosts: 2 }));
    assert_eq!(host.with_hosts(0), Err(TopologyError::NoHosts));
}

#[test]
fn one_host_takes_what_the_formulas_say() {
    use CollectiveAlgorithm::{Direct, Hierarchical, Ring, Tree};
    let host = topology("4x nvlink(100GB/s, 1us)"); // 100 bytes in a nanosecond
    let bytes = 40_000_000; // 400 us in one direction
    let expected = [
        (CollectiveKind::AllReduce, Ring, 6 * (1_000 + 100_000)),
        (CollectiveKind::AllReduce, Tree, 6 * 1_000 + 2 * 400_000),
        (CollectiveKind::AllGather, Ring, 3 * (1_000 + 100_000)),
        (CollectiveKind::ReduceScatter, Ring, 3 * (1_000 + 100_000)),
        (CollectiveKind::Broadcast, Ring, 3 * 1_000 + 400_000),
        (CollectiveKind::Reduce, Tree, 3 * 1_000 + 400_000),
        (CollectiveKind::Barrier, Ring, 6 * 1_000),
        (CollectiveKind::AllToAll, Direct, 3 * 1_000 + 300_000),
        (CollectiveKind::Gather, Direct, 1_000 + 300_000),
        (CollectiveKind::Scatter, Direct, 1_000 + 300_000),
        (CollectiveKind::Send, Direct, 1_000 + 400_000),
        (CollectiveKind::Recv, Direct, 1_000 + 400_000),
    ];
    for (kind, algorithm, ns) in expected {
        assert_eq!(time(&host, kind, bytes, algorithm), Some(ns), "{kind} by {algorithm}");
    }
    assert_eq!(time(&host, CollectiveKind::AllReduce, bytes, Hierarchical), None);
    assert_eq!(host.estimate(CollectiveKind::AllReduce, bytes).algorithm, Ring);
    let alone = topology("nvlink");
    assert_eq!(alone.estimate(CollectiveKind::AllReduce, bytes).time, Duration::ZERO);
}

#[test]
fn several_hosts_take_what_the_formulas_say() {
    use CollectiveAlgorithm::{Direct, Hierarchical, Ring, Tree};
    // 100 and 10 bytes in a nanosecond.
    let cluster = topology("4x nvlink(100GB/s, 1us) per host, 4 hosts over 80Gb/s, 5us");
    let bytes = 16_000_000;
    let expected = [
        // 15 steps, 4 of them over the network; 15/16 of 1.6 ms.
        (CollectiveKind::AllReduce, Ring, 2 * (11 * 1_000 + 4 * 5_000 + 1_500_000)),
        // 3 ranks along the host, two levels of hosts.
        (CollectiveKind::AllReduce, Tree, 2 * (3 * 1_000 + 2 * 5_000 + 1_600_000)),
        // A quarter at each of 3 steps: 40 us in a host, 400 us between hosts.
        (CollectiveKind::AllReduce, Hierarchical, 2 * (3 * (1_000 + 40_000) + 3 * (5_000 + 400_000))),
        (CollectiveKind::AllGather, Ring, 11 * 1_000 + 4 * 5_000 + 1_500_000),
        (CollectiveKind::ReduceScatter, Hierarchical, 3 * (1_000 + 40_000) + 3 * (5_000 + 400_000)),
        (CollectiveKind::Broadcast, Ring, 11 * 1_000 + 4 * 5_000 + 1_600_000),
        (CollectiveKind::Broadcast, Tree, 3 * 1_000 + 2 * 5_000 + 1_600_000),
        (CollectiveKind::Barrier, Tree, 2 * (3 * 1_000 + 2 * 5_000)),
        // 4 ranks send 12 blocks of 1 MB each through one network.
        (CollectiveKind::AllToAll, Direct, 3 * 1_000 + 3 * 5_000 + 4_800_000),
        (CollectiveKind::Gather, Direct, 5_000 + 1_200_000),
        (CollectiveKind::Send, Direct, 5_000 + 1_600_000),
    ];
    for (kind, algorithm, ns) in expected {
        assert_eq!(time(&cluster, kind, bytes, algorithm), Some(ns), "{kind} by {algorithm}");
    }
    // Few bytes are a matter of steps, many a matter of bandwidth.
    assert_eq!(cluster.estimate(CollectiveKind::AllReduce, 8).algorithm, Tree);
    assert_eq!(cluster.estimate(CollectiveKind::AllReduce, bytes).algorithm, Hierarchical);
}

/// How long the one collective of a simulated machine with these links took on rank 0.
fn simulated_ns(topology: &Topology, kind: CollectiveKind, bytes: usize) -> u64 {
    let links = topology.pairs().fold(Links::none(), |links, (one, other, speed)| {
        links.with(one, other, DeviceLink { bytes_per_us: speed.bytes_per_us, latency_ns: speed.latency_ns })
    });
    let devices = vec![DeviceConfig::default(); topology.ranks() as usize];
    let links = links.with_devices_per_host(topology.ranks_per_host());
    let machine = Machine::new(MachineConfig { devices, ..MachineConfig::seeded(3) }.links(links));
    let drivers = (0..topology.ranks()).map(|ordinal| machine.device(ordinal).unwrap());
    let group = DeviceGroup::over(drivers, &RuntimeConfig::default()).unwrap();
    let ranks = group.communicators(&Default::default()).unwrap();
    let buffers: Vec<_> = group.runtimes().iter().map(|gpu| gpu.zeros::<u8>(bytes).unwrap()).collect();
    let sum = group.runtime(0).unwrap().zeros::<u8>(bytes).unwrap();
    group.runtimes().iter().for_each(|gpu| gpu.synchronize().unwrap());
    for (rank, buffer) in ranks.iter().zip(&buffers) {
        let sum = (rank.rank() == 0).then_some(&sum);
        let called = match kind {
            CollectiveKind::Reduce => rank.reduce(buffer, sum, Reduction::Sum, 0),
            CollectiveKind::Broadcast => rank.broadcast(buffer, 0),
            CollectiveKind::Barrier => rank.barrier(),
            _ => rank.all_reduce_in_place(buffer, Reduction::Sum),
        };
        called.submit().unwrap();
    }
    group.runtimes().iter().for_each(|gpu| gpu.synchronize().unwrap());
    let spans = machine.timeline();
    let last = spans.iter().filter(|span| span.device == 0).max_by_key(|span| span.start).unwrap();
    assert!(last.label.contains(&kind.to_string()), "{}", last.label);
    u64::try_from((last.end - last.start).as_nanos()).unwrap()
}

#[test]
fn a_simulated_machine_with_the_links_of_a_topology_takes_the_time_of_its_ring() {
    let host = topology("4x nvlink(100GB/s, 1us)");
    let estimated = |bytes| {
        u64::try_from(time(&host, CollectiveKind::AllReduce, bytes, CollectiveAlgorithm::Ring).unwrap())
            .unwrap()
    };
    let taken = |topology: &Topology, bytes| simulated_ns(topology, CollectiveKind::AllReduce, bytes);
    let (small, large) = (taken(&host, 4_000), taken(&host, 400_000));
    // Both have the time of a launch besides.
    assert_eq!(large - small, estimated(400_000) - estimated(4_000));
    let slow = topology("4x nvlink(100GB/s, 11us)");
    assert_eq!(taken(&slow, 4_000) - small, 6 * 10_000);
}

#[test]
fn an_all_reduce_of_few_bytes_on_many_hosts_goes_through_the_tree_and_a_large_one_through_the_ring() {
    let hosts = topology("1x nvlink(100GB/s, 1us) per host, 16 hosts over 8Gb/s, 500ns");
    let estimated = |bytes, algorithm| {
        u64::try_from(time(&hosts, CollectiveKind::AllReduce, bytes, algorithm).unwrap()).unwrap()
    };
    let taken = |bytes| simulated_ns(&hosts, CollectiveKind::AllReduce, bytes);
    let empty = simulated_ns(&hosts, CollectiveKind::Barrier, 4);
    let (tree, ring) = (CollectiveAlgorithm::Tree, CollectiveAlgorithm::Ring);
    // A barrier has the time of a launch, and that of the tree for no bytes.
    for bytes in [400, 4_000] {
        assert!(estimated(bytes as u64, tree) < estimated(bytes as u64, ring));
        assert_eq!(taken(bytes) - empty, estimated(bytes as u64, tree) - estimated(0, tree), "{bytes}");
    }
    let large = 160_000;
    assert!(estimated(large as u64, ring) < estimated(large as u64, tree));
    assert_eq!(taken(large) - empty, estimated(large as u64, ring) - estimated(0, tree));
}

#[test]
fn no_collective_of_a_machine_is_faster_than_its_links() {
    for text in ["2x pcie(1GB/s, 2us)", "8x pcie(1GB/s, 2us)"] {
        let topology = topology(text);
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let estimated = |bytes| u64::try_from(topology.estimate(kind, bytes).time.as_nanos()).unwrap();
            let (small, large) =
                (simulated_ns(&topology, kind, 4_000), simulated_ns(&topology, kind, 400_000));
            assert_eq!(large - small, estimated(400_000) - estimated(4_000), "{text}, {kind}");
            assert!(large >= estimated(400_000), "{text}, {kind}");
        }
    }
    let hosts = topology("1x nvlink per host, 4 hosts over 8Gb/s, 5us");
    let estimated = hosts.estimate(CollectiveKind::Broadcast, 400_000).time.as_nanos();
    assert!(u128::from(simulated_ns(&hosts, CollectiveKind::Broadcast, 400_000)) >= estimated);
}

#[test]
fn errors_name_what_is_wrong_and_where() {
    let adapters = "8x nvlink per host, 2 hosts over 0x 400Gb/s".parse::<Topology>().unwrap_err();
    assert!(adapters.to_string().starts_with("column 34: a number of adapters is 0"), "{adapters}");
    let ranks = "65536x nvlink per host, 65536 hosts over 400Gb/s".parse::<Topology>().unwrap_err();
    assert!(
        ranks.to_string().starts_with("column 25: the number of ranks with so many hosts is 4294967296"),
        "{ranks}"
    );
}
