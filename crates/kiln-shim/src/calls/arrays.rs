//! Arrays: memory that textures and surfaces show.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use kiln_driver::{Code, DeviceMemory, MemoryRequest};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::array_shape::{ArrayShape, Plane};
use crate::calls::context::Context;
use crate::calls::copy_rows::{Extent, Returning, RowsOf, Side, copy};
use crate::calls::memory::free_synchronously;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// An array of a program.
pub(crate) struct Array {
    /// The number of its context.
    pub(crate) context: u64,
    pub(crate) address: u64,
    pub(crate) shape: ArrayShape,
    /// Whether it is a level of a mipmapped array, which goes with that.
    is_level: bool,
}

/// An array with levels, each half as large as the one before.
pub(crate) struct MipmappedArray {
    pub(crate) context: u64,
    pub(crate) levels: Vec<RawHandle>,
}

impl Array {
    fn create(
        state: &ProcessState,
        context: &Context,
        shape: ArrayShape,
        is_level: bool,
    ) -> Answer<RawHandle> {
        state.backend.machine("cuArrayCreate")?;
        context.order()?.get()?.captures.refuse_unsafe()?;
        let bytes = shape.bytes()?;
        let memory: DeviceMemory = context.driver.allocate(MemoryRequest::Direct { bytes }).or_code()?;
        let (number, driver) = (context.number, context.driver.clone());
        let backing = Backing::Array(memory.id);
        let address = memory.address.0;
        state.memory.insert(Allocation::new(address, bytes, context.device, number, driver, backing));
        let array = Self { context: number, address, shape, is_level };
        state.arrays.insert(Arc::new(array)).ok_or(Code::OUT_OF_MEMORY)
    }

    /// Its rows from a place on, for a copy of so many bytes, rows and slices.
    pub(crate) fn rows(
        &self,
        [x_bytes, y, z]: [usize; 3],
        [bytes, rows, slices]: [usize; 3],
    ) -> Answer<RowsOf> {
        let shape = &self.shape;
        let fits = |from: usize, count: usize, all: u64| {
            from.checked_add(count).is_some_and(|end| end as u64 <= all)
        };
        let is_inside = fits(x_bytes, bytes, shape.row_bytes())
            && fits(y, rows, shape.rows())
            && fits(z, slices, shape.slices());
        if !is_inside {
            return Err(Code::INVALID_VALUE);
        }
        let (row_pitch, plane_pitch) = (shape.row_bytes(), shape.slice_bytes());
        let offset = x_bytes as u64 + y as u64 * row_pitch + z as u64 * plane_pitch;
        Ok(RowsOf { side: Side::Device, address: self.address + offset, row_pitch, plane_pitch })
    }

    /// Bytes of the first row.
    fn line(&self, offset: usize, bytes: usize) -> Answer<RowsOf> {
        self.rows([offset, 0, 0], [bytes, 1, 1])
    }
}

pub(crate) fn array(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Array>> {
    state.arrays.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// The array of a copy, for which null is a wrong value.
pub(crate) fn array_of_copy(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Array>> {
    if handle == 0 { Err(Code::INVALID_VALUE) } else { array(state, handle) }
}

pub(crate) fn mipmapped(state: &ProcessState, handle: RawHandle) -> Answer<Arc<MipmappedArray>> {
    state.mipmapped_arrays.get(handle).ok_or(Code::INVALID_HANDLE)
}

fn create(out: Out<RawHandle>, shape: ArrayShape) -> Answer {
    let (state, context) = current()?;
    out.check()?;
    shape.check()?;
    out.set(Array::create(state, &context, shape, false)?)
}

/// Takes an array away once no work of its context uses it.
fn destroy(state: &ProcessState, handle: RawHandle) -> Answer {
    let array = array(state, handle)?;
    let allocation = state.memory.beginning(array.address, |backing| matches!(backing, Backing::Array(_)))?;
    free_synchronously(state, &allocation)?;
    state.arrays.remove(handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
}

/// A copy of bytes that lie one behind the other.
fn line(
    ends: impl FnOnce(&ProcessState) -> Answer<(RowsOf, RowsOf)>,
    bytes: usize,
    (stream, returning): (RawHandle, Returning),
) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let extent = Extent { row_bytes: bytes as u64, rows: 1, planes: 1 };
    copy(state, (&context, &choice), ends(state)?, extent, returning)
}

driver_api! {
    fn cuArrayCreate_v2(out: Out<RawHandle>, plane: In<Plane>) {
        create(out, plane.get()?.into())
    }

    fn cuArray3DCreate_v2(out: Out<RawHandle>, shape: In<ArrayShape>) {
        create(out, shape.get()?)
    }

    fn cuArrayDestroy(handle: RawHandle) {
        let state = state()?;
        if array(state, handle)?.is_level {
            return Err(Code::INVALID_HANDLE);
        }
        destroy(state, handle)
    }

    fn cuArrayGetDescriptor_v2(out: Out<Plane>, handle: RawHandle) {
        let (state, _) = current()?;
        let ArrayShape { width, height, format, channels, .. } = array(state, handle)?.shape;
        out.set(Plane { width, height, format, channels })
    }

    fn cuArray3DGetDescriptor_v2(out: Out<ArrayShape>, handle: RawHandle) {
        let (state, _) = current()?;
        out.set(array(state, handle)?.shape)
    }

    fn cuArrayGetPlane(_out: Out<RawHandle>, handle: RawHandle, _plane: c_uint) {
        // No format that kiln has is made of planes.
        array(state()?, handle)?;
        Err(Code::INVALID_VALUE)
    }

    fn cuArrayGetSparseProperties(_out: *mut c_void, handle: RawHandle) {
        array(state()?, handle)?;
        Err(Code::INVALID_VALUE)
    }

    fn cuArrayGetMemoryRequirements(_out: *mut c_void, handle: RawHandle, _device: c_int) {
        // Only arrays with deferred mapping have such.
        array(state()?, handle)?;
        Err(Code::INVALID_VALUE)
    }

    fn cuMipmappedArrayCreate(out: Out<RawHandle>, shape: In<ArrayShape>, levels: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        let shape = shape.get()?;
        shape.check()?;
        // More levels than there can be are cut.
        let count = levels.clamp(1, shape.most_levels());
        let mut made = Vec::new();
        for level in 0..count {
            match Array::create(state, &context, shape.level(level), true) {
                Ok(array) => made.push(array),
                Err(code) => {
                    for array in made {
                        destroy(state, array)?;
                    }
                    return Err(code);
                }
            }
        }
        let mipmapped = MipmappedArray { context: context.number, levels: made };
        out.set(state.mipmapped_arrays.insert(Arc::new(mipmapped)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuMipmappedArrayGetLevel(out: Out<RawHandle>, handle: RawHandle, level: c_uint) {
        let levels = &mipmapped(state()?, handle)?.levels;
        out.set(*levels.get(level as usize).ok_or(Code::INVALID_VALUE)?)
    }

    fn cuMipmappedArrayDestroy(handle: RawHandle) {
        let state = state()?;
        for level in &mipmapped(state, handle)?.levels {
            destroy(state, *level)?;
        }
        state.mipmapped_arrays.remove(handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cuMipmappedArrayGetSparseProperties(_out: *mut c_void, handle: RawHandle) {
        mipmapped(state()?, handle)?;
        Err(Code::INVALID_VALUE)
    }

    fn cuMipmappedArrayGetMemoryRequirements(_out: *mut c_void, handle: RawHandle, _device: c_int) {
        mipmapped(state()?, handle)?;
        Err(Code::INVALID_VALUE)
    }

    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds (to: RawHandle, offset: usize, from: u64, bytes: usize) {
        let ends = |state: &ProcessState| Ok((array_of_copy(state, to)?.line(offset, bytes)?, RowsOf::line(Side::Host, from)));
        line(ends, bytes, (0, Returning::Done))
    }

    fn cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz (
        to: RawHandle, offset: usize, from: u64, bytes: usize, stream: RawHandle
    ) {
        let ends = |state: &ProcessState| Ok((array_of_copy(state, to)?.line(offset, bytes)?, RowsOf::line(Side::Host, from)));
        line(ends, bytes, (stream, Returning::Early))
    }

    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds (to: u64, from: RawHandle, offset: usize, bytes: usize) {
        let ends = |state: &ProcessState| Ok((RowsOf::line(Side::Host, to), array_of_copy(state, from)?.line(offset, bytes)?));
        line(ends, bytes, (0, Returning::Done))
    }

    fn cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz (
        to: u64, from: RawHandle, offset: usize, bytes: usize, stream: RawHandle
    ) {
        let ends = |state: &ProcessState| Ok((RowsOf::line(Side::Host, to), array_of_copy(state, from)?.line(offset, bytes)?));
        line(ends, bytes, (stream, Returning::Early))
    }

    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds (to: RawHandle, offset: usize, from: u64, bytes: usize) {
        let ends = |state: &ProcessState| Ok((array_of_copy(state, to)?.line(offset, bytes)?, RowsOf::line(Side::Device, from)));
        line(ends, bytes, (0, Returning::Done))
    }

    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds (to: u64, from: RawHandle, offset: usize, bytes: usize) {
        let ends = |state: &ProcessState| Ok((RowsOf::line(Side::Device, to), array_of_copy(state, from)?.line(offset, bytes)?));
        line(ends, bytes, (0, Returning::Done))
    }

    fn cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds (
        to: RawHandle, to_offset: usize, from: RawHandle, from_offset: usize, bytes: usize
    ) {
        let ends = |state: &ProcessState| {
            Ok((array_of_copy(state, to)?.line(to_offset, bytes)?, array_of_copy(state, from)?.line(from_offset, bytes)?))
        };
        line(ends, bytes, (0, Returning::Done))
    }
}
