//! Single collectives, one rank, splits, and types that are only moved.

use std::time::Duration;

use kiln::group::{CommunicatorId, DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction};
use kiln_driver::Clock;

use crate::rig::Rig;

#[test]
fn one_rank_alone_copies() {
    let rig = Rig::new(1, 1);
    let gpu = rig.group.runtime(0).unwrap();
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let alone = &ranks[0];
    assert_eq!((alone.rank(), alone.size(), ranks.len()), (0, 1, 1));
    let (send, recv) = (gpu.upload(&[3_i32, -4]).unwrap(), gpu.zeros::<i32>(2).unwrap());
    for reduction in [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max, Reduction::Average]
    {
        recv.fill(0).unwrap();
        alone.all_reduce(&send, &recv, reduction).submit().unwrap();
        assert_eq!(recv.download().unwrap(), [3, -4], "{reduction:?}");
    }
    for call in [
        alone.all_gather(&send, &recv),
        alone.all_to_all(&send, &recv),
        alone.reduce_scatter(&send, &recv, Reduction::Sum),
        alone.gather(&send, Some(&recv), 0),
        alone.scatter(Some(&send), &recv, 0),
        alone.reduce(&send, Some(&recv), Reduction::Max, 0),
    ] {
        recv.fill(0).unwrap();
        call.submit().unwrap();
        assert_eq!(recv.download().unwrap(), [3, -4]);
    }
    alone.broadcast(&send, 0).submit().unwrap().wait().unwrap();
    alone.all_reduce_in_place(&send, Reduction::Average).submit().unwrap().wait().unwrap();
    let mut graph = gpu.graph();
    recv.fill(0).unwrap();
    alone.all_gather(&send, &recv).and(alone.barrier()).record(&mut graph).unwrap();
    let graph = graph.build().unwrap();
    graph.replay().unwrap();
    assert_eq!(recv.download().unwrap(), [3, -4]);
    let error = alone.broadcast(&send, 1).submit().unwrap_err().to_string();
    assert!(error.contains("root 1 is no rank"), "{error}");
    alone.barrier().submit().unwrap().wait().unwrap();
    let half = alone.split(Some(7), 0).unwrap().unwrap();
    assert_eq!((half.rank(), half.size()), (0, 1));
    drop((send, recv, half, graph, ranks));
    rig.finish();
}

#[test]
fn integers_of_sixteen_bits_are_moved_and_not_reduced() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let buffers: Vec<_> =
        ranks.iter().map(|rank| rank.runtime().upload(&[rank.rank() as u16 + 1; 3]).unwrap()).collect();
    for (rank, buffer) in ranks.iter().zip(&buffers) {
        let error = rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap_err();
        assert!(error.to_string().contains("u16"), "{error}");
        rank.broadcast(buffer, 1).submit().unwrap();
    }
    assert_eq!(buffers[0].download().unwrap(), [2; 3]);
    drop((ranks, buffers));
    rig.finish();
}

#[test]
fn a_split_makes_a_communicator_of_each_color_in_the_order_of_the_keys() {
    let rig = Rig::new(5, 3);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    std::thread::scope(|scope| {
        for rank in &ranks {
            scope.spawn(move || {
                let at = rank.rank();
                // Ranks 0, 2 and 4 in reverse order, rank 1 alone, and rank 3 in none.
                let color = [Some(5), Some(9), Some(5), None, Some(5)][at as usize];
                let part = rank.split(color, 10 - at).unwrap();
                assert_eq!(part.is_some(), color.is_some());
                let Some(part) = part else { return };
                let wanted = [(2, 3), (0, 1), (1, 3), (0, 0), (0, 3)][at as usize];
                assert_eq!((part.rank(), part.size()), wanted);
                let buffer = part.runtime().upload(&[at]).unwrap();
                part.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
                assert_eq!(buffer.download().unwrap(), [if at == 1 { 1 } else { 6 }]);
            });
        }
    });
    drop(ranks);
    rig.finish();
}

#[test]
fn a_collective_takes_the_time_of_its_slowest_rank_and_of_its_bytes() {
    let time = |elements: usize, ranks: u32| {
        let rig = Rig::new(ranks, 1);
        let all = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
        let buffers: Vec<_> = all.iter().map(|rank| rank.runtime().zeros::<f32>(elements).unwrap()).collect();
        rig.group.synchronize().unwrap();
        let before = rig.machine.clock().now();
        for (rank, buffer) in all.iter().zip(&buffers) {
            rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
        }
        rig.group.synchronize().unwrap();
        rig.machine.clock().now() - before
    };
    let (small, large, many) = (time(1_000, 2), time(1_000_000, 2), time(1_000_000, 8));
    assert!(large > small * 5, "{small:?} and {large:?}");
    assert!(many > large, "{large:?} and {many:?}");
    assert!(many < large * 4, "a ring moves each byte twice, on any number of ranks: {large:?} and {many:?}");
}

#[test]
fn ids_are_text_of_256_digits() {
    let rig = Rig::new(1, 1);
    let id = DeviceCommunicator::new_id(rig.group.runtime(0).unwrap()).unwrap();
    assert_eq!(id.to_string().len(), 256);
    assert_eq!(id.to_string().parse::<CommunicatorId>().unwrap(), id);
    assert_ne!(DeviceCommunicator::new_id(rig.group.runtime(0).unwrap()).unwrap(), id);
    for text in ["", "00", &"g".repeat(256), &"+1".repeat(128)] {
        assert!(text.parse::<CommunicatorId>().is_err(), "{text}");
    }
    rig.finish();
}

#[test]
fn a_rank_that_is_lost_is_told_to_those_that_wait_for_it() {
    let faults = kiln::sim::FaultPlan::none()
        .on(1, kiln::sim::PlannedFault::Sticky { launch: 1, code: kiln_driver::Code::ILLEGAL_ADDRESS });
    let rig = Rig::with(3, 1, kiln::sim::Links::all(), faults);
    // The deadline would be an hour.
    let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let ranks = rig.group.communicators(&config).unwrap();
    let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1.0_f32; 4]).unwrap()).collect();
    let kept = ranks[0].runtime().upload(&[7_u8; 9]).unwrap();
    assert_eq!(kept.download().unwrap(), [7; 9]);
    let reduce = |(rank, buffer): (&DeviceCommunicator, _)| {
        rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap()
    };
    let tickets: Vec<_> = ranks.iter().zip(&buffers).map(reduce).collect();
    for rank in [0, 2] {
        let error = tickets[rank].wait().unwrap_err();
        let lost = error.downcast_ref::<kiln::group::CommunicatorRankLost>().unwrap();
        assert!(lost.lost == 1 && lost.cause.contains("as planned for launch 1"), "{error}");
        assert!(ranks[rank].runtime().state().is_ready(), "its device goes on");
    }
    assert_eq!(kept.download().unwrap(), [7; 9]);
    let error: GroupError = ranks[1].barrier().submit().unwrap_err();
    assert!(error.is_lost(), "{error}");
}
