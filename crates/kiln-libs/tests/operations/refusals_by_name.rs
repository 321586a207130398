//! What is wrong with the device, the stream or the graph of a call is told by every call under its own name, with what to do next, also where there is nothing to do.

use std::time::Duration;

use half::f16;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream};
use kiln_driver::Code;
use kiln_libs::Result;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bits, Permutation, Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CooMatrix, CsrMatrix, Determinism, Sparse};
use kiln_runtime::{Element, GraphBuilder};
use kiln_sim::{FaultPlan, Machine, MachineConfig, PlannedFault};

/// One device with a handle of each library, and buffers of zeros.
pub(crate) struct Calls {
    pub(crate) gpu: DeviceRuntime,
    pub(crate) blas: Blas,
    pub(crate) fft: Fft,
    pub(crate) dnn: Dnn,
    pub(crate) elements: Elementwise,
    pub(crate) prims: Primitives,
    pub(crate) random: Sampler,
    pub(crate) solve: Solve,
    pub(crate) sparse: Sparse,
    /// Rows and columns of all matrices, and elements of all vectors but those with room for a matrix.
    pub(crate) n: usize,
    pub(crate) none: GpuRef<f32>,
    pub(crate) one: GpuRef<f32>,
    pub(crate) x: GpuRef<f32>,
    pub(crate) y: GpuRef<f32>,
    pub(crate) z: GpuRef<f32>,
    pub(crate) w: GpuRef<f32>,
    pub(crate) a: GpuRef<f32>,
    pub(crate) b: GpuRef<f32>,
    pub(crate) c: GpuRef<f32>,
    pub(crate) count: GpuRef<u64>,
    pub(crate) counts: GpuRef<u64>,
    pub(crate) halves: [GpuRef<f16>; 4],
    pub(crate) complex: [GpuRef<[f32; 2]>; 2],
    pub(crate) words: GpuRef<u32>,
    pub(crate) labels: GpuRef<i32>,
    pub(crate) pivots: GpuRef<i64>,
    pub(crate) place: GpuRef<i64>,
    pub(crate) offsets: GpuRef<i32>,
    pub(crate) csr: [CsrMatrix<f32>; 2],
    pub(crate) coo: CooMatrix<f32>,
}

fn zeros<T: Element>(gpu: &DeviceRuntime, len: usize) -> GpuRef<T> {
    gpu.zeros::<T>(len).unwrap()
}

impl Calls {
    pub(crate) fn new(gpu: &DeviceRuntime, n: usize) -> Self {
        let square = vec![if n == 0 { 0.0 } else { 1.0 }; n * n];
        Self {
            gpu: gpu.clone(),
            blas: Blas::new(gpu),
            fft: Fft::new(gpu),
            dnn: Dnn::new(gpu),
            elements: Elementwise::new(gpu),
            prims: Primitives::new(gpu),
            random: Sampler::new(gpu),
            solve: Solve::new(gpu),
            sparse: Sparse::new(gpu),
            n,
            none: zeros(gpu, 0),
            one: zeros(gpu, 1),
            x: zeros(gpu, n),
            y: zeros(gpu, n),
            z: zeros(gpu, n),
            w: zeros(gpu, n),
            a: zeros(gpu, 64 * n),
            b: zeros(gpu, 64 * n),
            c: zeros(gpu, 64 * n),
            count: zeros(gpu, 1),
            counts: zeros(gpu, 4),
            halves: [(); 4].map(|()| zeros(gpu, 64 * n)),
            complex: [(); 2].map(|()| zeros(gpu, n)),
            words: zeros(gpu, n),
            labels: zeros(gpu, n),
            pivots: zeros(gpu, n),
            place: zeros(gpu, 1),
            offsets: zeros(gpu, n + 1),
            csr: [(); 2].map(|()| CsrMatrix::from_dense(gpu, (n, n), &square).unwrap()),
            coo: CooMatrix::from_dense(gpu, (n, n), &square).unwrap(),
        }
    }

    pub(crate) fn matrix<'a>(&self, buffer: &'a GpuRef<f32>) -> Matrix<'a, f32> {
        Matrix::new(buffer, self.n, self.n)
    }

    pub(crate) fn columns<'a>(&self, buffer: &'a GpuRef<f32>) -> Matrix<'a, f32> {
        self.matrix(buffer).transposed()
    }

    fn tensor<'a>(&self, buffer: &'a GpuRef<f32>) -> Tensor<'a, f32> {
        Tensor::new(buffer, [self.n, 1, 1, 1])
    }
}

type Submit = fn(&Calls, Option<&Stream>) -> Result<()>;
type Record = fn(&Calls, &mut GraphBuilder) -> Result<()>;

struct Row {
    call: &'static str,
    /// Whether matrices without elements are refused for that already.
    needs_elements: bool,
    submit: Submit,
    record: Record,
}

macro_rules! row {
    ($call:literal, $needs:literal, |$it:ident| $made:expr) => {
        Row {
            call: $call,
            needs_elements: $needs,
            submit: |$it, stream| {
                let call = $made;
                match stream {
                    Some(stream) => call.on(stream).submit().map(drop),
                    None => call.submit().map(drop),
                }
            },
            record: |$it, graph| $made.record(graph).map(drop),
        }
    };
}

macro_rules! draw {
    ($call:literal, $buffer:ident, $distribution:expr) => {
        Row {
            call: $call,
            needs_elements: false,
            submit: |it, stream| {
                let draw = it.random.draw(1);
                let draw = match stream {
                    Some(stream) => draw.on(stream),
                    None => draw,
                };
                draw.fill(&it.$buffer, $distribution).map(drop)
            },
            record: |it, graph| it.random.draw(1).record(graph, &it.$buffer, $distribution).map(drop),
        }
    };
}

pub(crate) const KIND: (Triangle, Diagonal) = (Triangle::Lower, Diagonal::Stored);
pub(crate) const ANY: Determinism = Determinism::Any;

fn dense_rows() -> Vec<Row> {
    vec![
        row!("blas.matmul", false, |it| it.blas.matmul(it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c))),
        row!("blas.matmul", false, |it| {
            it.blas.matmul(it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c)).alpha(0.0)
        }),
        row!("blas.matmul", false, |it| {
            let (a, b) = (Matrix::new(&it.a, it.n, 0), Matrix::new(&it.b, 0, it.n));
            it.blas.matmul(a, b, it.matrix(&it.c))
        }),
        row!("blas.gemv", false, |it| it.blas.gemv(1.0, it.matrix(&it.a), &it.x, None, &it.y)),
        row!("blas.ger", false, |it| it.blas.ger(1.0, &it.x, &it.y, it.matrix(&it.a))),
        row!("blas.dot", false, |it| it.blas.dot(&it.x, &it.y, &it.one)),
        row!("blas.nrm2", false, |it| it.blas.nrm2(&it.x, &it.one)),
        row!("blas.asum", false, |it| it.blas.asum(&it.x, &it.one)),
        row!("blas.axpy", false, |it| it.blas.axpy(1.0, &it.x, &it.y)),
        row!("blas.scal", false, |it| it.blas.scal(2.0, &it.x)),
        row!("blas.copy", false, |it| it.blas.copy(&it.x, &it.y)),
        row!("blas.swap", false, |it| it.blas.swap(&it.x, &it.y)),
        row!("blas.geam", false, |it| it.blas.geam(1.0, it.matrix(&it.a), None, it.matrix(&it.c))),
        row!("blas.geam", false, |it| it.blas.geam(0.0, it.matrix(&it.a), None, it.matrix(&it.c))),
        row!("blas.transpose", false, |it| it.blas.transpose(it.matrix(&it.a), it.matrix(&it.c))),
        row!("blas.symm", false, |it| {
            let a = (it.matrix(&it.a), Triangle::Lower);
            it.blas.symm(Side::Left, 1.0, a, it.matrix(&it.b), None, it.matrix(&it.c))
        }),
        row!("blas.trmm", false, |it| {
            it.blas.trmm(Side::Left, 0.0, it.matrix(&it.a), KIND, it.matrix(&it.b), it.matrix(&it.c))
        }),
        row!("blas.syrk", false, |it| {
            it.blas.syrk(1.0, it.matrix(&it.a), None, Triangle::Lower, it.matrix(&it.c))
        }),
        row!("blas.trsm", false, |it| it.blas.trsm(
            Side::Left,
            1.0,
            it.matrix(&it.a),
            KIND,
            it.matrix(&it.b)
        )),
        row!("fft.forward", false, |it| it.fft.transform(&[it.n]).forward(&it.complex[0], &it.complex[1])),
        row!("fft.inverse", false, |it| {
            it.fft.transform(&[it.n]).scale(Scale::ByLength).inverse(&it.complex[0], &it.complex[1])
        }),
        row!("fft.forward_in_place", false, |it| it.fft.transform(&[it.n]).forward_in_place(&it.complex[0])),
        row!("fft.inverse_in_place", false, |it| it.fft.transform(&[it.n]).inverse_in_place(&it.complex[0])),
        row!("fft.real_forward", false, |it| {
            it.fft.transform(&[it.n]).batch(it.n.min(1)).real_forward(&it.x, &it.complex[0])
        }),
        row!("fft.real_inverse", false, |it| it.fft.transform(&[it.n]).real_inverse(&it.complex[0], &it.x)),
        row!("fft.real_forward_in_place", false, |it| {
            it.fft.transform(&[it.n]).batch(it.n.min(1)).real_forward_in_place(&it.complex[0])
        }),
        row!("fft.real_inverse_in_place", false, |it| {
            it.fft.transform(&[it.n]).real_inverse_in_place(&it.complex[0])
        }),
    ]
}

fn solver_rows() -> Vec<Row> {
    vec![
        row!("solve.cholesky", true, |it| it.solve.cholesky(it.matrix(&it.a), Triangle::Lower)),
        row!("solve.cholesky_solve", true, |it| {
            it.solve.cholesky_solve(it.matrix(&it.a), Triangle::Lower, it.matrix(&it.b))
        }),
        row!("solve.lu", true, |it| it.solve.lu(it.matrix(&it.a), &it.pivots)),
        row!("solve.lu_solve", true, |it| it.solve.lu_solve(it.matrix(&it.a), &it.pivots, it.matrix(&it.b))),
        row!("solve.qr", true, |it| it.solve.qr(it.columns(&it.a), &it.x)),
        row!("solve.apply_q", true, |it| {
            it.solve.apply_q(Side::Left, it.columns(&it.a), &it.x, it.columns(&it.b))
        }),
        row!("solve.apply_q_transposed", true, |it| {
            it.solve.apply_q_transposed(Side::Left, it.columns(&it.a), &it.x, it.columns(&it.b))
        }),
        row!("solve.form_q", true, |it| it.solve.form_q(it.columns(&it.a), &it.x)),
        row!("solve.least_squares", true, |it| it.solve.least_squares(it.columns(&it.a), it.columns(&it.b))),
        row!("solve.eigenvalues", true, |it| it.solve.eigenvalues(it.matrix(&it.a), Triangle::Lower, &it.x)),
        row!("solve.eigenvectors", true, |it| {
            it.solve.eigenvectors(it.matrix(&it.a), Triangle::Lower, &it.x)
        }),
        row!("solve.singular_values", true, |it| it.solve.singular_values(it.matrix(&it.a), &it.x)),
        row!("solve.svd", true, |it| {
            it.solve.svd(it.matrix(&it.a), &it.x, it.columns(&it.b), it.matrix(&it.c))
        }),
        row!("solve.cholesky_batched", true, |it| {
            it.solve.cholesky_batched(it.matrix(&it.a), Triangle::Lower)
        }),
        row!("solve.cholesky_solve_batched", true, |it| {
            it.solve.cholesky_solve_batched(it.matrix(&it.a), Triangle::Lower, it.matrix(&it.b))
        }),
        row!("solve.lu_batched", true, |it| it.solve.lu_batched(it.matrix(&it.a), &it.pivots)),
        row!("solve.lu_solve_batched", true, |it| {
            it.solve.lu_solve_batched(it.matrix(&it.a), &it.pivots, it.matrix(&it.b))
        }),
        row!("sparse.spmv", false, |it| it.sparse.spmv(ANY, 1.0, &it.csr[0], &it.x, None, &it.y)),
        row!("sparse.spmm", false, |it| {
            it.sparse.spmm(ANY, 1.0, &it.csr[0], it.matrix(&it.b), None, it.matrix(&it.c))
        }),
        row!("sparse.to_dense", false, |it| it.sparse.to_dense(&it.csr[0], it.matrix(&it.c))),
        row!("sparse.count_nonzeros", false, |it| it.sparse.count_nonzeros(it.matrix(&it.a), &it.offsets)),
        row!("sparse.copy_nonzeros", false, |it| it.sparse.copy_nonzeros(it.matrix(&it.a), &it.csr[1])),
        row!("sparse.convert", false, |it| it.sparse.convert(&it.coo, &it.csr[1])),
        row!("sparse.spgemm", false, |it| {
            it.sparse.spgemm(1.0, &it.csr[0], &it.csr[0], None, &it.csr[1])
        }),
        row!("sparse.triangular_solve", false, |it| {
            let (b, x) = (it.matrix(&it.b), it.matrix(&it.c));
            it.sparse.triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, &it.csr[0], b, x)
        }),
    ]
}

fn batched_rows() -> Vec<Row> {
    vec![
        row!("solve.qr_batched", true, |it| it.solve.qr_batched(it.matrix(&it.a), &it.x)),
        row!("solve.apply_q_batched", true, |it| {
            it.solve.apply_q_batched(Side::Left, it.matrix(&it.a), &it.x, it.matrix(&it.b))
        }),
        row!("solve.apply_q_transposed_batched", true, |it| {
            it.solve.apply_q_transposed_batched(Side::Right, it.matrix(&it.a), &it.x, it.matrix(&it.b))
        }),
        row!("solve.least_squares_batched", true, |it| {
            it.solve.least_squares_batched(it.matrix(&it.a), it.matrix(&it.b))
        }),
        row!("solve.eigenvalues_batched", true, |it| {
            it.solve.eigenvalues_batched(it.matrix(&it.a), Triangle::Lower, &it.x)
        }),
        row!("solve.eigenvectors_batched", true, |it| {
            it.solve.eigenvectors_batched(it.matrix(&it.a), Triangle::Lower, &it.x)
        }),
        row!("solve.singular_values_batched", true, |it| {
            it.solve.singular_values_batched(it.matrix(&it.a), &it.x)
        }),
        row!("solve.svd_batched", true, |it| {
            it.solve.svd_batched(it.matrix(&it.a), &it.x, it.matrix(&it.b), it.matrix(&it.c))
        }),
    ]
}

fn kernel_rows() -> Vec<Row> {
    vec![
        row!("dnn.convolution", false, |it| {
            let w = Tensor::new(&it.one, [1, 1, 1, 1]);
            it.dnn.convolution(it.tensor(&it.a), w, it.tensor(&it.c))
        }),
        row!("dnn.attention", false, |it| {
            let [q, k, v, o] = it.halves.each_ref().map(|half| AttentionTensor::new(half, [it.n, 1, 1, 64]));
            it.dnn.attention(q, k, v, o)
        }),
        row!("dnn.softmax", false, |it| it.dnn.softmax(&it.x, 2, &it.y)),
        row!("dnn.softmax_backward", false, |it| it.dnn.softmax_backward(&it.x, &it.y, 2, &it.z)),
        row!("dnn.layer_norm", false, |it| it.dnn.layer_norm(&it.x, 2, &it.y)),
        row!("dnn.rms_norm", false, |it| it.dnn.rms_norm(&it.x, 2, &it.y)),
        row!("dnn.cross_entropy", false, |it| it.dnn.cross_entropy(&it.a, 64, &it.labels, &it.y)),
        row!("dnn.max_pool", false, |it| it.dnn.max_pool(it.tensor(&it.x), [1, 1], it.tensor(&it.y))),
        row!("dnn.average_pool", false, |it| it.dnn.average_pool(it.tensor(&it.x), [1, 1], it.tensor(&it.y))),
        row!("elementwise.apply", false, |it| it.elements.apply(ElementFunction::Relu, &it.x, &it.y)),
        row!("elementwise.combine", false, |it| it.elements.combine(Combination::Add, &it.x, &it.y, &it.z)),
        row!("elementwise.affine", false, |it| it.elements.affine(1.0, &it.x, 0.0, &it.y)),
        row!("prims.reduce", false, |it| it.prims.reduce(&it.x, ReduceOperator::Sum, &it.one)),
        row!("prims.arg_max", true, |it| it.prims.arg_max(&it.x, &it.count)),
        row!("prims.scan_inclusive", false, |it| it.prims.scan_inclusive(&it.x, ScanOperator::Sum, &it.y)),
        row!("prims.scan_exclusive", false, |it| {
            it.prims.scan_exclusive(&it.x, ScanOperator::Sum, 0.0, &it.y)
        }),
        row!("prims.sort", false, |it| it.prims.sort(&it.x, &it.y)),
        // Nothing is done: one element, and no bits.
        row!("prims.sort", false, |it| it.prims.sort(&it.one, &it.one)),
        row!("prims.sort", false, |it| it.prims.sort(&it.x, &it.x).bits(3..3)),
        row!("prims.sort_by_key", false, |it| it.prims.sort_by_key(&it.x, &it.y, &it.z, &it.w)),
        row!("prims.sort_by_key", false, |it| {
            it.prims.sort_by_key(&it.one, &it.count, &it.one, &it.count)
        }),
        row!("prims.select", false, |it| it.prims.select(&it.x, Predicate::Less(1.0), &it.y, &it.count)),
        row!("prims.unique", false, |it| it.prims.unique(&it.x, &it.y, &it.count)),
        row!("prims.histogram", false, |it| it.prims.histogram(&it.x, 0.0..1.0, &it.counts)),
        row!("prims.top", false, |it| it.prims.top(&it.x, &it.y)),
        draw!("rand.bits", words, Bits),
        draw!("rand.uniform", x, Uniform),
        draw!("rand.permutation", words, Permutation),
    ]
}

fn rows() -> Vec<Row> {
    [dense_rows(), solver_rows(), batched_rows(), kernel_rows()].into_iter().flatten().collect()
}

/// All rows that mean something for matrices of so many rows.
fn rows_for(n: usize) -> impl Iterator<Item = Row> {
    rows().into_iter().filter(move |row| n > 0 || !row.needs_elements)
}

const SIZES: [usize; 2] = [0, 4];

/// A message of a call about something, which goes on with what to do.
#[track_caller]
pub(crate) fn told(answer: Result<()>, call: &str, about: &str, n: usize) -> kiln_libs::LibraryError {
    let Err(error) = answer else { panic!("{call} of {n} rows was taken, in spite of {about}") };
    let text = error.to_string();
    assert!(text.starts_with(&format!("{call}: ")), "{n} rows: {text} is not of {call}");
    assert!(text.contains(about), "{n} rows: {text} says nothing of {about}");
    assert!(text.split_once("; ").is_some_and(|(_, next)| !next.is_empty()), "{text} says no next step");
    error
}

#[test]
fn every_call_refuses_a_stream_of_another_runtime() {
    let (gpu, other) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    // Streams whose small numbers are and are not those of a stream of the runtime.
    for stream in [other.main_stream().clone(), other.stream().unwrap(), other.stream().unwrap()] {
        for n in SIZES {
            let calls = Calls::new(&gpu, n);
            for row in rows_for(n) {
                let answer = (row.submit)(&calls, Some(&stream));
                let error = told(answer, row.call, "`stream`: ", n);
                let runtime = error.runtime().expect("an error of the runtime").to_string();
                assert!(runtime.contains("belongs to another runtime; lease one"), "{runtime}");
            }
        }
    }
    gpu.synchronize().unwrap();
}

#[test]
fn every_call_refuses_a_graph_of_another_runtime() {
    let (gpu, other) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    for n in SIZES {
        let calls = Calls::new(&gpu, n);
        for row in rows_for(n) {
            let mut graph = other.graph();
            told((row.record)(&calls, &mut graph), row.call, "`graph` belongs to another runtime", n);
            assert_eq!(graph.len(), 0, "{}", row.call);
        }
    }
    gpu.synchronize().unwrap();
}

#[test]
fn every_call_says_that_the_device_was_shut_down() {
    for n in SIZES {
        for is_warm in [false, true] {
            let gpu = DeviceRuntime::simulated(1).unwrap();
            let (calls, mut graph) = (Calls::new(&gpu, n), gpu.graph());
            if is_warm {
                rows_for(n).for_each(|row| drop((row.submit)(&calls, None)));
            }
            assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
            for row in rows_for(n) {
                told((row.submit)(&calls, None), row.call, "the device is shutting down", n);
                told((row.record)(&calls, &mut graph), row.call, "the device is shutting down", n);
            }
            let (a, b) = (&calls.csr[0], &calls.csr[1]);
            let answer = calls.sparse.product_structure(a, b).map(drop);
            told(answer, "sparse.product_structure", "the device is shutting down", n);
            let answer = calls.sparse.check_indices(a);
            told(answer, "sparse.check_indices", "the device is shutting down", n);
            let matmul =
                || calls.blas.matmul(calls.matrix(&calls.a), calls.matrix(&calls.b), calls.matrix(&calls.c));
            told(matmul().load().map(drop), "blas.matmul", "the device is shutting down", n);
            told(matmul().prepare().map(drop), "blas.matmul", "the device is shutting down", n);
            told(matmul().tune().map(drop), "blas.matmul", "the device is shutting down", n);
            let scal = calls.blas.scal(1.0, &calls.x).load().map(drop);
            told(scal, "blas.scal", "the device is shutting down", n);
        }
    }
}

/// A device that fails at its first kernel.
pub(crate) fn failing() -> (Machine, DeviceRuntime) {
    let fault = PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS };
    let machine = Machine::new(MachineConfig::seeded(1).faults(FaultPlan::none().on(0, fault)));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    (machine, gpu)
}

#[test]
fn every_call_says_that_the_device_is_lost() {
    for n in SIZES {
        let (_machine, gpu) = failing();
        let (calls, mut graph) = (Calls::new(&gpu, n), gpu.graph());
        let error = calls.blas.scal(1.0, &calls.one).submit().unwrap().wait().unwrap_err();
        assert!(error.is_lost(), "{error}");
        for row in rows_for(n) {
            for answer in [(row.submit)(&calls, None), (row.record)(&calls, &mut graph)] {
                let error = told(answer, row.call, "the device takes no more work; open another runtime", n);
                let runtime = error.runtime().expect("an error of the runtime");
                assert!(runtime.is_lost() && runtime.is_sticky(), "{runtime}");
            }
        }
        let answer = calls.sparse.check_indices(&calls.csr[0]);
        told(answer, "sparse.check_indices", "the device takes no more work; ", n);
        let (a, b) = (&calls.csr[0], &calls.csr[1]);
        told(
            calls.sparse.product_structure(a, b).map(drop),
            "sparse.product_structure",
            "the device takes no more work; ",
            n,
        );
    }
}
