//! Accesses that are wrong whatever the order.

use kiln_driver::{Code, Command, Driver, DriverExt, PageRequest, Place, Protection, ReserveRequest};
use kiln_sim::{FindingKind, Touching};

use super::check;
use crate::rig::Kernel;

#[test]
fn bytes_read_that_were_not_written() {
    for through_copy in [false, true] {
        check(FindingKind::Uninitialised, |rig, broken| {
            let (x, y, host) = (rig.block(64), rig.block(64), rig.host(64));
            rig.device.fill(rig.streams[0], x.id.into(), 1, if broken { 63 } else { 64 }).unwrap();
            if through_copy {
                // Inside the device, copying bytes that were never written is no fault; the copy counts as never written, too.
                let (from, to) = (Place::Device(x.id.into()), Place::Device(y.id.into()));
                rig.device.submit(rig.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
                rig.download(0, y.id, &host);
            } else {
                rig.bump(0, x);
            }
            rig.close();
        });
    }
}

#[test]
fn a_kernel_that_runs_past_its_block() {
    check(FindingKind::OutOfBounds, |rig, broken| {
        let x = rig.block(64);
        rig.launch(0, Kernel::Write, &[x.address.0, if broken { 65 } else { 64 }, 1]).unwrap();
        if broken {
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS));
            assert_eq!(error.site().unwrap().command, "launch write");
            return;
        }
        rig.close();
    });
}

#[test]
fn a_kernel_that_reaches_for_address_zero() {
    check(FindingKind::OutOfBounds, |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        rig.launch(0, Kernel::Read, &[if broken { 0 } else { x.address.0 }, 8]).unwrap();
        if broken {
            assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
            return;
        }
        rig.close();
    });
}

#[test]
fn a_misaligned_load() {
    check(FindingKind::Misaligned, |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        rig.launch(0, Kernel::Word, &[x.address.0 + u64::from(broken)]).unwrap();
        if broken {
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(Code::MISALIGNED_ADDRESS));
            return;
        }
        rig.close();
    });
}

#[test]
fn a_kernel_that_writes_through_what_it_declared_to_read() {
    check(FindingKind::Undeclared(Touching::Writing), |rig, broken| {
        let x = rig.block(8);
        rig.write(0, x, 0);
        let kernel = if broken { Kernel::Liar } else { Kernel::Word };
        rig.launch(0, kernel, &[x.address.0]).unwrap();
        rig.close();
    });
}

#[test]
fn atomics_race_with_plain_accesses_and_not_with_each_other() {
    check(FindingKind::ReadAfterWrite, |rig, broken| {
        let x = rig.block(4);
        rig.write(0, x, 0);
        rig.order(0, 1);
        rig.launch(0, Kernel::Count, &[x.address.0]).unwrap();
        if broken {
            rig.launch(1, Kernel::Word, &[x.address.0]).unwrap();
        } else {
            rig.launch(1, Kernel::Count, &[x.address.0]).unwrap();
        }
        rig.close();
    });
}

#[test]
fn a_write_to_pages_that_may_only_be_read() {
    check(FindingKind::ReadOnly, |rig, broken| {
        let bytes = 2 << 20;
        let reservation = rig.device.reserve(ReserveRequest { bytes, at: None }).unwrap();
        let pages = rig.device.create_pages(PageRequest { bytes, exportable: false }).unwrap();
        rig.device.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
        rig.launch(0, Kernel::Write, &[reservation.address.0, 64, 1]).unwrap();
        rig.sync(0);
        rig.device.protect(reservation.id, 0, bytes, Protection::Read).unwrap();
        rig.launch(0, Kernel::Read, &[reservation.address.0, 64]).unwrap();
        if broken {
            rig.launch(0, Kernel::Write, &[reservation.address.0, 64, 1]).unwrap();
            let error = rig.device.synchronize(rig.streams[0]).unwrap_err();
            assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS));
            return;
        }
        rig.sync(0);
        rig.device.unmap(reservation.id, 0, bytes).unwrap();
        rig.device.destroy(pages.into()).unwrap();
        rig.device.destroy(reservation.id.into()).unwrap();
        rig.close();
    });
}
