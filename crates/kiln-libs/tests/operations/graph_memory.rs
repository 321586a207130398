//! A recorded graph of library calls has no nodes that allocate memory: the driver is asked how much memory graphs of the device ever had.

use std::ffi::{c_int, c_void};

use half::f16;
use kiln::DeviceRuntime;
use kiln::probe::TestGate;
use kiln_libs::blas::{Blas, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::prims::Primitives;
use kiln_libs::rand::{Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};
use kiln_libs::{LibraryError, Result};
use libloading::Library;

use crate::refusals_by_name::KIND;

type Raw = *mut c_void;
type Get = unsafe extern "C" fn(c_int, c_int, *mut u64) -> c_int;

/// Attributes of the memory of graphs: the most that was used, and the most that was kept for them.
const MOST: [c_int; 2] = [1, 3];
/// A node that allocates memory.
const ALLOCATION: c_int = 10;
const NON_BLOCKING: u32 = 1;
const OF_THIS_THREAD: c_int = 1;

/// The driver's own functions, beside kiln's.
struct RawDriver {
    library: Library,
    device: c_int,
}

impl RawDriver {
    fn of(gpu: &DeviceRuntime) -> Self {
        let path = std::env::var("KILN_LIBCUDA").unwrap_or_else(|_| "libcuda.so.1".into());
        // SAFETY: the driver is loaded already.
        let library = unsafe { Library::new(path) }.unwrap();
        // The context of the device is this thread's from here on.
        gpu.synchronize().unwrap();
        Self { library, device: gpu.info().ordinal as c_int }
    }

    /// A function of the driver.
    ///
    /// # Safety
    /// It has this type in cuda.h.
    unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller says what this asks.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }

    /// The most bytes that graphs used, and that were kept for them, since the last reset.
    fn graph_memory(&self) -> [u64; 2] {
        MOST.map(|attribute| {
            let mut bytes = u64::MAX;
            // SAFETY: the attribute is a number of 64 bits, which the function writes.
            let status = unsafe {
                let get: Get = self.function("cuDeviceGetGraphMemAttribute");
                get(self.device, attribute, &mut bytes)
            };
            assert_eq!(status, 0);
            bytes
        })
    }

    /// Gives what is kept back, and counts from there.
    fn reset_graph_memory(&self) {
        // SAFETY: the functions have these types; a reset takes the number 0.
        unsafe {
            let trim: unsafe extern "C" fn(c_int) -> c_int = self.function("cuDeviceGraphMemTrim");
            assert_eq!(trim(self.device), 0);
            let set: Get = self.function("cuDeviceSetGraphMemAttribute");
            for attribute in MOST {
                let mut zero = 0;
                assert_eq!(set(self.device, attribute, &mut zero), 0);
            }
        }
    }

    /// Captures an allocation, and launches the graph. Returns the kinds of its nodes.
    fn replay_an_allocation(&self) -> Vec<c_int> {
        let [mut stream, mut graph, mut executable]: [Raw; 3] = [std::ptr::null_mut(); 3];
        let mut address = 0_u64;
        // SAFETY: the functions have these types in cuda.h, the pointers are to live locals, and all handles were made here.
        unsafe {
            let create: unsafe extern "C" fn(*mut Raw, u32) -> c_int = self.function("cuStreamCreate");
            let begin: unsafe extern "C" fn(Raw, c_int) -> c_int = self.function("cuStreamBeginCapture_v2");
            let allocate: unsafe extern "C" fn(*mut u64, usize, Raw) -> c_int =
                self.function("cuMemAllocAsync");
            let free: unsafe extern "C" fn(u64, Raw) -> c_int = self.function("cuMemFreeAsync");
            let end: unsafe extern "C" fn(Raw, *mut Raw) -> c_int = self.function("cuStreamEndCapture");
            let list: unsafe extern "C" fn(Raw, *mut Raw, *mut usize) -> c_int =
                self.function("cuGraphGetNodes");
            let kind: unsafe extern "C" fn(Raw, *mut c_int) -> c_int = self.function("cuGraphNodeGetType");
            let make: unsafe extern "C" fn(*mut Raw, Raw, u64) -> c_int =
                self.function("cuGraphInstantiateWithFlags");
            let launch: unsafe extern "C" fn(Raw, Raw) -> c_int = self.function("cuGraphLaunch");
            let wait: unsafe extern "C" fn(Raw) -> c_int = self.function("cuStreamSynchronize");
            assert_eq!(create(&mut stream, NON_BLOCKING), 0);
            assert_eq!(begin(stream, OF_THIS_THREAD), 0);
            assert_eq!((allocate(&mut address, 1 << 20, stream), free(address, stream)), (0, 0));
            assert_eq!(end(stream, &mut graph), 0);
            let (mut nodes, mut count) = ([std::ptr::null_mut(); 8], 8);
            assert_eq!(list(graph, nodes.as_mut_ptr(), &mut count), 0);
            let mut kinds = vec![0; count];
            for (node, found) in nodes.iter().zip(&mut kinds) {
                assert_eq!(kind(*node, found), 0);
            }
            assert_eq!(make(&mut executable, graph, 0), 0);
            assert_eq!((launch(executable, stream), wait(stream)), (0, 0));
            for (handle, destroy) in [
                (executable, "cuGraphExecDestroy"),
                (graph, "cuGraphDestroy"),
                (stream, "cuStreamDestroy_v2"),
            ] {
                let destroy: unsafe extern "C" fn(Raw) -> c_int = self.function(destroy);
                assert_eq!(destroy(handle), 0);
            }
            kinds
        }
    }
}

/// Records calls of every library and of kernels of the crate, and replays them. Libraries that are not there are named.
fn replay_calls(gpu: &DeviceRuntime) -> Result<()> {
    const N: usize = 64;
    let (blas, fft, solve) = (Blas::new(gpu), Fft::new(gpu), Solve::new(gpu));
    let (dnn, prims, sparse) = (Dnn::new(gpu), Primitives::new(gpu), Sparse::new(gpu));
    let identity: Vec<f32> = (0..N * N).map(|at| if at % (N + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let [a, b, c] = [&identity, &identity, &identity].map(|values| gpu.upload(values).unwrap());
    let square = |buffer| Matrix::new(buffer, N, N);
    let (x, y, signal) = (gpu.zeros::<f32>(N)?, gpu.zeros::<f32>(N)?, gpu.zeros::<[f32; 2]>(1000)?);
    let csr = CsrMatrix::<f32>::from_dense(gpu, (N, N), &identity)?;
    let keys = gpu.zeros::<u32>(100_000)?;
    let (image, other, filter) = (gpu.zeros::<f32>(N * N)?, gpu.zeros::<f32>(N * N)?, gpu.zeros::<f32>(9)?);
    let of = |buffer| Tensor::new(buffer, [1, 1, N, N]);
    let [q, k, v, o] = [(); 4].map(|()| gpu.zeros::<f16>(2 * N * 64).unwrap());
    let heads = |buffer| AttentionTensor::new(buffer, [1, 2, N, 64]);
    let mut graph = gpu.graph();
    let convolution = dnn.convolution(of(&image), Tensor::new(&filter, [1, 1, 3, 3]), of(&other));
    let recorded = [
        blas.matmul(square(&a), square(&b), square(&c)).record(&mut graph).map(drop),
        blas.gemv(1.0, square(&a), &x, None, &y).record(&mut graph).map(drop),
        blas.trsm(Side::Left, 1.0, square(&a), KIND, square(&c)).record(&mut graph).map(drop),
        fft.transform(&[1000])
            .scale(Scale::Factor(0.5))
            .forward_in_place(&signal)
            .record(&mut graph)
            .map(drop),
        solve.cholesky(square(&b), Triangle::Lower).record(&mut graph).map(drop),
        sparse.spmv(Determinism::Any, 1.0, &csr, &x, None, &y).record(&mut graph).map(drop),
        convolution.padding([1, 1]).record(&mut graph).map(drop),
        dnn.attention(heads(&q), heads(&k), heads(&v), heads(&o)).record(&mut graph).map(drop),
        dnn.softmax(&a, N, &c).record(&mut graph).map(drop),
        prims.sort(&keys, &keys).record(&mut graph).map(drop),
        Sampler::new(gpu).draw(1).record(&mut graph, &x, Uniform).map(drop),
    ];
    for answer in recorded {
        match answer {
            Err(error) if error.library().is_some() => println!("not recorded: {error}"),
            answer => answer?,
        }
    }
    let graph = graph.build().map_err(LibraryError::from)?;
    for _ in 0..3 {
        graph.replay()?;
    }
    Ok(gpu.synchronize()?)
}

#[test]
fn a_graph_of_library_calls_allocates_no_memory() {
    // What can be recorded is the same everywhere.
    replay_calls(&DeviceRuntime::simulated(1).unwrap()).unwrap();
    match kiln::probe::gpu_for_test("a_graph_of_library_calls_allocates_no_memory").unwrap() {
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
        TestGate::Ready(gpu) => {
            let driver = RawDriver::of(gpu);
            driver.reset_graph_memory();
            replay_calls(gpu).unwrap();
            assert_eq!(driver.graph_memory(), [0, 0]);
            // A graph with such a node is noticed.
            let kinds = driver.replay_an_allocation();
            assert!(kinds.contains(&ALLOCATION), "{kinds:?}");
            assert!(driver.graph_memory().iter().all(|bytes| *bytes >= 1 << 20));
            driver.reset_graph_memory();
        }
    }
}
