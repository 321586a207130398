//! A rank that ends because another one came too late, where the ranks are threads of one process: the late rank is what the others are told of.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, Reduction, Rendezvous};

use crate::job_rig::{config, free_port};
use crate::rank_scenes::{await_loss, begun, lose, wait_in_vain, within};
use crate::rig::Rig;

#[test]
fn ranks_that_did_not_come_are_the_ones_that_are_told_and_not_the_one_that_waited() {
    for how in ["stays", "drops", "panics"] {
        let (_rig, mut ranks, mut buffers) = begun(3, Duration::from_millis(500));
        let (second, buffer) = (ranks.remove(1), buffers.remove(1));
        let told = wait_in_vain(&second, &buffer);
        let words = "for rank 0, which has not called it and rank 2, which has not called it";
        assert!(told.contains(words), "{how}: {told}");
        drop(buffer);
        let kept = match how {
            "stays" => Some(second),
            "drops" => {
                drop(second);
                None
            }
            _ => {
                lose(second);
                None
            }
        };
        // They come to it now.
        for (rank, buffer) in ranks.iter().zip(&buffers) {
            await_loss(rank);
            let told = rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap_err();
            let lost = told.lost_rank().unwrap_or_else(|| panic!("{how}: {told}"));
            assert_eq!(
                (lost.lost, &lost.late[..], lost.can_rebuild),
                (1, &[0, 2][..], true),
                "{how}: {told}"
            );
            let text = told.to_string();
            assert!(text.contains("ranks 0 and 2 of communicator "), "{how}: {text}");
            assert!(
                text.contains(" were late, and rank 1, which waited for them, is lost: "),
                "{how}: {text}"
            );
            assert!(text.contains(words), "{how}: {text}");
        }
        drop(kept);
    }
}

#[test]
fn a_rank_that_waits_beside_one_that_ends_is_told_of_the_late_one() {
    for how in ["drops", "panics"] {
        let (_rig, mut ranks, mut buffers) = begun(3, Duration::from_millis(700));
        let (second, buffer) = (ranks.remove(1), buffers.remove(1));
        let waits = thread::spawn(move || {
            let told = wait_in_vain(&second, &buffer);
            assert!(told.contains("rank 2, which has not called it"), "{told}");
            drop(buffer);
            if how == "panics" {
                let _rank = second;
                std::panic::resume_unwind(Box::new("this rank ends because another one is late"));
            }
        });
        let told = wait_in_vain(&ranks[0], &buffers[0]);
        assert!(told.contains("rank 2, which has not called it"), "{how}: {told}");
        assert_eq!(waits.join().is_err(), how == "panics");
        // The late one is told of itself.
        await_loss(&ranks[1]);
        let told = wait_in_vain(&ranks[1], &buffers[1]);
        assert!(
            told.contains("rank 2 of communicator ") && told.contains(" was late, and rank "),
            "{how}: {told}"
        );
    }
}

#[test]
fn threads_of_a_job_are_told_of_the_late_one() {
    for how in ["drops", "panics"] {
        let rig = Rig::new(3, 1);
        let port = free_port();
        let join = |rank: u32| {
            let gpu = rig.group.runtime(rank as usize).unwrap().clone();
            thread::spawn(move || {
                let job = Arc::new(Rendezvous::join(&config(port, rank, 3)).unwrap());
                let rank = DeviceCommunicator::meet(&gpu, &job, &within(Duration::from_millis(1500)));
                (job, rank.unwrap())
            })
        };
        let [first, second, third] = [0, 1, 2].map(join).map(|rank| rank.join().unwrap());
        let waits = thread::spawn(move || {
            let (job, rank) = second;
            let buffer = rank.runtime().upload(&[1_u32; 4]).unwrap();
            let told = wait_in_vain(&rank, &buffer);
            assert!(told.contains("rank 2, which has not called it"), "{told}");
            drop(buffer);
            if how == "panics" {
                // The rank before its job.
                let _job = job;
                let _rank = rank;
                std::panic::resume_unwind(Box::new("this rank ends because another one is late"));
            }
        });
        // It has come, and is not the late one.
        let buffer = first.1.runtime().upload(&[1_u32; 4]).unwrap();
        let told = wait_in_vain(&first.1, &buffer);
        assert!(told.contains("rank 2"), "{how}: {told}");
        assert_eq!(waits.join().is_err(), how == "panics");
        drop((buffer, third));
    }
}
