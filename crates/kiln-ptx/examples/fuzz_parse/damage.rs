//! Texts that are damaged in ways that mean something to the grammar.

const CORPUS: [&str; 12] = [
    include_str!("../../tests/data/assembly.ptx"),
    include_str!("../../tests/data/atomics.ptx"),
    include_str!("../../tests/data/control.ptx"),
    include_str!("../../tests/data/cooperative.ptx"),
    include_str!("../../tests/data/elementwise.ptx"),
    include_str!("../../tests/data/hopper.ptx"),
    include_str!("../../tests/data/host_calls.ptx"),
    include_str!("../../tests/data/pointers.ptx"),
    include_str!("../../tests/data/shared.ptx"),
    include_str!("../../tests/data/tensor.ptx"),
    include_str!("../../tests/data/textures.ptx"),
    include_str!("../../tests/data/grammar.ptx"),
];

/// Pieces that have meaning to the grammar, for insertion at any place.
const PIECES: [&str; 36] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    "@",
    "@!%p1 ",
    "<",
    "<<",
    ">",
    "|",
    "+-",
    "!",
    "~",
    "?",
    "\"",
    "/*",
    "//",
    ".reg .b32 %r<4000000000>;",
    ".reg .pred p, q;",
    ".shared .align 8 .b8 s[64];",
    ".param .b64 param0;",
    "0f3F800000",
    "0xFFFFFFFFFFFFFFFF",
    "-9223372036854775808",
    ".loc 1 2 3, function_name L+4, inlined_at 1 2 3",
    "bra $L__BB0_1;",
    "call (r), f, (a, b), p;",
    "x: .branchtargets a, b;",
    ".global .b8 z[4][4] = {{1},{2,3}};",
    "\u{fc}",
    "\0",
];

/// What texts are made of: the files of the tests, and further ones.
pub(crate) struct Texts {
    seed: u64,
    originals: Vec<String>,
}

impl Texts {
    pub(crate) fn new(seed: u64, further: impl IntoIterator<Item = String>) -> Self {
        Self { seed, originals: CORPUS.iter().map(|text| (*text).to_owned()).chain(further).collect() }
    }

    /// A text by its number: one of the files with one to eight places damaged.
    pub(crate) fn damaged(&self, number: u64) -> String {
        let mut random = Random::new(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number));
        let originals: Vec<&str> = self.originals.iter().map(String::as_str).collect();
        let mut text = random.pick(&originals).as_bytes().to_vec();
        for _ in 0..=random.below(8) {
            damage(&mut text, &mut random, &originals);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn damage(text: &mut Vec<u8>, random: &mut Random, originals: &[&str]) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(64)).min(text.len());
    match random.below(13) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => drop(text.splice(at..at, random.pick(&PIECES).bytes())),
        3 => drop(text.splice(at..end, random.pick(&PIECES).bytes())),
        4 => {
            let copy = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            drop(text.splice(to..to, copy));
        }
        5 => {
            let other = random.pick(originals).as_bytes();
            let from = random.below(other.len());
            let until = (from + random.below(400)).min(other.len());
            drop(text.splice(at..at, other[from..until].iter().copied()));
        }
        6 => {
            // One piece over and over: nesting, long lists, long numbers.
            let piece = random.pick(&PIECES).repeat(1 + random.below(2000));
            drop(text.splice(at..at, piece.bytes()));
        }
        7..=10 => {
            // Whole lines moved, copied or dropped often leave PTX.
            let (start, stop) = line_around(text, at);
            let line = text[start..stop].to_vec();
            if random.below(2) == 0 {
                drop(text.drain(start..stop));
            }
            if random.below(2) == 0 {
                let near = random.below(text.len() + 1);
                let (to, _) = line_around(text, near);
                drop(text.splice(to..to, line));
            }
        }
        _ => {
            if let Some(byte) = text.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
    }
}

/// The line that contains the byte at `at`, with its end.
fn line_around(text: &[u8], at: usize) -> (usize, usize) {
    let start = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    let stop = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |length| at + length + 1);
    (start, stop)
}

/// A small generator of our own, so that a seed means the same texts on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}
