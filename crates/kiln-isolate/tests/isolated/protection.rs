//! Pages that may only be read, wherever they are mapped and whichever worker there is.

use kiln_driver::{
    DevicePlace, Driver, DriverExt, Function, Image, PageRequest, Protection, Reservation, ReserveRequest,
    Result, StreamId, StreamRequest,
};
use kiln_isolate::IsolatedDevice;

use crate::rig;

/// Two pages side by side, and the first of them a second time behind them.
struct Window {
    device: std::sync::Arc<IsolatedDevice>,
    range: Reservation,
    granule: u64,
    stream: StreamId,
    store: Function,
}

impl Window {
    fn open(standby: bool) -> Self {
        let device = IsolatedDevice::open(rig::config().standby(standby)).unwrap();
        let granule = device.info().limits.page_granularity_bytes;
        let range = device.reserve(ReserveRequest { bytes: 4 * granule, at: None }).unwrap();
        let [first, second] =
            [0, 1].map(|_| device.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap());
        device.map(range.id, 0, &[first, second], Protection::ReadWrite).unwrap();
        device.map(range.id, 2 * granule, &[first], Protection::ReadWrite).unwrap();
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let module = device.load(&Image::HostKernels("test")).unwrap();
        let store = device.function(module, "store").unwrap();
        Self { device, range, granule, stream, store }
    }

    /// Has a kernel write a word at the start of a place.
    fn write(&self, place: u64, word: u32) -> Result<()> {
        let mut arguments = (self.range.address.0 + place * self.granule).to_le_bytes().to_vec();
        arguments.extend(word.to_le_bytes());
        self.device.submit(self.stream, &rig::launch(&self.store, &arguments))?;
        self.device.synchronize(self.stream)
    }

    fn read(&self, place: u64) -> u32 {
        let host = self.device.allocate_host(4).unwrap();
        let from = DevicePlace::from(self.range.id).plus(place * self.granule);
        self.device.download(self.stream, from, &host, 4).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let mut bytes = [0; 4];
        assert!(host.read(0, &mut bytes));
        self.device.destroy(host.id().into()).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn protect(&self, places: std::ops::Range<u64>, protection: Protection) -> Result<()> {
        let (offset, bytes) = (places.start * self.granule, (places.end - places.start) * self.granule);
        self.device.protect_pages(self.range.id, offset, bytes, protection)
    }
}

#[test]
fn pages_are_protected_at_every_address_and_in_every_worker() {
    for standby in [false, true] {
        let window = Window::open(standby);
        window.write(0, 5).unwrap();
        window.write(1, 6).unwrap();
        // Named by its second address, the page is protected at its first, too, and its neighbour is not.
        window.protect(2..3, Protection::Read).unwrap();
        for place in [0, 2] {
            assert!(window.write(place, 7).unwrap_err().is_sticky());
            rig::recover(&window.device);
            assert_eq!([0, 1, 2].map(|place| window.read(place)), [5, 6, 5], "standby {standby}");
            window.write(1, 6).unwrap();
        }
        window.protect(0..2, Protection::ReadWrite).unwrap();
        window.write(2, 8).unwrap();
        assert_eq!([0, 1, 2].map(|place| window.read(place)), [8, 6, 8]);
        assert_eq!(window.device.generation(), 3);
    }
}

#[test]
fn what_is_no_whole_mapping_is_refused() {
    let window = Window::open(false);
    let (granule, range) = (window.granule, window.range.id);
    let stretches = [
        (0, 0),
        (0, granule / 2),
        (granule / 2, granule),
        (0, granule + 1),
        (3 * granule, granule),
        (2 * granule, 2 * granule),
        (u64::MAX - granule + 1, granule),
        (u64::MAX, u64::MAX),
    ];
    for (offset, bytes) in stretches {
        for protection in [Protection::Read, Protection::ReadWrite] {
            let error = window.device.protect_pages(range, offset, bytes, protection).unwrap_err();
            assert!(error.is_refused(), "{bytes} at {offset}: {error}");
        }
    }
    window.write(0, 1).unwrap();
    window.write(1, 1).unwrap();
}

#[test]
fn memory_can_be_opened_while_no_worker_is_there_and_not_be_closed() {
    let window = Window::open(false);
    window.write(0, 5).unwrap();
    window.protect(0..1, Protection::Read).unwrap();
    window.device.kill_worker();
    assert!(window.protect(1..2, Protection::Read).unwrap_err().is_sticky());
    window.protect(0..1, Protection::ReadWrite).unwrap();
    rig::recover(&window.device);
    for place in 0..3 {
        window.write(place, 9).unwrap();
    }
    assert_eq!([0, 1, 2].map(|place| window.read(place)), [9; 3]);
    assert_eq!(window.device.generation(), 2);
}
