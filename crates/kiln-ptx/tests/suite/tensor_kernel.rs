//! Kernels with tensor copies for tests, and an oracle for what a box holds.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory, TensorElement, TensorMap,
    TensorSwizzle,
};

/// A kernel with a tensor map behind `%map`, `bytes` of shared memory behind `%data`, an object behind `%bar` that expects one arrival, and two more
/// parameters, `%out` and `%in`.
pub(crate) fn kernel(bytes: u64, body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 in)\n{{\n\
         .reg .b32 %r<32>, %t, %n, %bar, %data;\n.reg .b16 %h<4>;\n.reg .b64 %map, %out, %in, %a<8>;\n.reg .pred %p<8>, %first;\n\
         .shared .align 8 .b8 bar[16];\n.shared .align 1024 .b8 data[{bytes}];\nmov.b64 %a0, map;\ncvta.param.u64 %map, %a0;\nld.param.u64 %out, [out];\n\
         ld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %bar, bar;\nmov.u32 %data, data;\nsetp.eq.u32 %first, %t, 0;\n\
         @%first mbarrier.init.shared::cta.b64 [%bar], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{body}\nret;\n}}\n"
    )
}

pub(crate) fn options(seed: u64) -> Options<'static> {
    Options { checks: Checks::ALL, seed, sole_writer: true, ..Options::default() }
}

pub(crate) fn launch(
    text: &str,
    shape: &LaunchShape,
    memory: &SimpleMemory,
    (map, pointers): (&[u8; 128], &[u64]),
    options: &Options<'_>,
) -> ExecOutcome {
    let program = ExecProgram::new(PtxModule::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut arguments = map.to_vec();
    pointers.iter().for_each(|pointer| arguments.extend(pointer.to_le_bytes()));
    program.entry("k").unwrap().launch(shape, &arguments, &[], memory, options).unwrap()
}

/// A name of an instruction with coordinates.
pub(crate) fn coordinates(values: &[i32]) -> String {
    let list: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("{{{}}}", list.join(", "))
}

/// The first thread loads a box and announces its bytes; all wait for them.
pub(crate) fn load(rank: usize, at: &[i32], bytes: u64) -> String {
    format!(
        "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};\n@%first \
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%data], [%map, {}], [%bar];\n{WAIT}",
        coordinates(at)
    )
}

pub(crate) const WAIT: &str =
    "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n@!%p0 bra wait;\n";

/// All threads copy shared memory to `%out`.
pub(crate) fn copy_out(bytes: u64) -> String {
    format!(
        "mov.u32 %r0, %t;\nnext:\nsetp.ge.u32 %p1, %r0, {};\n@%p1 bra done;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r2, %data, %r1;\nld.shared.u32 %r3, [%r2]; // here\n\
         mul.wide.u32 %a1, %r0, 4;\nadd.u64 %a2, %out, %a1;\nst.global.u32 [%a2], %r3;\nadd.u32 %r0, %r0, %n;\nbra next;\ndone:\n",
        bytes / 4
    )
}

/// All threads copy `%in` to shared memory and meet.
pub(crate) fn copy_in(bytes: u64) -> String {
    format!(
        "mov.u32 %r0, %t;\nnext:\nsetp.ge.u32 %p1, %r0, {};\n@%p1 bra done;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r2, %data, %r1;\nmul.wide.u32 %a1, %r0, 4;\n\
         add.u64 %a2, %in, %a1;\nld.global.u32 %r3, [%a2];\nst.shared.u32 [%r2], %r3;\nadd.u32 %r0, %r0, %n;\nbra next;\ndone:\nfence.proxy.async.shared::cta;\nbar.sync 0;\n",
        bytes / 4
    )
}

/// The first thread stores the box and waits for that.
pub(crate) fn store(name: &str, at: &[i32]) -> String {
    format!(
        "@%first {name} [%map, {}], [%data];\n@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n",
        coordinates(at)
    )
}

/// Numbers that look random.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A tensor that a test makes up, with the box and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) element: TensorElement,
    pub(crate) dims: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    pub(crate) boxes: Vec<u32>,
    pub(crate) steps: Vec<u32>,
    pub(crate) swizzle: TensorSwizzle,
    pub(crate) at: Vec<i32>,
}

impl Sample {
    pub(crate) fn random(
        rank: usize,
        swizzle: TensorSwizzle,
        elements: &[TensorElement],
        numbers: &mut Numbers,
    ) -> Self {
        let element = numbers.pick(elements);
        let size = u64::from(element.bytes());
        let row = match swizzle {
            TensorSwizzle::None => 16 * (1 + numbers.below(9)),
            TensorSwizzle::B32 => 16 * (1 + numbers.below(2)),
            TensorSwizzle::B64 => 16 * (1 + numbers.below(4)),
            TensorSwizzle::B128 => 16 * (1 + numbers.below(8)),
        };
        let most = [0, 0, 12, 6, 4, 3][rank];
        let mut boxes = vec![(row / size).min(256) as u32];
        let mut steps = vec![1];
        for _ in 1..rank {
            steps.push(numbers.pick(&[1, 1, 1, 2, 3]));
            boxes.push(1 + numbers.below(most) as u32);
        }
        let dims: Vec<u64> = boxes.iter().map(|size| 1 + numbers.below(2 * u64::from(*size))).collect();
        let mut strides = Vec::new();
        let mut bytes = dims[0] * size;
        for dim in &dims[1..] {
            bytes = bytes.next_multiple_of(16) + 16 * numbers.below(2);
            strides.push(bytes);
            bytes *= dim;
        }
        let at = dims.iter().zip(&boxes).map(|(dim, size)| {
            let reach = i64::from(*size).min(4);
            numbers.between(-reach, *dim as i64 + 1) as i32
        });
        let mut at: Vec<i32> = at.collect();
        // A row of the box begins at a multiple of 16 bytes.
        let piece = (16 / size) as i32;
        at[0] = at[0].div_euclid(piece) * piece;
        Self { element, dims, strides, boxes, steps, swizzle, at }
    }

    pub(crate) fn map(&self, address: u64) -> TensorMap {
        TensorMap::tiled(address, self.element, &self.dims, &self.boxes)
            .with_strides(&self.strides)
            .with_element_strides(&self.steps)
            .with_swizzle(self.swizzle)
    }

    /// Bytes from the first to the last element of the tensor.
    pub(crate) fn tensor_bytes(&self) -> usize {
        let size = u64::from(self.element.bytes());
        let last: u64 =
            self.dims[1..].iter().zip(&self.strides).map(|(dim, stride)| (dim - 1) * stride).sum();
        (last + self.dims[0] * size) as usize
    }

    /// The same, and it does not begin in front of the tensor.
    pub(crate) fn within(mut self) -> Self {
        self.at.iter_mut().for_each(|at| *at = (*at).max(0));
        self
    }

    /// Stores and reductions write whole pieces of 16 bytes, also those that rows of the tensor end in: the tensor as they see it.
    pub(crate) fn in_pieces(&self) -> Self {
        let mut other = self.clone();
        other.dims[0] = other.dims[0].next_multiple_of(16 / u64::from(self.element.bytes()));
        other
    }

    /// Bytes from one row of the box to the next in shared memory.
    fn pitch(&self) -> u64 {
        let row = u64::from(self.boxes[0] * self.element.bytes());
        self.swizzle.span_bytes().map_or(row, u64::from).max(row)
    }

    /// Bytes of the box in shared memory, and some behind it.
    pub(crate) fn room(&self) -> u64 {
        (self.counts()[1..].iter().product::<u64>() * self.pitch()).next_multiple_of(1024)
    }

    pub(crate) fn counts(&self) -> Vec<u64> {
        self.boxes.iter().zip(&self.steps).map(|(size, step)| u64::from(size.div_ceil(*step))).collect()
    }

    pub(crate) fn box_bytes(&self) -> u64 {
        self.counts().iter().product::<u64>() * u64::from(self.element.bytes())
    }

    /// Calls `visit` with the place of each element of the box in shared memory, and its place in the tensor if it is inside.
    pub(crate) fn each(&self, mut visit: impl FnMut(usize, Option<usize>)) {
        let (counts, size) = (self.counts(), u64::from(self.element.bytes()));
        for number in 0..counts.iter().product::<u64>() {
            let (mut rest, mut offset, mut is_inside) = (number, 0, true);
            for (dimension, count) in counts.iter().enumerate() {
                let index = rest % count;
                rest /= count;
                let place = i64::from(self.at[dimension]) + (index * u64::from(self.steps[dimension])) as i64;
                is_inside &= place >= 0 && place < self.dims[dimension] as i64;
                let stride = if dimension == 0 { size } else { self.strides[dimension - 1] };
                offset += place * stride as i64;
            }
            let place = number / counts[0] * self.pitch() + number % counts[0] * size;
            visit(swizzled(self.swizzle, place) as usize, is_inside.then_some(offset as usize));
        }
    }
}

/// Where a byte of a box lies: the tables of the PTX ISA, in which the pieces of 16 bytes of a line of 128 bytes change places.
pub(crate) fn swizzled(swizzle: TensorSwizzle, offset: u64) -> u64 {
    let (line, piece, byte) = (offset / 128, offset % 128 / 16, offset % 16);
    let exchange = match swizzle {
        TensorSwizzle::None => 0,
        TensorSwizzle::B32 => line % 2,
        TensorSwizzle::B64 => line % 4,
        TensorSwizzle::B128 => line % 8,
    };
    line * 128 + (piece ^ exchange) * 16 + byte
}
