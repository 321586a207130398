//! What is learned: points in eight dimensions, and the class of each. Everything follows from numbers, so that all ranks have the same without a file.

/// Numbers of a point.
pub const INPUTS: usize = 8;
/// Classes.
pub const CLASSES: usize = 4;
/// Parts of a batch. Their number and size do not depend on the number of ranks.
pub const SHARDS: usize = 12;
/// Samples of a shard.
pub const SHARD_SAMPLES: usize = 16;
/// Samples of a batch.
pub const BATCH_SAMPLES: usize = SHARDS * SHARD_SAMPLES;

/// One part of a batch.
pub struct Shard {
    /// A row for each sample.
    pub points: Vec<f32>,
    /// The class of each sample.
    pub targets: Vec<u32>,
}

impl Shard {
    /// A shard of the batch of a step.
    pub fn of_step(step: usize, shard: usize) -> Self {
        let (mut points, mut targets) = (Vec::new(), Vec::new());
        for sample in 0..SHARD_SAMPLES {
            let first = ((step * SHARDS + shard) * SHARD_SAMPLES + sample) * INPUTS;
            let point: Vec<f32> = (first..first + INPUTS).map(|at| number(1, at)).collect();
            targets.push(u32::from(point[0] + point[1] > 0.0) + 2 * u32::from(point[2] > point[3]));
            points.extend(point);
        }
        Self { points, targets }
    }
}

/// A number from -1 to 1 that follows from two others.
pub fn number(seed: u64, at: usize) -> f32 {
    let mut bits =
        (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd6e8_feb8_6659_fd93);
    for _ in 0..2 {
        bits = (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    (bits >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}
