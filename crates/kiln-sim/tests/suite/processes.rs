//! Pages cross processes as a file descriptor and outlive the process that made them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use kiln_driver::{
    DeviceAddress, DevicePlace, Driver, DriverExt, PageRequest, Protection, Refusal, Reservation,
    ReserveRequest,
};

use crate::child;
use crate::rig::{Rig, bytes_of};

const PAGE_BYTES: u64 = 2 << 20;
const ADDRESS: DeviceAddress = DeviceAddress(0x6000_0000_0000);

/// The child's side: takes the pages from its standard input, checks what is in them, and leaves something new.
pub(crate) fn continue_with_pages(bytes: u64) -> String {
    let rig = Rig::seeded(1, 1);
    let reservation = import(&rig, io::stdin().as_fd(), bytes);
    let host = rig.host(16);
    rig.download(0, reservation.id, &host);
    rig.sync(0);
    let found = bytes_of(&host);
    // A kernel sees the same address as in the other process.
    rig.launch(0, crate::rig::Kernel::Bump, &[ADDRESS.0, 16]).unwrap();
    rig.sync(0);
    format!("{found:?}")
}

fn import(rig: &Rig, descriptor: std::os::fd::BorrowedFd<'_>, bytes: u64) -> Reservation {
    let reservation = rig.device.reserve(ReserveRequest { bytes, at: Some(ADDRESS) }).unwrap();
    let pages = rig.device.import_pages(descriptor, bytes).unwrap();
    rig.device.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
    assert_eq!(reservation.address, ADDRESS);
    reservation
}

#[test]
fn a_child_sees_the_bytes_and_its_writes_come_back() {
    let descriptor: OwnedFd = {
        let rig = Rig::seeded(0, 1);
        let reservation = rig.device.reserve(ReserveRequest { bytes: PAGE_BYTES, at: None }).unwrap();
        let pages = rig.device.create_pages(PageRequest { bytes: PAGE_BYTES, exportable: true }).unwrap();
        rig.device.map(reservation.id, 0, &[pages], Protection::ReadWrite).unwrap();
        rig.device.fill(rig.streams[0], reservation.id.into(), 41, PAGE_BYTES).unwrap();
        rig.sync(0);
        rig.device.export_pages(pages).unwrap()
        // The machine that made the pages goes away here; the descriptor keeps them.
    };
    let stdin = Stdio::from(descriptor.try_clone().unwrap());
    let said = child::run(&format!("pages {PAGE_BYTES}"), stdin).expect("the child ends well");
    assert_eq!(said, format!("{:?}", [41; 16]));

    let rig = Rig::seeded(2, 1);
    let reservation = import(&rig, descriptor.as_fd(), PAGE_BYTES);
    let host = rig.host(32);
    rig.download(0, reservation.id, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host), [[42; 16], [41; 16]].concat());
    let report = rig.machine.finish();
    assert!(report.findings.iter().all(|finding| !finding.kind.is_race()), "{report}");
}

#[test]
fn pages_imported_twice_on_one_machine_are_one_memory() {
    let rig = Rig::seeded(0, 2);
    let pages = rig.device.create_pages(PageRequest { bytes: PAGE_BYTES, exportable: true }).unwrap();
    let free_bytes = rig.device.memory_info().unwrap().free_bytes;
    let descriptor = rig.device.export_pages(pages).unwrap();
    let again = rig.device.import_pages(descriptor.as_fd(), PAGE_BYTES).unwrap();
    assert_eq!(rig.device.memory_info().unwrap().free_bytes, free_bytes);
    let reservation = rig.device.reserve(ReserveRequest { bytes: 2 * PAGE_BYTES, at: None }).unwrap();
    rig.device.map(reservation.id, 0, &[pages, again], Protection::ReadWrite).unwrap();
    rig.device.fill(rig.streams[0], reservation.id.into(), 9, 64).unwrap();
    let alias = DevicePlace::from(reservation.id).plus(PAGE_BYTES);
    let host = rig.host(64);
    rig.download(1, alias, &host);
    rig.sync(0);
    rig.sync(1);
    // The same bytes under two addresses, used by two streams in no order.
    let findings = rig.machine.findings();
    assert!(findings.iter().any(|finding| finding.kind.is_race()), "{findings:?}");
}

#[test]
fn descriptors_of_something_else_are_refused() {
    let rig = Rig::seeded(0, 1);
    let refused = |descriptor: std::os::fd::BorrowedFd<'_>, bytes| {
        let error = rig.device.import_pages(descriptor, bytes).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Invalid { .. })), "{error}");
    };
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    refused(file.as_fd(), PAGE_BYTES);
    let (reader, _writer) = io::pipe().unwrap();
    refused(reader.as_fd(), PAGE_BYTES);
    let pages = rig.device.create_pages(PageRequest { bytes: PAGE_BYTES, exportable: true }).unwrap();
    let descriptor = rig.device.export_pages(pages).unwrap();
    refused(descriptor.as_fd(), 2 * PAGE_BYTES);
    refused(descriptor.as_fd(), PAGE_BYTES + 1);
    refused(descriptor.as_fd(), 0);
    let plain = rig.device.create_pages(PageRequest { bytes: PAGE_BYTES, exportable: false }).unwrap();
    assert!(rig.device.export_pages(plain).unwrap_err().is_refused());
    rig.device.import_pages(descriptor.as_fd(), PAGE_BYTES).unwrap();
}
