//! Products with sparse matrices by cuSPARSE.
//!
//! Descriptors are memory of the host. Each launch makes its own: the library may keep what it knows of a matrix in its descriptor, and a launch must
//! not depend on the one before. Equal bits in each run take another algorithm, which the operation asks for.

mod symbols;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::Result;
use kiln_operation::{
    DenseLayout, Determinism, ElementType, IndexType, Operation, SparseFormat, SparseToDense, Spmm, Spmv,
};

use super::PreparedOperation;
use super::arguments::{OperationArguments, placeholders};
use super::descriptor::Descriptor;
use super::failure::LibraryFailure;
use super::library_enums::{self, scalar};
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;
use symbols::SparseApi;

type SparseResult<T> = std::result::Result<T, LibraryFailure>;
type Raw = *mut c_void;

/// Algorithms of `cusparseSpMVAlg_t` and `cusparseSpMMAlg_t`: the default, and those with equal bits in each run.
const DEFAULT_ALGORITHM: i32 = 0;
const SPMV_CSR_ALG2: i32 = 3;
const SPMV_COO_ALG2: i32 = 4;
const SPMM_CSR_ALG3: i32 = 12;
const SPMM_COO_ALG2: i32 = 2;
/// `CUSPARSE_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 10;

/// The handle of a device.
pub(crate) struct SparseHandle {
    api: &'static SparseApi,
    raw: Native<c_void>,
    context: Arc<Context>,
    /// Held while its stream is set and a call uses it.
    turn: Mutex<()>,
}

/// An operation that one call of cuSPARSE queues.
pub(super) struct SparseCall {
    operation: Operation,
    handle: Arc<SparseHandle>,
    workspace_bytes: usize,
}

/// Whether a call asks for the size of its workspace, or queues work in it.
enum Purpose<'a> {
    Size(&'a mut usize),
    Queue(Raw),
}

impl SparseHandle {
    fn create(call: &'static str, context: &Arc<Context>) -> Result<Arc<Self>> {
        let api = SparseApi::load(call)?;
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and the context is current.
        let status = unsafe { (api.create)(raw.slot()) };
        check("cusparseCreate", status).map_err(|failure| failure.error(call, "a handle"))?;
        Ok(Arc::new(Self { api, raw, context: context.clone(), turn: Mutex::new(()) }))
    }
}

impl Drop for SparseHandle {
    fn drop(&mut self) {
        let (api, raw) = (self.api, self.raw);
        self.context.free_when_idle(move |_| {
            // SAFETY: this was the only owner.
            unsafe { (api.destroy)(raw.raw()) };
            0
        });
    }
}

/// Makes a descriptor.
fn describe(
    call: &'static str,
    destroy: unsafe extern "C" fn(Raw) -> i32,
    create: impl FnOnce(*mut Raw) -> i32,
) -> SparseResult<Descriptor> {
    Descriptor::make(LibraryKind::Cusparse, call, destroy, create)
}

impl SparseCall {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &Operation) -> Result<Self> {
        let mut known = device.cusparse.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*known {
            Some(handle) => handle.clone(),
            None => known.insert(SparseHandle::create(call, &device.context)?).clone(),
        };
        drop(known);
        let mut prepared = Self { operation: *operation, handle, workspace_bytes: 0 };
        let operands = operation.operands();
        let packed = placeholders(&operands, 0);
        let arguments = OperationArguments::new(call, operation.name(), &operands, 0, &packed)?;
        let mut bytes = 0;
        let turn = prepared.handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held, and nothing is accessed to say a size.
        let asked = unsafe { prepared.call(&arguments, Purpose::Size(&mut bytes)) };
        drop(turn);
        asked.map_err(|failure| failure.error(call, &operation.to_string()))?;
        prepared.workspace_bytes = bytes;
        Ok(prepared)
    }

    /// # Safety
    /// The caller holds the lock of the handle, and vouches for the addresses where something is queued.
    unsafe fn call(&self, arguments: &OperationArguments<'_>, purpose: Purpose<'_>) -> SparseResult<()> {
        // SAFETY: the caller vouches for all of them.
        unsafe {
            match self.operation {
                Operation::Spmv(spmv) => self.spmv(&spmv, arguments, purpose),
                Operation::Spmm(spmm) => self.spmm(&spmm, arguments, purpose),
                Operation::SparseToDense(to_dense) => self.to_dense(&to_dense, arguments, purpose),
                _ => check("cusparse", NOT_SUPPORTED),
            }
        }
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn spmv(
        &self,
        o: &Spmv,
        arguments: &OperationArguments<'_>,
        purpose: Purpose<'_>,
    ) -> SparseResult<()> {
        let (api, raw, kind) = (self.handle.api, self.handle.raw.raw(), library_enums::data_type(o.element));
        let (x_len, y_len) = o.lengths();
        let a = self.sparse(o.format, (o.rows, o.columns, o.nonzeros), (o.index, o.element), arguments)?;
        let (x, y) =
            (self.vector(x_len, o.element, arguments, 3)?, self.vector(y_len, o.element, arguments, 4)?);
        let (alpha, beta) = scalars(o.element, o.accumulate, arguments);
        let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
        let op = library_enums::transposition(o.transposed);
        let algorithm = match (o.order, o.format) {
            (Determinism::Any, _) => DEFAULT_ALGORITHM,
            (Determinism::RunToRun, SparseFormat::Csr) => SPMV_CSR_ALG2,
            (Determinism::RunToRun, SparseFormat::Coo) => SPMV_COO_ALG2,
        };
        // SAFETY: descriptors and scalars are live locals; sizes were checked to fit the memory that the caller vouches for.
        unsafe {
            match purpose {
                Purpose::Size(bytes) => {
                    let status = (api.spmv_size)(
                        raw,
                        op,
                        alpha,
                        a.raw(),
                        x.raw(),
                        beta,
                        y.raw(),
                        kind,
                        algorithm,
                        bytes,
                    );
                    check("cusparseSpMV_bufferSize", status)
                }
                Purpose::Queue(work) => {
                    let status =
                        (api.spmv)(raw, op, alpha, a.raw(), x.raw(), beta, y.raw(), kind, algorithm, work);
                    check("cusparseSpMV", status)
                }
            }
        }
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn spmm(
        &self,
        o: &Spmm,
        arguments: &OperationArguments<'_>,
        purpose: Purpose<'_>,
    ) -> SparseResult<()> {
        let (api, raw, kind) = (self.handle.api, self.handle.raw.raw(), library_enums::data_type(o.element));
        let (b_rows, c_rows) = o.dense_rows();
        let a = self.sparse(o.format, (o.rows, o.columns, o.nonzeros), (o.index, o.element), arguments)?;
        let b = self.dense((b_rows, o.n), o.b_leading, o.layout, (o.element, arguments, 3))?;
        let c = self.dense((c_rows, o.n), o.c_leading, o.layout, (o.element, arguments, 4))?;
        let (alpha, beta) = scalars(o.element, o.accumulate, arguments);
        let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
        let (op, plain) = (library_enums::transposition(o.transposed), library_enums::transposition(false));
        let algorithm = match (o.order, o.format) {
            (Determinism::Any, _) => DEFAULT_ALGORITHM,
            (Determinism::RunToRun, SparseFormat::Csr) => SPMM_CSR_ALG3,
            (Determinism::RunToRun, SparseFormat::Coo) => SPMM_COO_ALG2,
        };
        // SAFETY: as for `spmv`.
        unsafe {
            match purpose {
                Purpose::Size(bytes) => {
                    let status = (api.spmm_size)(
                        raw,
                        op,
                        plain,
                        alpha,
                        a.raw(),
                        b.raw(),
                        beta,
                        c.raw(),
                        kind,
                        algorithm,
                        bytes,
                    );
                    check("cusparseSpMM_bufferSize", status)
                }
                Purpose::Queue(work) => {
                    let status = (api.spmm)(
                        raw,
                        op,
                        plain,
                        alpha,
                        a.raw(),
                        b.raw(),
                        beta,
                        c.raw(),
                        kind,
                        algorithm,
                        work,
                    );
                    check("cusparseSpMM", status)
                }
            }
        }
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn to_dense(
        &self,
        o: &SparseToDense,
        arguments: &OperationArguments<'_>,
        purpose: Purpose<'_>,
    ) -> SparseResult<()> {
        let (api, raw) = (self.handle.api, self.handle.raw.raw());
        let a = self.sparse(o.format, (o.rows, o.columns, o.nonzeros), (o.index, o.element), arguments)?;
        let dense = self.dense((o.rows, o.columns), o.leading, o.layout, (o.element, arguments, 3))?;
        // SAFETY: as for `spmv`.
        unsafe {
            match purpose {
                Purpose::Size(bytes) => {
                    let status = (api.to_dense_size)(raw, a.raw(), dense.raw(), DEFAULT_ALGORITHM, bytes);
                    check("cusparseSparseToDense_bufferSize", status)
                }
                Purpose::Queue(work) => {
                    let status = (api.to_dense)(raw, a.raw(), dense.raw(), DEFAULT_ALGORITHM, work);
                    check("cusparseSparseToDense", status)
                }
            }
        }
    }

    /// The sparse matrix in the first three operands.
    fn sparse(
        &self,
        format: SparseFormat,
        (rows, columns, nonzeros): (u64, u64, u64),
        (index, element): (IndexType, ElementType),
        arguments: &OperationArguments<'_>,
    ) -> SparseResult<Descriptor> {
        let (api, base) = (self.handle.api, ZERO_BASED);
        let (rows, columns, nonzeros) = (long(rows), long(columns), long(nonzeros));
        let (index, element) = (library_enums::index_type(index), library_enums::data_type(element));
        let (first, second, values) = (arguments.address(0), arguments.address(1), arguments.address(2));
        let call = match format {
            SparseFormat::Csr => "cusparseCreateCsr",
            SparseFormat::Coo => "cusparseCreateCoo",
        };
        describe(call, api.destroy_sparse, |slot| {
            // SAFETY: the out-parameter is a live local of the caller, and addresses are not accessed.
            unsafe {
                match format {
                    SparseFormat::Csr => (api.create_csr)(
                        slot, rows, columns, nonzeros, first, second, values, index, index, base, element,
                    ),
                    SparseFormat::Coo => (api.create_coo)(
                        slot, rows, columns, nonzeros, first, second, values, index, base, element,
                    ),
                }
            }
        })
    }

    fn vector(
        &self,
        len: u64,
        element: ElementType,
        arguments: &OperationArguments<'_>,
        index: usize,
    ) -> SparseResult<Descriptor> {
        let api = self.handle.api;
        describe("cusparseCreateDnVec", api.destroy_vector, |slot| {
            // SAFETY: as for `sparse`.
            unsafe {
                (api.create_vector)(
                    slot,
                    long(len),
                    arguments.address(index),
                    library_enums::data_type(element),
                )
            }
        })
    }

    fn dense(
        &self,
        (rows, columns): (u64, u64),
        leading: u64,
        layout: DenseLayout,
        (element, arguments, index): (ElementType, &OperationArguments<'_>, usize),
    ) -> SparseResult<Descriptor> {
        let api = self.handle.api;
        let (kind, order) = (library_enums::data_type(element), library_enums::dense_order(layout));
        describe("cusparseCreateDnMat", api.destroy_dense, |slot| {
            let (rows, columns, leading) = (long(rows), long(columns), long(leading));
            // SAFETY: as for `sparse`.
            unsafe { (api.create_dense)(slot, rows, columns, leading, arguments.address(index), kind, order) }
        })
    }
}

/// `CUSPARSE_INDEX_BASE_ZERO`.
const ZERO_BASED: i32 = 0;

impl PreparedOperation for SparseCall {
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes as u64
    }

    unsafe fn queue(&self, stream: sys::CUstream, arguments: &OperationArguments<'_>) -> SparseResult<()> {
        let handle = &self.handle;
        let _turn = handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: here and below, the lock keeps others from the handle, and the caller vouches for stream and addresses.
        check("cusparseSetStream", unsafe { (handle.api.set_stream)(handle.raw.raw(), stream) })?;
        let work = match self.workspace_bytes {
            0 => std::ptr::null_mut(),
            _ => arguments.workspace(),
        };
        // SAFETY: as above.
        unsafe { self.call(arguments, Purpose::Queue(work)) }
    }
}

/// Alpha, which is the sixth argument, and beta behind it, or 0.
fn scalars(element: ElementType, accumulate: bool, arguments: &OperationArguments<'_>) -> ([u8; 8], [u8; 8]) {
    let beta = if accumulate { arguments.scalar(6) } else { 0.0 };
    (scalar(element, arguments.scalar(5)), scalar(element, beta))
}

/// A size or distance, which was checked to fit.
fn long(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn check(call: &'static str, status: i32) -> SparseResult<()> {
    LibraryFailure::check(LibraryKind::Cusparse, call, status)
}
