//! Library operations: prepared when they are loaded, queued by a launch.
//!
//! Loading opens the library, makes handle, descriptors and plan, and chooses the algorithm. A launch then only hands addresses and scalars over: it
//! neither blocks nor allocates, but for eigenvalues and singular values, which cuSOLVER computes partly on the host. Workspace is memory of the caller, an argument behind those of the operation; no library allocates any
//! for an operation. A graph gets what the operation queues as a graph inside of it, captured on a stream that nothing else uses.

mod arguments;
mod capture;
mod cublas;
mod cublaslt;
mod cudnn;
mod cufft;
mod cusolver;
mod cusparse;
mod descriptor;
mod failure;
mod half_bits;
mod library_enums;
mod nccl;
mod symbol_lookup;

use std::cell::Cell;
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{
    Dim3, Error, FunctionAttributes, LaunchCommand, ParameterSpan, Refusal, Result, Submission,
};
use kiln_operation::{ABORT, ARGUMENT_BYTES, Operation, OperationOperand};

use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;
use crate::libraries::LibraryKind;
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

use arguments::ArgumentCheck;
pub(crate) use arguments::OperationArguments;
pub(crate) use capture::{CaptureStream, CapturedGraph};
pub(crate) use cublas::CublasHandle;
pub(crate) use cublaslt::LtHandle;
pub(crate) use cudnn::DnnHandle;
pub(crate) use cusolver::SolverHandle;
pub(crate) use cusparse::SparseHandle;
pub(crate) use failure::LibraryFailure;
pub(crate) use nccl::{NcclRank, NcclReplay, make_id};

/// An operation that is ready to be queued.
trait PreparedOperation: Send + Sync {
    /// Workspace it takes, behind its other arguments.
    fn workspace_bytes(&self) -> u64;

    /// Whether the library waits for the device while it queues the operation, so that it cannot be captured.
    fn waits_for_device(&self) -> bool {
        false
    }

    /// Whether its kernels are loaded with it, by a capture that is never run.
    fn is_captured_at_load(&self) -> bool {
        !self.waits_for_device()
    }

    /// The rank whose communicator it needs, if it is a collective. A graph with it needs the communicator at every replay.
    fn communicator(&self) -> Option<&Arc<NcclRank>> {
        None
    }

    /// What a launch does first, while other threads may use its stream.
    fn before_queue(&self) -> std::result::Result<(), LibraryFailure> {
        Ok(())
    }

    /// Queues it. The context is current, and the arguments were checked.
    ///
    /// # Safety
    /// The addresses are those of memory that the operation may access until it is done, and as large as its operands say.
    unsafe fn queue(
        &self,
        stream: sys::CUstream,
        arguments: &OperationArguments<'_>,
    ) -> std::result::Result<(), LibraryFailure>;
}

/// A loaded operation.
// In this order: a launch reads what comes before the name.
#[repr(C)]
pub(crate) struct LoadedOperation {
    prepared: Box<dyn PreparedOperation>,
    check: ArgumentCheck,
    name: &'static str,
    operands: Vec<OperationOperand>,
}

impl LoadedOperation {
    fn new(
        name: &'static str,
        operands: Vec<OperationOperand>,
        prepared: Box<dyn PreparedOperation>,
    ) -> Self {
        let check = ArgumentCheck::new(&operands, prepared.workspace_bytes());
        Self { prepared, check, name, operands }
    }

    /// Opens the library that has the operation, and prepares it.
    pub(crate) fn load(call: &'static str, device: &CudaDevice, text: &str) -> Result<Self> {
        let api = device.context.enter(call)?;
        let operation: Operation = text
            .parse()
            .map_err(|error| Error::refused(call, Refusal::Image { code: None, log: format!("{error}") }))?;
        let prepared: Box<dyn PreparedOperation> = match &operation {
            Operation::Matmul(matmul) => Box::new(cublaslt::LtMatmul::prepare(call, device, matmul)?),
            Operation::Fft(fft) => Box::new(cufft::FftPlan::prepare(call, device, fft)?),
            Operation::Potrf(_)
            | Operation::Potrs(_)
            | Operation::Getrf(_)
            | Operation::Getrs(_)
            | Operation::Geqrf(_)
            | Operation::Ormqr(_)
            | Operation::Orgqr(_)
            | Operation::Syevd(_)
            | Operation::Gesvd(_) => Box::new(cusolver::SolverCall::prepare(call, device, &operation)?),
            Operation::Spmv(_) | Operation::Spmm(_) | Operation::SparseToDense(_) => {
                Box::new(cusparse::SparseCall::prepare(call, device, &operation)?)
            }
            Operation::Convolution(_) | Operation::Attention(_) => {
                Box::new(cudnn::DnnCall::prepare(call, device, &operation)?)
            }
            other => Box::new(cublas::CublasCall::prepare(call, device, other)?),
        };
        let loaded = Self::new(operation.name(), operation.operands(), prepared);
        // The first use of a kernel loads it, which takes long; a capture is such a use, and runs nothing.
        let packed = arguments::placeholders(&loaded.operands, loaded.workspace_bytes());
        if let (Ok(arguments), true) =
            (loaded.arguments(call, &packed), loaded.prepared.is_captured_at_load())
        {
            let _ = device.capture_operation(call, api, &loaded, &arguments);
        }
        Ok(loaded)
    }

    /// The collective of a communicator, or the group of them, that has this name.
    pub(crate) fn collective(call: &'static str, rank: &Arc<NcclRank>, name: &str) -> Result<Self> {
        if name == ABORT {
            let prepared = Box::new(nccl::NcclAbort::new(rank));
            return Ok(Self::new(ABORT, Vec::new(), prepared));
        }
        let (collective, name, operands) = nccl::NcclCollective::new(call, rank, name)?;
        Ok(Self::new(name, operands, Box::new(collective)))
    }

    /// The name of its one function.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Workspace it takes.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.prepared.workspace_bytes()
    }

    /// Whether it cannot be captured, because the library waits for the device.
    pub(crate) fn waits_for_device(&self) -> bool {
        self.prepared.waits_for_device()
    }

    /// The rank whose communicator it needs, if it is a collective.
    pub(crate) fn communicator(&self) -> Option<&Arc<NcclRank>> {
        self.prepared.communicator()
    }

    /// What callers may know of it.
    pub(crate) fn attributes(&self) -> FunctionAttributes {
        let count = self.operands.len() as u32 + u32::from(self.workspace_bytes() > 0);
        let span = |at: u32| ParameterSpan { offset: at * ARGUMENT_BYTES, bytes: ARGUMENT_BYTES };
        FunctionAttributes {
            max_threads_per_block: 1,
            workspace_bytes: self.workspace_bytes(),
            parameters: Some((0..count).map(span).collect()),
            ..FunctionAttributes::default()
        }
    }

    /// The error for an operation in a graph that its library waits for.
    fn not_captured(&self, call: &'static str) -> Error {
        if self.name == ABORT {
            let why = "it takes effect when it is submitted; launch it on a stream";
            return Error::unsupported(call, "the abort of a communicator in a graph", why);
        }
        let why = format!(
            "it waits for the device while it queues {}, so that no graph can hold it; submit it between two replays",
            self.name()
        );
        Error::refused(call, Refusal::Library { library: LibraryKind::Cusolver.name(), why })
    }

    /// The arguments of a launch, checked.
    #[inline]
    pub(crate) fn arguments<'a>(
        &self,
        call: &'static str,
        packed: &'a [u8],
    ) -> Result<OperationArguments<'a>> {
        match self.check.read(packed) {
            Some(arguments) => Ok(arguments),
            None => {
                OperationArguments::new(call, self.name(), &self.operands, self.workspace_bytes(), packed)
            }
        }
    }

    /// # Safety
    /// As for [`PreparedOperation::queue`].
    unsafe fn queue(
        &self,
        stream: sys::CUstream,
        arguments: &OperationArguments<'_>,
    ) -> std::result::Result<(), LibraryFailure> {
        // SAFETY: the caller vouches for the addresses.
        unsafe { self.prepared.queue(stream, arguments) }
    }
}

impl CudaDevice {
    /// Queues an operation as the next submission of a stream.
    // Not cold, although few launches are operations: a program with operations has little else, and code that is marked so lies apart.
    #[inline(never)]
    pub(crate) fn submit_operation(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        operation: &LoadedOperation,
        launch: &LaunchCommand<'_>,
    ) -> Result<Submission> {
        // Libraries use the context that is current.
        self.context.set_current(call)?;
        launch.grid.check_extents(call, "grid", Dim3::new(1, 1, 1))?;
        launch.block.check_extents(call, "block", Dim3::new(1, 1, 1))?;
        let arguments = operation.arguments(call, launch.arguments)?;
        operation.prepared.before_queue().map_err(|failure| failure.error(call, operation.name()))?;
        let failure: Cell<Option<LibraryFailure>> = Cell::new(None);
        let submitted = stream.queue(call, SubmissionKind::Launch(launch.function), |_| {
            // SAFETY: the caller of `submit` vouched that the launch may run with these arguments.
            match unsafe { operation.queue(stream.raw(), &arguments) } {
                Ok(()) => 0,
                Err(failed) => {
                    let status = failed.status(api, stream.raw());
                    failure.set(Some(failed));
                    status
                }
            }
        });
        submitted.map_err(|error| match failure.take() {
            Some(failed) if !error.is_sticky() && !error.is_oom() => failed.error(call, operation.name()),
            _ => error,
        })
    }
}
