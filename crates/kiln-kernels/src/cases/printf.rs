//! Kernels that print with `printf`.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, Ending, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("output");

pub(super) const CASES: &[Case] = &[
    Case {
        prints: Some(|a| {
            let line = |(i, (x, f)): (u64, (i32, f32))| {
                let word = if x > 0 { "up" } else { "down" };
                let letter = char::from(b'a' + i as u8);
                format!("thread {i} of 20: {x} {f:5.2} {word} {letter} {:x}", 0x1234_5678_9abc * i)
            };
            (0..).zip(a.i32s(0).into_iter().zip(a.f32s(1))).map(line).collect()
        }),
        ..case!(
            SOURCE,
            "print_values",
            CaseShape::linear(1, 20),
            |r| vec![exact(r.i32s(20, -50, 50)), exact(r.f32s(20, -50.0, 50.0))],
            |_| {}
        )
    },
    Case {
        prints: Some(|_| (0..100).step_by(7).map(|i| format!("{i}%")).collect()),
        ..case!(SOURCE, "print_some", CaseShape::linear(4, 32), |_| vec![value(100i32)], |_| {})
    },
    case!(
        SOURCE,
        "assert_holds",
        "check_positive",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.i32s(50, 1, 99)), exact(vec![0i32; 50]), value(50u32)],
        |a| a.set(1, a.i32s(0).iter().map(|x| x * 2).collect::<Vec<i32>>())
    ),
    Case {
        ending: Ending::Fault(710),
        ..case!(
            SOURCE,
            "assert_fails",
            "check_positive",
            CaseShape::linear(1, 64),
            |r| {
                let mut list = r.i32s(50, 1, 99);
                list[37] = -5;
                vec![exact(list), exact(vec![0i32; 50]).judged(crate::Compare::Ignore), value(50u32)]
            },
            |_| {}
        )
    },
];
