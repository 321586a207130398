//! Memory summed on the device, against the same bytes summed on the host.

use std::io::Write;
use std::sync::Arc;

use kiln_driver::{
    DeviceAddress, DeviceMemory, DevicePlace, Driver, DriverExt, MemoryRequest, StreamId, StreamRequest,
};
use kiln_isolate::{Checksum, ChecksumRequest};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

/// A device with memory to sum and room for the sums.
struct Bench {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    memory: DeviceMemory,
    sums: DeviceMemory,
    checksum: Checksum,
}

impl Bench {
    fn new(driver: Arc<dyn Driver>, bytes: u64) -> Self {
        let allocate = |bytes| driver.allocate(MemoryRequest::Direct { bytes }).unwrap();
        let (memory, sums) = (allocate(bytes), allocate(64));
        let stream = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let checksum = Checksum::load(&*driver).unwrap();
        Self { stream, memory, sums, checksum, driver }
    }

    fn upload(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let host = self.driver.allocate_host(bytes.len() as u64).unwrap();
        assert!(host.write(0, bytes));
        self.driver.upload(self.stream, &host, self.memory.id.into(), bytes.len() as u64).unwrap();
        self.driver.synchronize(self.stream).unwrap();
    }

    fn summed(&self, offset: u64, bytes: u64) -> ChecksumRequest {
        assert!(offset + bytes <= self.memory.bytes && Checksum::chunks(bytes) * 8 <= self.sums.bytes);
        let address = DeviceAddress(self.memory.address.0 + offset);
        let sums = DevicePlace::from(self.sums.id);
        ChecksumRequest { address, bytes, sums, sums_address: self.sums.address }
    }

    fn sums(&self, offset: u64, bytes: u64) -> Vec<u64> {
        let summed = self.summed(offset, bytes);
        // What was there before does not count.
        self.driver.fill(self.stream, summed.sums, 0xA5, self.sums.bytes).unwrap();
        // SAFETY: `summed` checked that both are inside of their blocks, and nothing else runs.
        unsafe { self.checksum.submit(&*self.driver, self.stream, &summed) }.unwrap();
        let host = self.driver.allocate_host(self.sums.bytes).unwrap();
        self.driver.download(self.stream, summed.sums, &host, self.sums.bytes).unwrap();
        self.driver.synchronize(self.stream).unwrap();
        let mut words = [0; 64];
        assert!(host.read(0, &mut words));
        let words = words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        words.take(Checksum::chunks(bytes) as usize).collect()
    }
}

fn simulated() -> Arc<dyn Driver> {
    let config = MachineConfig::seeded(11).engine(Arc::new(PtxEngine::default()));
    Machine::new(config).device(0).unwrap()
}

/// Bytes without a pattern.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_9ABC_DEF0_u64;
    let step = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

#[test]
fn the_device_sums_as_the_host_does() {
    check_sums(simulated());
}

/// Where there is one; `KILN_REQUIRE_GPU=1` makes its absence a failure.
#[test]
fn a_gpu_sums_as_the_host_does() {
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    match kiln_cuda::CudaDevice::open(0) {
        Ok(device) => check_sums(device),
        Err(reason) if required || !reason.is_absence() => panic!("{reason}"),
        Err(reason) => {
            if let Some(path) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) {
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                writeln!(file, "kiln-isolate checksum on CUDA: {reason}").unwrap();
            }
        }
    }
}

fn check_sums(driver: Arc<dyn Driver>) {
    const PART: u64 = Checksum::CHUNK_BYTES / 8;
    let most = Checksum::CHUNK_BYTES + PART + 19;
    let bench = Bench::new(driver, most);
    let bytes = noise(most as usize);
    bench.upload(&bytes);
    for length in [0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 4096, 16_400, PART - 1, PART, PART + 12, most] {
        let expected = Checksum::of(&bytes[..length as usize]);
        assert_eq!(bench.sums(0, length), expected, "{length} bytes");
    }
    // A sum does not depend on where the memory lies.
    assert_eq!(bench.sums(64, 5000), Checksum::of(&bytes[64..5064]));
    bench.checksum.unload(&*bench.driver).unwrap();
}

#[test]
fn what_differs_has_another_sum() {
    let bytes = noise(333);
    let sum = Checksum::of(&bytes);
    let zeros = Checksum::of(&[0; 333]);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            assert_ne!(Checksum::of(&other), sum, "bit {bit} of byte {at}");
            let mut other = [0; 333];
            other[at] = 1 << bit;
            assert_ne!(Checksum::of(&other), zeros, "bit {bit} of byte {at} of zeros");
        }
    }
    // Changes that a plain sum or an exclusive or would not see: words in other places, and signs of two numbers.
    let mut swapped = bytes.clone();
    swapped[..16].rotate_left(8);
    assert_ne!(Checksum::of(&swapped), sum);
    for (first, second) in [(7, 15), (7, 327), (39, 47)] {
        let mut other = bytes.clone();
        other[first] ^= 0x80;
        other[second] ^= 0x80;
        assert_ne!(Checksum::of(&other), sum);
    }
}

#[test]
fn what_cannot_be_summed_is_refused() {
    let bench = Bench::new(simulated(), 4096);
    let good = bench.summed(0, 4096);
    let crooked = ChecksumRequest { address: DeviceAddress(good.address.0 + 8), bytes: 8, ..good };
    let crooked_sums = ChecksumRequest { sums_address: DeviceAddress(good.sums_address.0 + 4), ..good };
    let endless = ChecksumRequest { bytes: 1 << 60, ..good };
    for wrong in [crooked, crooked_sums, endless] {
        // SAFETY: nothing is launched; each of them is refused before.
        let error = unsafe { bench.checksum.submit(&*bench.driver, bench.stream, &wrong) }.unwrap_err();
        assert!(error.is_refused(), "{error}");
    }
}
