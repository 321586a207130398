//! Fetches from textures, and questions about them.

use super::access::Access;
use super::memory::check_aligned;
use super::span_content::undefined_at;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{Reg, Source, Strength, TextureAction, TextureQuery, TextureStep};
use crate::exec::memory::generic_address::Place;
use crate::exec::texture::{
    Axis, Tap, Texel, axis_of_index, face_of, gather_axis, linear_axis, nearest_axis,
};
use crate::exec::texture_object::{AddressMode, TexelKind, TextureObject, TextureSampler};
use crate::exec::warp_register::{Column, LANES};

/// Faces of a cube.
const FACES: u32 = 6;
/// All weights of one dimension together.
const WHOLE: f64 = 256.0;

/// The texels of each dimension, and the layer.
struct Footprint {
    axes: [[Tap; 2]; 3],
    layer: u32,
}

impl Warp {
    /// An instruction on a texture or surface.
    pub(super) fn texture(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TextureStep,
        lanes: u32,
    ) -> Done<Flow> {
        let handles = self.texture_column(cta, at, step.handle);
        let samplers = step.sampler.map(|source| self.texture_column(cta, at, source));
        if !matches!(step.action, TextureAction::Query(_)) {
            self.watch.drop_state();
        }
        let mut results = [[0; LANES]; 4];
        let mut known: Option<(u64, TextureObject)> = None;
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let mut object = match known {
                Some((handle, object)) if handle == handles[lane] => object,
                _ => texture_object(cta, lane, handles[lane])?,
            };
            known = Some((handles[lane], object));
            if let Some(samplers) = &samplers {
                object.sampler = texture_object(cta, lane, samplers[lane])?.sampler;
            }
            let values = match step.action {
                TextureAction::Fetch { float } => self.fetch(cta, at, step, (&object, float), lane)?,
                TextureAction::Gather { channel } => self.gather(cta, at, step, (&object, channel), lane)?,
                TextureAction::Query(query) => [answer(&object, query), 0, 0, 0],
                _ => self.surface(cta, at, step, &object, lane)?,
            };
            results.iter_mut().zip(values).for_each(|(column, value)| column[lane] = value);
        }
        let frame = self.lane_groups[at].frame;
        for (to, column) in step.to.iter().zip(&results) {
            self.frames[frame].write(*to, column, lanes);
        }
        Ok(Flow::Next)
    }

    pub(super) fn texture_column(&self, cta: &Cta<'_>, at: usize, source: Source) -> Column {
        *self.frames[self.lane_groups[at].frame].column(source, &cta.launch.constants)
    }

    /// The coordinates of a lane, without the layer, and the layer.
    pub(super) fn texture_coordinates(
        &self,
        cta: &Cta<'_>,
        at: usize,
        step: &TextureStep,
        lane: usize,
    ) -> ([u32; 3], Option<u32>) {
        let values = step.coordinates.iter().map(|source| self.texture_column(cta, at, *source)[lane] as u32);
        let values: Vec<u32> = values.collect();
        let (layer, rest) = match step.geometry.layered {
            true => (values.first().copied(), values.get(1..).unwrap_or(&[])),
            false => (None, &values[..]),
        };
        let mut coordinates = [0; 3];
        coordinates.iter_mut().zip(rest).for_each(|(slot, value)| *slot = *value);
        (coordinates, layer)
    }

    fn fetch(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TextureStep,
        (object, float): (&TextureObject, bool),
        lane: usize,
    ) -> Done<[u64; 4]> {
        let footprint = self.footprint(cta, at, step, (object, float), lane, |axis, x, offset| {
            if object.sampler.linear { linear_axis(axis, x, offset) } else { nearest_axis(axis, x, offset) }
        });
        let is_blended = object.sampler.linear && float;
        let used = std::array::from_fn(|channel| step.to.get(channel).is_some_and(|to| *to != Reg(0)));
        let mut sums = [0.0; 4];
        let mut results = [0; 4];
        for (z, z_weight) in footprint.axes[2] {
            for (y, y_weight) in footprint.axes[1] {
                for (x, x_weight) in footprint.axes[0] {
                    let weight = f64::from(x_weight) * f64::from(y_weight) * f64::from(z_weight)
                        / (WHOLE * WHOLE * WHOLE);
                    if weight == 0.0 {
                        continue;
                    }
                    let place = x.zip(y).zip(z).map(|((x, y), z)| [x, y, z + footprint.layer]);
                    let texels = self.texel(cta, at, object, place, (lane, used))?;
                    for channel in 0..4 {
                        match texels[channel].number().filter(|_| is_blended) {
                            Some(value) => sums[channel] += weight * value,
                            None if is_blended && used[channel] => return Err(not_blended(lane)),
                            None => results[channel] = texels[channel].bits(),
                        }
                    }
                }
            }
        }
        Ok(match is_blended {
            true => sums.map(|sum| Texel::Number(sum).bits()),
            false => results,
        })
    }

    fn gather(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TextureStep,
        (object, channel): (&TextureObject, u8),
        lane: usize,
    ) -> Done<[u64; 4]> {
        let footprint = self.footprint(cta, at, step, (object, true), lane, |axis, x, offset| {
            gather_axis(axis, x, offset).map(|texel| (texel, 1))
        });
        let [[(x0, _), (x1, _)], [(y0, _), (y1, _)], _] = footprint.axes;
        let mut results = [0; 4];
        let used = std::array::from_fn(|at| at == usize::from(channel));
        // Against the clock, from the lower left.
        for (result, (x, y)) in results.iter_mut().zip([(x0, y1), (x1, y1), (x1, y0), (x0, y0)]) {
            let place = x.zip(y).map(|(x, y)| [x, y, footprint.layer]);
            let texels = self.texel(cta, at, object, place, (lane, used))?;
            *result = texels[usize::from(channel) & 3].bits();
        }
        Ok(results)
    }

    /// The texels that the coordinates of a lane mean.
    fn footprint(
        &self,
        cta: &Cta<'_>,
        at: usize,
        step: &TextureStep,
        (object, float): (&TextureObject, bool),
        lane: usize,
        sample: impl Fn(Axis, f32, i32) -> [Tap; 2],
    ) -> Footprint {
        let (mut coordinates, layer) = self.texture_coordinates(cta, at, step, lane);
        let dimensions = usize::from(step.geometry.dimensions);
        let mut normalized = object.sampler.normalized;
        let mut layer = layer.unwrap_or(0);
        if step.geometry.cube {
            let (face, place) = face_of(coordinates.map(f32::from_bits));
            let cubes = (object.layers / FACES).max(1);
            layer = (layer as i32).clamp(0, cubes as i32 - 1) as u32 * FACES + face;
            coordinates = [place[0].to_bits(), place[1].to_bits(), 0];
            normalized = true;
        }
        let is_layered = step.geometry.layered || step.geometry.cube;
        let layer = if is_layered { (layer as i32).clamp(0, object.layers as i32 - 1) as u32 } else { 0 };
        let axes = std::array::from_fn(|dimension| {
            if dimension >= dimensions {
                return [(Some(0), WHOLE as u32), (None, 0)];
            }
            let offset =
                step.offsets.get(dimension).map(|source| self.texture_column(cta, at, *source)[lane]);
            let offset = offset.unwrap_or(0) as i32;
            // Indices into a row of texels beyond its end read zero.
            let is_index = !float && dimensions == 1 && !is_layered;
            let mode = if is_index { AddressMode::Border } else { object.sampler.address[dimension] };
            let axis = Axis { size: object.extent[dimension], mode, normalized };
            match float {
                true => sample(axis, f32::from_bits(coordinates[dimension]), offset),
                false => axis_of_index(axis, coordinates[dimension] as i32, offset),
            }
        });
        Footprint { axes, layer }
    }

    /// The channels of a texel, checked as an access to global memory. Channels that are not used are not read.
    fn texel(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        object: &TextureObject,
        place: Option<[u32; 3]>,
        (lane, used): (usize, [bool; 4]),
    ) -> Done<[Texel; 4]> {
        let (kind, sampler) = (object.format.kind, &object.sampler);
        let Some(place) = place else {
            return Ok(std::array::from_fn(|channel| Texel::outside(kind, sampler, channel)));
        };
        let mut channels: [Texel; 4] = std::array::from_fn(|channel| Texel::missing(kind, sampler, channel));
        let (bytes, start) = (kind.bytes(), object.address(place));
        let access = texel_access(AccessKind::Read, bytes);
        for (channel, value) in (0..object.format.channels).zip(&mut channels) {
            if !used[channel as usize] {
                continue;
            }
            let addresses = [start.wrapping_add(u64::from(channel * bytes)); LANES];
            let bits = self.read_texel(cta, at, &access, &addresses, lane, true)?;
            *value = Texel::of(kind, bits, sampler.as_fraction);
        }
        Ok(channels)
    }

    /// Reads a value of a texture or surface for one lane.
    pub(super) fn read_texel(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lane: usize,
        constant: bool,
    ) -> Done<u64> {
        let mask = 1 << lane;
        check_aligned(access, addresses, mask)?;
        let (span, _) = self.find(cta, at, access, addresses, mask)?;
        if span.writable {
            self.watch(cta, at, access, addresses, mask, |_, _| false);
            if constant && span.declared != crate::exec::memory::Declared::Read {
                self.watch_constant(cta, at, access, addresses, mask);
            }
        }
        let offsets = addresses.map(|address| address.wrapping_sub(span.origin));
        if cta.launch.options.checks.uninitialised {
            let bare = span.cells.unwritten(&offsets, mask, access.bytes);
            if bare != 0 {
                let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                self.use_unwritten(cta, at, access, addresses, bare, look);
            }
        }
        Ok(span.cells.load(offsets[lane], access.bytes))
    }
}

/// An access to a value of a texture or surface.
pub(super) fn texel_access(kind: AccessKind, bytes: u32) -> Access {
    Access {
        kind,
        place: Place::Global,
        bytes,
        part_bytes: bytes,
        strength: Strength::default(),
        halves: None,
        block: None,
    }
}

/// The object of a handle. A `.texref` variable holds a handle.
fn texture_object(cta: &mut Cta<'_>, lane: usize, handle: u64) -> Done<TextureObject> {
    let mut address = handle;
    for _ in 0..2 {
        let Some(record) = record_at(cta, address) else { break };
        if let Some(object) = TextureObject::read(&record) {
            note_use(cta, address);
            return Ok(object);
        }
        let first = record.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        address = first;
    }
    let text = format!(
        "{handle:#x} is no texture or surface object, or no texture object any more; give the kernel a handle of one, such as `tex:2d:A.npy` of `kiln run`, \
         and destroy it when the launches that use it are done"
    );
    Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)))
}

/// The bytes at an address, as many as there are up to those of a record.
fn record_at(cta: &mut Cta<'_>, address: u64) -> Option<Vec<u8>> {
    let span = cta.spans.find(address).filter(|_| address.is_multiple_of(8))?;
    let words = (span.end.checked_sub(address)?.min(TextureObject::BYTES)) / 8;
    let word = |at: u64| span.cells.peek(address - span.origin + 8 * at, 8).to_le_bytes();
    (words > 0).then(|| (0..words).flat_map(word).collect())
}

/// The launch reads the record of an object: who frees it must wait for the launch.
fn note_use(cta: &mut Cta<'_>, address: u64) {
    if let Some(span) = cta.spans.find(address) {
        let _ = span.cells.load(address - span.origin, 8);
    }
}

/// Integers that would be blended.
#[cold]
fn not_blended(lane: usize) -> Box<Trouble> {
    let text = "linear filtering of a texture that is read as integers; read it as fractions, or sample the nearest texel";
    Trouble::new(lane, ExecFindingKind::BadOperand(text.to_owned()))
}

/// The answer to a question.
fn answer(object: &TextureObject, query: TextureQuery) -> u64 {
    let TextureSampler { address, linear, normalized, as_fraction, .. } = object.sampler;
    match query {
        TextureQuery::Width => u64::from(object.extent[0]),
        TextureQuery::Height => u64::from(object.extent[1]),
        TextureQuery::Depth => u64::from(object.extent[2]),
        TextureQuery::Layers => u64::from(object.layers),
        TextureQuery::Levels => 1,
        TextureQuery::Normalized => u64::from(normalized),
        TextureQuery::Linear => u64::from(linear),
        TextureQuery::AddressMode(at) => address.get(usize::from(at)).map_or(0, |mode| mode.code()),
        // The numbers of OpenCL, as PTX says.
        TextureQuery::ChannelOrder => match object.format.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        },
        TextureQuery::ChannelType => match (object.format.kind, as_fraction) {
            (TexelKind::S8, true) => 0x10d0,
            (TexelKind::S16, true) => 0x10d1,
            (TexelKind::U8, true) => 0x10d2,
            (TexelKind::U16, true) => 0x10d3,
            (TexelKind::S8, false) => 0x10d7,
            (TexelKind::S16, false) => 0x10d8,
            (TexelKind::S32, _) => 0x10d9,
            (TexelKind::U8, false) => 0x10da,
            (TexelKind::U16, false) => 0x10db,
            (TexelKind::U32, _) => 0x10dc,
            (TexelKind::F16, _) => 0x10dd,
            (TexelKind::F32, _) => 0x10de,
        },
    }
}
