//! Missing edges between streams, in graphs, to the host, and between devices.

use kiln_driver::{Command, DevicePlace, Driver, DriverExt, GraphNode, Pattern, Place, StreamRequest};
use kiln_sim::{DeviceConfig, FindingKind};

use super::{check, check_on, let_run};
use crate::rig::{Kernel, Rig, bytes_of, config, pack};

#[test]
fn a_read_after_a_write_without_an_edge() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.write(0, x, 1);
        if !broken {
            rig.order(0, 1);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_write_after_a_read_without_an_edge() {
    check(FindingKind::WriteAfterRead, |rig, broken| {
        let x = rig.block(64);
        rig.write(0, x, 1);
        rig.sync(0);
        rig.read(0, x);
        if !broken {
            rig.order(0, 1);
        }
        rig.write(1, x, 2);
        rig.close();
    });
}

#[test]
fn a_write_that_waits_for_one_of_two_readers() {
    for forgotten in [0, 1] {
        check(FindingKind::WriteAfterRead, |rig, broken| {
            let x = rig.block(64);
            rig.write(0, x, 1);
            rig.order(0, 1);
            rig.read(0, x);
            rig.read(1, x);
            for reader in [0, 1] {
                if !broken || reader != forgotten {
                    rig.order(reader, 2);
                }
            }
            rig.write(2, x, 2);
            rig.close();
        });
    }
}

#[test]
fn a_write_after_a_write_without_an_edge() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.device.fill(rig.streams[0], x.id.into(), 1, 64).unwrap();
        if !broken {
            rig.order(0, 1);
        }
        rig.device.fill(rig.streams[1], x.id.into(), 2, 64).unwrap();
        rig.close();
    });
}

#[test]
fn one_byte_of_overlap_is_enough_and_none_is_not() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        rig.device.fill(rig.streams[0], x.id.into(), 1, if broken { 33 } else { 32 }).unwrap();
        let rest = DevicePlace::from(x.id).plus(32);
        rig.device.fill(rig.streams[1], rest, 2, 32).unwrap();
        rig.close();
    });
}

#[test]
fn a_new_stream_is_not_ordered_after_one_that_was_destroyed() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, host) = (rig.block(64), rig.host(64));
        let stream = || rig.device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let old = stream();
        rig.device.fill(old, x.id.into(), 1, 64).unwrap();
        if !broken {
            rig.device.synchronize(old).unwrap();
        }
        let_run(&rig, 1);
        rig.device.destroy(old.into()).unwrap();
        let new = stream();
        rig.device.download(new, x.id.into(), &host, 64).unwrap();
        rig.device.synchronize(new).unwrap();
        rig.device.destroy(new.into()).unwrap();
        rig.close();
    });
}

#[test]
fn an_event_signalled_too_early() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        if broken {
            rig.signal(0, event);
            rig.write(0, x, 1);
        } else {
            rig.write(0, x, 1);
            rig.signal(0, event);
        }
        rig.wait(1, event);
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_wait_queued_before_the_signal() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        if broken {
            rig.wait(1, event);
        }
        rig.write(0, x, 1);
        rig.signal(0, event);
        if !broken {
            rig.wait(1, event);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn a_wait_that_sees_an_old_signal() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, event) = (rig.block(64), rig.event());
        rig.signal(0, event);
        rig.write(0, x, 1);
        if broken {
            rig.wait(1, event);
            rig.signal(0, event);
        } else {
            rig.signal(0, event);
            rig.wait(1, event);
        }
        rig.read(1, x);
        rig.close();
    });
}

#[test]
fn an_edge_missing_in_the_middle_of_a_chain() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, y) = (rig.block(8), rig.block(8));
        rig.write(0, x, 1);
        if !broken {
            rig.order(0, 1);
        }
        rig.write(1, y, 1);
        rig.order(1, 2);
        rig.read(2, x);
        rig.close();
    });
}

#[test]
fn the_host_reads_before_it_waited() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, host) = (rig.block(64), rig.host(64));
        rig.write(0, x, 7);
        rig.download(0, x.id, &host);
        if !broken {
            rig.sync(0);
        }
        let bytes = bytes_of(&host);
        assert!(broken || bytes == [7; 64]);
        rig.close();
    });
}

#[test]
fn the_host_writes_into_an_upload() {
    check(FindingKind::WriteAfterRead, |rig, broken| {
        let (x, host, event) = (rig.block(64), rig.host(64), rig.event());
        assert!(host.write(0, &[1; 64]));
        rig.upload(0, &host, x.id);
        rig.signal(0, event);
        if !broken {
            // A poll that says done is as good as a wait.
            while !rig.device.is_done(event).unwrap() {}
        }
        assert!(host.write(0, &[2; 64]));
        rig.close();
    });
}

#[test]
fn a_wait_for_the_wrong_stream() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let (x, host) = (rig.block(64), rig.host(64));
        rig.write(0, x, 7);
        rig.download(0, x.id, &host);
        rig.sync(usize::from(broken));
        bytes_of(&host);
        rig.close();
    });
}

#[test]
fn an_edge_missing_inside_a_graph() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(64);
        let (write, read) =
            (pack(Kernel::Write, &[x.address.0, 64, 1]), pack(Kernel::Read, &[x.address.0, 64]));
        let nodes = [
            GraphNode { command: rig.command(Kernel::Write, &write), after: &[] },
            GraphNode { command: rig.command(Kernel::Read, &read), after: if broken { &[] } else { &[0] } },
        ];
        let graph = rig.device.build_graph(&nodes).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        rig.close();
    });
}

#[test]
fn an_edge_missing_behind_a_graph() {
    check(FindingKind::WriteAfterWrite, |rig, broken| {
        let x = rig.block(64);
        let fill = |value| Command::Fill { to: x.id.into(), pattern: Pattern::U8(value), count: 64 };
        let graph = rig.device.build_graph(&[GraphNode { command: fill(1), after: &[] }]).unwrap();
        rig.give_back_later(graph);
        rig.device.submit(rig.streams[0], &Command::Graph(graph)).unwrap();
        if !broken {
            rig.order(0, 1);
        }
        rig.device.submit(rig.streams[1], &fill(2)).unwrap();
        rig.close();
    });
}

#[test]
fn a_copy_between_devices_without_an_order() {
    let two = |seed| config(seed).device(DeviceConfig::default()).device(DeviceConfig::default());
    check_on(FindingKind::ReadAfterWrite, two, |machine, broken| {
        let (here, there) = (Rig::on(machine, 0, 1), Rig::on(machine, 1, 1));
        let (x, y) = (here.block(64), there.block(64));
        here.write(0, x, 3);
        if !broken {
            here.sync(0);
        }
        let (from, to) = (Place::Peer(x.id.into()), Place::Device(y.id.into()));
        there.device.submit(there.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
        there.close();
        here.close();
    });
}
