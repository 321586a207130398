//! Waits for work that a collective stands behind: they end though the collective waits for other ranks.

use std::time::Duration;

use kiln::group::{DeviceCommunicator, Reduction};
use kiln::{GpuRef, Stream};

use crate::rank_scenes::within;
use crate::rig::Rig;

/// What a buffer holds, read on a separate stream.
fn read(buffer: &GpuRef<u32>, stream: &Stream) -> Vec<u32> {
    let mut values = vec![0; buffer.len()];
    buffer.download_into_on(stream, &mut values).unwrap();
    values
}

fn two() -> (Rig, Vec<DeviceCommunicator>) {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&within(Duration::from_secs(2))).unwrap();
    (rig, ranks)
}

#[test]
fn a_collective_that_all_ranks_called_is_done_whatever_is_queued_behind_it() {
    for ask in ["wait", "is_done", "download"] {
        let (rig, ranks) = two();
        let reading = ranks[0].runtime().stream().unwrap();
        let pairs: Vec<_> = ranks
            .iter()
            .map(|rank| [1_u32, 10].map(|value| rank.runtime().upload(&[value; 4]).unwrap()))
            .collect();
        let sum = |rank: usize, which: usize| {
            ranks[rank].all_reduce_in_place(&pairs[rank][which], Reduction::Sum).submit().unwrap()
        };
        let (first, second) = (sum(0, 0), sum(0, 1));
        sum(1, 0);
        // Rank 1 calls the second one only when rank 0 has the result of the first.
        match ask {
            "wait" => first.wait().unwrap(),
            "is_done" => while !first.is_done().unwrap() {},
            _ => {}
        }
        assert_eq!(read(&pairs[0][0], &reading), [2; 4], "{ask}");
        assert!(!second.is_done().unwrap(), "{ask}");
        sum(1, 1);
        second.wait().unwrap();
        assert_eq!(pairs[0][1].download().unwrap(), [20; 4], "{ask}");
        drop((pairs, reading, ranks));
        rig.finish();
    }
}

#[test]
fn work_before_a_collective_is_done_though_no_other_rank_called_it() {
    let (rig, ranks) = two();
    let gpu = ranks[0].runtime();
    let stream = gpu.stream().unwrap();
    let (filled, summed) = (gpu.zeros::<u32>(4).unwrap(), gpu.upload(&[3_u32; 4]).unwrap());
    let other = ranks[1].runtime().upload(&[4_u32; 4]).unwrap();
    let fill = filled.fill_on(&stream, 7).unwrap();
    let sum = ranks[0].all_reduce_in_place(&summed, Reduction::Sum).on(&stream).submit().unwrap();
    fill.wait().unwrap();
    assert!(!sum.is_done().unwrap());
    ranks[1].all_reduce_in_place(&other, Reduction::Sum).submit().unwrap();
    sum.wait().unwrap();
    assert_eq!((filled.download().unwrap(), summed.download().unwrap()), (vec![7; 4], vec![7; 4]));
    drop((filled, summed, other, stream, ranks));
    rig.finish();
}
