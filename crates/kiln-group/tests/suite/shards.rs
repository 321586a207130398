//! Sharded buffers.

use kiln::group::GroupError;

use crate::rig::Rig;

#[test]
fn elements_are_spread_and_come_back_in_order() {
    let rig = Rig::new(3, 1);
    for len in [0, 1, 2, 3, 7, 100] {
        let data: Vec<u32> = (0..len).collect();
        let shards = rig.group.upload(&data).unwrap();
        assert_eq!((shards.len(), shards.is_empty()), (len as usize, len == 0));
        assert_eq!(shards.download().unwrap(), data);
        for device in 0..3 {
            let range = shards.range(device).unwrap();
            let part = shards.part(device).unwrap();
            assert_eq!(part.download().unwrap(), data[range]);
            assert!(part.belongs_to(rig.group.runtime(device).unwrap()));
        }
        let whole = rig.group.runtime(1).unwrap().zeros::<u32>(len as usize).unwrap();
        rig.group.gather(&shards, &whole).unwrap();
        assert_eq!(whole.download().unwrap(), data);
        whole.fill(5).unwrap();
        rig.group.scatter(&whole, &shards).unwrap();
        assert_eq!(shards.download().unwrap(), vec![5; len as usize]);
    }
    rig.finish();
}

#[test]
fn weights_decide_how_much_a_device_gets() {
    let rig = Rig::new(3, 1);
    let shards = rig.group.allocate_by_weight::<u8>(10, &[3, 0, 2]).unwrap();
    let ranges: Vec<_> = (0..3).map(|device| shards.range(device).unwrap()).collect();
    assert_eq!(ranges, [0..6, 6..6, 6..10]);
    shards.upload(&[1; 10]).unwrap().wait().unwrap();
    assert_eq!(shards.download().unwrap(), [1; 10]);
    drop(shards);
    rig.finish();
}

#[test]
fn what_does_not_fit_is_refused() {
    let (rig, other) = (Rig::new(2, 1), Rig::new(2, 2));
    let (shards, theirs) = (rig.group.upload(&[1_u32; 6]).unwrap(), other.group.upload(&[1_u32; 6]).unwrap());
    let whole = rig.group.runtime(0).unwrap().upload(&[2_u32; 6]).unwrap();
    let error = rig.group.allocate_by_weight::<u8>(10, &[1]).unwrap_err();
    assert!(matches!(error, GroupError::Weights { given: 1, len: 2 }), "{error}");
    let error = rig.group.scatter(&whole.view(0..5).unwrap(), &shards).unwrap_err();
    assert!(matches!(error, GroupError::Length { source_len: 5, destination_len: 6 }), "{error}");
    let error = rig.group.gather(&shards, &whole.view(0..5).unwrap()).unwrap_err();
    assert!(matches!(error, GroupError::Length { source_len: 6, destination_len: 5 }), "{error}");
    assert!(matches!(rig.group.scatter(&whole, &theirs), Err(GroupError::OtherGroup)));
    assert!(matches!(rig.group.gather(&theirs, &whole), Err(GroupError::OtherGroup)));
    assert!(matches!(shards.upload(&[1; 7]), Err(GroupError::Length { source_len: 7, .. })));
    assert!(matches!(shards.part(2), Err(GroupError::NoSuchDevice { index: 2, len: 2 })));
    assert!(matches!(shards.range(2), Err(GroupError::NoSuchDevice { index: 2, len: 2 })));
    assert_eq!((shards.download().unwrap(), whole.download().unwrap()), (vec![1; 6], vec![2; 6]));
    drop((shards, theirs, whole));
    rig.finish();
    other.finish();
}
