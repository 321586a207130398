//! What is wrong when a sparse matrix is made: the call is named, and the operand.

use std::time::Duration;

use kiln::memory::MemoryConfig;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_libs::blas::Blas;
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix};
use kiln_libs::{LibraryError, Result};

use crate::refusals_by_name::failing;

type Make = fn(&DeviceRuntime) -> Result<()>;

const DENSE: [f32; 4] = [1.0, 0.0, 2.0, 3.0];
const TRIPLETS: [(usize, usize, f32); 3] = [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 3.0)];

/// All constructors that use a device, with the operand that they allocate first.
const CONSTRUCTORS: [(&str, &str, Make); 12] = [
    ("sparse.CsrMatrix::upload", "offsets", |gpu| {
        CsrMatrix::<f32>::upload(gpu, (2, 2), &[0, 1, 3], &[0, 0, 1], &[1.0, 2.0, 3.0]).map(drop)
    }),
    ("sparse.CsrMatrix::from_dense", "offsets", |gpu| {
        CsrMatrix::<f32>::from_dense(gpu, (2, 2), &DENSE).map(drop)
    }),
    ("sparse.CsrMatrix::from_triplets", "offsets", |gpu| {
        CsrMatrix::<f32>::from_triplets(gpu, (2, 2), &TRIPLETS).map(drop)
    }),
    ("sparse.CsrMatrix::allocate", "offsets", |gpu| CsrMatrix::<f32>::allocate(gpu, (2, 2), 3).map(drop)),
    ("sparse.CscMatrix::upload", "offsets", |gpu| {
        CscMatrix::<f32>::upload(gpu, (2, 2), &[0, 2, 3], &[0, 1, 1], &[1.0, 2.0, 3.0]).map(drop)
    }),
    ("sparse.CscMatrix::from_dense", "offsets", |gpu| {
        CscMatrix::<f32>::from_dense(gpu, (2, 2), &DENSE).map(drop)
    }),
    ("sparse.CscMatrix::from_triplets", "offsets", |gpu| {
        CscMatrix::<f32>::from_triplets(gpu, (2, 2), &TRIPLETS).map(drop)
    }),
    ("sparse.CscMatrix::allocate", "offsets", |gpu| CscMatrix::<f32>::allocate(gpu, (2, 2), 3).map(drop)),
    ("sparse.CooMatrix::upload", "row_indices", |gpu| {
        CooMatrix::<f32>::upload(gpu, (2, 2), &[0, 1, 1], &[0, 0, 1], &[1.0, 2.0, 3.0]).map(drop)
    }),
    ("sparse.CooMatrix::from_dense", "row_indices", |gpu| {
        CooMatrix::<f32>::from_dense(gpu, (2, 2), &DENSE).map(drop)
    }),
    ("sparse.CooMatrix::from_triplets", "row_indices", |gpu| {
        CooMatrix::<f32>::from_triplets(gpu, (2, 2), &TRIPLETS).map(drop)
    }),
    ("sparse.CooMatrix::allocate", "row_indices", |gpu| CooMatrix::<f32>::allocate(gpu, (2, 2), 3).map(drop)),
];

#[test]
fn constructors_say_that_the_device_was_shut_down_or_is_lost() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
    let (_machine, lost) = failing();
    let one = lost.upload(&[1.0_f32]).unwrap();
    assert!(Blas::new(&lost).scal(1.0, &one).submit().unwrap().wait().is_err());
    for (call, _, make) in CONSTRUCTORS {
        let error = make(&gpu).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{call}: simulated device 0: the device is shutting down")),
            "{call}: {error}"
        );
        let error = make(&lost).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!(
                "{call}: simulated device 0: the device takes no more work; open another runtime"
            )),
            "{call}: {text}"
        );
        assert!(error.runtime().is_some_and(kiln::Error::is_lost), "{text}");
    }
}

#[test]
fn constructors_that_find_no_memory_name_the_call_and_the_operand() {
    let memory = MemoryConfig { limit_bytes: Some(4 << 20), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap();
    let (large, none): (usize, [(usize, usize, f32); 0]) = (1 << 26, []);
    let tall = (large, 1);
    let out_of_memory = |answer: Result<()>, call: &str, operand: &str| {
        let error = answer.unwrap_err();
        assert!(error.runtime().is_some_and(kiln::Error::is_oom), "{error}");
        assert!(error.to_string().contains(&format!("{call}: `{operand}`")), "{call}: {error}");
    };
    let made = CsrMatrix::<f32>::from_triplets(&gpu, tall, &none).map(drop);
    out_of_memory(made, "sparse.CsrMatrix::from_triplets", "offsets");
    let made = CscMatrix::<f32>::from_triplets(&gpu, (1, large), &none).map(drop);
    out_of_memory(made, "sparse.CscMatrix::from_triplets", "offsets");
    let made = CsrMatrix::<f32>::allocate(&gpu, tall, 0).map(drop);
    out_of_memory(made, "sparse.CsrMatrix::allocate", "offsets");
    let made = CsrMatrix::<f32>::allocate(&gpu, (1, 1), large).map(drop);
    out_of_memory(made, "sparse.CsrMatrix::allocate", "indices");
    let made = CscMatrix::<f32>::allocate(&gpu, (1, 1), large).map(drop);
    out_of_memory(made, "sparse.CscMatrix::allocate", "indices");
    let made = CooMatrix::<f32>::allocate(&gpu, (1, 1), large).map(drop);
    out_of_memory(made, "sparse.CooMatrix::allocate", "row_indices");
    let numbers = vec![1.0_f32; 2 << 20];
    let places = vec![0_i32; numbers.len()];
    let made = CooMatrix::upload(&gpu, (1, 1), &places, &places, &numbers).map(drop);
    out_of_memory(made, "sparse.CooMatrix::upload", "row_indices");
    let offsets = [0, numbers.len() as i32];
    let made = CsrMatrix::upload(&gpu, (1, 1), &offsets, &places, &numbers).map(drop);
    out_of_memory(made, "sparse.CsrMatrix::upload", "indices");
}

#[test]
fn constructors_that_do_not_fit_name_the_call() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let told = |answer: Result<()>, wanted: &str| {
        let error = answer.unwrap_err();
        assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
        assert!(error.to_string().starts_with(wanted), "{error}");
    };
    let large = 1_usize << 31;
    let three = [(0, 3, 1.0_f32)];
    let short = CsrMatrix::<f32>::from_dense(&gpu, (2, 2), &DENSE[1..]).map(drop);
    told(short, "sparse.CsrMatrix::from_dense: 3 elements for a matrix of 2 x 2");
    let outside = CsrMatrix::<f32>::from_triplets(&gpu, (2, 2), &three).map(drop);
    told(outside, "sparse.CsrMatrix::from_triplets: an element at row 0, column 3");
    let wide = CsrMatrix::<f32>::from_triplets(&gpu, (1, large), &[]).map(drop);
    told(wide, "sparse.CsrMatrix::from_triplets: 2147483648 columns with indices of type i32");
    let wide = CsrMatrix::<f32>::allocate(&gpu, (large, 1), 0).map(drop);
    told(wide, "sparse.CsrMatrix::allocate: 2147483648 rows with indices of type i32");
    let wide = CscMatrix::<f32>::from_dense(&gpu, (large, 0), &[]).map(drop);
    told(wide, "sparse.CscMatrix::from_dense: 2147483648 rows with indices of type i32");
    let outside = CscMatrix::<f32>::from_triplets(&gpu, (2, 2), &three).map(drop);
    told(outside, "sparse.CscMatrix::from_triplets: an element at row 0, column 3");
    let outside = CooMatrix::<f32>::from_triplets(&gpu, (2, 2), &three).map(drop);
    told(outside, "sparse.CooMatrix::from_triplets: an element at row 0, column 3");
    let wide = CooMatrix::<f32>::allocate(&gpu, (1, large), 1).map(drop);
    told(wide, "sparse.CooMatrix::allocate: 2147483648 columns with indices of type i32");
    let (offsets, values) = (gpu.zeros::<i32>(2).unwrap(), gpu.zeros::<f32>(1).unwrap());
    let made = CsrMatrix::from_buffers((2, 2), offsets.clone(), gpu.zeros(1).unwrap(), values.clone());
    told(made.map(drop), "sparse.CsrMatrix::from_buffers: 2 offsets for 2 rows");
    let made = CooMatrix::from_buffers((2, 2), offsets, gpu.zeros(1).unwrap(), values);
    told(made.map(drop), "sparse.CooMatrix::from_buffers: 2 row indices and 1 column indices");
}

#[test]
fn sizes_that_fit_no_memory_say_what_to_have_less_of() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let told = |answer: Result<()>, call: &str, operand: &str, hint: &str| {
        let error = answer.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LibraryError::Argument { .. }), "{text}");
        assert!(text.starts_with(&format!("sparse.{call}: {operand}")), "{text}");
        assert!(text.contains(&format!("; {hint}")), "{text}");
    };
    let large = 1_usize << 60;
    let csr = CsrMatrix::<f64, i64>::from_triplets(&gpu, (large, 2), &[(0, 0, 1.0)]).map(drop);
    told(csr, "CsrMatrix::from_triplets", "`offsets`", "use fewer rows");
    let csr = |shape, nonzeros| CsrMatrix::<f64, i64>::allocate(&gpu, shape, nonzeros).map(drop);
    told(csr((large, 2), 1), "CsrMatrix::allocate", "`offsets`", "use fewer rows");
    told(csr((2, 2), large), "CsrMatrix::allocate", "`indices`", "use fewer non-zeros");
    let csc = |shape, nonzeros| CscMatrix::<f64, i64>::allocate(&gpu, shape, nonzeros).map(drop);
    told(csc((2, large), 1), "CscMatrix::allocate", "`offsets`", "use fewer columns");
    told(csc((2, 2), large), "CscMatrix::allocate", "`indices`", "use fewer non-zeros");
    let coo = CooMatrix::<f64, i64>::allocate(&gpu, (2, 2), large).map(drop);
    told(coo, "CooMatrix::allocate", "`row_indices`", "use fewer non-zeros");
    let hint = "use fewer rows and columns: below 2^";
    let what = format!("{} rows with", usize::MAX);
    told(
        CsrMatrix::<f64>::from_dense(&gpu, (usize::MAX, 2), &[]).map(drop),
        "CsrMatrix::from_dense",
        &what,
        hint,
    );
    let wide = CsrMatrix::<f64, i64>::from_dense(&gpu, (usize::MAX, 2), &[]).map(drop);
    told(wide, "CsrMatrix::from_dense", &what, hint);
}
