//! Random programs of fills, copies, scatters and gathers over several devices leave what one host array says.

use kiln::GpuRef;
use kiln::group::ShardedBuffer;
use kiln::sim::{DeviceLink, FaultPlan, Links};

use crate::rig::{Numbers, Rig};

const LEN: usize = 24;
const STEPS: usize = 30;

/// Every two devices connected, none, or some.
fn links(numbers: &mut Numbers, devices: u32) -> Links {
    match numbers.below(3) {
        0 => Links::all(),
        1 => Links::none(),
        _ => {
            let pairs = (0..devices).flat_map(|one| (one + 1..devices).map(move |other| (one, other)));
            pairs.fold(Links::none(), |links, (one, other)| match numbers.below(2) {
                0 => links,
                _ => links.with(one, other, DeviceLink::PCIE),
            })
        }
    }
}

struct Model {
    buffers: Vec<(GpuRef<u32>, Vec<u32>)>,
    shards: (ShardedBuffer<u32>, Vec<u32>),
}

/// One step, on the devices and in the model.
fn step(rig: &Rig, model: &mut Model, numbers: &mut Numbers) {
    let (at, other) = (numbers.below(model.buffers.len()), numbers.below(model.buffers.len()));
    let stream = |buffer: &GpuRef<u32>| {
        let runtimes = rig.group.runtimes();
        runtimes.iter().find(|runtime| buffer.belongs_to(runtime)).unwrap().stream().unwrap()
    };
    match numbers.below(5) {
        0 | 1 => {
            let (buffer, expected) = &mut model.buffers[at];
            let (start, value) = (numbers.below(LEN), numbers.next() as u32);
            buffer.view(start..).unwrap().fill_on(&stream(buffer), value).unwrap();
            expected[start..].fill(value);
        }
        2 if at != other => {
            let len = 1 + numbers.below(LEN);
            let (from, to) = (numbers.below(LEN - len + 1), numbers.below(LEN - len + 1));
            let (source, target) = (&model.buffers[at].0, &model.buffers[other].0);
            let views = (source.view(from..from + len).unwrap(), target.view(to..to + len).unwrap());
            rig.group.copy(&views.0, &views.1).unwrap();
            let bytes = model.buffers[at].1[from..from + len].to_vec();
            model.buffers[other].1[to..to + len].copy_from_slice(&bytes);
        }
        3 => {
            rig.group.scatter(&model.buffers[at].0, &model.shards.0).unwrap();
            model.shards.1 = model.buffers[at].1.clone();
        }
        _ => {
            rig.group.gather(&model.shards.0, &model.buffers[at].0).unwrap();
            model.buffers[at].1 = model.shards.1.clone();
        }
    }
}

fn run(seed: u64) {
    let mut numbers = Numbers::new(seed + 1);
    let devices = 2 + numbers.below(3) as u32;
    let links = links(&mut numbers, devices);
    let rig = Rig::with(devices, seed, links, FaultPlan::none());
    let buffer = |device: usize| rig.group.runtime(device).unwrap().upload(&[device as u32; LEN]).unwrap();
    let buffers = (0..2 * devices as usize).map(|at| {
        let device = at % devices as usize;
        (buffer(device), vec![device as u32; LEN])
    });
    let weights: Vec<u64> = (0..devices).map(|_| numbers.below(4) as u64).collect();
    let shards = rig.group.allocate_by_weight::<u32>(LEN, &weights).unwrap();
    shards.upload(&[77; LEN]).unwrap();
    let mut model = Model { buffers: buffers.collect(), shards: (shards, vec![77; LEN]) };
    for _ in 0..STEPS {
        step(&rig, &mut model, &mut numbers);
    }
    for (at, (buffer, expected)) in model.buffers.iter().enumerate() {
        assert_eq!(&buffer.download().unwrap(), expected, "seed {seed}, buffer {at}");
    }
    assert_eq!(model.shards.0.download().unwrap(), model.shards.1, "seed {seed}");
    drop(model);
    rig.finish();
}

#[test]
fn two_hundred_programs_leave_what_one_device_would() {
    (0..200).for_each(run);
}
