//! Numbers of the libraries' enums.

use kiln_operation::{
    Activation, DenseLayout, Diagonal, ElementType, Epilogue, FftKind, IndexType, Math, Side, Triangle,
};

use super::half_bits::f16_bits;

/// `cudaDataType`.
pub(super) fn data_type(element: ElementType) -> i32 {
    match element {
        ElementType::F32 => 0,
        ElementType::F64 => 1,
        ElementType::F16 => 2,
        ElementType::I8 => 3,
        ElementType::I32 => 10,
        ElementType::Bf16 => 14,
        ElementType::F8E4M3 => 28,
        // A number that no library knows, which it refuses.
        _ => -1,
    }
}

/// `cublasComputeType_t`, and the type of alpha and beta.
pub(super) fn compute_type(math: Math, input: ElementType) -> (i32, ElementType) {
    match (math, input) {
        (Math::F16, _) => (64, ElementType::F16),
        (Math::Tf32, _) => (77, ElementType::F32),
        (Math::Bf16x9, _) => (78, ElementType::F32),
        (Math::Ieee, ElementType::F64) => (70, ElementType::F64),
        (Math::Ieee, ElementType::I8) => (72, ElementType::I32),
        (Math::Ieee, _) => (68, ElementType::F32),
    }
}

/// `cublasLtEpilogue_t`.
pub(super) fn epilogue(epilogue: Epilogue) -> i32 {
    match (epilogue.bias, epilogue.activation) {
        (false, Activation::None) => 1,
        (false, Activation::Relu) => 2,
        (true, Activation::None) => 4,
        (true, Activation::Relu) => 6,
        (false, Activation::Gelu) => 32,
        (true, Activation::Gelu) => 36,
    }
}

/// `cublasOperation_t`.
pub(super) fn transposition(transposed: bool) -> i32 {
    i32::from(transposed)
}

/// `cublasFillMode_t`.
pub(super) fn fill_mode(triangle: Triangle) -> i32 {
    match triangle {
        Triangle::Lower => 0,
        Triangle::Upper => 1,
    }
}

/// `cublasSideMode_t`.
pub(super) fn side(side: Side) -> i32 {
    match side {
        Side::Left => 0,
        Side::Right => 1,
    }
}

/// `cublasDiagType_t`.
pub(super) fn diagonal(diagonal: Diagonal) -> i32 {
    match diagonal {
        Diagonal::Stored => 0,
        Diagonal::Unit => 1,
    }
}

/// `cufftType`.
pub(super) fn fft_type(kind: FftKind, element: ElementType) -> i32 {
    match (kind, element) {
        (FftKind::RealForward, ElementType::F64) => 0x6a,
        (FftKind::RealInverse, ElementType::F64) => 0x6c,
        (_, ElementType::F64) => 0x69,
        (FftKind::RealForward, _) => 0x2a,
        (FftKind::RealInverse, _) => 0x2c,
        (_, _) => 0x29,
    }
}

/// `cusparseIndexType_t`.
pub(super) fn index_type(index: IndexType) -> i32 {
    match index {
        IndexType::I32 => 2,
        IndexType::I64 => 3,
    }
}

/// `cusparseOrder_t`.
pub(super) fn dense_order(layout: DenseLayout) -> i32 {
    match layout {
        DenseLayout::Columns => 1,
        DenseLayout::Rows => 2,
    }
}

/// A scalar in the type a library takes it in, in the first bytes.
#[inline]
pub(super) fn scalar(element: ElementType, value: f64) -> [u8; 8] {
    let mut bytes = [0; 8];
    match element {
        ElementType::F64 => bytes = value.to_ne_bytes(),
        ElementType::F32 => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
        ElementType::I32 => bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
        ElementType::F16 => bytes[..2].copy_from_slice(&f16_bits(value).to_ne_bytes()),
        _ => {}
    }
    bytes
}
