//! The entry points of cuSPARSE: its generic functions.

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::libraries::LibraryKind;
use crate::operation::symbol_lookup::entry_points;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;
type Size = *mut usize;

entry_points! {
    /// The entry points of cuSPARSE.
    SparseApi of LibraryKind::Cusparse => {
        create = "cusparseCreate"(*mut Handle);
        destroy = "cusparseDestroy"(Handle);
        set_stream = "cusparseSetStream"(Handle, sys::CUstream);
        create_csr = "cusparseCreateCsr"(
            *mut Handle, i64, i64, i64, Out, Out, Out, i32, i32, i32, i32,
        );
        create_coo = "cusparseCreateCoo"(*mut Handle, i64, i64, i64, Out, Out, Out, i32, i32, i32);
        destroy_sparse = "cusparseDestroySpMat"(Handle);
        create_vector = "cusparseCreateDnVec"(*mut Handle, i64, Out, i32);
        destroy_vector = "cusparseDestroyDnVec"(Handle);
        create_dense = "cusparseCreateDnMat"(*mut Handle, i64, i64, i64, Out, i32, i32);
        destroy_dense = "cusparseDestroyDnMat"(Handle);
        spmv_size = "cusparseSpMV_bufferSize"(
            Handle, i32, In, Handle, Handle, In, Handle, i32, i32, Size,
        );
        spmv = "cusparseSpMV"(Handle, i32, In, Handle, Handle, In, Handle, i32, i32, Out);
        spmm_size = "cusparseSpMM_bufferSize"(
            Handle, i32, i32, In, Handle, Handle, In, Handle, i32, i32, Size,
        );
        spmm = "cusparseSpMM"(Handle, i32, i32, In, Handle, Handle, In, Handle, i32, i32, Out);
        to_dense_size = "cusparseSparseToDense_bufferSize"(Handle, Handle, Handle, i32, Size);
        to_dense = "cusparseSparseToDense"(Handle, Handle, Handle, i32, Out);
    }
}
