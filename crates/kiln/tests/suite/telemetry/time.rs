//! Device time, on a device whose time is virtual.

use std::time::Duration;

use kiln::{GpuRef, Stream, telemetry::Timed};
use kiln_sim::MachineConfig;

use super::rig::Rig;

fn timed(rig: &Rig, stream: &Stream, to: &GpuRef<u32>, from: &GpuRef<u32>) -> Timed {
    let mut launch = rig.gpu.launch(&rig.kernels.mix);
    launch.grid(1).block(1);
    launch.on(stream).read_write(to).read(from).value(to.len() as u32).value(1_u32);
    // SAFETY: `mix` touches as many elements as the first buffer has, and the second is as long.
    unsafe { launch.submit_timed() }.unwrap()
}

#[test]
fn device_time_is_that_of_the_work_alone() {
    let rig = Rig::new(MachineConfig::seeded(3));
    let (first, second) = (rig.gpu.stream().unwrap(), rig.gpu.stream().unwrap());
    let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
    rig.gpu.synchronize().unwrap();
    let alone = timed(&rig, &first, &a, &b).wait().unwrap();
    assert!(alone.device > Duration::ZERO && alone.wall >= alone.device, "{alone:?}");
    assert!(alone.wall >= alone.enqueue + alone.wait, "{alone:?}");
    // The same launch behind a lot of work of another stream.
    (0..50).for_each(|_| rig.mix(&second, &a, &b));
    let behind = timed(&rig, &first, &a, &b).wait().unwrap();
    // Behind other work the events and the launch are all queued when the stream reaches them, so nothing of the host is in it.
    assert!(behind.device > Duration::ZERO && behind.device <= alone.device, "{behind:?} and {alone:?}");
    assert!(behind.wall > 10 * alone.device, "{behind:?}");
    drop((a, b, first, second));
    rig.finish();
}

#[test]
fn a_replay_is_timed_and_its_events_are_used_again() {
    let rig = Rig::new(MachineConfig::seeded(3));
    let (a, b) = (rig.gpu.upload(&[1_u32; 8]).unwrap(), rig.gpu.upload(&[2_u32; 8]).unwrap());
    let launch = |builder: &mut kiln::graph::GraphBuilder| {
        let mut launch = builder.launch(&rig.kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&a).read(&b).value(8_u32).value(1_u32);
        // SAFETY: `mix` touches eight elements, which both buffers have.
        unsafe { launch.record() }
    };
    let (one, _) = rig.gpu.record(launch).unwrap();
    let (three, _) = rig.gpu.record(|builder| (0..3).try_for_each(|_| launch(builder).map(drop))).unwrap();
    let time = |graph: &kiln::Graph| graph.replay_timed().unwrap().wait().unwrap().device;
    // The first replay makes what the later ones find.
    time(&one);
    let short = time(&one);
    let created = rig.driver.layer().counts().of(kiln_driver::call::CallKind::CreateEvent);
    assert!(time(&three) > 2 * short, "three in a row take longer than two");
    assert_eq!(time(&one), short);
    // Time that no thread asks for in the end.
    drop(one.replay_timed().unwrap());
    let again = rig.driver.layer().counts().of(kiln_driver::call::CallKind::CreateEvent);
    assert!(again - created <= 3, "points of the order may be new, timed events are not");
    assert_eq!(a.download().unwrap(), [1 + 2 * (1 + 1 + 3 + 1 + 1); 8]);
    drop((one, three, a, b));
    rig.finish();
}
