//! The weights of a model: views of one buffer, so that one kernel updates and one copy saves all of them.

use std::ops::Range;

use kiln::{DeviceRuntime, GpuRef, Result};
use kiln_libs::rand::{Normal, Sampler};

use super::shape::Shape;

/// Each view begins at a multiple of this, which suits every library.
const ALIGNMENT: usize = 64;

/// The weights of a model, or something that each weight has one of, such as its gradient.
pub struct Weights {
    /// All of them.
    pub all: GpuRef<f32>,
    /// A row for each character.
    pub embedding: GpuRef<f32>,
    /// A row for each position.
    pub positions: GpuRef<f32>,
    pub layers: Vec<LayerWeights>,
    /// The gain of the last norm.
    pub norm: GpuRef<f32>,
    /// From width to characters.
    pub head: GpuRef<f32>,
}

/// The weights of one layer.
pub struct LayerWeights {
    pub attention_norm: GpuRef<f32>,
    /// From width to queries, keys and values.
    pub qkv: GpuRef<f32>,
    /// From the mixed values back.
    pub mix: GpuRef<f32>,
    pub perceptron_norm: GpuRef<f32>,
    /// From width to four times the width.
    pub up: GpuRef<f32>,
    /// And back.
    pub down: GpuRef<f32>,
}

impl Weights {
    /// The weights in a buffer of [`weight_count`] elements.
    pub fn over(shape: &Shape, all: &GpuRef<f32>) -> Result<Self> {
        let mut ranges = ranges(shape).into_iter();
        let mut next = || all.view(ranges.next().unwrap_or(0..0));
        let (embedding, positions) = (next()?, next()?);
        let mut layers = Vec::new();
        for _ in 0..shape.layers {
            let (attention_norm, qkv, mix) = (next()?, next()?, next()?);
            let (perceptron_norm, up, down) = (next()?, next()?, next()?);
            layers.push(LayerWeights { attention_norm, qkv, mix, perceptron_norm, up, down });
        }
        Ok(Self { all: all.clone(), embedding, positions, layers, norm: next()?, head: next()? })
    }

    /// Random weights. Equal seeds give equal weights on every device.
    pub fn random(gpu: &DeviceRuntime, shape: &Shape, seed: u64) -> Result<Self> {
        let weights = Self::over(shape, &gpu.zeros(weight_count(shape))?)?;
        let random = Sampler::new(gpu);
        let mut draws = seed * 1000..;
        let mut fill = |view: &GpuRef<f32>, inputs: usize| -> Result<()> {
            let deviation = 1.0 / (inputs as f32).sqrt();
            random.draw(draws.next().unwrap_or(seed)).fill(view, Normal { mean: 0.0, deviation })?;
            Ok(())
        };
        fill(&weights.embedding, shape.width)?;
        fill(&weights.positions, shape.width)?;
        for layer in &weights.layers {
            fill(&layer.qkv, shape.width)?;
            fill(&layer.mix, shape.width * shape.layers)?;
            fill(&layer.up, shape.width)?;
            fill(&layer.down, 4 * shape.width * shape.layers)?;
            layer.attention_norm.fill(1.0)?;
            layer.perceptron_norm.fill(1.0)?;
        }
        weights.norm.fill(1.0)?;
        fill(&weights.head, shape.width)?;
        Ok(weights)
    }
}

/// Elements of a buffer for all weights.
pub fn weight_count(shape: &Shape) -> usize {
    ranges(shape).last().map_or(0, |range| range.end)
}

/// Where each matrix and vector lies, in the order of the fields.
pub fn ranges(shape: &Shape) -> Vec<Range<usize>> {
    let width = shape.width;
    let layer = [width, 3 * width * width, width * width, width, 4 * width * width, 4 * width * width];
    let mut counts = vec![shape.vocabulary * width, shape.context * width];
    (0..shape.layers).for_each(|_| counts.extend(layer));
    counts.extend([width, shape.vocabulary * width]);
    let mut begin = 0;
    let place = |count: usize| {
        let range = begin..begin + count;
        begin = range.end.next_multiple_of(ALIGNMENT);
        range
    };
    counts.into_iter().map(place).collect()
}
