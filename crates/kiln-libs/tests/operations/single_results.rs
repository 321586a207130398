//! Results of one element: a buffer of another length is refused by all calls that reduce to one.

use kiln::DeviceRuntime;
use kiln_libs::blas::Blas;
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator};
use kiln_libs::{LibraryError, Result};

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>, wanted: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn results_of_other_lengths_than_one_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, prims) = (Blas::new(&gpu), Primitives::new(&gpu));
    for len in [0, 4] {
        let (x, y) = (gpu.upload(&vec![1.0_f32; len]).unwrap(), gpu.upload(&vec![2.0_f32; len]).unwrap());
        for results in [0_usize, 2, 3] {
            let result = gpu.upload(&vec![7.0_f32; results]).unwrap();
            let place = gpu.upload(&vec![7_i64; results]).unwrap();
            let count = gpu.upload(&vec![7_u64; results]).unwrap();
            let told = |call: &str, name: &str| {
                format!(
                    "{call}: `{name}` has {results} elements and must have 1; use a buffer of that length, or a view of a longer one"
                )
            };
            refused(blas.dot(&x, &y, &result).submit(), &told("blas.dot", "result"));
            refused(blas.dot(&x, &y, &result).record(&mut gpu.graph()), &told("blas.dot", "result"));
            refused(blas.nrm2(&x, &result).submit(), &told("blas.nrm2", "result"));
            refused(blas.asum(&x, &result).submit(), &told("blas.asum", "result"));
            if len > 0 {
                refused(blas.iamax(&x, &place).submit(), &told("blas.iamax", "result"));
                refused(prims.arg_min(&x, &count).submit(), &told("prims.arg_min", "output"));
            }
            let reduced = prims.reduce(&x, ReduceOperator::Sum, &result).submit();
            refused(reduced, &told("prims.reduce", "output"));
            let selected = prims.select(&x, Predicate::Less(3.0), &gpu.zeros(len).unwrap(), &count);
            refused(selected.submit(), &told("prims.select", "count"));
            assert_eq!(result.download().unwrap(), vec![7.0; results]);
        }
        // A view of a longer buffer is a result of one.
        let sums = gpu.upload(&[7.0_f32; 3]).unwrap();
        blas.dot(&x, &y, &sums.view(1..2).unwrap()).submit().unwrap();
        assert_eq!(sums.download().unwrap(), [7.0, 2.0 * len as f32, 7.0]);
    }
}
