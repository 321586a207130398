//! Matrix products by cuBLASLt.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Error, Refusal, Result};
use kiln_operation::{Determinism, ElementType, Layout, Matmul};

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::descriptor::Descriptor;
use super::failure::LibraryFailure;
use super::library_enums::{self, scalar};
use super::symbol_lookup::entry_points;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;
type LtResult<T> = std::result::Result<T, LibraryFailure>;

/// Attributes of a product: `cublasLtMatmulDescAttributes_t`.
const DESC_TRANSA: i32 = 3;
const DESC_TRANSB: i32 = 4;
const DESC_EPILOGUE: i32 = 7;
const DESC_BIAS_POINTER: i32 = 8;
const DESC_A_SCALE_POINTER: i32 = 17;
const DESC_B_SCALE_POINTER: i32 = 18;
const DESC_BIAS_DATA_TYPE: i32 = 26;
/// Attributes of a matrix: `cublasLtMatrixLayoutAttribute_t`.
const LAYOUT_BATCH_COUNT: i32 = 5;
const LAYOUT_STRIDED_BATCH_OFFSET: i32 = 6;
/// Attributes of a search: `cublasLtMatmulPreferenceAttributes_t`.
const PREF_MAX_WORKSPACE_BYTES: i32 = 1;
const PREF_REDUCTION_SCHEME_MASK: i32 = 3;
const PREF_MIN_ALIGNMENTS: [i32; 4] = [5, 6, 7, 8];
/// No part sums that are added in any order: `CUBLASLT_REDUCTION_SCHEME_NONE`.
const NO_REDUCTION: u32 = 0;

entry_points! {
    /// The entry points of cuBLASLt.
    LtApi of LibraryKind::CublasLt => {
        create = "cublasLtCreate"(*mut Handle);
        destroy = "cublasLtDestroy"(Handle);
        desc_create = "cublasLtMatmulDescCreate"(*mut Handle, i32, i32);
        desc_destroy = "cublasLtMatmulDescDestroy"(Handle);
        desc_set = "cublasLtMatmulDescSetAttribute"(Handle, i32, In, usize);
        layout_create = "cublasLtMatrixLayoutCreate"(*mut Handle, i32, u64, u64, i64);
        layout_destroy = "cublasLtMatrixLayoutDestroy"(Handle);
        layout_set = "cublasLtMatrixLayoutSetAttribute"(Handle, i32, In, usize);
        pref_create = "cublasLtMatmulPreferenceCreate"(*mut Handle);
        pref_destroy = "cublasLtMatmulPreferenceDestroy"(Handle);
        pref_set = "cublasLtMatmulPreferenceSetAttribute"(Handle, i32, In, usize);
        heuristic = "cublasLtMatmulAlgoGetHeuristic"(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Heuristic, *mut i32,
        );
        matmul = "cublasLtMatmul"(
            Handle, Handle, In, In, Handle, In, Handle, In, In, Handle, Out, Handle, *const Algorithm, Out, usize,
            sys::CUstream,
        );
    }
}

/// `cublasLtMatmulAlgo_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Algorithm {
    data: [u64; 8],
}

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Heuristic {
    algorithm: Algorithm,
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// The handle of a device. Any number of threads may use it at once.
pub(crate) struct LtHandle {
    api: &'static LtApi,
    raw: Native<c_void>,
    context: Arc<Context>,
}

/// A product with its algorithm.
pub(super) struct LtMatmul {
    operation: Matmul,
    scale: ElementType,
    product: Descriptor,
    /// The addresses of the bias and of scale factors are attributes of the product. A launch that has any sets those that differ from the last launch's, and holds
    /// this lock until the library has read them.
    attributes: Mutex<[u64; 3]>,
    a: Descriptor,
    b: Descriptor,
    d: Descriptor,
    algorithm: Algorithm,
    workspace_bytes: usize,
    handle: Arc<LtHandle>,
}

impl LtHandle {
    fn create(call: &'static str, context: &Arc<Context>) -> Result<Arc<Self>> {
        let api = LtApi::load(call)?;
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and the context is current.
        let status = unsafe { (api.create)(raw.slot()) };
        check("cublasLtCreate", status).map_err(|failure| failure.error(call, "a handle"))?;
        Ok(Arc::new(Self { api, raw, context: context.clone() }))
    }
}

impl Drop for LtHandle {
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
    destroy: unsafe extern "C" fn(Handle) -> i32,
    create: impl FnOnce(*mut Handle) -> i32,
) -> LtResult<Descriptor> {
    Descriptor::make(LibraryKind::CublasLt, call, destroy, create)
}

/// Sets an attribute of a descriptor with one of the library's functions for that.
fn set<T: Copy>(
    descriptor: &Descriptor,
    set: unsafe extern "C" fn(Handle, i32, In, usize) -> i32,
    attribute: i32,
    value: T,
) -> LtResult<()> {
    // SAFETY: the value is a live local of the size that is said, and is copied.
    let status = unsafe { set(descriptor.raw(), attribute, (&raw const value).cast(), size_of::<T>()) };
    check("cublasLt…SetAttribute", status)
}

impl LtMatmul {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &Matmul) -> Result<Self> {
        let mut known = device.cublaslt.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*known {
            Some(handle) => handle.clone(),
            None => known.insert(LtHandle::create(call, &device.context)?).clone(),
        };
        drop(known);
        if i32::try_from(operation.batch).is_err() {
            let what = format!("a batch of {}", operation.batch);
            return Err(Error::invalid(call, what, "split it into batches below 2^31"));
        }
        let made = Self::make(handle, operation);
        made.map_err(|failure| match failure {
            failure if failure.is_unsupported() => no_algorithm(call, operation),
            failure => failure.error(call, &operation.to_string()),
        })
    }

    fn make(handle: Arc<LtHandle>, operation: &Matmul) -> LtResult<Self> {
        let api = handle.api;
        let (compute, scale) = library_enums::compute_type(operation.math, operation.a.element);
        let product = describe("cublasLtMatmulDescCreate", api.desc_destroy, |slot| {
            // SAFETY: the out-parameter is a live local of the caller.
            unsafe { (api.desc_create)(slot, compute, library_enums::data_type(scale)) }
        })?;
        set(&product, api.desc_set, DESC_TRANSA, library_enums::transposition(operation.a.transposed))?;
        set(&product, api.desc_set, DESC_TRANSB, library_enums::transposition(operation.b.transposed))?;
        set(&product, api.desc_set, DESC_EPILOGUE, library_enums::epilogue(operation.epilogue))?;
        if operation.epilogue.bias {
            set(&product, api.desc_set, DESC_BIAS_DATA_TYPE, library_enums::data_type(operation.d.element))?;
            // Its alignment is part of the search; the address comes with each launch.
            set(&product, api.desc_set, DESC_BIAS_POINTER, operation.alignment)?;
        }
        if operation.scaled {
            set(&product, api.desc_set, DESC_A_SCALE_POINTER, operation.alignment)?;
            set(&product, api.desc_set, DESC_B_SCALE_POINTER, operation.alignment)?;
        }
        let a = layout(api, &operation.a, operation.a_stored(), operation.batch)?;
        let b = layout(api, &operation.b, operation.b_stored(), operation.batch)?;
        let d = layout(api, &operation.d, (operation.m, operation.n), operation.batch)?;
        let found = search(&handle, operation, [&product, &a, &b, &d])?;
        Ok(Self {
            operation: *operation,
            scale,
            product,
            attributes: Mutex::default(),
            a,
            b,
            d,
            algorithm: found.algorithm,
            workspace_bytes: found.workspace_bytes,
            handle,
        })
    }
}

impl LtMatmul {
    /// Sets the addresses of bias and scale factors, where they are not those of the launch before.
    fn set_addresses(&self, known: &mut [u64; 3], arguments: &OperationArguments<'_>) -> LtResult<()> {
        let bias = self.operation.epilogue.bias.then_some((DESC_BIAS_POINTER, 3));
        let scales = self
            .operation
            .scale_operand()
            .map(|first| [(DESC_A_SCALE_POINTER, first), (DESC_B_SCALE_POINTER, first + 1)]);
        let all = bias.into_iter().chain(scales.into_iter().flatten());
        for (known, (attribute, operand)) in known.iter_mut().zip(all) {
            let address = arguments.word(operand);
            if *known != address {
                set(&self.product, self.handle.api.desc_set, attribute, address as usize)?;
                *known = address;
            }
        }
        Ok(())
    }
}

fn layout(api: &LtApi, layout: &Layout, (rows, columns): (u64, u64), batch: u64) -> LtResult<Descriptor> {
    let leading = i64::try_from(layout.leading).unwrap_or(i64::MAX);
    let made = describe("cublasLtMatrixLayoutCreate", api.layout_destroy, |slot| {
        // SAFETY: the out-parameter is a live local of the caller.
        unsafe { (api.layout_create)(slot, library_enums::data_type(layout.element), rows, columns, leading) }
    })?;
    if batch > 1 {
        set(&made, api.layout_set, LAYOUT_BATCH_COUNT, i32::try_from(batch).unwrap_or(i32::MAX))?;
        let stride = i64::try_from(layout.stride).unwrap_or(i64::MAX);
        set(&made, api.layout_set, LAYOUT_STRIDED_BATCH_OFFSET, stride)?;
    }
    Ok(made)
}

/// The algorithm of an operation among those that cuBLASLt proposes, of which the first is expected to be the fastest.
fn search(
    handle: &LtHandle,
    operation: &Matmul,
    [product, a, b, d]: [&Descriptor; 4],
) -> LtResult<Heuristic> {
    let api = handle.api;
    let preference = describe("cublasLtMatmulPreferenceCreate", api.pref_destroy, |slot| {
        // SAFETY: the out-parameter is a live local of the caller.
        unsafe { (api.pref_create)(slot) }
    })?;
    set(&preference, api.pref_set, PREF_MAX_WORKSPACE_BYTES, operation.workspace)?;
    if operation.order == Determinism::RunToRun {
        set(&preference, api.pref_set, PREF_REDUCTION_SCHEME_MASK, NO_REDUCTION)?;
    }
    for attribute in PREF_MIN_ALIGNMENTS {
        set(&preference, api.pref_set, attribute, operation.alignment as u32)?;
    }
    let mut found = [Heuristic::default(); Matmul::ALGORITHMS as usize];
    let (wanted, mut count) = (operation.algorithm as usize, 0);
    // SAFETY: all descriptors live, there is room for as many results as are asked for, and the out-parameters are live locals.
    let status = unsafe {
        (api.heuristic)(
            handle.raw.raw(),
            product.raw(),
            a.raw(),
            b.raw(),
            d.raw(),
            d.raw(),
            preference.raw(),
            (wanted + 1).min(found.len()) as i32,
            found.as_mut_ptr(),
            &mut count,
        )
    };
    check("cublasLtMatmulAlgoGetHeuristic", status)?;
    let proposed = found.get(..count.max(0) as usize).unwrap_or_default();
    let found =
        proposed.get(wanted).copied().unwrap_or(Heuristic { state: NOT_SUPPORTED, ..Heuristic::default() });
    check("cublasLtMatmulAlgoGetHeuristic", found.state)?;
    Ok(found)
}

/// `CUBLAS_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 15;

fn no_algorithm(call: &'static str, operation: &Matmul) -> Error {
    let hint = match operation.a.element {
        _ if operation.algorithm > 0 => "it proposes fewer; algorithm 0 is its own choice",
        ElementType::I8 => {
            "integers need `a` transposed, `b` not, sizes and leading dimensions that are multiples of 4, and addresses that are multiples of 16"
        }
        ElementType::F8E4M3 => {
            "f8e4m3 needs a device of compute capability 8.9 or newer, `a` transposed, `b` not, and sizes and leading dimensions that are multiples of 16"
        }
        _ => "use another math mode, another type of result, or more workspace",
    };
    let why = format!("it has no algorithm on this device for `{operation}`; {hint}");
    Error::refused(call, Refusal::Library { library: LibraryKind::CublasLt.name(), why })
}

impl PreparedOperation for LtMatmul {
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes as u64
    }

    unsafe fn queue(&self, stream: sys::CUstream, arguments: &OperationArguments<'_>) -> LtResult<()> {
        let api = self.handle.api;
        let first_scalar = self.operation.memory_operands();
        let alpha = scalar(self.scale, arguments.scalar(first_scalar));
        let beta = if self.operation.accumulate { arguments.scalar(first_scalar + 1) } else { 0.0 };
        let beta = scalar(self.scale, beta);
        // Products without attributes that change are queued by any number of threads at once.
        let has_attributes = self.operation.epilogue.bias || self.operation.scaled;
        let mut attributes =
            has_attributes.then(|| self.attributes.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(known) = &mut attributes {
            self.set_addresses(known, arguments)?;
        }
        let d = arguments.address(2);
        // SAFETY: the caller vouches for stream and addresses; descriptors and algorithm belong together and to this handle; scalars are live locals
        // of the type that the product was made with.
        let status = unsafe {
            (api.matmul)(
                self.handle.raw.raw(),
                self.product.raw(),
                alpha.as_ptr().cast(),
                arguments.address(0),
                self.a.raw(),
                arguments.address(1),
                self.b.raw(),
                beta.as_ptr().cast(),
                d,
                self.d.raw(),
                d,
                self.d.raw(),
                &self.algorithm,
                if self.workspace_bytes > 0 { arguments.workspace() } else { std::ptr::null_mut() },
                self.workspace_bytes,
                stream,
            )
        };
        check("cublasLtMatmul", status)
    }
}

fn check(call: &'static str, status: i32) -> LtResult<()> {
    LibraryFailure::check(LibraryKind::CublasLt, call, status)
}
