//! Copies of one, two and three dimensions.

use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::In;
use crate::calls::arrays::array_of_copy;
use crate::calls::context::{Context, named};
use crate::calls::copy_rows::{Extent, Returning, RowsOf, Side, copy};
use crate::calls::peer_copies;
use crate::calls::process_state::{ProcessState, state};
use crate::calls::refused_addresses;
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// The structure `CUDA_MEMCPY2D`, with kinds of memory as numbers: a program may give any.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2D {
    from: Plane,
    to: Plane,
    width_bytes: usize,
    height: usize,
}

/// One end of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Plane {
    x_bytes: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

/// The structures `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Copy3D {
    from: Volume,
    to: Volume,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

/// One end of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Volume {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    context: usize,
    pitch: usize,
    height: usize,
}

const _: () = assert!(size_of::<Copy2D>() == size_of::<sys::CUDA_MEMCPY2D>());
const _: () = assert!(size_of::<Copy3D>() == size_of::<sys::CUDA_MEMCPY3D>());
const _: () = assert!(size_of::<Copy3D>() == size_of::<sys::CUDA_MEMCPY3D_PEER>());

/// The address and side that a kind of memory selects.
fn select(kind: u32, host: u64, device: u64) -> Answer<(Side, u64)> {
    use sys::CUmemorytype as M;
    match kind {
        k if k == M::CU_MEMORYTYPE_HOST as u32 => Ok((Side::Host, host)),
        k if k == M::CU_MEMORYTYPE_DEVICE as u32 => Ok((Side::Device, device)),
        k if k == M::CU_MEMORYTYPE_UNIFIED as u32 => Ok((Side::Any, device)),
        _ => Err(Code::INVALID_VALUE),
    }
}

impl Plane {
    fn rows(&self, state: &ProcessState, copy: &Copy2D) -> Answer<RowsOf> {
        let volume = Volume {
            x_bytes: self.x_bytes,
            y: self.y,
            z: 0,
            level: 0,
            kind: self.kind,
            host: self.host,
            device: self.device,
            array: self.array,
            context: 0,
            pitch: self.pitch,
            height: copy.height,
        };
        volume.rows(state, [copy.width_bytes, copy.height, 1])
    }
}

impl Volume {
    fn rows(&self, state: &ProcessState, extent: [usize; 3]) -> Answer<RowsOf> {
        if self.kind == sys::CUmemorytype::CU_MEMORYTYPE_ARRAY as u32 {
            if self.level != 0 {
                return Err(Code::INVALID_VALUE);
            }
            return array_of_copy(state, self.array)?.rows([self.x_bytes, self.y, self.z], extent);
        }
        let [width_bytes, height, depth] = extent;
        let (side, start) = select(self.kind, self.host, self.device)?;
        let pitch = if self.pitch == 0 { width_bytes } else { self.pitch };
        let plane_rows = if self.height == 0 { height } else { self.height };
        let needed = self.x_bytes.checked_add(width_bytes).ok_or(Code::INVALID_VALUE)?;
        let has_rows = height > 1 || depth > 1 || self.y > 0 || self.z > 0;
        if self.level != 0 || has_rows && pitch < needed {
            return Err(Code::INVALID_VALUE);
        }
        let (pitch, plane_rows) = (pitch as u64, plane_rows as u64);
        let plane_pitch = pitch.checked_mul(plane_rows).ok_or(Code::INVALID_VALUE)?;
        let offset = (self.z as u64)
            .checked_mul(plane_pitch)
            .zip((self.y as u64).checked_mul(pitch))
            .and_then(|(z, y)| z.checked_add(y)?.checked_add(self.x_bytes as u64));
        let address = offset.and_then(|offset| start.checked_add(offset)).ok_or(Code::INVALID_VALUE)?;
        Ok(RowsOf { side, address, row_pitch: pitch, plane_pitch })
    }
}

impl Copy3D {
    /// The two ends, to and from, and how much there is between them.
    pub(crate) fn ends(&self, state: &ProcessState) -> Answer<((RowsOf, RowsOf), Extent)> {
        let rows = |end: &Volume| end.rows(state, [self.width_bytes, self.height, self.depth]);
        let extent = Extent {
            row_bytes: self.width_bytes as u64,
            rows: self.height as u64,
            planes: self.depth as u64,
        };
        Ok(((rows(&self.to)?, rows(&self.from)?), extent))
    }
}

fn line(to: (Side, u64), from: (Side, u64), bytes: usize, stream: RawHandle, returning: Returning) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let ends = (RowsOf::line(to.0, to.1), RowsOf::line(from.0, from.1));
    let extent = Extent { row_bytes: bytes as u64, rows: 1, planes: 1 };
    let copied = copy(state, (&context, &choice), ends, extent, returning);
    refused_addresses::note_copy(state, copied, [to, from], extent.row_bytes)
}

/// A copy from memory of devices that names no stream, in one order with all work of some contexts and of those whose memory it is.
fn between(
    (to, to_side): (u64, Side),
    (from, from_side): (u64, Side),
    bytes: usize,
    mut contexts: Vec<Arc<Context>>,
) -> Answer {
    let state = state()?;
    let copy = || line((to_side, to), (from_side, from), bytes, 0, Returning::Done);
    match chosen(state, 0)? {
        (context, StreamChoice::Legacy) => {
            contexts.extend(peer_copies::others(state, &context, [to, from]));
            peer_copies::in_order(&context, contexts, copy)
        }
        _ => copy(),
    }
}

/// Copies bytes between memory of any kind, and returns as soon as it may.
pub(crate) fn line_between(to: u64, from: u64, bytes: usize, stream: RawHandle) -> Answer {
    line((Side::Any, to), (Side::Any, from), bytes, stream, Returning::Early)
}

fn plane(what: In<Copy2D>, stream: RawHandle, returning: Returning) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let what = what.get()?;
    let ends = (what.to.rows(state, &what)?, what.from.rows(state, &what)?);
    let extent = Extent { row_bytes: what.width_bytes as u64, rows: what.height as u64, planes: 1 };
    copy(state, (&context, &choice), ends, extent, returning)
}

fn volume(what: In<Copy3D>, stream: RawHandle, returning: Returning, is_peer: bool) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let what = what.get()?;
    let mut contexts = Vec::new();
    if is_peer {
        for end in [&what.to, &what.from]
            .iter()
            .filter(|end| end.kind != sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32)
        {
            contexts.push(named(state, end.context)?);
        }
    }
    let (ends, extent) = what.ends(state)?;
    let copy = || copy(state, (&context, &choice), ends, extent, returning);
    match (returning, &choice) {
        (Returning::Done, StreamChoice::Legacy) => peer_copies::in_order(&context, contexts, copy),
        _ => copy(),
    }
}

driver_api! {
    fn cuMemcpy | cuMemcpy_ptds (to: u64, from: u64, bytes: usize) {
        between((to, Side::Any), (from, Side::Any), bytes, Vec::new())
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz (to: u64, from: u64, bytes: usize, stream: RawHandle) {
        line((Side::Any, to), (Side::Any, from), bytes, stream, Returning::Early)
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        line((Side::Device, to), (Side::Host, from), bytes, 0, Returning::Done)
    }

    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz (to: u64, from: u64, bytes: usize, stream: RawHandle) {
        line((Side::Device, to), (Side::Host, from), bytes, stream, Returning::Early)
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds (to: u64, from: u64, bytes: usize) {
        line((Side::Host, to), (Side::Device, from), bytes, 0, Returning::Done)
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz (to: u64, from: u64, bytes: usize, stream: RawHandle) {
        line((Side::Host, to), (Side::Device, from), bytes, stream, Returning::Early)
    }

    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        between((to, Side::Device), (from, Side::Device), bytes, Vec::new())
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz (to: u64, from: u64, bytes: usize, stream: RawHandle) {
        line((Side::Device, to), (Side::Device, from), bytes, stream, Returning::Early)
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptds (to: u64, to_context: RawHandle, from: u64, from_context: RawHandle, bytes: usize) {
        let state = state()?;
        let ends = vec![named(state, to_context)?, named(state, from_context)?];
        between((to, Side::Device), (from, Side::Device), bytes, ends)
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz (
        to: u64, to_context: RawHandle, from: u64, from_context: RawHandle, bytes: usize, stream: RawHandle
    ) {
        let state = state()?;
        named(state, to_context)?;
        named(state, from_context)?;
        line((Side::Device, to), (Side::Device, from), bytes, stream, Returning::Early)
    }

    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds (what: In<Copy2D>) {
        plane(what, 0, Returning::Done)
    }

    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds (what: In<Copy2D>) {
        plane(what, 0, Returning::Done)
    }

    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz (what: In<Copy2D>, stream: RawHandle) {
        plane(what, stream, Returning::Early)
    }

    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds (what: In<Copy3D>) {
        volume(what, 0, Returning::Done, false)
    }

    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz (what: In<Copy3D>, stream: RawHandle) {
        volume(what, stream, Returning::Early, false)
    }

    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds (what: In<Copy3D>) {
        volume(what, 0, Returning::Done, true)
    }

    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz (what: In<Copy3D>, stream: RawHandle) {
        volume(what, stream, Returning::Early, true)
    }
}
