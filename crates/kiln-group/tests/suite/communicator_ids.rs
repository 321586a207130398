//! Ids that make no communicator: those that are over, that no device made, or that another machine made.

use kiln::group::{CommunicatorId, DeviceCommunicator, Reduction};

use crate::collective_mistakes::short;
use crate::rig::Rig;

#[test]
fn an_id_of_a_communicator_that_is_over() {
    let rig = Rig::new(2, 1);
    let id = DeviceCommunicator::new_id(rig.group.runtime(0).unwrap()).unwrap();
    let join =
        |rank| DeviceCommunicator::join(rig.group.runtime(rank as usize).unwrap(), id, rank, 2, &short());
    let ranks = (join(0).unwrap(), join(1).unwrap());
    rig.group.synchronize().unwrap();
    drop(ranks);
    let error = join(0).unwrap_err().to_string();
    assert!(error.contains("make another id"), "{error}");
}

#[test]
fn an_id_that_no_device_of_the_machine_made() {
    let (one, other) = (Rig::new(2, 1), Rig::new(2, 2));
    let join =
        |id, rank| DeviceCommunicator::join(one.group.runtime(rank as usize).unwrap(), id, rank, 2, &short());
    let foreign = DeviceCommunicator::new_id(other.group.runtime(0).unwrap()).unwrap();
    let error = join(foreign, 0).unwrap_err().to_string();
    assert!(error.contains("no device of this simulated machine made the id"), "{error}");
    // One that the machine will make, and has not made yet.
    let early = DeviceCommunicator::new_id(Rig::new(1, 1).group.runtime(0).unwrap()).unwrap();
    assert!(join(early, 0).is_err());
    let zeros = join(CommunicatorId::new([0; CommunicatorId::BYTES]), 0).unwrap_err().to_string();
    assert!(zeros.contains("an id of zeros, which no rank made"), "{zeros}");
    let id = DeviceCommunicator::new_id(one.group.runtime(1).unwrap()).unwrap();
    let ranks = [join(id, 0).unwrap(), join(id, 1).unwrap()];
    drop(ranks);
}

#[test]
fn a_rank_that_is_alone_needs_a_new_id_too() {
    let (rig, foreign) = (Rig::new(2, 1), Rig::new(1, 1));
    let gpu = rig.group.runtime(0).unwrap();
    let join = |id, size| DeviceCommunicator::join(gpu, id, 0, size, &short());
    let refused = |id, words: &str| {
        let error = join(id, 1).unwrap_err().to_string();
        assert!(error.contains(words), "`{words}` in {error}");
    };
    refused(CommunicatorId::new([0; CommunicatorId::BYTES]), "an id of zeros, which no rank made");
    refused(
        CommunicatorId::new([9; CommunicatorId::BYTES]),
        "no device of this simulated machine made the id",
    );
    let of_another = DeviceCommunicator::new_id(foreign.group.runtime(0).unwrap()).unwrap();
    refused(of_another, "no device of this simulated machine made the id");
    let id = DeviceCommunicator::new_id(gpu).unwrap();
    let alone = join(id, 1).unwrap();
    refused(id, "was loaded before, on device 0");
    assert!(join(id, 2).unwrap_err().to_string().contains("the number of ranks: 2 and 1"));
    let buffer = gpu.upload(&[3_u32; 4]).unwrap();
    alone.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
    assert_eq!(buffer.download().unwrap(), [3; 4]);
    rig.group.synchronize().unwrap();
    drop(alone);
    refused(id, "make another id");
    let used = DeviceCommunicator::new_id(gpu).unwrap();
    let _first = join(used, 2).unwrap();
    refused(used, "the number of ranks: 1 and 2");
}

#[test]
fn an_id_of_another_machine_with_the_same_seed() {
    let (one, other) = (Rig::new(2, 1), Rig::new(2, 1));
    let id = |rig: &Rig| DeviceCommunicator::new_id(rig.group.runtime(0).unwrap()).unwrap();
    let ids = [id(&one), id(&other)];
    assert_ne!(ids[0], ids[1]);
    let error =
        DeviceCommunicator::join(other.group.runtime(1).unwrap(), ids[0], 1, 2, &short()).unwrap_err();
    assert!(error.to_string().contains("no device of this simulated machine made the id"), "{error}");
}
