//! Choosing the algorithm of a product by measuring.

use std::path::Path;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::memory::MemoryConfig;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::Code;
use kiln_libs::blas::{Blas, MatmulTuning, Matrix};
use kiln_sim::{FaultPlan, Machine, MachineConfig, PlannedFault};

use crate::numbers::made_up;
use crate::rig::{everywhere_and_in_workers, is_simulated};

const SIZES: [usize; 3] = [32, 48, 64];

/// Tunes a product whose result holds something, and computes it. Gives what was chosen, and the largest difference from the right result.
fn tuned(gpu: &DeviceRuntime, beta: Option<f64>) -> (MatmulTuning, f64) {
    let [m, n, k] = SIZES;
    let (a, b) = (made_up::<f32>(1, m * k), made_up::<f32>(2, k * n));
    let (x, y) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
    let c = gpu.upload(&vec![2.0_f32; m * n]).unwrap();
    let blas = Blas::new(gpu);
    let product = || {
        let product = blas.matmul(Matrix::new(&x, m, k), Matrix::new(&y, k, n), Matrix::new(&c, m, n));
        match beta {
            Some(beta) => product.beta(beta),
            None => product,
        }
    };
    let tuning = product().tune().unwrap();
    assert!(c.download().unwrap().iter().all(|value| *value == 2.0), "tuning does not write the result");
    product().submit().unwrap();
    let found = c.download().unwrap();
    let difference = (0..m * n).map(|at| {
        let (row, column) = (at / n, at % n);
        let term = |i: usize| f64::from(a[row * k + i]) * f64::from(b[i * n + column]);
        let right = (0..k).map(term).sum::<f64>() + 2.0 * beta.unwrap_or(0.0);
        (f64::from(found[at]) - right).abs()
    });
    (tuning, difference.fold(0.0, f64::max))
}

#[test]
fn a_tuned_product_is_right_and_its_result_is_not_written_before() {
    everywhere_and_in_workers("a_tuned_product_is_right_and_its_result_is_not_written_before", |gpu| {
        for beta in [None, Some(0.5)] {
            let (tuning, difference) = tuned(gpu, beta);
            assert!(difference < 1e-3, "{difference}");
            assert!(tuning.time <= tuning.default_time);
        }
    });
}

fn with_folder(folder: &Path) -> DeviceRuntime {
    let cache = CacheConfig { place: CachePlace::At(folder.into()), ..CacheConfig::default() };
    DeviceRuntime::open(&DeviceSpec::simulated(3), RuntimeConfig { cache, ..RuntimeConfig::default() })
        .unwrap()
}

#[test]
fn a_choice_is_kept_on_disk_until_it_is_damaged() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("matmul-tuning-{}", std::process::id()));
    let first = tuned(&with_folder(&folder), None).0;
    assert_eq!(first.measured, 2, "the simulated device proposes two");
    let gpu = with_folder(&folder);
    let again = tuned(&gpu, None).0;
    assert_eq!((again.measured, again.algorithm, again.time), (0, first.algorithm, first.time));
    assert_eq!(tuned(&gpu, Some(0.5)).0.measured, 2, "another operation");
    let entries = gpu.disk_cache().list().unwrap();
    assert_eq!(entries.len(), 2);
    assert!(
        entries.iter().all(|entry| entry.kernels[0].starts_with("blas.matmul m=48 n=32 k=64")),
        "{entries:?}"
    );

    // A file that was cut is measured again.
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        std::fs::write(entry.path(), &bytes[..bytes.len() - 1]).unwrap();
    }
    assert_eq!(tuned(&with_folder(&folder), None).0.measured, 2);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn with_limit(mebibytes: u64) -> DeviceRuntime {
    let memory = MemoryConfig { limit_bytes: Some(mebibytes << 20), ..MemoryConfig::default() };
    let cache = CacheConfig { place: CachePlace::Off, ..CacheConfig::default() };
    let config = RuntimeConfig { memory, cache, ..RuntimeConfig::default() };
    DeviceRuntime::open(&DeviceSpec::simulated(3), config).unwrap()
}

#[test]
fn missing_memory_is_told_with_call_and_next_step() {
    let gpu = with_limit(8);
    let (blas, a) = (Blas::new(&gpu), gpu.zeros::<f32>(1 << 10).unwrap());
    let c = gpu.zeros::<f32>(1 << 20).unwrap();
    let product = || {
        blas.matmul(
            Matrix::new(&a, 1 << 10, 1),
            Matrix::new(&a, 1, 1 << 10),
            Matrix::new(&c, 1 << 10, 1 << 10),
        )
    };
    let error = product().tune().unwrap_err();
    let text = error.to_string();
    assert!(error.runtime().is_some_and(kiln::Error::is_oom), "{text}");
    let wanted = "blas.matmul: `tune` found no memory for a second result or for workspace; free some, or tune before other memory is allocated: ";
    assert!(text.starts_with(wanted), "{text}");
    // The algorithm stays as it was.
    product().submit().unwrap().wait().unwrap();
}

/// A matrix at the start of a buffer that is much longer.
#[test]
fn a_second_result_is_as_long_as_the_matrix_and_not_as_the_buffer() {
    let gpu = with_limit(8);
    let (blas, a) = (Blas::new(&gpu), gpu.upload(&[1.0_f32; 64]).unwrap());
    let c = gpu.zeros::<f32>(1 << 20).unwrap();
    for (rows, batch, leading, stride) in [(8, 1, 8, 64), (8, 1, 100, 800), (2, 4, 8, 1000)] {
        let input = |rows| Matrix::new(&a, rows, 8).batch(batch).stride(0);
        let c = Matrix::new(&c, rows, 8).leading(leading).batch(batch).stride(stride);
        let tuned = blas.matmul(input(rows), input(8), c).tune().unwrap();
        assert_eq!(tuned.measured, 2);
    }
}

#[test]
fn a_device_that_is_lost_meanwhile_is_told_with_call_and_next_step() {
    for launch in [1, 5, 12] {
        let fault = PlannedFault::Sticky { launch, code: Code::ILLEGAL_ADDRESS };
        let machine = Machine::new(MachineConfig::seeded(1).faults(FaultPlan::none().on(0, fault)));
        let cache = CacheConfig { place: CachePlace::Off, ..CacheConfig::default() };
        let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let (blas, a) = (Blas::new(&gpu), gpu.upload(&[1.0_f32; 64]).unwrap());
        let c = gpu.zeros::<f32>(64).unwrap();
        let matrix = |buffer| Matrix::new(buffer, 8, 8);
        let error = blas.matmul(matrix(&a), matrix(&a), matrix(&c)).tune().unwrap_err();
        let text = error.to_string();
        assert!(error.runtime().is_some_and(kiln::Error::is_lost), "{text}");
        assert!(text.starts_with("blas.matmul: simulated device 0: the device takes no more work; open another runtime and upload the data to it; the fault was: "), "{text}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused_before_anything_is_measured() {
    everywhere_and_in_workers("shapes_that_do_not_fit_are_refused_before_anything_is_measured", |gpu| {
        let buffer = gpu.upload(&[1.0_f32; 64]).unwrap();
        let blas = Blas::new(gpu);
        let matrix = |rows, columns| Matrix::new(&buffer, rows, columns);
        let error = blas.matmul(matrix(8, 8), matrix(7, 8), matrix(8, 8)).tune().unwrap_err();
        assert!(error.to_string().contains("give m x k, k x n and m x n"), "{error}");
        if is_simulated(gpu) {
            let short = gpu.allocate::<f32>(8).unwrap();
            let error =
                blas.matmul(matrix(8, 8), matrix(8, 8), Matrix::new(&short, 8, 8)).tune().unwrap_err();
            assert!(error.to_string().contains("must have 256"), "{error}");
        }
    });
}
