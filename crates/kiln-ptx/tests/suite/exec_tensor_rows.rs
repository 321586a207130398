//! Tensor copies of four rows that the instruction names: `tile::gather4` and `tile::scatter4`, against a loop over indices.

use crate::tensor_kernel::{
    Numbers, WAIT, coordinates, copy_in, copy_out, kernel, launch, options, swizzled,
};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, LaunchShape, SimpleMemory, TensorElement, TensorMap, TensorSwizzle};

const GATHER: &str = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes";
const SCATTER: &str = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
const SWIZZLES: [TensorSwizzle; 4] =
    [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];
const ROOM: u64 = 1024;

/// A matrix, and the rows of it that are copied.
#[derive(Debug)]
struct Rows {
    element: TensorElement,
    columns: u64,
    rows: u64,
    stride: u64,
    /// Columns of the box, the first of them, and its rows.
    width: u64,
    at: i64,
    picked: [i64; 4],
    swizzle: TensorSwizzle,
}

impl Rows {
    fn random(swizzle: TensorSwizzle, numbers: &mut Numbers, low: i64) -> Self {
        let element =
            numbers.pick(&[TensorElement::U8, TensorElement::Bf16, TensorElement::F32, TensorElement::U64]);
        let size = u64::from(element.bytes());
        let pieces = 1 + numbers.below(u64::from(swizzle.span_bytes().unwrap_or(160)) / 16);
        let (width, piece) = (16 * pieces / size, 16 / size);
        let columns = 1 + numbers.below(2 * width);
        let rows = 1 + numbers.below(9);
        let stride = (columns * size).next_multiple_of(16) + 16 * numbers.below(2);
        let at = numbers.between(low, 2) * piece as i64;
        let picked = std::array::from_fn(|_| numbers.between(low, rows as i64));
        Self { element, columns, rows, stride, width, at, picked, swizzle }
    }

    fn size(&self) -> u64 {
        self.element.bytes().into()
    }

    fn bytes(&self) -> u64 {
        (self.rows - 1) * self.stride + self.columns * self.size()
    }

    fn map(&self, address: u64) -> TensorMap {
        TensorMap::tiled(address, self.element, &[self.columns, self.rows], &[self.width as u32, 1])
            .with_strides(&[self.stride])
            .with_swizzle(self.swizzle)
    }

    fn place(&self) -> String {
        let all: Vec<i32> = [self.at].iter().chain(&self.picked).map(|at| *at as i32).collect();
        coordinates(&all)
    }

    /// Calls `visit` with the place of each element in shared memory and its place in the matrix, if it is inside. Stores write whole pieces.
    fn each(&self, in_pieces: bool, mut visit: impl FnMut(usize, Option<usize>)) {
        let pitch = self.swizzle.span_bytes().map_or(0, u64::from).max(self.width * self.size());
        let columns = match in_pieces {
            true => (self.columns * self.size()).next_multiple_of(16) / self.size(),
            false => self.columns,
        };
        for (number, row) in (0..).zip(self.picked) {
            for column in 0..self.width {
                let from = self.at + column as i64;
                let inside = (0..columns as i64).contains(&from) && (0..self.rows as i64).contains(&row);
                let to = swizzled(self.swizzle, number * pitch + column * self.size());
                let place = inside
                    .then(|| row as usize * self.stride as usize + from as usize * self.size() as usize);
                visit(to as usize, place);
            }
        }
    }
}

fn text(body: &str) -> String {
    kernel(ROOM, body).replace("sm_90a", "sm_100a")
}

#[test]
fn gathered_rows_stand_one_behind_the_other() {
    let numbers = &mut Numbers(23);
    for round in 0..48 {
        let rows = Rows::random(SWIZZLES[round % 4], numbers, -2);
        let content = numbers.bytes(rows.bytes() as usize);
        let mut memory = SimpleMemory::new();
        let (tensor, out) = (memory.allocate_with(&content), memory.allocate(ROOM));
        let zeros = memory.allocate(ROOM);
        let clear = copy_in(ROOM).replace("next", "clear").replace("done", "cleared");
        let bytes = 4 * rows.width * rows.size();
        let name = match round % 3 {
            0 => GATHER.to_owned(),
            1 => format!("{GATHER}.cta_group::1"),
            _ => GATHER.replace("shared::cta", "shared::cluster"),
        };
        let body = format!(
            "{clear}@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};\n@%first {name} [%data], [%map, {}], [%bar];\n{WAIT}{}",
            rows.place(),
            copy_out(ROOM)
        );
        let map = rows.map(tensor).encode().unwrap();
        let shape = LaunchShape::linear(1, 64);
        let outcome = launch(&text(&body), &shape, &memory, (&map, &[out, zeros]), &options(round as u64));
        assert!(outcome.is_clean(), "{rows:?}: {:#?}", outcome.findings);
        let (mut expected, size) = (vec![0; ROOM as usize], rows.size() as usize);
        rows.each(false, |to, from| {
            if let Some(from) = from {
                expected[to..to + size].copy_from_slice(&content[from..from + size]);
            }
        });
        assert_eq!(memory.read(out, ROOM).unwrap(), expected, "{rows:?}");
    }
}

#[test]
fn scattered_rows_are_those_that_are_named() {
    let numbers = &mut Numbers(29);
    for round in 0..32 {
        let mut rows = Rows::random(SWIZZLES[round % 4], numbers, 0);
        // Which of two writes to one row stays is not said.
        let count = rows.rows.max(4) as i64;
        rows.picked = std::array::from_fn(|at| (rows.picked[0] + at as i64) % count);
        let (before, content) = (numbers.bytes(rows.bytes() as usize), numbers.bytes(ROOM as usize));
        let mut memory = SimpleMemory::new();
        let (tensor, from) = (memory.allocate_with(&before), memory.allocate_with(&content));
        let body = format!(
            "{}@%first {SCATTER} [%map, {}], [%data];\n@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n",
            copy_in(ROOM),
            rows.place()
        );
        let map = rows.map(tensor).encode().unwrap();
        let shape = LaunchShape::linear(1, 64);
        let outcome = launch(&text(&body), &shape, &memory, (&map, &[0, from]), &options(round as u64));
        assert!(outcome.is_clean(), "{rows:?}: {:#?}", outcome.findings);
        let (mut expected, size) = (before, rows.size() as usize);
        rows.each(true, |shared, to| {
            if let Some(to) = to.filter(|to| to + size <= expected.len()) {
                expected[to..to + size].copy_from_slice(&content[shared..shared + size]);
            }
        });
        assert_eq!(memory.read(tensor, rows.bytes()).unwrap(), expected, "{rows:?}");
    }
}

/// The findings of a gather with this map and these coordinates, in a kernel for `target`.
fn findings(target: &str, name: &str, map: &TensorMap, place: &str) -> String {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(64 * 64);
    let map = TensorMap { address: tensor, ..map.clone() }.encode().unwrap();
    let operands = match name.contains("scatter") {
        true => format!("[%map, {place}], [%data]"),
        false => format!("[%data], [%map, {place}], [%bar]"),
    };
    let body = format!("@%first {name} {operands}; // here\n");
    let text = kernel(ROOM, &body).replace("sm_90a", target);
    let outcome = launch(&text, &LaunchShape::linear(1, 32), &memory, (&map, &[0, 0]), &options(0));
    outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn wrong_maps_coordinates_and_targets_are_told() {
    let map = |rows: u32| TensorMap::tiled(0, TensorElement::F32, &[16, 64], &[16, rows]);
    let place = "{0, 1, 2, 3, 4}";
    let two = findings("sm_100a", GATHER, &map(2), place);
    assert!(
        two.contains("the box of the tensor map has 2 rows") && two.contains("it must have one"),
        "{two}"
    );
    let front = findings("sm_100a", SCATTER, &map(1), "{0, 1, 2, -3, 4}");
    assert!(front.contains("coordinate 3 is -3"), "{front}");
    let odd = findings("sm_100a", GATHER, &map(1), "{1, 1, 2, 3, 4}");
    assert!(odd.contains("must be a multiple of 16 bytes"), "{odd}");
    let few = findings("sm_100a", GATHER, &map(1), "{0, 1, 2, 3}");
    assert!(few.contains("is not executed"), "{few}");
    for (target, name, words) in [
        ("sm_90a", GATHER, "requires PTX 8.6 and sm_100 or newer"),
        ("sm_120", SCATTER, "requires PTX 8.6 and sm_100a to sm_110a"),
        ("sm_100", SCATTER, "requires PTX 8.6 and sm_100a to sm_110a"),
        (
            "sm_120a",
            &GATHER.replace("shared::cta", "shared::cluster"),
            "requires PTX 8.6 and sm_100a to sm_110a",
        ),
    ] {
        let found = findings(target, name, &map(1), place);
        assert!(found.contains(words), "{target} {name}: {found}");
    }
    for target in ["sm_100", "sm_120"] {
        let text = kernel(ROOM, &format!("@%first {GATHER} [%data], [%map, {place}], [%bar];\n"))
            .replace("sm_90a", target);
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
        assert!(program.entry("k").unwrap().unsupported().is_empty(), "{target}");
    }
}
