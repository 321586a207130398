//! Draws that cannot be: refused before anything is queued, with what to do.

use std::time::Duration;

use kiln::DeviceRuntime;
use kiln_libs::LibraryError;
use kiln_libs::rand::{Bernoulli, Bits, Distribution, Integers, LogNormal, Normal, Sampler};

fn refused<T: kiln::buffer::Element>(gpu: &DeviceRuntime, distribution: impl Distribution<T>) -> String {
    let buffer = gpu.allocate::<T>(4).unwrap();
    let error = Sampler::new(gpu).draw(1).fill(&buffer, distribution).unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    error.to_string()
}

#[test]
fn parameters_without_a_meaning_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    for (mean, deviation) in [(f32::NAN, 1.0), (0.0, -1.0), (f32::INFINITY, 1.0), (0.0, f32::NAN)] {
        let text = refused(&gpu, Normal { mean, deviation });
        assert!(text.starts_with("rand.normal: ") && text.contains("finite numbers"), "{text}");
        let text = refused(&gpu, LogNormal { mean, deviation });
        assert!(text.starts_with("rand.log_normal: "), "{text}");
    }
    for probability in [-0.1, 1.1, f64::NAN] {
        let text = refused(&gpu, Bernoulli { probability });
        assert!(text.contains("from 0 to 1"), "{text}");
    }
    let text = refused(&gpu, Integers { first: 3_i64, last: 2 });
    assert_eq!(text, "rand.integers: a range from 3 to 2; give the smaller one first");
    gpu.synchronize().unwrap();
}

#[test]
fn an_offset_whose_draw_ends_behind_the_sequence_is_refused() {
    let gpu = DeviceRuntime::simulated(2).unwrap();
    let (random, buffer) = (Sampler::new(&gpu), gpu.zeros::<u32>(4).unwrap());
    random.draw(1).offset(u64::MAX - 4).fill(&buffer, Bits).unwrap().wait().unwrap();
    let error = random.draw(1).offset(u64::MAX - 3).fill(&buffer, Bits).unwrap_err();
    assert!(error.to_string().contains("passes 2^64"), "{error}");
}

#[test]
fn another_devices_buffer_and_a_device_that_is_shut_down_are_told() {
    let (gpu, other) = (DeviceRuntime::simulated(3).unwrap(), DeviceRuntime::simulated(4).unwrap());
    let (random, foreign) = (Sampler::new(&gpu), other.zeros::<u32>(4).unwrap());
    assert!(random.draw(1).fill(&foreign, Bits).unwrap_err().runtime().is_some());
    let buffer = gpu.zeros::<u32>(4).unwrap();
    assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
    assert!(random.draw(1).fill(&buffer, Bits).unwrap_err().runtime().is_some());
}
