//! Columns of pixels (`im2col`), and boxes that go to several blocks of a cluster.

use kiln::tensor::{TensorColumns, TensorElement, TensorMap, TensorSwizzle};
use kiln_kernels::Random;

use super::tensor_box::{below, swizzled};
use super::tensor_kernel::{WAIT, copy_in, copy_out, kernel, load, store};
use super::trial::{Oracle, Tensor, Trial};

/// A tensor of pixels of halves and a column of them.
#[derive(Clone, Debug)]
struct Column {
    dims: Vec<u64>,
    lower: Vec<i32>,
    upper: Vec<i32>,
    steps: Vec<u32>,
    channels: u32,
    pixels: u32,
    at: Vec<i32>,
    offsets: Vec<i32>,
    swizzle: TensorSwizzle,
}

impl Column {
    fn random(rank: usize, random: &mut Random) -> Self {
        let inner = rank - 2;
        let mut dims = vec![8 * (1 + below(random, 4))];
        (0..inner).for_each(|_| dims.push(3 + below(random, 6)));
        dims.push(1 + below(random, 3));
        let lower: Vec<i32> = (0..inner).map(|_| random.within(-2, 1) as i32).collect();
        let upper: Vec<i32> = (0..inner).map(|_| random.within(-1, 1) as i32).collect();
        let mut steps = vec![1];
        (0..inner).for_each(|_| steps.push([1, 1, 2][below(random, 3) as usize]));
        steps.push(1);
        let mut at = vec![8 * random.within(-1, dims[0] as i64 / 8) as i32];
        for k in 0..inner {
            at.push(random.within(i64::from(lower[k]), dims[k + 1] as i64 - 1 + i64::from(upper[k])) as i32);
        }
        at.push(random.within(0, dims[rank - 1] as i64 - 1) as i32);
        let offsets = (0..inner).map(|_| below(random, 3) as i32).collect();
        let (mut channels, pixels) = (8 * (1 + below(random, 3) as u32), 1 + below(random, 60) as u32);
        use TensorSwizzle::{B32, B64, B128, None};
        let swizzle = [None, None, B32, B64, B128][below(random, 5) as usize];
        if let Some(span) = swizzle.span_bytes() {
            channels = span / 2;
        }
        Self { dims, lower, upper, steps, channels, pixels, at, offsets, swizzle }
    }

    /// The pixels of the column, one after the other, each by its coordinates without the channel.
    fn pixels(&self) -> Vec<Vec<i64>> {
        let inner = self.lower.len();
        let mut position: Vec<i64> = self.at[1..].iter().map(|at| i64::from(*at)).collect();
        let mut pixels = Vec::new();
        while pixels.len() < self.pixels as usize {
            let mut pixel = position.clone();
            pixel.iter_mut().zip(&self.offsets).for_each(|(place, offset)| *place += i64::from(*offset));
            pixels.push(pixel);
            let mut carries = true;
            for (k, place) in position.iter_mut().enumerate().take(inner) {
                if !carries {
                    break;
                }
                let next = *place + i64::from(self.steps[k + 1]);
                carries = next > self.dims[k + 1] as i64 - 1 + i64::from(self.upper[k]);
                *place = if carries { i64::from(self.lower[k]) } else { next };
            }
            position[inner] += i64::from(carries);
        }
        pixels
    }

    /// Calls `visit` with the place of each element in shared memory, and that in the tensor if it is inside.
    fn each(&self, mut visit: impl FnMut(usize, Option<usize>)) {
        for (number, pixel) in self.pixels().iter().enumerate() {
            for channel in 0..i64::from(self.channels) {
                let mut place = vec![i64::from(self.at[0]) + channel];
                place.extend(pixel);
                let (mut offset, mut stride, mut is_inside) = (0, 2, true);
                for (at, dim) in place.iter().zip(&self.dims) {
                    is_inside &= *at >= 0 && *at < *dim as i64;
                    offset += at * stride;
                    stride *= *dim as i64;
                }
                let shared = 2 * (number * self.channels as usize + channel as usize);
                let shared = swizzled(self.swizzle, shared as u64) as usize;
                visit(shared, is_inside.then_some(offset as usize));
            }
        }
    }

    fn map(&self) -> TensorMap {
        let (lower_corner, upper_corner) = (self.lower.clone(), self.upper.clone());
        let columns =
            TensorColumns { lower_corner, upper_corner, channels: self.channels, pixels: self.pixels };
        TensorMap::im2col(0, TensorElement::F16, &self.dims, columns)
            .with_element_strides(&self.steps)
            .with_swizzle(self.swizzle)
    }

    fn bytes(&self) -> usize {
        (2 * self.channels * self.pixels) as usize
    }

    fn trial(&self, is_store: bool, random: &mut Random) -> Trial {
        let (rank, bytes) = (self.dims.len(), self.bytes().next_multiple_of(1024));
        let mut fresh = |count: usize| -> Vec<u8> { (0..count).map(|_| random.next() as u8).collect() };
        let before = fresh(2 * self.dims.iter().product::<u64>() as usize);
        let (input, output) = (fresh(bytes), vec![0; bytes]);
        let (mut tensor, mut shared) = (before.clone(), input.clone());
        self.each(|place, inside| match inside {
            Some(at) if is_store => tensor[at..at + 2].copy_from_slice(&input[place..place + 2]),
            Some(at) => shared[place..place + 2].copy_from_slice(&before[at..at + 2]),
            None => shared[place..place + 2].fill(0),
        });
        let body = match is_store {
            true => {
                let name =
                    format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group");
                [copy_in(bytes), store(&name, &self.at)].concat()
            }
            false => {
                let load = load("im2col", &self.at, &self.offsets, self.bytes());
                [copy_in(bytes), load, copy_out(bytes)].concat()
            }
        };
        Trial {
            name: format!("{} im2col {rank}d {self:?}", if is_store { "store" } else { "load" }),
            text: kernel(bytes, &body),
            blocks: 1,
            threads: 64,
            cluster: 1,
            oracle: Oracle::Bytes([tensor, if is_store { output.clone() } else { shared }].concat()),
            tensor: Some(Tensor { map: self.map(), content: before, is_written: is_store }),
            input,
            output,
            unit: 2,
        }
    }
}

/// Loads and stores of every rank.
pub(crate) fn columns() -> Vec<Trial> {
    let random = &mut Random::new(31);
    let mut trials = Vec::new();
    for rank in 3..=5 {
        for _ in 0..10 {
            let column = Column::random(rank, random);
            trials.push(column.trial(false, random));
            // A column that is stored cannot leave the tensor on an H200.
            let lower: Vec<i32> = column.lower.iter().map(|low| (*low).max(0)).collect();
            let at = column.at.iter().map(|at| (*at).max(0)).collect();
            let plain = Column { offsets: vec![0; rank - 2], lower, at, ..column };
            let trial = plain.trial(true, random);
            if plain.upper.iter().all(|corner| *corner <= 0) {
                trials.push(trial);
            }
        }
    }
    trials
}

const TENSOR: &str = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%data], [%map, {%c0, %c0}], [%bar], %h0;";
const PLAIN: &str = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%data], [%in], 512, [%bar], %h0;";

/// Copies of one block go to all blocks of a mask, at the same place, and complete bytes of the object there.
pub(crate) fn multicasts() -> Vec<Trial> {
    let sync = "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";
    let mut trials = Vec::new();
    for (copy, mask) in
        [TENSOR, PLAIN].into_iter().flat_map(|copy| [1, 2, 0b1011, 0b1111].map(|mask| (copy, mask)))
    {
        let from = trials.len() % 4;
        let body = format!(
            "mov.u32 %r10, %cluster_ctarank;\nmov.u32 %r11, {mask};\nshr.u32 %r11, %r11, %r10;\nand.b32 %r11, %r11, 1;\nsetp.eq.u32 %p5, %r11, 0;\n\
             @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\n{sync}mul.wide.u32 %a4, %r10, 512;\nadd.u64 %out, %out, %a4;\n\
             setp.eq.u32 %p4, %r10, {from};\nand.pred %p4, %p4, %first;\nmov.b32 %c0, 0;\nmov.u16 %h0, {mask};\n@%p4 {copy}\n@%p5 bra over;\n{WAIT}{}over:\n{sync}",
            copy_out(512)
        );
        let random = &mut Random::new(5);
        let content: Vec<u8> = (0..512).map(|_| random.next() as u8).collect();
        let blocks = (0..4).map(|rank| if mask >> rank & 1 == 1 { content.clone() } else { vec![0; 512] });
        let out = blocks.collect::<Vec<_>>().concat();
        let map = TensorMap::tiled(0, TensorElement::U32, &[16, 8], &[16, 8]);
        trials.push(Trial {
            name: format!("{copy} mask {mask:#b} from rank {from}"),
            text: kernel(1024, &body),
            blocks: 4,
            threads: 64,
            cluster: 4,
            oracle: Oracle::Bytes([&content[..], &out].concat()),
            input: content.clone(),
            tensor: Some(Tensor { map, content, is_written: false }),
            output: vec![0; 4 * 512],
            unit: 4,
        });
    }
    trials
}
