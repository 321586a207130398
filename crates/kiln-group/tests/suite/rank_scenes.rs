//! Scenes of ranks that are threads or devices of this process: how they begin, how one of them ends, and how the others hear of it.

use std::thread;
use std::time::{Duration, Instant};

use kiln::GpuRef;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Reduction};

use crate::rig::Rig;

pub(crate) fn within(deadline: Duration) -> DeviceCommunicatorConfig {
    DeviceCommunicatorConfig { deadline }
}

/// Waits until a rank is told that another one is lost.
pub(crate) fn await_loss(rank: &DeviceCommunicator) {
    let began = Instant::now();
    while rank.lost_rank().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "rank {} was told of no loss", rank.rank());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the thread of a rank that holds it.
pub(crate) fn lose(rank: DeviceCommunicator) {
    let lost = thread::spawn(move || {
        let _rank = rank;
        std::panic::resume_unwind(Box::new("this rank is to end"));
    });
    assert!(lost.join().is_err());
}

/// One buffer for each rank, in which its number is, counted from 1.
pub(crate) fn numbered(ranks: &[DeviceCommunicator]) -> Vec<GpuRef<u32>> {
    ranks.iter().map(|rank| rank.runtime().upload(&[rank.rank() + 1; 4]).unwrap()).collect()
}

/// Ranks that have done one collective, and their buffers.
pub(crate) fn begun(size: u32, deadline: Duration) -> (Rig, Vec<DeviceCommunicator>, Vec<GpuRef<u32>>) {
    let rig = Rig::new(size, 1);
    let ranks = rig.group.communicators(&within(deadline)).unwrap();
    let buffers = numbered(&ranks);
    for (rank, buffer) in ranks.iter().zip(&buffers) {
        rank.all_reduce_in_place(buffer, Reduction::Sum).submit().unwrap();
    }
    rig.group.synchronize().unwrap();
    (rig, ranks, buffers)
}

/// Has a rank wait in a collective until that fails.
pub(crate) fn wait_in_vain(rank: &DeviceCommunicator, buffer: &GpuRef<u32>) -> String {
    match rank.all_reduce_in_place(buffer, Reduction::Sum).submit() {
        Ok(ticket) => ticket.wait().unwrap_err().to_string(),
        Err(refused) => refused.to_string(),
    }
}
