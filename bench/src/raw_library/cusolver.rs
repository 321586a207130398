//! Cholesky factors and singular values by cuSOLVER.

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
type Size = *mut usize;

entry_points! {
    SolverApi of LibraryKind::Cusolver => {
        create = "cusolverDnCreate"(*mut Handle);
        set_stream = "cusolverDnSetStream"(Handle, sys::CUstream);
        create_params = "cusolverDnCreateParams"(*mut Handle);
        create_gesvdj_info = "cusolverDnCreateGesvdjInfo"(*mut Handle);
        potrf_size = "cusolverDnXpotrf_bufferSize"(Handle, Handle, i32, i64, i32, In, i64, i32, Size, Size);
        potrf = "cusolverDnXpotrf"(
            Handle, Handle, i32, i64, i32, Out, i64, i32, Out, usize, Out, usize, Out,
        );
        sgesvdj_size = "cusolverDnSgesvdj_bufferSize"(
            Handle, i32, i32, i32, i32, In, i32, In, In, i32, In, i32, *mut i32, Handle,
        );
        dgesvdj_size = "cusolverDnDgesvdj_bufferSize"(
            Handle, i32, i32, i32, i32, In, i32, In, In, i32, In, i32, *mut i32, Handle,
        );
        sgesvdj = "cusolverDnSgesvdj"(
            Handle, i32, i32, i32, i32, Out, i32, Out, Out, i32, Out, i32, Out, i32, Out, Handle,
        );
        dgesvdj = "cusolverDnDgesvdj"(
            Handle, i32, i32, i32, i32, Out, i32, Out, Out, i32, Out, i32, Out, i32, Out, Handle,
        );
    }
}

/// `CUBLAS_FILL_MODE_LOWER`, `CUSOLVER_EIG_MODE_VECTOR`, and only as many vectors as there are values.
const LOWER: i32 = 0;
const VECTORS: i32 = 1;
const THIN: i32 = 1;

/// The type of elements: `CUDA_R_32F` or `CUDA_R_64F`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Single = 0,
    Double = 1,
}

/// A handle of cuSOLVER with its stream, for square matrices of one order that are stored column after column.
pub(crate) struct Solver {
    api: SolverApi,
    handle: Handle,
    parameters: Handle,
    jacobi: Handle,
    precision: Precision,
    n: usize,
    info: u64,
}

/// Workspace of a call.
pub(crate) struct Workspace {
    device: u64,
    device_bytes: usize,
    host: Vec<u128>,
    host_bytes: usize,
    /// Elements, for functions that count so.
    elements: i32,
}

impl Solver {
    pub(crate) fn new(
        raw: &Raw,
        stream: sys::CUstream,
        precision: Precision,
        n: usize,
    ) -> Result<Self, Failure> {
        let api = SolverApi::load()?;
        let (mut handle, mut parameters, mut jacobi) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: out-parameters are live locals, and the stream lives as long as the process.
        unsafe {
            check("cusolverDnCreate", (api.create)(&mut handle))?;
            check("cusolverDnCreateParams", (api.create_params)(&mut parameters))?;
            check("cusolverDnCreateGesvdjInfo", (api.create_gesvdj_info)(&mut jacobi))?;
            check("cusolverDnSetStream", (api.set_stream)(handle, stream))?;
        }
        Ok(Self { api, handle, parameters, jacobi, precision, n, info: raw.memory(256)? })
    }

    /// Workspace of a Cholesky factorisation.
    pub(crate) fn cholesky_workspace(&self, raw: &Raw, a: u64) -> Result<Workspace, Failure> {
        let (mut device_bytes, mut host_bytes) = (0, 0);
        let (kind, n) = (self.precision as i32, self.n as i64);
        // SAFETY: the matrix is not accessed to say a size, and out-parameters are live locals.
        let status = unsafe {
            (self.api.potrf_size)(
                self.handle,
                self.parameters,
                LOWER,
                n,
                kind,
                at(a),
                n,
                kind,
                &mut device_bytes,
                &mut host_bytes,
            )
        };
        check("cusolverDnXpotrf_bufferSize", status)?;
        let host = vec![0; host_bytes.div_ceil(size_of::<u128>())];
        Ok(Workspace {
            device: raw.memory(device_bytes.max(1))?,
            device_bytes,
            host,
            host_bytes,
            elements: 0,
        })
    }

    /// Queues a Cholesky factorisation of the lower triangle.
    pub(crate) fn cholesky(&self, a: u64, work: &mut Workspace) -> Result<(), Failure> {
        let (kind, n) = (self.precision as i32, self.n as i64);
        let host = if work.host_bytes > 0 { work.host.as_mut_ptr().cast() } else { ptr::null_mut() };
        // SAFETY: the matrix has this order, and both workspaces are as large as the library asked for.
        let status = unsafe {
            (self.api.potrf)(
                self.handle,
                self.parameters,
                LOWER,
                n,
                kind,
                at(a),
                n,
                kind,
                at(work.device),
                work.device_bytes,
                host,
                work.host_bytes,
                at(self.info),
            )
        };
        check("cusolverDnXpotrf", status)
    }

    /// Workspace of singular values and vectors: the matrix, the values, and both matrices of vectors.
    pub(crate) fn svd_workspace(&self, raw: &Raw, addresses: [u64; 4]) -> Result<Workspace, Failure> {
        let size = match self.precision {
            Precision::Single => self.api.sgesvdj_size,
            Precision::Double => self.api.dgesvdj_size,
        };
        let (n, [a, s, u, v]) = (self.n as i32, addresses.map(at));
        let mut elements = 0;
        // SAFETY: matrices are not accessed to say a size, and the out-parameter is a live local.
        let status = unsafe {
            size(self.handle, VECTORS, THIN, n, n, a, n, s, u, n, v, n, &mut elements, self.jacobi)
        };
        check("cusolverDnGesvdj_bufferSize", status)?;
        let element_bytes = if self.precision == Precision::Single { 4 } else { 8 };
        let device_bytes = usize::try_from(elements)? * element_bytes;
        Ok(Workspace {
            device: raw.memory(device_bytes.max(1))?,
            device_bytes,
            host: Vec::new(),
            host_bytes: 0,
            elements,
        })
    }

    /// Computes singular values and vectors. The library waits for the device in between.
    pub(crate) fn svd(&self, addresses: [u64; 4], work: &Workspace) -> Result<(), Failure> {
        let gesvdj = match self.precision {
            Precision::Single => self.api.sgesvdj,
            Precision::Double => self.api.dgesvdj,
        };
        let (n, [a, s, u, v]) = (self.n as i32, addresses.map(at));
        let (device, info) = (at(work.device), at(self.info));
        // SAFETY: the matrices have this order, and the workspace is as large as the library asked for.
        let status = unsafe {
            gesvdj(
                self.handle,
                VECTORS,
                THIN,
                n,
                n,
                a,
                n,
                s,
                u,
                n,
                v,
                n,
                device,
                work.elements,
                info,
                self.jacobi,
            )
        };
        check("cusolverDnGesvdj", status)
    }
}

fn at(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}
