//! Control flow that diverges.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("control");

fn loops(v: i32, n: i32) -> i32 {
    let mut r = 0;
    for k in 0..v % 17 {
        if (k ^ v) % 5 == 0 {
            continue;
        }
        let mut j = k;
        while j < 20 {
            if j * k > v {
                break;
            }
            if j == 13 && v % 11 == 0 {
                return -r;
            }
            r += j ^ k;
            j += 3;
        }
        if r > n {
            return r;
        }
        r ^= k;
    }
    r + 1000
}

fn pick(v: i32) -> i32 {
    match v & 15 {
        0 => v + 1,
        1 => v * 3,
        2 => v ^ 0x55,
        3 | 4 => v >> 2,
        5 => -v,
        6 => v * v,
        7 => v | 0x100,
        8 => v % 7,
        9 => !v,
        11 => v << 3,
        _ => 42,
    }
}

fn digit_root(v: i32) -> i32 {
    if v < 0 {
        return -1;
    }
    let mut v = v;
    while v > 9 {
        v = v.to_string().bytes().map(|b| i32::from(b - b'0')).sum();
    }
    v
}

fn interpret(program: &[u8]) -> i32 {
    let (mut stack, mut top, mut steps, mut pc) = ([0i32; 8], 0i32, 0, 0usize);
    let slot = |top: i32| (top & 7) as usize;
    while pc < program.len() && steps < 200 {
        steps += 1;
        let op = program[pc];
        pc += 1;
        match op {
            0..0x80 => {
                stack[slot(top)] = i32::from(op);
                top += 1;
            }
            0x80..0xa0 => {
                let (a, b) = (stack[slot(top - 1)], stack[slot(top - 2)]);
                top -= 2;
                stack[slot(top)] = match (op & 1, op & 2) {
                    (1, _) => a.wrapping_add(b),
                    (_, 2) => a.wrapping_sub(b),
                    _ => a.wrapping_mul(b),
                };
                top += 1;
            }
            0xa0..0xc0 => {
                top -= 1;
                if stack[slot(top)] > 64 {
                    pc += usize::from(op & 3);
                }
            }
            0xc0..0xd0 => pc = if op & 1 != 0 { 0 } else { pc },
            _ => {
                stack[slot(top)] = stack[slot(top - 1)];
                top += 1;
            }
        }
    }
    stack[slot(top - 1)].wrapping_add(steps * 1000)
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "divergent_loops",
        CaseShape::linear(3, 64),
        |r| vec![exact(r.i32s(192, 0, 500)), exact(vec![0i32; 192]), value(300i32)],
        |a| a.set(1, a.i32s(0).iter().map(|v| loops(*v, 300)).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "switch_table",
        CaseShape::linear(1, 128),
        |r| vec![exact(r.i32s(128, -5000, 5000)), exact(vec![0i32; 128])],
        |a| a.set(1, a.i32s(0).iter().map(|v| pick(*v)).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "early_exit",
        CaseShape::linear(3, 64),
        |r| vec![exact(r.i32s(150, -1000, 1_000_000)), exact(vec![0i32; 150]), value(150i32)],
        |a| a.set(1, a.i32s(0).iter().map(|v| digit_root(*v)).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "interpret",
        CaseShape::linear(1, 64),
        |r| {
            // Every program starts with enough on the stack that nothing unwritten is read.
            let program = |r: &mut crate::Random| {
                let mut bytes = r.list(8, |r| r.within(0, 127) as u8);
                bytes.extend(r.bytes(24));
                bytes
            };
            vec![exact(r.list(64, program).concat()), exact(vec![0i32; 64]), value(32u32)]
        },
        |a| a.set(1, a.u8s(0).chunks(32).map(interpret).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "named_barriers",
        CaseShape::linear(1, 128),
        |r| vec![exact(r.i32s(64, -99, 99)), exact(vec![0i32; 64])],
        |a| {
            let x = a.i32s(0);
            a.set(1, (0..64).map(|t| 2 * x[t] + 2 * x[63 - t]).collect::<Vec<i32>>());
        }
    ),
];
