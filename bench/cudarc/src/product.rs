//! A product of square matrices.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::cublaslt::{CudaBlasLT, Matmul, MatmulConfig};
use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};

use crate::Failure;
use crate::row::{self, Spread};

/// Calls in a batch, few enough that the device's queue never makes the host wait, and batches.
const BATCH: usize = 50;
const BATCHES: usize = 100;
/// A graph takes about so long on the device, and has so many products at most.
const GRAPH_TIME: Duration = Duration::from_millis(10);
const MAX_PRODUCTS: usize = 100;
/// The device has the clock of a device under load after this time.
const WARM_UP: Duration = Duration::from_millis(500);
/// Measured replays of a graph.
const TURNS: usize = 15;

/// `C = Aᵀ B` by columns, of random bits.
pub(crate) struct Product<T> {
    blas: CudaBlasLT,
    stream: Arc<CudaStream>,
    n: usize,
    a: CudaSlice<T>,
    b: CudaSlice<T>,
    c: RefCell<CudaSlice<T>>,
}

impl<T: DeviceRepr + ValidAsZeroBits> Product<T>
where
    CudaBlasLT: Matmul<T>,
{
    /// `ordered`: cudarc orders work on several streams by itself, as it does by default. A graph cannot be captured then.
    pub(crate) fn new(n: usize, ordered: bool) -> Result<Self, Failure> {
        let context = CudaContext::new(0)?;
        // SAFETY: all work of this process is queued on one stream at a time.
        unsafe {
            if ordered { context.enable_event_tracking() } else { context.disable_event_tracking() }
        }
        let stream = context.new_stream()?;
        let blas = CudaBlasLT::new(stream.clone())?;
        let factor = |seed| -> Result<CudaSlice<T>, Failure> {
            let mut factor = stream.alloc_zeros::<T>(n * n)?;
            let mut bytes = factor.as_view_mut();
            // SAFETY: the view ends where the memory of the factor ends, and every pattern of bits is an element.
            let mut bytes = unsafe { bytes.transmute_mut::<u8>(n * n * size_of::<T>()) }.ok_or("no view")?;
            stream.memcpy_htod(&random_bytes(seed, n * n * size_of::<T>()), &mut bytes)?;
            Ok(factor)
        };
        let (a, b, c) = (factor(1)?, factor(2)?, RefCell::new(stream.alloc_zeros::<T>(n * n)?));
        let product = Self { blas, stream, n, a, b, c };
        // The first call loads the kernels.
        product.queue()?;
        product.settle()?;
        Ok(product)
    }

    fn queue(&self) -> Result<(), Failure> {
        let n = self.n as u64;
        let config = MatmulConfig {
            transa: true,
            transb: false,
            transc: false,
            m: n,
            n,
            k: n,
            alpha: 1.0,
            lda: self.n as i64,
            ldb: self.n as i64,
            beta: 0.0,
            ldc: self.n as i64,
            stride_a: None,
            stride_b: None,
            stride_c: None,
            stride_bias: None,
            batch_size: None,
        };
        // SAFETY: each matrix has n times n elements and lives until the caller has waited for the stream.
        unsafe { self.blas.matmul(config, &self.a, &self.b, &mut *self.c.borrow_mut(), None, None)? };
        Ok(())
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.stream.synchronize()?)
    }

    /// What a call costs the host.
    pub(crate) fn call_time(&self) -> Result<Spread, Failure> {
        row::batches((BATCHES, BATCH), || self.queue(), || Ok(()), || self.settle())
    }

    /// How long the device takes for a product, in a graph of several.
    pub(crate) fn device_time(&self) -> Result<Spread, Failure> {
        let alone = self.replayed(&self.captured(1)?)?;
        let products = ((GRAPH_TIME.as_nanos() as f64 / alone.max(1.0)) as usize).clamp(1, MAX_PRODUCTS);
        let graph = self.captured(products)?;
        let start = Instant::now();
        while start.elapsed() < WARM_UP {
            self.replayed(&graph)?;
        }
        let times: Result<Vec<f64>, Failure> =
            (0..TURNS).map(|_| Ok(self.replayed(&graph)? / products as f64)).collect();
        Ok(Spread::of(times?))
    }

    fn captured(&self, products: usize) -> Result<CudaGraph, Failure> {
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let queued = (0..products).try_for_each(|_| self.queue());
        let graph = self
            .stream
            .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)?;
        queued?;
        graph.ok_or_else(|| "the capture gave no graph".into())
    }

    /// The device's time for a replay, in nanoseconds.
    fn replayed(&self, graph: &CudaGraph) -> Result<f64, Failure> {
        let start = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
        graph.launch()?;
        let end = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
        self.settle()?;
        Ok(f64::from(start.elapsed_ms(&end)?) * 1e6)
    }
}

/// Bytes by xorshift: what a product takes depends on how many bits change.
fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_ne_bytes());
    }
    bytes.truncate(count);
    bytes
}
