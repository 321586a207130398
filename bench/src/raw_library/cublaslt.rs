//! Products of square matrices by cuBLASLt.

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys;
use kiln_cuda::LibraryKind;

use super::{check, entry_points};
use crate::Failure;
use crate::raw_driver::Raw;

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
/// `CUBLAS_OP_T`.
const TRANSPOSED: i32 = 1;
/// Workspace at most, as kiln's products have it.
const WORKSPACE_LIMIT_BYTES: usize = 32 << 20;

/// The types of a product, by the numbers of `cudaDataType` and `cublasComputeType_t`.
#[derive(Clone, Copy)]
pub(crate) struct ProductTypes {
    input: i32,
    output: i32,
    compute: i32,
    scale: i32,
}

impl ProductTypes {
    pub(crate) const BF16: Self = Self { input: 14, output: 14, compute: 68, scale: 0 };
    pub(crate) const F32: Self = Self { input: 0, output: 0, compute: 68, scale: 0 };
    pub(crate) const TF32: Self = Self { compute: 77, ..Self::F32 };
    pub(crate) const F64: Self = Self { input: 1, output: 1, compute: 70, scale: 1 };
    /// Factors of `f8e4m3`, a result of `bf16`.
    pub(crate) const F8: Self = Self { input: 28, ..Self::BF16 };

    /// A scalar of the scale type, in its first bytes.
    fn scalar(self, value: f32) -> [u8; 8] {
        if self.scale == Self::F64.scale {
            return f64::from(value).to_ne_bytes();
        }
        let [a, b, c, d] = value.to_ne_bytes();
        [a, b, c, d, 0, 0, 0, 0]
    }
}

/// `D = Aᵀ B` of square matrices, with one of the algorithms that the library proposes.
pub(crate) struct LtProduct {
    api: Rc<LtApi>,
    types: ProductTypes,
    handle: Handle,
    product: Handle,
    input: Handle,
    output: Handle,
    algorithm: [u64; 8],
    workspace: u64,
    workspace_bytes: usize,
}

impl LtProduct {
    /// With the algorithm that the library expects to be the fastest.
    pub(crate) fn new(raw: &Raw, types: ProductTypes, n: usize) -> Result<Self, Failure> {
        Self::proposed(raw, types, n, 1)?.pop().ok_or_else(|| "cuBLASLt proposes no algorithm".into())
    }

    /// With each of the first algorithms that the library proposes. They share a workspace: no two may run at the same time.
    pub(crate) fn proposed(
        raw: &Raw,
        types: ProductTypes,
        n: usize,
        at_most: usize,
    ) -> Result<Vec<Self>, Failure> {
        let api = Rc::new(LtApi::load()?);
        let (mut handle, mut product) = (ptr::null_mut(), ptr::null_mut());
        let (mut input, mut output, mut preference) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let (mut found, mut count) = (vec![Heuristic::default(); at_most], 0);
        let (transposed, limit) = (TRANSPOSED, WORKSPACE_LIMIT_BYTES);
        // SAFETY: out-parameters are live locals with room for what is asked for, attributes are given with their sizes, and descriptors were
        // made just before.
        unsafe {
            check("cublasLtCreate", (api.create)(&mut handle))?;
            check("cublasLtMatmulDescCreate", (api.desc_create)(&mut product, types.compute, types.scale))?;
            let set = (api.desc_set)(product, DESC_TRANSA, (&raw const transposed).cast(), size_of::<i32>());
            check("cublasLtMatmulDescSetAttribute", set)?;
            for (layout, element) in [(&mut input, types.input), (&mut output, types.output)] {
                let made = (api.layout_create)(layout, element, n as u64, n as u64, n as i64);
                check("cublasLtMatrixLayoutCreate", made)?;
            }
            check("cublasLtMatmulPreferenceCreate", (api.pref_create)(&mut preference))?;
            let limit = (&raw const limit).cast();
            let set = (api.pref_set)(preference, PREF_MAX_WORKSPACE_BYTES, limit, size_of::<usize>());
            check("cublasLtMatmulPreferenceSetAttribute", set)?;
            let status = (api.heuristic)(
                handle,
                product,
                input,
                input,
                output,
                output,
                preference,
                at_most as i32,
                found.as_mut_ptr(),
                &mut count,
            );
            check("cublasLtMatmulAlgoGetHeuristic", status)?;
        }
        found.truncate(count.max(0) as usize);
        found.retain(|proposal| proposal.state == 0);
        let most = found.iter().map(|proposal| proposal.workspace_bytes).max().unwrap_or(0);
        let workspace = if most > 0 { raw.memory(most)? } else { 0 };
        let with = |Heuristic { algorithm, workspace_bytes, .. }: Heuristic| Self {
            api: Rc::clone(&api),
            types,
            handle,
            product,
            input,
            output,
            algorithm,
            workspace,
            workspace_bytes,
        };
        Ok(found.into_iter().map(with).collect())
    }

    /// Queues a product of matrices at these addresses: both factors, then the result.
    pub(crate) fn queue(&self, stream: sys::CUstream, [a, b, d]: [u64; 3]) -> Result<(), Failure> {
        let (one, zero) = (self.types.scalar(1.0), self.types.scalar(0.0));
        let [a, b, d] = [a, b, d].map(at);
        // SAFETY: descriptors and algorithm belong together, scalars are live locals, and the addresses are those of matrices that live until
        // the caller has waited for the stream.
        let status = unsafe {
            (self.api.matmul)(
                self.handle,
                self.product,
                (&raw const one).cast(),
                a,
                self.input,
                b,
                self.input,
                (&raw const zero).cast(),
                d,
                self.output,
                d,
                self.output,
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
