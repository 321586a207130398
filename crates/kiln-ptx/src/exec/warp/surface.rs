//! Loads, stores and reductions of surfaces.

use super::access::Access;
use super::memory::check_aligned;
use super::texture::texel_access;
use super::{Done, Trouble, Warp};
use crate::exec::alu::Mode;
use crate::exec::alu::float_format::F16;
use crate::exec::alu::half::narrow;
use crate::exec::block::Cta;
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{Outside, Source, Strength, SurfaceAccess, TextureAction, TextureStep};
use crate::exec::texture_object::{TexelKind, TextureObject};
use crate::exec::warp_register::{LANES, LaneOrder};

impl Warp {
    /// An access to a surface by one lane; what it loads.
    pub(super) fn surface(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TextureStep,
        object: &TextureObject,
        lane: usize,
    ) -> Done<[u64; 4]> {
        let mut values = [0; 4];
        match step.action {
            TextureAction::Load(access) => {
                let count = step.to.len() as u32;
                let Some(start) = self.surface_address(cta, at, step, (object, access, count), lane)? else {
                    return Ok(values);
                };
                let read = texel_access(AccessKind::Read, access.bytes);
                for (part, value) in (0..u64::from(count)).zip(&mut values) {
                    let addresses = [start.wrapping_add(part * u64::from(access.bytes)); LANES];
                    *value = self.read_texel(cta, at, &read, &addresses, lane, false)?;
                }
            }
            TextureAction::Store(access) => {
                let count = step.from.len() as u32;
                if let Some(start) = self.surface_address(cta, at, step, (object, access, count), lane)? {
                    self.store_surface(cta, at, step, (object, access), (start, lane))?;
                }
            }
            TextureAction::Reduce(access, update) => {
                let start = self.surface_address(cta, at, step, (object, access, 1), lane)?;
                if let (Some(start), Some(from)) = (start, step.from.first()) {
                    let value = self.texture_column(cta, at, *from)[lane];
                    self.reduce_surface(cta, at, (access, start, lane), |old| update(old, value, 0))?;
                }
            }
            TextureAction::Fetch { .. } | TextureAction::Gather { .. } | TextureAction::Query(_) => {}
        }
        Ok(values)
    }

    /// Where an access begins; `None` for one outside that does nothing.
    fn surface_address(
        &self,
        cta: &Cta<'_>,
        at: usize,
        step: &TextureStep,
        (object, access, count): (&TextureObject, SurfaceAccess, u32),
        lane: usize,
    ) -> Done<Option<u64>> {
        let (coordinates, layer) = self.texture_coordinates(cta, at, step, lane);
        let [x, y, z] = coordinates.map(|coordinate| i64::from(coordinate as i32));
        let dimensions = step.geometry.dimensions;
        let texel = i64::from(object.format.bytes());
        let (x, bytes) = match access.formatted {
            true => (x * texel, texel),
            false => (x, i64::from(access.bytes * count)),
        };
        let z = layer.map_or(z, |layer| i64::from(layer as i32));
        let row = i64::from(object.extent[0]) * texel;
        let slices = if step.geometry.layered { object.layers } else { object.extent[2] };
        let (height, slices) = (i64::from(object.extent[1]), i64::from(slices));
        let y = if dimensions >= 2 { y } else { 0 };
        let z = if dimensions >= 3 || step.geometry.layered { z } else { 0 };
        let is_inside = x >= 0 && x + bytes <= row && (0..height).contains(&y) && (0..slices).contains(&z);
        let (x, y, z) = match (is_inside, access.outside) {
            (true, _) => (x, y, z),
            (false, Outside::Zero) => return Ok(None),
            (false, Outside::Clamp) => {
                (x.clamp(0, (row - bytes).max(0)), y.clamp(0, height - 1), z.clamp(0, slices - 1))
            }
            (false, Outside::Trap) => return Err(outside(step, object, [x, y, z], lane)),
        };
        let offset = x as u64 + y as u64 * object.row_bytes + z as u64 * object.slice_bytes;
        Ok(Some(object.texels.wrapping_add(offset)))
    }

    fn store_surface(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TextureStep,
        (object, access): (&TextureObject, SurfaceAccess),
        (start, lane): (u64, usize),
    ) -> Done<()> {
        cta.changes += 1;
        let kind = object.format.kind;
        let bytes = if access.formatted { kind.bytes() } else { access.bytes };
        let count = if access.formatted { object.format.channels as usize } else { step.from.len() };
        let write = texel_access(AccessKind::Write, bytes);
        for (part, from) in (0u64..).zip(step.from.iter().take(count)) {
            let value = self.texture_column(cta, at, *from)[lane];
            let value = if access.formatted { channel_bits(kind, value) } else { value };
            let address = start.wrapping_add(part * u64::from(bytes));
            self.write_texel(cta, at, &write, (address, lane), (value, *from))?;
        }
        Ok(())
    }

    fn write_texel(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        (address, lane): (u64, usize),
        (value, from): (u64, Source),
    ) -> Done<()> {
        let (addresses, mask) = ([address; LANES], 1 << lane);
        check_aligned(access, &addresses, mask)?;
        let (span, _) = self.find(cta, at, access, &addresses, mask)?;
        let ones = u64::MAX >> (64 - 8 * access.bytes);
        self.watch(cta, at, access, &addresses, mask, |_, _| {
            span.cells.peek(address - span.origin, access.bytes) == value & ones
        });
        span.cells.store(address - span.origin, access.bytes, value & ones);
        if self.frames[self.lane_groups[at].frame].undefined.any() {
            self.mark_stored(cta, at, access, &addresses, (mask, from, 0), Some(&span));
        }
        Ok(())
    }

    fn reduce_surface(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (access, address, lane): (SurfaceAccess, u64, usize),
        update: impl Fn(u64) -> u64,
    ) -> Done<()> {
        cta.changes += 1;
        let strength = Strength { strong: true, wide: true, ..Strength::default() };
        let access = Access { strength, ..texel_access(AccessKind::Atomic, access.bytes) };
        let (addresses, mask) = ([address; LANES], 1 << lane);
        check_aligned(&access, &addresses, mask)?;
        let (span, _) = self.find(cta, at, &access, &addresses, mask)?;
        let ones = u64::MAX >> (64 - 8 * access.bytes);
        span.cells.update(address - span.origin, access.bytes, &mut |old| update(old) & ones);
        self.watch_updates(cta, at, &access, &addresses, (mask, mask, LaneOrder::default()), None);
        Ok(())
    }
}

/// The bits of a channel that a formatted store makes of a register.
fn channel_bits(kind: TexelKind, value: u64) -> u64 {
    match kind {
        TexelKind::F16 => narrow(F16, f64::from(f32::from_bits(value as u32)), Mode::default()),
        TexelKind::U8 => u64::from((value as u32).min(0xff)),
        TexelKind::U16 => u64::from((value as u32).min(0xffff)),
        TexelKind::S8 => (value as i32).clamp(-0x80, 0x7f) as u64 & 0xff,
        TexelKind::S16 => (value as i32).clamp(-0x8000, 0x7fff) as u64 & 0xffff,
        TexelKind::U32 | TexelKind::S32 | TexelKind::F32 => value,
    }
}

/// An access outside of a surface that ends the launch.
#[cold]
fn outside(step: &TextureStep, object: &TextureObject, [x, y, z]: [i64; 3], lane: usize) -> Box<Trouble> {
    let [width, height, depth] = object.extent;
    let row = u64::from(width) * u64::from(object.format.bytes());
    let action = if matches!(step.action, TextureAction::Load(_)) { "load" } else { "store" };
    let text = format!(
        "a surface {action} at byte {x} of row {y}, slice or layer {z}, outside of a surface with rows of {row} bytes, {height} rows and {} slices or layers",
        depth.max(object.layers)
    );
    Trouble::new(lane, ExecFindingKind::BadOperand(text))
}
