//! Pages: addresses, mapping and unmapping, protection, and what is refused.

use kiln_driver::{
    Command, DeviceAddress, DevicePlace, Driver, DriverExt, PageRequest, PagesId, Place, Protection, Refusal,
    ReserveRequest,
};
use kiln_sim::{DeviceConfig, Machine};

use crate::rig::{Kernel, Rig, bytes_of, config};

const PAGE: u64 = 2 << 20;

fn pages(rig: &Rig, bytes: u64) -> PagesId {
    rig.device.create_pages(PageRequest { bytes, exportable: false }).unwrap()
}

#[test]
fn a_copy_and_a_kernel_reach_over_mappings_side_by_side() {
    let rig = Rig::seeded(0, 1);
    let reservation = rig.device.reserve(ReserveRequest { bytes: 4 * PAGE, at: None }).unwrap();
    let (one, two) = (pages(&rig, PAGE), pages(&rig, 2 * PAGE));
    rig.device.map(reservation.id, PAGE, &[one, two], Protection::ReadWrite).unwrap();
    let seam = DevicePlace::from(reservation.id).plus(2 * PAGE - 8);
    rig.device.fill(rig.streams[0], seam, 5, 16).unwrap();
    rig.launch(0, Kernel::Bump, &[reservation.address.0 + 2 * PAGE - 8, 16]).unwrap();
    let host = rig.host(16);
    rig.download(0, seam, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host), [6; 16]);

    let outside = DevicePlace::from(reservation.id).plus(PAGE - 8);
    let error = rig.device.fill(rig.streams[0], outside, 5, 16).unwrap_err();
    assert!(error.is_refused(), "nothing is mapped in the first page: {error}");

    // Pages live on while they are mapped, and keep their bytes when they are mapped elsewhere.
    rig.device.unmap(reservation.id, PAGE, 3 * PAGE).unwrap();
    rig.device.map(reservation.id, 0, &[two, one], Protection::ReadWrite).unwrap();
    rig.device.destroy(one.into()).unwrap();
    rig.device.destroy(two.into()).unwrap();
    rig.download(0, reservation.id, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host)[..8], [6; 8]);
    assert!(matches!(
        rig.device.destroy(reservation.id.into()).unwrap_err().refusal(),
        Some(Refusal::Busy { .. })
    ));
    rig.device.unmap(reservation.id, 0, 3 * PAGE).unwrap();
    rig.device.destroy(reservation.id.into()).unwrap();
    let machine = rig.machine.clone();
    rig.close();
    let kinds: Vec<_> = machine.finish().findings.into_iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [kiln_sim::FindingKind::Uninitialised], "half of the last download was never written");
}

#[test]
fn pages_are_accounted_until_they_are_neither_named_nor_mapped() {
    let machine = Machine::new(config(0).device(DeviceConfig::with_memory(8 * PAGE)));
    let rig = Rig::new(&machine, 1);
    let free = || rig.device.memory_info().unwrap().free_bytes;
    let before = free();
    let reservation = rig.device.reserve(ReserveRequest { bytes: 64 * PAGE, at: None }).unwrap();
    assert_eq!(free(), before, "addresses cost nothing");
    let some = pages(&rig, 4 * PAGE);
    rig.device.map(reservation.id, 0, &[some], Protection::ReadWrite).unwrap();
    rig.device.destroy(some.into()).unwrap();
    assert_eq!(free(), before - 4 * PAGE);
    let request = PageRequest { bytes: 8 * PAGE, exportable: false };
    assert!(rig.device.create_pages(request).unwrap_err().is_oom());
    rig.device.unmap(reservation.id, 0, 4 * PAGE).unwrap();
    assert_eq!(free(), before);
    rig.device.destroy(reservation.id.into()).unwrap();
    rig.close();
    assert!(machine.finish().is_clean());
}

#[test]
fn addresses_are_given_once_and_where_they_were_asked_for() {
    let rig = Rig::seeded(0, 1);
    let at = Some(DeviceAddress(0x6000_0000_0000));
    let request = ReserveRequest { bytes: 1 << 40, at };
    let fixed = rig.device.reserve(request).unwrap();
    assert_eq!(fixed.address, DeviceAddress(0x6000_0000_0000));
    assert!(rig.device.reserve(request).unwrap_err().is_refused());
    let inside = Some(DeviceAddress(0x6000_0000_0000 + 16 * PAGE));
    assert!(rig.device.reserve(ReserveRequest { bytes: PAGE, at: inside }).unwrap_err().is_refused());
    let odd = Some(DeviceAddress(0x6100_0000_0001));
    assert!(rig.device.reserve(ReserveRequest { bytes: PAGE, at: odd }).unwrap_err().is_refused());
    let top = Some(DeviceAddress(u64::MAX - PAGE + 1));
    assert!(rig.device.reserve(ReserveRequest { bytes: PAGE, at: top }).unwrap_err().is_refused());
    rig.device.destroy(fixed.id.into()).unwrap();
    let again = rig.device.reserve(request).unwrap();
    let anywhere = rig.device.reserve(ReserveRequest { bytes: PAGE, at: None }).unwrap();
    assert!(anywhere.address < again.address || anywhere.address.0 >= again.address.0 + again.bytes);
    rig.device.destroy(again.id.into()).unwrap();
    rig.device.destroy(anywhere.id.into()).unwrap();
    for bytes in [0, 1, PAGE + 1, u64::MAX, 1 << 63] {
        assert!(rig.device.reserve(ReserveRequest { bytes, at: None }).unwrap_err().is_refused(), "{bytes}");
    }
    rig.close();
}

#[test]
fn mappings_are_taken_whole_and_never_twice() {
    let rig = Rig::seeded(0, 1);
    let reservation = rig.device.reserve(ReserveRequest { bytes: 4 * PAGE, at: None }).unwrap();
    let some = pages(&rig, 2 * PAGE);
    let map = |offset| rig.device.map(reservation.id, offset, &[some], Protection::ReadWrite);
    assert!(map(3 * PAGE).unwrap_err().is_refused(), "it does not fit");
    assert!(map(1).unwrap_err().is_refused(), "between pages");
    assert!(rig.device.map(reservation.id, 0, &[], Protection::ReadWrite).unwrap_err().is_refused());
    map(0).unwrap();
    assert!(map(PAGE).unwrap_err().is_refused(), "something is mapped there");
    assert!(rig.device.map(reservation.id, 2 * PAGE, &[some, some], Protection::Read).is_err());
    assert!(rig.device.unmap(reservation.id, 0, PAGE).unwrap_err().is_refused(), "it cuts a mapping");
    assert!(rig.device.unmap(reservation.id, 2 * PAGE, PAGE).unwrap_err().is_refused(), "there is none");
    assert!(rig.device.protect(reservation.id, 0, 3 * PAGE, Protection::Read).unwrap_err().is_refused());
    assert!(rig.device.protect(reservation.id, PAGE, PAGE, Protection::Read).unwrap_err().is_refused());
    rig.device.protect(reservation.id, 0, 2 * PAGE, Protection::Read).unwrap();
    rig.device.unmap(reservation.id, 0, 2 * PAGE).unwrap();
    rig.device.destroy(some.into()).unwrap();
    rig.device.destroy(reservation.id.into()).unwrap();
    rig.close();
}

#[test]
fn a_queued_copy_into_pages_that_were_remapped_is_found() {
    let rig = Rig::seeded(0, 1);
    let reservation = rig.device.reserve(ReserveRequest { bytes: PAGE, at: None }).unwrap();
    let (one, two, host) = (pages(&rig, PAGE), pages(&rig, PAGE), rig.host(64));
    rig.device.map(reservation.id, 0, &[one], Protection::ReadWrite).unwrap();
    let from = Place::Host { block: host.id(), offset: 0 };
    let to = Place::Device(reservation.id.into());
    rig.device.submit(rig.streams[0], &Command::Copy { from, to, bytes: 64 }).unwrap();
    rig.device.unmap(reservation.id, 0, PAGE).unwrap();
    rig.device.map(reservation.id, 0, &[two], Protection::ReadWrite).unwrap();
    rig.sync(0);
    let findings = rig.machine.findings();
    assert_eq!(findings[0].kind, kiln_sim::FindingKind::UseBeforeAllocation, "{findings:?}");
}

#[test]
fn a_device_without_pages_says_so() {
    let machine = Machine::new(config(0).device(DeviceConfig::small()));
    let device = machine.device(0).unwrap();
    assert!(device.reserve(ReserveRequest { bytes: PAGE, at: None }).unwrap_err().is_unsupported());
    let request = PageRequest { bytes: PAGE, exportable: false };
    assert!(device.create_pages(request).unwrap_err().is_unsupported());
}
