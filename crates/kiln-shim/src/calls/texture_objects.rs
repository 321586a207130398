//! Texture and surface objects.
//!
//! On a simulated device an object is a record in its memory, and its handle is the record's address. The record is freed when the object is destroyed: a launch that
//! uses the object and that the program did not wait for is found as for any memory, and so is one that is queued later.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, DriverExt, MemoryId, MemoryRequest};
use kiln_ptx::exec::{AddressMode, TextureObject, TextureSampler};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::array_shape::{SURFACE, texel_format};
use crate::calls::context::Context;
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::texture_descriptors::{MOST_LINE_TEXELS, Resource, Sampling, Shown, View};
use crate::records;

/// What is bound, by handle.
#[derive(Default)]
pub(crate) struct BoundObjects {
    objects: Mutex<BTreeMap<u64, BoundObject>>,
}

/// A texture or surface object.
#[derive(Clone, Copy)]
struct BoundObject {
    /// The number of its context.
    context: u64,
    record: MemoryId,
    resource: Resource,
    /// How it is sampled, and what part of the resource it shows; nothing for a surface.
    texture: Option<(Sampling, Option<View>)>,
}

impl BoundObjects {
    fn insert(&self, handle: u64, object: BoundObject) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, object);
    }

    fn get(&self, handle: u64, is_texture: bool) -> Answer<BoundObject> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let object = objects.get(&handle).filter(|object| object.texture.is_some() == is_texture);
        object.copied().ok_or(Code::INVALID_VALUE)
    }

    fn remove(&self, handle: u64) -> Option<BoundObject> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }

    /// Takes the objects of a context out, and says which records they have.
    pub(crate) fn end_context(&self, context: u64) -> Vec<MemoryId> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = objects.values().filter(|object| object.context == context);
        let records = ours.map(|object| object.record).collect();
        objects.retain(|_, object| object.context != context);
        records
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Writes a record into memory of the device.
fn bind(
    state: &ProcessState,
    context: &Context,
    record: &TextureObject,
    (resource, texture): (Resource, Option<(Sampling, Option<View>)>),
) -> Answer<u64> {
    context.order()?.get()?.captures.refuse_unsafe()?;
    let setup = context.order()?.get()?.setup_stream()?;
    let driver = &*context.driver;
    let bytes = record.record();
    let memory = driver.allocate(MemoryRequest::Direct { bytes: TextureObject::BYTES }).or_code()?;
    let host = driver.allocate_host(TextureObject::BYTES).or_code()?;
    let written = if host.write(0, &bytes) { Ok(()) } else { Err(Code::UNKNOWN) };
    let written = written
        .and_then(|()| driver.upload(setup, &host, memory.id.into(), TextureObject::BYTES).or_code())
        .and_then(|_| driver.synchronize(setup).or_code());
    let _ = driver.destroy(host.id().into());
    if let Err(code) = written {
        let _ = driver.free(memory.id, None);
        return Err(code);
    }
    state.bound.insert(
        memory.address.0,
        BoundObject { context: context.number, record: memory.id, resource, texture },
    );
    Ok(memory.address.0)
}

/// Ends an object, and its record with it: a launch that may still use it is found by that.
fn unbind(handle: u64, is_texture: bool) -> Answer {
    let state = state()?;
    let object = state.bound.get(handle, is_texture)?;
    state.bound.remove(handle);
    let owner = state.contexts.find_object(|context| context.number == object.context);
    if let Some(owner) = owner.filter(|owner| owner.is_there()) {
        state.collect();
        // A lost device keeps nothing.
        let _ = owner.driver.free(object.record, None);
        let what = if is_texture { "texture object" } else { "surface object" };
        let name = object.record.to_string();
        records::collect_about(&*owner.driver, &name, &format!("{name} is the {what} {handle:#x}"));
    }
    Ok(())
}

/// The record of what a texture shows.
fn object(shown: &Shown, sampler: TextureSampler) -> TextureObject {
    TextureObject {
        texels: shown.address,
        extent: shown.extent,
        layers: shown.layers,
        row_bytes: shown.row_bytes,
        slice_bytes: shown.slice_bytes,
        format: shown.format,
        sampler,
    }
}

/// How the executor samples, by what the program wants.
fn sampler(sampling: &Sampling, shown: &Shown) -> Answer<TextureSampler> {
    use sys::{CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER};
    let mut address = [AddressMode::Clamp; 3];
    for (mode, number) in address.iter_mut().zip(sampling.address_modes) {
        *mode = match number {
            0 => AddressMode::Wrap,
            1 => AddressMode::Clamp,
            2 => AddressMode::Mirror,
            3 => AddressMode::Border,
            _ => return Err(Code::INVALID_VALUE),
        };
    }
    let is = |flag: u32| sampling.flags & flag != 0;
    Ok(TextureSampler {
        address,
        // Memory without rows is read by index alone.
        linear: sampling.is_linear()? && !shown.is_line,
        normalized: is(CU_TRSF_NORMALIZED_COORDINATES),
        as_fraction: !is(CU_TRSF_READ_AS_INTEGER),
        border: sampling.border,
    })
}

driver_api! {
    fn cuTexObjectCreate(out: Out<u64>, resource: In<Resource>, sampling: In<Sampling>, view: In<View>) {
        let (state, context) = current()?;
        out.check()?;
        let (resource, sampling) = (resource.get()?, sampling.get()?);
        let view = if view.is_null() { None } else { Some(view.get()?) };
        let mut shown = resource.shown(state)?;
        if let Some(view) = &view {
            shown = view.of(shown)?;
        }
        let sampler = sampler(&sampling, &shown)?;
        if sampler.linear && sampling.gives_integers(&shown) {
            return Err(Code::INVALID_VALUE);
        }
        out.set(bind(state, &context, &object(&shown, sampler), (resource, Some((sampling, view))))?)
    }

    fn cuDeviceGetTexture1DLinearMaxWidth(out: Out<usize>, format: c_uint, channels: c_uint, device: c_int) {
        state()?.device(device)?;
        out.check()?;
        texel_format(format, channels)?;
        out.set(MOST_LINE_TEXELS as usize)
    }

    fn cuTexObjectDestroy(handle: u64) {
        // The driver takes surfaces here, too.
        unbind(handle, true).or_else(|_| unbind(handle, false))
    }

    fn cuTexObjectGetResourceDesc(out: Out<Resource>, handle: u64) {
        let object = state()?.bound.get(handle, true)?;
        out.set(object.resource)
    }

    fn cuTexObjectGetTextureDesc(out: Out<Sampling>, handle: u64) {
        let object = state()?.bound.get(handle, true)?;
        out.set(object.texture.ok_or(Code::INVALID_VALUE)?.0)
    }

    fn cuTexObjectGetResourceViewDesc(out: Out<View>, handle: u64) {
        let object = state()?.bound.get(handle, true)?;
        out.set(object.texture.and_then(|(_, view)| view).unwrap_or(View::NONE))
    }

    fn cuSurfObjectCreate(out: Out<u64>, resource: In<Resource>) {
        let (state, context) = current()?;
        out.check()?;
        let resource = resource.get()?;
        let shown = resource.shown(state)?;
        if shown.array_flags.is_none_or(|flags| flags & SURFACE == 0) {
            return Err(Code::INVALID_VALUE);
        }
        out.set(bind(state, &context, &object(&shown, TextureSampler::default()), (resource, None))?)
    }

    fn cuSurfObjectDestroy(handle: u64) {
        unbind(handle, false)
    }

    fn cuSurfObjectGetResourceDesc(out: Out<Resource>, handle: u64) {
        let object = state()?.bound.get(handle, false)?;
        out.set(object.resource)
    }
}
