//! Products of square matrices by cuBLASLt.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use kiln_cuda::LibraryKind;

use super::{check, entry_points};
use crate::Failure;
use crate::raw::Raw;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;

entry_points! {
    LtApi of LibraryKind::CublasLt => {
        create = "cublasLtCreate"(*mut Handle);
        desc_create = "cublasLtMatmulDescCreate"(*mut Handle, i32, i32);
        desc_set = "cublasLtMatmulDescSetAttribute"(Handle, i32, In, usize);
        layout_create = "cublasLtMatrixLayoutCreate"(*mut Handle, i32, u64, u64, i64);
        pref_create = "cublasLtMatmulPreferenceCreate"(*mut Handle);
        pref_set = "cublasLtMatmulPreferenceSetAttribute"(Handle, i32, In, usize);
        heuristic = "cublasLtMatmulAlgoGetHeuristic"(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Heuristic, *mut i32,
        );
        matmul = "cublasLtMatmul"(
            Handle, Handle, In, In, Handle, In, Handle, In, In, Handle, Out, Handle, *const [u64; 8], Out, usize,
            sys::CUstream,
        );
    }
}

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

const DESC_TRANSA: i32 = 3;
const PREF_MAX_WORKSPACE_BYTES: i32 = 1;
/// `CUBLAS_COMPUTE_32F`, `CUDA_R_32F`, `CUDA_R_16BF`, `CUBLAS_OP_T`.
const COMPUTE_F32: i32 = 68;
const F32: i32 = 0;
const BF16: i32 = 14;
const TRANSPOSED: i32 = 1;
/// Workspace at most, as kiln's products have it.
const WORKSPACE_LIMIT_BYTES: usize = 32 << 20;

/// `D = Aᵀ B` of square matrices of `bf16`, with the algorithm that the library expects to be the fastest.
pub(crate) struct LtProduct {
    api: LtApi,
    handle: Handle,
    product: Handle,
    matrix: Handle,
    algorithm: [u64; 8],
    workspace: u64,
    workspace_bytes: usize,
}

impl LtProduct {
    pub(crate) fn new(raw: &Raw, n: usize) -> Result<Self, Failure> {
        let api = LtApi::load()?;
        let (mut handle, mut product) = (ptr::null_mut(), ptr::null_mut());
        let (mut matrix, mut preference) = (ptr::null_mut(), ptr::null_mut());
        let (mut found, mut count) = (Heuristic::default(), 0);
        let (transposed, limit) = (TRANSPOSED, WORKSPACE_LIMIT_BYTES);
        // SAFETY: out-parameters are live locals, attributes are given with their sizes, and descriptors were made just before.
        unsafe {
            check("cublasLtCreate", (api.create)(&mut handle))?;
            check("cublasLtMatmulDescCreate", (api.desc_create)(&mut product, COMPUTE_F32, F32))?;
            let set = (api.desc_set)(product, DESC_TRANSA, (&raw const transposed).cast(), size_of::<i32>());
            check("cublasLtMatmulDescSetAttribute", set)?;
            let made = (api.layout_create)(&mut matrix, BF16, n as u64, n as u64, n as i64);
            check("cublasLtMatrixLayoutCreate", made)?;
            check("cublasLtMatmulPreferenceCreate", (api.pref_create)(&mut preference))?;
            let limit = (&raw const limit).cast();
            let set = (api.pref_set)(preference, PREF_MAX_WORKSPACE_BYTES, limit, size_of::<usize>());
            check("cublasLtMatmulPreferenceSetAttribute", set)?;
            let status = (api.heuristic)(
                handle, product, matrix, matrix, matrix, matrix, preference, 1, &mut found, &mut count,
            );
            check("cublasLtMatmulAlgoGetHeuristic", status)?;
        }
        if count < 1 {
            return Err("cuBLASLt proposes no algorithm".into());
        }
        check("cublasLtMatmulAlgoGetHeuristic", found.state)?;
        let workspace = if found.workspace_bytes > 0 { raw.memory(found.workspace_bytes)? } else { 0 };
        let (algorithm, workspace_bytes) = (found.algorithm, found.workspace_bytes);
        Ok(Self { api, handle, product, matrix, algorithm, workspace, workspace_bytes })
    }

    /// Queues a product of matrices at these addresses: both factors, then the result.
    pub(crate) fn queue(&self, stream: sys::CUstream, [a, b, d]: [u64; 3]) -> Result<(), Failure> {
        let (one, zero) = (1_f32, 0_f32);
        let [a, b, d] = [a, b, d].map(at);
        // SAFETY: descriptors and algorithm belong together, scalars are live locals, and the addresses are those of matrices that live until
        // the caller has waited for the stream.
        let status = unsafe {
            (self.api.matmul)(
                self.handle,
                self.product,
                (&raw const one).cast(),
                a,
                self.matrix,
                b,
                self.matrix,
                (&raw const zero).cast(),
                d,
                self.matrix,
                d,
                self.matrix,
                &self.algorithm,
                at(self.workspace),
                self.workspace_bytes,
                stream,
            )
        };
        check("cublasLtMatmul", status)
    }
}

fn at(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}
