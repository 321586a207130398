//! The kernels, as programs (`.kir`).
//!
//! All have the same head: the thread's place in the sequence, ten rounds of Philox, and then `a`, `b`, `c` and `d` are the words and `at` is the
//! first element that the thread writes. An element outside of the buffer is not written, so the first and the last thread need no
//! care.

/// How a thread's words become elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grouping {
    /// Four elements of one word each.
    Fours,
    /// Two elements of two words each, in the order of words.
    Twos,
    /// Two elements of two words each; of each subsequence two blocks one after the other, as cuRAND orders doubles.
    Doubles,
    /// One element of four words.
    Ones,
}

impl Grouping {
    /// Elements that a thread writes.
    pub(super) const fn elements(self) -> u64 {
        match self {
            Self::Fours => 4,
            Self::Twos | Self::Doubles => 2,
            Self::Ones => 1,
        }
    }

    const fn head(self) -> &'static str {
        match self {
            Self::Fours => {
                "let t = offset / 4 + global.x;
                 let counter = t / 65536;
                 let subsequence = t % 65536;
                 let at = t * 4 - offset;"
            }
            Self::Twos => {
                "let t = offset / 2 + global.x;
                 let counter = t / 65536;
                 let subsequence = t % 65536;
                 let at = t * 2 - offset;"
            }
            Self::Doubles => {
                "let t = offset / 2 + global.x;
                 let counter = t / 131072 * 2 + t % 2;
                 let subsequence = t / 2 % 65536;
                 let at = t * 2 - offset;"
            }
            Self::Ones => {
                "let t = offset + global.x;
                 let counter = t / 65536;
                 let subsequence = t % 65536;
                 let at = global.x;"
            }
        }
    }
}

/// Ten rounds over `a`, `b`, `c`, `d` with the key of `seed`.
const ROUNDS: &str = "
        var low = u32(seed);
        var high = u32(seed >> 32);
        for turn in 0u32..10u32 {
            let p = 3528531795u64 * u64(a);
            let q = 3449720151u64 * u64(c);
            a = u32(q >> 32) ^ b ^ low;
            b = u32(q);
            c = u32(p >> 32) ^ d ^ high;
            d = u32(p);
            low = low + 2654435769;
            high = high + 3144134277;
        }";

/// A kernel that writes elements of a type; `parameters` begins with a comma if there are any.
pub(super) fn kernel(name: &str, element: &str, grouping: Grouping, parameters: &str, body: &str) -> String {
    let head = grouping.head();
    format!(
        "kernel {name}(inout y: {element}[], seed: u64, offset: u64{parameters}) block(256) {{
        {head}
        var a = u32(counter);
        var b = u32(counter >> 32);
        var c = u32(subsequence);
        var d = 0u32;{ROUNDS}
        {body}
    }}"
    )
}

/// The body for one word to an element; `W` stands for the word.
pub(super) fn each_word(value: &str) -> String {
    let store = |(at, word): (usize, &str)| format!("y[at + {at}] = {};\n", value.replace('W', word));
    ["a", "b", "c", "d"].into_iter().enumerate().map(store).collect()
}

/// The body for two words to an element; `L` stands for the first and `H` for the second.
pub(super) fn each_pair(value: &str) -> String {
    let store = |(at, (low, high)): (usize, (&str, &str))| {
        format!("y[at + {at}] = {};\n", value.replace('L', low).replace('H', high))
    };
    [("a", "b"), ("c", "d")].into_iter().enumerate().map(store).collect()
}

/// Uniform numbers from a word `W`, and from two words `L` and `H`.
pub(super) const UNIFORM_F32: &str = "f32(W) * f32#2f800000 + f32#2f000000";
pub(super) const UNIFORM_F64: &str =
    "f64(u64(L) ^ u64(H) << 21) * f64#3ca0000000000000 + f64#3c90000000000000";

/// Four normal numbers, two from each pair of words; `V` in `value` stands for one.
pub(super) fn normal_f32(value: &str) -> String {
    let pair = |at: usize, first: &str, second: &str| {
        let uniform = UNIFORM_F32.replace('W', first);
        let (one, two) = (value.replace('V', "one"), value.replace('V', "two"));
        format!(
            "{{
            let length = sqrt(log({uniform}) * -2.0f32);
            let angle = f32({second}) * f32#30c90fdb + f32#30490fdb;
            let one = length * sin(angle);
            let two = length * cos(angle);
            y[at + {at}] = {one};
            y[at + {}] = {two};
            }}\n",
            at + 1
        )
    };
    // Braces alone are no statement.
    [pair(0, "a", "b"), pair(2, "c", "d")].map(|text| format!("if true {text}")).concat()
}

/// Two normal numbers from four words; `V` in `value` stands for one.
pub(super) fn normal_f64(value: &str) -> String {
    let uniform = UNIFORM_F64.replace('L', "a").replace('H', "b");
    let (one, two) = (value.replace('V', "one"), value.replace('V', "two"));
    format!(
        "let length = sqrt(log({uniform}) * -2.0f64);
        let turn_part = f64(u64(c) ^ u64(d) << 21) * f64#3cb0000000000000 + f64#3ca0000000000000;
        let angle = turn_part * f64#400921fb54442d18;
        let one = length * sin(angle);
        let two = length * cos(angle);
        y[at] = {one};
        y[at + 1] = {two};"
    )
}

/// Integers of 32 bits from `low` on: 64 random bits times the number of values, of which the upper part counts.
pub(super) fn integers_32(element: &str) -> String {
    each_pair(&format!("low_end + {element}((u64(H) * count + (u64(L) * count >> 32)) >> 32)"))
}

/// Integers of 64 bits from `low_end` on: 128 random bits times the number of values, where 0 stands for all 2^64.
pub(super) fn integers_64(element: &str) -> String {
    let upper = |name: &str, low_word: &str, high_word: &str| {
        format!(
            "let {name}00 = u64({low_word}) * count0;
            let {name}01 = u64({low_word}) * count1;
            let {name}10 = u64({high_word}) * count0;
            let {name}11 = u64({high_word}) * count1;
            let {name}mid = ({name}00 >> 32) + u64(u32({name}01)) + u64(u32({name}10));
            let {name} = {name}11 + ({name}01 >> 32) + ({name}10 >> 32) + ({name}mid >> 32);\n"
        )
    };
    let (lower, higher) = (upper("lower", "a", "b"), upper("higher", "c", "d"));
    format!(
        "let count0 = count & 4294967295;
        let count1 = count >> 32;
        {lower}{higher}
        let all = u64(c) | u64(d) << 32;
        let rest = all * count + lower;
        let carry = select(rest < lower, 1u64, 0u64);
        y[at] = low_end + {element}(select(count == 0, all, higher + carry));"
    )
}

/// Each of 0 to the length less one once: a Feistel network over twice `half` bits, again until the result is below the length.
pub(super) fn permutation(name: &str, element: &str) -> String {
    format!(
        "kernel {name}(inout y: {element}[], seed: u64, offset: u64, half: u32) block(256) {{
        var x = global.x;
        var walks = x < len(y);
        let mask = (1u64 << half) - 1;
        while walks {{
            var left = x >> half;
            var right = x & mask;
            for pass in 0u32..8u32 {{
                var a = u32(right);
                var b = pass;
                var c = u32(offset);
                var d = u32(offset >> 32);{ROUNDS}
                let next = left ^ (u64(a) & mask);
                left = right;
                right = next;
            }}
            x = left << half | right;
            walks = x >= len(y);
        }}
        y[global.x] = {element}(x);
    }}"
    )
}
