//! One random program on everything there is without a device.

use kiln_ir::{Program, PtxTarget, ThreadOrder};

use super::generate;
use crate::rig::compare::{describe, same};
use crate::rig::{Left, interpret, simulate};

const TARGETS: [u32; 5] = [70, 75, 80, 90, 120];

/// Runs one program everywhere; what differs.
pub(crate) fn examine(seed: u64) -> Result<(), String> {
    let (program, launch) = generate(seed);
    let printed = program.to_string();
    let parsed = Program::parse(&printed).map_err(|error| format!("{error}\n{printed}"))?;
    if parsed != program {
        return Err(format!("what was printed parses to another program\n{printed}\n{parsed}"));
    }
    let (meaning, _) = interpret(&program, &launch, ThreadOrder::Ascending);
    let compare = |left: &Left, who: &str| match same(&program, &meaning, left) {
        true => Ok(()),
        false => Err(format!("{who} differs\n{printed}\n{}", describe(&program, &meaning, left))),
    };
    // A program with a race would prove nothing.
    compare(&interpret(&program, &launch, ThreadOrder::Descending).0, "the other order")?;
    compare(&interpret(&program.simplified(), &launch, ThreadOrder::Ascending).0, "the simplified program")?;
    let number = TARGETS[(seed % TARGETS.len() as u64) as usize];
    let target = PtxTarget::new(number).ok_or("no target")?;
    let left = simulate(&program, &launch, target, seed).map_err(|what| format!("{printed}\n{what}"))?;
    compare(&left, &format!("sm_{number}")).map_err(|what| format!("{what}\n{}", program.emit(target).text))
}
