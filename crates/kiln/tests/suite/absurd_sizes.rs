//! Sizes that no device has memory for: refused with the size and what to do, and without a panic.

use std::sync::Arc;

use kiln::{DeviceRuntime, Result, RuntimeConfig};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Layered};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

/// More elements than the device has bytes, from one more than a word of 31 bits on.
const SIZES: [usize; 7] =
    [1 << 31, 1 << 32, 1 << 48, usize::MAX / 16, usize::MAX / 2, usize::MAX - 1, usize::MAX];

/// Memory of the device.
const DEVICE_BYTES: u64 = 1 << 30;

type Request = fn(&DeviceRuntime, usize) -> Result<()>;

/// Requests, and how many bytes an element has.
const REQUESTS: [(&str, u128, Request); 8] = [
    ("allocate u8", 1, |gpu, len| gpu.allocate::<u8>(len).map(drop)),
    ("allocate u64", 8, |gpu, len| gpu.allocate::<u64>(len).map(drop)),
    ("allocate pairs", 16, |gpu, len| gpu.allocate::<[f64; 2]>(len).map(drop)),
    ("allocate_on", 4, |gpu, len| gpu.allocate_on::<u32>(&gpu.stream()?, len).map(drop)),
    ("zeros", 4, |gpu, len| gpu.zeros::<f32>(len).map(drop)),
    ("graph.scratch", 2, |gpu, len| gpu.graph().scratch::<u16>(len).map(drop)),
    ("view", 1, |gpu, len| gpu.allocate::<u8>(4)?.view(..len).map(drop)),
    ("view from", 1, |gpu, len| gpu.allocate::<u8>(4)?.view(len..=len).map(drop)),
];

#[test]
fn absurd_sizes_are_refused_with_the_size_and_what_to_do() {
    let machine = Machine::new(MachineConfig::seeded(1).device(DeviceConfig::with_memory(DEVICE_BYTES)));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let kept = gpu.bytes_outstanding();
    let mut wrong = Vec::new();
    for (name, element_bytes, request) in REQUESTS {
        for len in SIZES {
            let before = driver.layer().counts();
            let Err(error) = request(&gpu, len) else {
                wrong.push(format!("{name} of {len} was taken"));
                continue;
            };
            let text = error.to_string();
            let sizes = [len as u128, len as u128 * element_bytes];
            if !sizes.iter().any(|size| text.contains(&size.to_string())) || !text.contains("; ") {
                wrong.push(format!("{name} of {len}: {text}"));
            }
            let queued = driver.layer().counts().since(&before).of(CallKind::Submit);
            if queued > 0 {
                wrong.push(format!("{name} of {len} queued {queued} commands"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), kept);
}

/// Pinned memory is the host's: only sizes beyond its addresses are asked for.
#[test]
fn absurd_sizes_of_pinned_memory_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    for len in SIZES.into_iter().skip(3) {
        for error in [gpu.pinned::<u64>(len).unwrap_err(), gpu.pinned_uninit::<u8>(len).unwrap_err()] {
            let text = error.to_string();
            let sizes = [len as u128, len as u128 * 8];
            assert!(sizes.iter().any(|size| text.contains(&size.to_string())), "{len}: {text}");
        }
    }
}
