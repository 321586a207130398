//! The pipeline: tiles of data that are uploaded, combined and downloaded on four streams.
//!
//! Each tile takes two uploads, one kernel that changes a buffer in place, one that reads this tile and the one before,
//! and a download. There are three buffers for eight tiles, so a later upload must wait until the kernels have read what
//! is there, and a kernel until the download has copied what is there. None of these dependencies is written here: the
//! runtime derives them from what each step reads and writes.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use kiln::{GpuRef, Stream, buffer::PinnedBuffer};

use super::device::Stage;
use super::kernels::{BLOCK_THREADS, Kernels};
use super::timeline::Bar;

/// Tiles of work.
pub(crate) const TILES: usize = 8;
/// Elements of a tile.
pub(crate) const ELEMENTS: usize = 1 << 16;
/// Tiles on the device at the same time.
const SLOTS: usize = 3;
/// The names of the streams.
const ROWS: [&str; 4] = ["uploads", "compute a", "compute b", "downloads"];
/// The factor of `axpy`.
const FACTOR: f32 = 0.75;

/// The results of the pipeline.
pub(crate) struct Work {
    pub(crate) rows: Vec<String>,
    pub(crate) bars: Vec<Bar>,
    /// Submissions that were not measured.
    pub(crate) unmeasured: u64,
    /// Elements that were compared with the host.
    pub(crate) compared: usize,
    /// The first element that differs from the host's, as text.
    pub(crate) mismatch: Option<String>,
}

/// Runs the pipeline and compares its results with the host's.
///
/// # Errors
/// The device failed.
pub(crate) fn run(stage: &Stage, seed: u64) -> kiln::Result<Work> {
    let progress = progress(3 * TILES as u64);
    let pipeline = Pipeline::new(stage)?;
    let mut tiles = Vec::with_capacity(TILES);
    progress.set_message("preparing");
    for number in 0..TILES {
        tiles.push(Tile::prepare(stage, number, seed)?);
        progress.inc(1);
    }
    progress.set_message("running");
    for (number, tile) in tiles.iter_mut().enumerate() {
        pipeline.submit(stage, number, tile)?;
        progress.inc(1);
    }
    progress.set_message("checking");
    let mut host = Host::new(seed);
    let mut mismatch = None;
    for (number, tile) in tiles.iter().enumerate() {
        let wanted = host.tile(number);
        let found = tile.results.read()?;
        mismatch = mismatch.or_else(|| first_difference(number, found, &wanted));
        progress.inc(1);
    }
    progress.finish_and_clear();
    stage.runtime().synchronize()?;
    let (measured, unmeasured) = stage.stopwatch().stop()?;
    let row = |stream| pipeline.streams.iter().position(|each| each.id() == stream).unwrap_or(ROWS.len());
    let bars: Vec<Bar> = measured
        .into_iter()
        .map(|lap| Bar { row: row(lap.stream), start: lap.start, end: lap.end, work: lap.work })
        .collect();
    Ok(Work { rows: rows(&bars), bars, unmeasured, compared: TILES * ELEMENTS, mismatch })
}

/// The host's side of a tile, in pinned memory, so that copies run while the host goes on.
struct Tile {
    x: PinnedBuffer<f32>,
    y: PinnedBuffer<f32>,
    results: PinnedBuffer<f32>,
}

impl Tile {
    fn prepare(stage: &Stage, number: usize, seed: u64) -> kiln::Result<Self> {
        let runtime = stage.runtime();
        let input = |input: Input| -> kiln::Result<_> {
            let mut pinned = runtime.pinned_uninit::<f32>(ELEMENTS)?;
            pinned.write()?.copy_from_slice(&input.tile(number, seed));
            Ok(pinned)
        };
        Ok(Self { x: input(Input::X)?, y: input(Input::Y)?, results: runtime.pinned(ELEMENTS)? })
    }
}

struct Pipeline {
    kernels: Kernels,
    streams: [Stream; 4],
    x: Vec<GpuRef<f32>>,
    y: Vec<GpuRef<f32>>,
    z: Vec<GpuRef<f32>>,
}

impl Pipeline {
    fn new(stage: &Stage) -> kiln::Result<Self> {
        let runtime = stage.runtime();
        let streams = [runtime.stream()?, runtime.stream()?, runtime.stream()?, runtime.stream()?];
        let [uploads, _, _, downloads] = &streams;
        let buffers =
            |stream| (0..SLOTS).map(|_| runtime.allocate_on(stream, ELEMENTS)).collect::<kiln::Result<_>>();
        Ok(Self {
            kernels: Kernels::load(runtime)?,
            x: buffers(uploads)?,
            y: buffers(uploads)?,
            z: buffers(downloads)?,
            streams,
        })
    }

    /// Queues all steps of one tile and returns at once.
    fn submit(&self, stage: &Stage, number: usize, tile: &mut Tile) -> kiln::Result<()> {
        let runtime = stage.runtime();
        let [_, compute_a, compute_b, _] = &self.streams;
        let at = |tile: usize| tile % SLOTS;
        let (x, y, z) = (&self.x[at(number)], &self.y[at(number)], &self.z[at(number)]);
        let before = &self.y[at(number.saturating_sub(1))];
        tile.x.copy_to(x)?;
        tile.y.copy_to(y)?;
        let (n, grid) = (ELEMENTS as u32, (ELEMENTS as u32).div_ceil(BLOCK_THREADS));
        let mut axpy = runtime.launch(&self.kernels.axpy);
        axpy.grid(grid).block(BLOCK_THREADS).on(compute_a).value(FACTOR).read(x).read_write(y).value(n);
        // SAFETY: `axpy` touches the first `n` elements of its two buffers and nothing else, and both have `n`.
        unsafe { axpy.submit()? };
        let mut blend = runtime.launch(&self.kernels.blend);
        blend.grid(grid).block(BLOCK_THREADS).on(compute_b).read(before).read(y).write(z).value(n);
        // SAFETY: `blend` touches the first `n` elements of its three buffers and nothing else, and all have `n`.
        unsafe { blend.submit()? };
        tile.results.copy_from(z)?;
        Ok(())
    }
}

/// The same arithmetic on the host.
struct Host {
    seed: u64,
    before: Option<Vec<f32>>,
}

impl Host {
    fn new(seed: u64) -> Self {
        Self { seed, before: None }
    }

    fn tile(&mut self, number: usize) -> Vec<f32> {
        let (x, y) = (Input::X.tile(number, self.seed), Input::Y.tile(number, self.seed));
        let y: Vec<f32> = x.iter().zip(&y).map(|(x, y)| FACTOR.mul_add(*x, *y)).collect();
        let before = self.before.replace(y.clone()).unwrap_or_else(|| y.clone());
        before.iter().zip(&y).map(|(before, y)| before + y).collect()
    }
}

/// The two inputs of a tile.
#[derive(Clone, Copy)]
enum Input {
    X,
    Y,
}

impl Input {
    /// Numbers between -1 and 1 that depend on the seed, the input, the tile and the place.
    fn tile(self, number: usize, seed: u64) -> Vec<f32> {
        let stream = seed.wrapping_mul(2).wrapping_add(self as u64);
        let element = |at: usize| {
            let bits = mix(stream ^ mix((number * ELEMENTS + at) as u64)) >> 40;
            bits as f32 / (1 << 23) as f32 - 1.0
        };
        (0..ELEMENTS).map(element).collect()
    }
}

/// Scatters the bits of a number: the finaliser of the generator SplitMix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn first_difference(tile: usize, found: &[f32], wanted: &[f32]) -> Option<String> {
    let mut pairs = found.iter().zip(wanted).enumerate();
    let (at, (found, wanted)) = pairs.find(|(_, (found, wanted))| found.to_bits() != wanted.to_bits())?;
    Some(format!("element {at} of tile {tile} is {found} and should be {wanted}"))
}

/// The names of the rows; work on other streams has one row.
fn rows(bars: &[Bar]) -> Vec<String> {
    let others = bars.iter().any(|bar| bar.row == ROWS.len()).then_some("others");
    ROWS.into_iter().chain(others).map(str::to_owned).collect()
}

/// A progress bar on a terminal; none elsewhere.
fn progress(steps: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
