//! The table of probes.

mod atomic;
mod convert;
mod float;
mod integer;
mod vector_atomic;
mod video;

use crate::instruction_probe::{Class, Meaning, Probe, probe_module};

/// All probes.
///
/// ```
/// let probes = kiln_kernels::probes();
/// assert!(probes.len() > 300);
/// ```
pub fn probes() -> Vec<Probe> {
    [
        integer::probes(),
        float::probes(),
        convert::probes(),
        atomic::probes(),
        vector_atomic::probes(),
        video::probes(),
    ]
    .concat()
}

/// What one H200 answered to every probe, in the order of the table: [`Probe::COUNT`] results each.
///
/// `None` when the table has changed since and must be recorded again.
pub fn recorded() -> Option<Vec<Vec<u64>>> {
    let (mark, mut rest) = RECORDED.split_first_chunk()?;
    let probes = probes();
    if u64::from_le_bytes(*mark) != fingerprint(&probes) {
        return None;
    }
    let mut lists = Vec::new();
    for probe in &probes {
        let size = probe.result.bytes();
        let (list, behind) = rest.split_at_checked(size * Probe::COUNT)?;
        rest = behind;
        lists.push(list.chunks(size).map(read).collect());
    }
    Some(lists)
}

/// A recording of what a device answered, as [`recorded`] reads it from `recorded/h200.bin`.
pub fn record(results: &[Vec<u64>]) -> Vec<u8> {
    let probes = probes();
    let mut bytes = fingerprint(&probes).to_le_bytes().to_vec();
    for (probe, list) in probes.iter().zip(results) {
        list.iter().for_each(|word| bytes.extend(&word.to_le_bytes()[..probe.result.bytes()]));
    }
    bytes
}

/// The probes that the H200 answered otherwise than the PTX ISA says, by their texts; the recording has its answers.
pub fn deviations() -> impl Iterator<Item = &'static str> {
    include_str!("../../recorded/h200-deviations.txt").lines().filter(|line| !line.starts_with('#'))
}

static RECORDED: &[u8] = include_bytes!("../../recorded/h200.bin");

fn read(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A number that changes when the table does; a recording starts with it.
fn fingerprint(probes: &[Probe]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    probe_module(probes).bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A probe whose operands all have one class.
fn probe(text: impl Into<String>, result: Class, operands: &[Class], meaning: Meaning) -> Probe {
    Probe { text: text.into(), result, operands: operands.to_vec(), meaning, close: None, floor: 1e-30 }
}

/// `$a, $b, $c` for so many operands.
fn names(count: usize) -> &'static str {
    match count {
        1 => "$a",
        2 => "$a, $b",
        _ => "$a, $b, $c",
    }
}
