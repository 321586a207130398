//! Reserved addresses, pages, mappings, and pages that travel.

use std::os::fd::AsFd;

use kiln_driver::{
    Command, DeviceAddress, DevicePlace, Driver, PageRequest, PagesId, Pattern, Protection, Refusal,
    Reservation, ReserveRequest,
};

use crate::machine::{Machine, calls};
use crate::opened::Bench;

const PAGE: u64 = 2 << 20;
const WRITE: Protection = Protection::ReadWrite;

fn pages(bench: &Bench, bytes: u64, exportable: bool) -> PagesId {
    bench.device.create_pages(PageRequest { bytes, exportable }).unwrap()
}

fn reserve(bench: &Bench, bytes: u64) -> Reservation {
    bench.device.reserve(ReserveRequest { bytes, at: None }).unwrap()
}

fn fill(bench: &Bench, to: DevicePlace, count: u64) -> kiln_driver::Result<()> {
    let fill = Command::Fill { to, pattern: Pattern::U8(9), count };
    bench.device.submit(bench.stream, &fill).map(|_| ())
}

on_machine! {
    fn mapped_pages_hold_bytes_and_one_call_opens_them_all() on Machine::fake() => {
        let bench = Bench::new();
        let range = reserve(&bench, 8 * PAGE);
        let parts = [pages(&bench, PAGE, false), pages(&bench, 2 * PAGE, false)];
        bench.device.map(range.id, PAGE, &parts, WRITE).unwrap();
        assert_eq!((calls("cuMemMap").len(), calls("cuMemSetAccess").len()), (2, 1));
        let place = DevicePlace::from(range.id).plus(2 * PAGE - 4);
        fill(&bench, place, 8).unwrap();
        assert_eq!(bench.read(place, 8), [9; 8]);
        bench.device.unmap(range.id, 0, 8 * PAGE).unwrap();
        assert_eq!(calls("cuMemUnmap").len(), 1);
        bench.device.destroy(range.id.into()).unwrap();
    }

    fn a_range_of_any_size_gets_the_address_it_asks_for_or_none() on Machine::fake() => {
        let bench = Bench::new();
        for (turn, bytes) in [PAGE, 5 * PAGE, 32 << 20, 1 << 30].into_iter().enumerate() {
            let at = DeviceAddress(0x6000_0000_0000 + ((turn as u64) << 31));
            let range = bench.device.reserve(ReserveRequest { bytes, at: Some(at) }).unwrap();
            assert_eq!(range.address, at);
            let again = bench.device.reserve(ReserveRequest { bytes, at: Some(at) }).unwrap_err();
            assert!(again.is_refused() && again.to_string().contains("is taken"), "{again}");
            bench.device.destroy(range.id.into()).unwrap();
        }
    }

    fn a_copy_to_addresses_with_nothing_behind_them_is_refused() on Machine::fake() => {
        let bench = Bench::new();
        let range = reserve(&bench, 4 * PAGE);
        let place = DevicePlace::from(range.id);
        assert!(fill(&bench, place, 1).unwrap_err().is_refused());
        bench.device.map(range.id, 0, &[pages(&bench, PAGE, false)], WRITE).unwrap();
        fill(&bench, place, PAGE).unwrap();
        assert!(fill(&bench, place, PAGE + 1).unwrap_err().is_refused());
        assert!(fill(&bench, place.plus(PAGE), 0).is_ok(), "nothing is written nowhere");
        let outside = fill(&bench, place.plus(4 * PAGE), 1).unwrap_err();
        assert!(matches!(outside.refusal(), Some(Refusal::OutOfRange { .. })));
        bench.device.unmap(range.id, 0, PAGE).unwrap();
        assert!(fill(&bench, place, 1).unwrap_err().is_refused());
    }

    fn what_does_not_fit_is_refused_and_nothing_is_mapped() on Machine::fake() => {
        let bench = Bench::new();
        let range = reserve(&bench, 4 * PAGE);
        let (one, two) = (pages(&bench, PAGE, false), pages(&bench, 2 * PAGE, false));
        bench.device.map(range.id, PAGE, &[one], WRITE).unwrap();
        let before = calls("cuMemMap").len();
        for (offset, parts) in
            [(0, &[two][..]), (PAGE, &[one]), (3 * PAGE, &[two]), (1, &[one]), (u64::MAX, &[one]), (0, &[])]
        {
            let error = bench.device.map(range.id, offset, parts, WRITE).unwrap_err();
            assert!(error.is_refused() && error.call() == "map", "{error}");
        }
        assert_eq!(calls("cuMemMap").len(), before);
        for (offset, bytes) in [(0, PAGE), (PAGE, 1), (2 * PAGE, PAGE), (0, 0), (PAGE, u64::MAX)] {
            assert!(bench.device.unmap(range.id, offset, bytes).unwrap_err().is_refused());
        }
        let busy = bench.device.destroy(range.id.into()).unwrap_err();
        assert!(matches!(busy.refusal(), Some(Refusal::Busy { .. })));
        bench.device.unmap(range.id, PAGE, PAGE).unwrap();
        bench.device.destroy(range.id.into()).unwrap();
    }

    fn a_map_that_fails_halfway_is_undone() on Machine::fake().plan("cuMemMap=2@2,cuMemSetAccess=999@1") => {
        let bench = Bench::new();
        let range = reserve(&bench, 4 * PAGE);
        let parts = [pages(&bench, PAGE, false), pages(&bench, PAGE, false)];
        assert!(bench.device.map(range.id, 0, &parts, WRITE).unwrap_err().is_oom());
        assert_eq!(calls("cuMemUnmap").len(), 1, "the first of the two");
        assert!(bench.device.map(range.id, 0, &parts, WRITE).unwrap_err().is_refused());
        assert_eq!(calls("cuMemUnmap").len(), 2, "both at once");
        bench.device.map(range.id, 0, &parts, WRITE).unwrap();
        fill(&bench, range.id.into(), 2 * PAGE).unwrap();
    }

    fn read_only_pages_refuse_what_would_lose_the_device() on Machine::fake() => {
        let bench = Bench::new();
        let range = reserve(&bench, 2 * PAGE);
        bench.device.map(range.id, 0, &[pages(&bench, PAGE, false)], WRITE).unwrap();
        fill(&bench, range.id.into(), 4).unwrap();
        bench.device.protect(range.id, 0, PAGE, Protection::Read).unwrap();
        assert!(fill(&bench, range.id.into(), 4).unwrap_err().is_refused());
        assert_eq!(bench.read(range.id, 4), [9; 4]);
        bench.device.protect(range.id, 0, PAGE, WRITE).unwrap();
        fill(&bench, range.id.into(), 4).unwrap();
        for (offset, bytes) in [(0, PAGE / 2), (0, 2 * PAGE), (PAGE, PAGE)] {
            assert!(bench.device.protect(range.id, offset, bytes, WRITE).unwrap_err().is_refused());
        }
    }

    fn a_driver_without_read_only_pages_says_so() on Machine::fake().plan("cuMemSetAccess=801@2") => {
        let bench = Bench::new();
        let range = reserve(&bench, PAGE);
        bench.device.map(range.id, 0, &[pages(&bench, PAGE, false)], WRITE).unwrap();
        let error = bench.device.protect(range.id, 0, PAGE, Protection::Read).unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        fill(&bench, range.id.into(), 4).unwrap();
    }

    fn sizes_that_are_no_pages_are_refused() on Machine::fake() => {
        let bench = Bench::new();
        for bytes in [0, 1, PAGE + 1, u64::MAX] {
            assert!(bench.device.reserve(ReserveRequest { bytes, at: None }).unwrap_err().is_refused());
            assert!(bench.device.create_pages(PageRequest { bytes, exportable: false }).unwrap_err().is_refused());
        }
        assert!(bench.device.create_pages(PageRequest { bytes: 1 << 63, exportable: false }).unwrap_err().is_oom());
        assert!(bench.device.reserve(ReserveRequest { bytes: 1 << 63, at: None }).unwrap_err().is_refused());
    }

    fn a_wanted_address_is_given_or_refused() on Machine::fake() => {
        let bench = Bench::new();
        let wanted = DeviceAddress(0x6000_0000_0000);
        let at = Some(wanted);
        let range = bench.device.reserve(ReserveRequest { bytes: PAGE, at }).unwrap();
        assert_eq!(range.address, wanted);
        let taken = bench.device.reserve(ReserveRequest { bytes: PAGE, at }).unwrap_err();
        assert!(taken.is_refused() && taken.to_string().contains("taken"), "{taken}");
        assert_eq!(calls("cuMemAddressFree").len(), 1, "the other address is given back");
        bench.device.destroy(range.id.into()).unwrap();
        assert_eq!(bench.device.reserve(ReserveRequest { bytes: PAGE, at }).unwrap().address, wanted);
    }

    fn exported_pages_come_back_with_their_bytes() on Machine::fake() => {
        let bench = Bench::new();
        let range = reserve(&bench, 8 * PAGE);
        let made = pages(&bench, 2 * PAGE, true);
        bench.device.map(range.id, 0, &[made], WRITE).unwrap();
        fill(&bench, range.id.into(), 2 * PAGE).unwrap();
        let descriptor = bench.device.export_pages(made).unwrap();
        bench.device.unmap(range.id, 0, 2 * PAGE).unwrap();
        bench.device.destroy(made.into()).unwrap();

        let again = bench.device.import_pages(descriptor.as_fd(), 2 * PAGE).unwrap();
        bench.device.map(range.id, 4 * PAGE, &[again], WRITE).unwrap();
        let place = DevicePlace::from(range.id).plus(4 * PAGE);
        assert_eq!(bench.read(place.plus(2 * PAGE - 4), 4), [9; 4]);

        for bytes in [PAGE, 3 * PAGE] {
            let error = bench.device.import_pages(descriptor.as_fd(), bytes).unwrap_err();
            assert!(error.is_refused() && error.call() == "import_pages", "{error}");
        }
        let pages_made = calls("cuMemCreate").len() + calls("cuMemImportFromShareableHandle").len();
        drop(bench);
        assert_eq!(calls("cuMemRelease").len(), pages_made, "refused imports are given back too");
        assert_eq!(calls("cuMemAddressReserve").len(), calls("cuMemAddressFree").len());
    }

    fn what_is_no_exported_memory_is_refused() on Machine::fake() => {
        let bench = Bench::new();
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(bench.device.import_pages(reader.as_fd(), PAGE).unwrap_err().is_refused());
        let made = pages(&bench, PAGE, false);
        assert!(bench.device.export_pages(made).unwrap_err().is_refused());
    }
}
