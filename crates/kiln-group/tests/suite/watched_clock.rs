//! The virtual clock of a machine whose devices are looked at in real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln::driver::Clock as _;
use kiln::group::Reduction;

use crate::rig::Rig;

/// The virtual time of a reduction, while another thread asks a device whether it is healthy, or not.
fn reduced(is_watched: bool) -> Duration {
    let rig = Rig::new(4, 1);
    let ranks = rig.group.communicators(&Default::default()).unwrap();
    let (len, done) = (1 << 21, AtomicBool::new(false));
    let buffers: Vec<_> =
        rig.group.runtimes().iter().map(|gpu| gpu.upload(&vec![1_f32; len]).unwrap()).collect();
    let sum = rig.group.runtime(0).unwrap().zeros::<f32>(len).unwrap();
    rig.group.synchronize().unwrap();
    let before = rig.machine.clock().now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while is_watched && !done.load(Ordering::Relaxed) {
                assert!(rig.group.ready().len() == 4);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for (rank, buffer) in ranks.iter().zip(&buffers) {
            let sum = (rank.rank() == 0).then_some(&sum);
            rank.reduce(buffer, sum, Reduction::Sum, 0).submit().unwrap();
        }
        rig.group.synchronize().unwrap();
        done.store(true, Ordering::Relaxed);
    });
    let taken = rig.machine.clock().now() - before;
    assert_eq!(sum.view(..1).unwrap().download().unwrap(), [4.0]);
    drop((ranks, buffers, sum));
    rig.finish();
    taken
}

#[test]
fn the_virtual_clock_does_not_count_how_often_a_device_is_looked_at_while_it_works() {
    let (alone, watched) = (reduced(false), reduced(true));
    let more = watched.saturating_sub(alone);
    assert!(more < Duration::from_millis(5), "{alone:?} alone, {watched:?} watched");
}

/// The virtual time of a program on one thread, which pauses after each collective.
fn paused() -> Duration {
    let rig = Rig::new(4, 1);
    let ranks = rig.group.communicators(&Default::default()).unwrap();
    let buffers: Vec<_> =
        rig.group.runtimes().iter().map(|gpu| gpu.upload(&vec![1_u32; 1 << 18]).unwrap()).collect();
    let sums: Vec<_> = rig.group.runtimes().iter().map(|gpu| gpu.zeros::<u32>(1 << 18).unwrap()).collect();
    rig.group.synchronize().unwrap();
    for _ in 0..10 {
        for ((rank, buffer), sum) in ranks.iter().zip(&buffers).zip(&sums) {
            rank.all_reduce(buffer, sum, Reduction::Max).submit().unwrap();
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    rig.group.synchronize().unwrap();
    let taken = rig.machine.clock().now();
    drop((ranks, buffers, sums));
    rig.finish();
    taken
}

#[test]
fn a_program_on_one_thread_takes_the_same_virtual_time_whenever_its_ranks_are_looked_at() {
    let first = paused();
    for _ in 0..4 {
        assert_eq!(paused(), first);
    }
}
