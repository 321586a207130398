//! cudarc and kiln on one device: needs a GPU, and is counted as skipped where there is none.

#![cfg(feature = "cudarc")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::sync::Arc;

use kiln::foreign::cudarc::{self, CudaContext, CudaStream};
use kiln::probe::TestGate;
use kiln::{DeviceRuntime, Stream};
use kiln_driver::{Access, DeviceKind};

const LEN: usize = 1 << 16;

/// A stream of cudarc's on the same device, under both names; none without a GPU.
fn scene(test: &str) -> Option<(&'static DeviceRuntime, Arc<CudaStream>, Stream)> {
    match kiln::probe::gpu_for_test(test).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind == DeviceKind::Cuda => {
            // cudarc's loader panics without a driver; the gate has seen that there is one.
            let theirs = CudaContext::new(gpu.ordinal() as usize).unwrap().new_stream().unwrap();
            let ours = cudarc::import_stream(gpu, &theirs).unwrap();
            Some((gpu, theirs, ours))
        }
        _ => None,
    }
}

#[test]
fn a_slice_is_a_buffer_until_its_last_use() {
    let Some((gpu, theirs, home)) = scene("cudarc: a slice is a buffer") else { return };
    for round in 0..50_u32 {
        let slice = theirs.clone_htod(&vec![round; LEN]).unwrap();
        let buffer = cudarc::adopt_slice(gpu, &home, slice).unwrap();
        let copy = gpu.allocate::<u32>(LEN).unwrap();
        copy.copy_from_on(&gpu.stream().unwrap(), &buffer).unwrap();
        drop(buffer);
        assert_eq!(copy.download().unwrap(), vec![round; LEN]);
    }
}

#[test]
fn a_buffer_is_a_slice_while_it_is_lent() {
    let Some((gpu, theirs, stream)) = scene("cudarc: a buffer is a slice") else { return };
    let buffer = gpu.upload(&vec![5_u32; LEN]).unwrap();
    for round in 0..50_u32 {
        let mut lent = cudarc::lend_slice(gpu, &stream, &theirs, &buffer, Access::ReadWrite).unwrap();
        theirs.memcpy_htod(&vec![round; LEN], &mut *lent).unwrap();
        drop(lent);
        assert_eq!(buffer.download().unwrap(), vec![round; LEN]);
    }
}

#[test]
fn events_go_both_ways() {
    let Some((gpu, theirs, stream)) = scene("cudarc: events") else { return };
    let other = theirs.context().new_stream().unwrap();
    let buffer = gpu.upload(&vec![1_u32; LEN]).unwrap();
    let ready = buffer.fill(2).unwrap().handed_event().unwrap();
    cudarc::wait_for(&other, &ready).unwrap();
    let done = Arc::new(other.record_event(None).unwrap());
    let done = cudarc::import_event(gpu, &done).unwrap();
    gpu.record_foreign_use(&stream, &[buffer.used_as(Access::Write)], &done).unwrap();
    assert_eq!(buffer.download().unwrap(), vec![2; LEN]);
    let elsewhere = gpu.stream().unwrap();
    assert!(cudarc::lend_slice(gpu, &elsewhere, &theirs, &buffer, Access::Read).is_err());
}
