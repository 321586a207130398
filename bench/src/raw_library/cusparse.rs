//! Products of a sparse matrix and a vector by cuSPARSE.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use kiln_cuda::LibraryKind;

use super::{check, entry_points};
use crate::Failure;
use crate::raw_driver::Raw;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;

entry_points! {
    SparseApi of LibraryKind::Cusparse => {
        create = "cusparseCreate"(*mut Handle);
        set_stream = "cusparseSetStream"(Handle, sys::CUstream);
        create_csr = "cusparseCreateCsr"(
            *mut Handle, i64, i64, i64, Out, Out, Out, i32, i32, i32, i32,
        );
        destroy_sparse = "cusparseDestroySpMat"(Handle);
        create_vector = "cusparseCreateDnVec"(*mut Handle, i64, Out, i32);
        spmv_size = "cusparseSpMV_bufferSize"(
            Handle, i32, In, Handle, Handle, In, Handle, i32, i32, *mut usize,
        );
        spmv_preprocess = "cusparseSpMV_preprocess"(
            Handle, i32, In, Handle, Handle, In, Handle, i32, i32, Out,
        );
        spmv = "cusparseSpMV"(Handle, i32, In, Handle, Handle, In, Handle, i32, i32, Out);
    }
}

/// `CUSPARSE_OPERATION_NON_TRANSPOSE`, `CUSPARSE_INDEX_32I`, `CUSPARSE_INDEX_BASE_ZERO`, `CUDA_R_32F`.
const PLAIN: i32 = 0;
const I32: i32 = 2;
const ZERO_BASED: i32 = 0;
const F32: i32 = 0;
/// Algorithms of `cusparseSpMVAlg_t`: the library's choice, and the one with equal bits in each run.
pub(crate) const DEFAULT_ALGORITHM: i32 = 0;
pub(crate) const CSR_ALG2: i32 = 3;

/// A square sparse matrix of `f32` with indices of `i32`, as its addresses.
#[derive(Clone, Copy)]
pub(crate) struct CsrAddresses {
    pub(crate) rows: usize,
    pub(crate) nonzeros: usize,
    pub(crate) offsets: u64,
    pub(crate) indices: u64,
    pub(crate) values: u64,
}

/// `y = A x`.
pub(crate) struct SparseProduct {
    api: SparseApi,
    handle: Handle,
    addresses: CsrAddresses,
    matrix: Handle,
    x: Handle,
    y: Handle,
    algorithm: i32,
    workspace: u64,
}

impl SparseProduct {
    pub(crate) fn new(
        raw: &Raw,
        stream: sys::CUstream,
        addresses: CsrAddresses,
        (x_address, y_address): (u64, u64),
        algorithm: i32,
    ) -> Result<Self, Failure> {
        let api = SparseApi::load()?;
        let (mut handle, mut x, mut y) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let len = addresses.rows as i64;
        // SAFETY: out-parameters are live locals, and addresses are not accessed.
        unsafe {
            check("cusparseCreate", (api.create)(&mut handle))?;
            check("cusparseSetStream", (api.set_stream)(handle, stream))?;
            check("cusparseCreateDnVec", (api.create_vector)(&mut x, len, at(x_address), F32))?;
            check("cusparseCreateDnVec", (api.create_vector)(&mut y, len, at(y_address), F32))?;
        }
        let matrix = descriptor(&api, addresses)?;
        let (one, zero) = (1_f32, 0_f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let mut bytes = 0;
        // SAFETY: descriptors and scalars live, and the out-parameter is a live local.
        let status =
            unsafe { (api.spmv_size)(handle, PLAIN, one, matrix, x, zero, y, F32, algorithm, &mut bytes) };
        check("cusparseSpMV_bufferSize", status)?;
        let workspace = raw.memory(bytes.max(1))?;
        Ok(Self { api, handle, addresses, matrix, x, y, algorithm, workspace })
    }

    /// Lets the library look at the matrix before the first product, and keep what it finds out.
    pub(crate) fn preprocess(&self) -> Result<(), Failure> {
        // SAFETY: descriptors live, and the workspace is as large as the library asked for.
        check("cusparseSpMV_preprocess", unsafe { self.call(self.api.spmv_preprocess, self.matrix) })
    }

    /// Queues a product.
    pub(crate) fn queue(&self) -> Result<(), Failure> {
        // SAFETY: as for `preprocess`, and the caller gave addresses of what lives until it has waited.
        check("cusparseSpMV", unsafe { self.call(self.api.spmv, self.matrix) })
    }

    /// Queues a product with a descriptor of the matrix that is made for it.
    pub(crate) fn queue_anew(&self) -> Result<(), Failure> {
        let matrix = descriptor(&self.api, self.addresses)?;
        // SAFETY: as for `queue`; the descriptor is memory of the host, which a queued product does not use.
        unsafe {
            let status = self.call(self.api.spmv, matrix);
            (self.api.destroy_sparse)(matrix);
            check("cusparseSpMV", status)
        }
    }

    /// # Safety
    /// The descriptor lives, and so do the arrays until the caller has waited for the stream.
    unsafe fn call(
        &self,
        function: unsafe extern "C" fn(Handle, i32, In, Handle, Handle, In, Handle, i32, i32, Out) -> i32,
        matrix: Handle,
    ) -> i32 {
        let (one, zero) = (1_f32, 0_f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let (handle, x, y, algorithm) = (self.handle, self.x, self.y, self.algorithm);
        // SAFETY: scalars are live locals; the caller vouches for the rest.
        unsafe { function(handle, PLAIN, one, matrix, x, zero, y, F32, algorithm, at(self.workspace)) }
    }
}

fn descriptor(api: &SparseApi, a: CsrAddresses) -> Result<Handle, Failure> {
    let mut matrix = ptr::null_mut();
    let (rows, nonzeros) = (a.rows as i64, a.nonzeros as i64);
    let (offsets, indices, values) = (at(a.offsets), at(a.indices), at(a.values));
    // SAFETY: the out-parameter is a live local, and addresses are not accessed.
    let status = unsafe {
        (api.create_csr)(
            &mut matrix,
            rows,
            rows,
            nonzeros,
            offsets,
            indices,
            values,
            I32,
            I32,
            ZERO_BASED,
            F32,
        )
    };
    check("cusparseCreateCsr", status)?;
    Ok(matrix)
}

fn at(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}
