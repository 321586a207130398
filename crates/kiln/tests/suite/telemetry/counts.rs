//! Counts against a second count below the runtime.

use std::sync::atomic::{AtomicBool, Ordering};

use kiln::telemetry::{Count, Gauge, Snapshot};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counts};
use kiln_sim::MachineConfig;

use super::rig::Rig;

/// The same traffic, seen from above and from below.
fn assert_agree(above: &Snapshot, below: &Counts) {
    let of = |counts: &[Count]| counts.iter().map(|count| above.count(*count)).sum::<u64>();
    let pairs = [
        (of(&[Count::Launches]), below.submitted(CommandKind::Launch), "launches"),
        (of(&[Count::Replays]), below.submitted(CommandKind::Graph), "replays"),
        (of(&[Count::Fills]), below.submitted(CommandKind::Fill), "fills"),
        (
            of(&[Count::Uploads, Count::Downloads, Count::Copies]),
            below.submitted(CommandKind::Copy),
            "copies",
        ),
        (of(&[Count::Signals]), below.submitted(CommandKind::Signal), "signals"),
        (of(&[Count::StreamWaits]), below.submitted(CommandKind::Wait), "waits of streams"),
        (of(&[Count::HostWaits, Count::HostPolls]), below.of(CallKind::Wait), "waits of the host"),
        (of(&[Count::GraphsBuilt]), below.of(CallKind::BuildGraph), "graphs"),
        (of(&[Count::GraphUpdates]), below.of(CallKind::UpdateGraph), "changes of graphs"),
        (of(&[Count::PinnedMade]), below.of(CallKind::AllocateHost), "pinned blocks"),
    ];
    for (above, below, what) in pairs {
        assert_eq!(above, below, "{what}");
    }
}

#[test]
fn counts_are_those_of_the_driver() {
    for seed in 0..6 {
        let rig = Rig::new(MachineConfig::seeded(seed));
        let streams = [rig.gpu.stream().unwrap(), rig.gpu.stream().unwrap()];
        let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
        for round in 0..6 {
            rig.mix(&streams[round % 2], &a, &b);
            b.fill(3).unwrap();
            a.copy_from_on(&streams[(round + 1) % 2], &b).unwrap();
            if round % 3 == 0 {
                a.download().unwrap();
            }
        }
        let (mut graph, node) = rig.gpu.record(|builder| builder.fill(&a, 1)).unwrap();
        graph.replay().unwrap();
        graph.update_fill(node, &a, 2).unwrap();
        graph.replay_on(&streams[0]).unwrap();
        drop(graph);
        // More than one chunk.
        let large = rig.gpu.upload(&vec![5_u8; 5 << 20]).unwrap();
        assert_eq!(large.download().unwrap().len(), 5 << 20);
        rig.gpu.synchronize().unwrap();
        let seen = rig.gpu.telemetry().snapshot();
        assert_agree(&seen, &rig.driver.layer().counts());
        assert_eq!((seen.count(Count::Launches), seen.count(Count::Replays)), (6, 2));
        assert_eq!(seen.count(Count::UploadedBytes), (5 << 20) + 64);
        assert_eq!(seen.count(Count::DownloadedBytes), (5 << 20) + 64);
        assert_eq!((seen.count(Count::CopiedBytes), seen.count(Count::FilledBytes)), (6 * 32, 6 * 32));
        assert_eq!(seen.gauge(Gauge::LeasedStreams), 2);
        assert_eq!(seen.gauge(Gauge::LiveBytes), rig.gpu.memory().accounting().live_bytes);
        drop((a, b, large, streams));
        rig.finish();
    }
}

#[test]
fn a_reset_begins_anew_and_disturbs_no_other_reader() {
    let rig = Rig::new(MachineConfig::seeded(4));
    let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
    rig.mix(rig.gpu.main_stream(), &a, &b);
    let before = rig.gpu.telemetry().snapshot();
    rig.gpu.telemetry().reset();
    let fresh = rig.gpu.telemetry().snapshot();
    assert!(Count::ALL.iter().all(|count| fresh.count(*count) == 0), "{fresh:?}");
    assert_eq!(fresh.gauge(Gauge::LiveBytes), before.gauge(Gauge::LiveBytes));
    rig.mix(rig.gpu.main_stream(), &a, &b);
    rig.mix(rig.gpu.main_stream(), &a, &b);
    let after = rig.gpu.telemetry().snapshot();
    assert_eq!((before.count(Count::Launches), after.count(Count::Launches)), (1, 2));
    assert_eq!(after.since(&fresh).count(Count::Launches), 2);
    drop((a, b));
    rig.finish();
}

#[test]
fn snapshots_taken_while_threads_work_only_grow_and_end_exact() {
    const THREADS: u64 = 3;
    const ROUNDS: u64 = 60;
    let rig = Rig::new(MachineConfig::threaded());
    let done = AtomicBool::new(false);
    let snapshots = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut last = rig.gpu.telemetry().snapshot();
            let mut taken = 0;
            // Looked at before the snapshot, so that the last one is of all the work.
            let mut last_one = false;
            while !last_one {
                last_one = done.load(Ordering::Acquire);
                let next = rig.gpu.telemetry().snapshot();
                for count in Count::ALL {
                    assert!(next.count(*count) >= last.count(*count), "{count:?} went back");
                }
                (last, taken) = (next, taken + 1);
            }
            taken
        });
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let stream = rig.gpu.stream().unwrap();
                    let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
                    for _ in 0..ROUNDS {
                        rig.mix(&stream, &a, &b);
                        a.fill(1).unwrap();
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Release);
        watcher.join().unwrap()
    });
    assert!(snapshots > 0);
    rig.gpu.synchronize().unwrap();
    let seen = rig.gpu.telemetry().snapshot();
    assert_eq!((seen.count(Count::Launches), seen.count(Count::Fills)), (THREADS * ROUNDS, THREADS * ROUNDS));
    assert_agree(&seen, &rig.driver.layer().counts());
    rig.finish();
}
