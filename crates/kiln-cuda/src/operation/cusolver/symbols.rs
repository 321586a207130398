//! The entry points of cuSOLVER: its functions of 64 bits, and those of 32 bits where it has no others.

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::libraries::LibraryKind;
use crate::operation::symbol_lookup::entry_points;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;
type Size = *mut usize;

entry_points! {
    /// The entry points of cuSOLVER; `s` is for `f32`, `d` for `f64`, the others take both.
    SolverApi of LibraryKind::Cusolver => {
        create = "cusolverDnCreate"(*mut Handle);
        destroy = "cusolverDnDestroy"(Handle);
        set_stream = "cusolverDnSetStream"(Handle, sys::CUstream);
        create_params = "cusolverDnCreateParams"(*mut Handle);
        destroy_params = "cusolverDnDestroyParams"(Handle);
        create_gesvdj_info = "cusolverDnCreateGesvdjInfo"(*mut Handle);
        destroy_gesvdj_info = "cusolverDnDestroyGesvdjInfo"(Handle);
        potrf_size = "cusolverDnXpotrf_bufferSize"(Handle, Handle, i32, i64, i32, In, i64, i32, Size, Size);
        potrf = "cusolverDnXpotrf"(
            Handle, Handle, i32, i64, i32, Out, i64, i32, Out, usize, Out, usize, Out,
        );
        potrs = "cusolverDnXpotrs"(Handle, Handle, i32, i64, i64, i32, In, i64, i32, Out, i64, Out);
        getrf_size = "cusolverDnXgetrf_bufferSize"(Handle, Handle, i64, i64, i32, In, i64, i32, Size, Size);
        getrf = "cusolverDnXgetrf"(
            Handle, Handle, i64, i64, i32, Out, i64, Out, i32, Out, usize, Out, usize, Out,
        );
        getrs = "cusolverDnXgetrs"(Handle, Handle, i32, i64, i64, i32, In, i64, In, i32, Out, i64, Out);
        geqrf_size = "cusolverDnXgeqrf_bufferSize"(
            Handle, Handle, i64, i64, i32, In, i64, i32, In, i32, Size, Size,
        );
        geqrf = "cusolverDnXgeqrf"(
            Handle, Handle, i64, i64, i32, Out, i64, i32, Out, i32, Out, usize, Out, usize, Out,
        );
        syevd_size = "cusolverDnXsyevd_bufferSize"(
            Handle, Handle, i32, i32, i64, i32, In, i64, i32, In, i32, Size, Size,
        );
        syevd = "cusolverDnXsyevd"(
            Handle, Handle, i32, i32, i64, i32, Out, i64, i32, Out, i32, Out, usize, Out, usize, Out,
        );
        sormqr_size = "cusolverDnSormqr_bufferSize"(
            Handle, i32, i32, i32, i32, i32, In, i32, In, In, i32, *mut i32,
        );
        dormqr_size = "cusolverDnDormqr_bufferSize"(
            Handle, i32, i32, i32, i32, i32, In, i32, In, In, i32, *mut i32,
        );
        sormqr = "cusolverDnSormqr"(
            Handle, i32, i32, i32, i32, i32, In, i32, In, Out, i32, Out, i32, Out,
        );
        dormqr = "cusolverDnDormqr"(
            Handle, i32, i32, i32, i32, i32, In, i32, In, Out, i32, Out, i32, Out,
        );
        sorgqr_size = "cusolverDnSorgqr_bufferSize"(Handle, i32, i32, i32, In, i32, In, *mut i32);
        dorgqr_size = "cusolverDnDorgqr_bufferSize"(Handle, i32, i32, i32, In, i32, In, *mut i32);
        sorgqr = "cusolverDnSorgqr"(Handle, i32, i32, i32, Out, i32, In, Out, i32, Out);
        dorgqr = "cusolverDnDorgqr"(Handle, i32, i32, i32, Out, i32, In, Out, i32, Out);
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
