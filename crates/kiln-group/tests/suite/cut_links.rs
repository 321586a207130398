//! A link between two ranks of a simulated machine that is cut, as planned.

use std::thread;
use std::time::Duration;

use kiln::group::{CommunicatorRankLost, DeviceCommunicatorConfig, Reduction};
use kiln::sim::Links;

use crate::rig::Rig;

#[test]
fn a_rank_whose_link_is_cut_is_lost_and_the_others_go_on_without_it() {
    for seed in 0..4 {
        // Ranks 1 and 2 are neighbours in the ring; the second collective is the second transfer.
        let rig = Rig::with(4, seed, Links::all(), "1:cut-2@2".parse().unwrap());
        let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
        let ranks = rig.group.communicators(&config).unwrap();
        let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1_u32; 4]).unwrap()).collect();
        let sum = || {
            let pairs = ranks.iter().zip(&buffers);
            let tickets: Vec<_> = pairs
                .map(|(rank, buffer)| rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap())
                .collect();
            tickets.iter().map(|ticket| ticket.wait()).collect::<Vec<_>>()
        };
        assert!(sum().iter().all(Result::is_ok), "seed {seed}");
        let ended = sum();
        let lost = ended[1].as_ref().unwrap_err().to_string();
        assert!(
            lost.contains("the link to device 2 is cut, as planned for transfer 2 over it"),
            "seed {seed}: {lost}"
        );
        for rank in [0, 2, 3] {
            let error = ended[rank].as_ref().unwrap_err();
            let told = error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}"));
            assert!(
                told.lost == 1 && told.cause.contains("the link to device 2 is cut"),
                "seed {seed}: {told}"
            );
        }
        let sums = thread::scope(|threads| {
            let left = [0, 2, 3].map(|rank| &ranks[rank]);
            let threads = left.map(|rank| {
                threads.spawn(|| {
                    let rebuilt = rank.rebuild().unwrap().communicator;
                    let one = rebuilt.runtime().upload(&[1_u32]).unwrap();
                    rebuilt.all_reduce_in_place(&one, Reduction::Sum).submit().unwrap();
                    one.download().unwrap()[0]
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(sums, [3; 3], "seed {seed}");
    }
}
