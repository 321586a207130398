//! Atomic updates of vectors in global memory: one element of what is in memory afterwards.

use super::probe;
use crate::instruction_probe::{Class, Meaning, Probe};

const H: Class = Class::Half;
const W: Class = Class::Word;

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for (at, offset) in [0, 4].into_iter().enumerate() {
        // The memory of a thread has two words; the operands are stored in turn.
        let pair = "st.global.v2.b32 [%out], {$a, $b}";
        let load = format!("ld.global.b32 $d, [%out+{offset}]");
        let mut add = |name: &str, meaning| {
            let atomic = format!("{pair}; atom.global.{name} {{$d, _}}, [%out], {{$b, $c}}; {load}");
            let reduced = format!("{pair}; red.global.{name} [%out], {{$c, $a}}; {load}");
            all.push(probe(if at == 0 { atomic } else { reduced }, W, &[W; 3], meaning));
        };
        add("add.v2.f32", Meaning::Single);
        for operation in ["add", "min", "max"] {
            add(&format!("{operation}.noftz.v2.f16x2"), Meaning::Half);
            add(&format!("{operation}.noftz.v2.bf16x2"), Meaning::Brain);
        }
    }
    for offset in [0, 2, 4, 6] {
        for operation in ["add", "min", "max"] {
            for (ty, meaning) in [("f16", Meaning::Half), ("bf16", Meaning::Brain)] {
                let text = format!(
                    "st.global.v4.b16 [%out], {{$a, $b, $c, $a}}; \
                     atom.global.{operation}.noftz.v4.{ty} {{%t0, %t1, %t2, %t3}}, [%out], {{$b, $c, $a, $a}}; \
                     ld.global.b16 $d, [%out+{offset}]"
                );
                all.push(probe(text, H, &[H; 3], meaning));
            }
        }
    }
    all
}
