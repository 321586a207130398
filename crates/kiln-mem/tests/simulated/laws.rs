//! What every resource and every layer obeys, alone and stacked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::law::{LAWS, Make};
use crate::subject::SUBJECTS;
use kiln_mem::Stack;
use kiln_mem::resource_stack::{StackBase, StackContext, StackLayer};

/// Memory of the simulated device; the law of exhaustion counts on it.
const MEMORY: u64 = 64 * crate::rig::MIB;

/// Runs every law for every subject, except where an exclusion with a reason says otherwise; an excluded law that holds
/// is reported, so that exclusions do not outlive their reasons.
#[test]
fn every_subject_obeys_every_law() {
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        for law in LAWS {
            let excluded = subject.exclusions.iter().find(|(name, _)| *name == law.name);
            match (holds(law.check, &subject.make), excluded) {
                (false, None) => wrong.push(format!("{} breaks `{}`", subject.name, law.name)),
                (true, Some((_, why))) => {
                    wrong.push(format!("{} obeys `{}` although: {why}", subject.name, law.name));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn holds(check: fn(Make<'_>, crate::rig::Rig), make: Make<'_>) -> bool {
    catch_unwind(AssertUnwindSafe(|| check(make, crate::rig::Rig::new(7, MEMORY)))).is_ok()
}

/// Whether alignment is the driver's, which aligns to 256 bytes and no more.
fn is_drivers(base: StackBase) -> bool {
    matches!(base, StackBase::Direct | StackBase::Pool)
}

/// One of each layer, so set up that it refuses nothing a law asks for.
fn layers(base: StackBase) -> Vec<StackLayer> {
    let align = if is_drivers(base) { "256 B" } else { "4 KiB" };
    let text = format!(
        "budget(1 GiB, limit(1 GiB, stats(trace(100, guard(256 B, 1 MiB, leaks(50, align({align}, retry(1, fail(0, \
         {base})))))))))"
    );
    text.parse::<Stack>().unwrap().layers().to_vec()
}

/// Runs the laws for a stack; returns what it breaks.
fn broken(base: StackBase, layers: &[StackLayer]) -> Vec<String> {
    let stack = layers.iter().rev().fold(Stack::new(base), |stack, layer| stack.inside(*layer));
    let make = |rig: &crate::rig::Rig| stack.build(&StackContext::new(rig.driver(), rig.order())).unwrap();
    let is_excluded = |name| is_drivers(base) && name == "alignment";
    let broken = LAWS.iter().filter(|law| !is_excluded(law.name) && !holds(law.check, &make));
    broken.map(|law| format!("{stack} breaks `{}`", law.name)).collect()
}

#[test]
fn every_two_layers_obey_every_law_in_both_orders() {
    let layers = layers(StackBase::Heap);
    let pairs = layers.iter().flat_map(|outer| layers.iter().map(|inner| [*outer, *inner]));
    let pairs = pairs.filter(|[outer, inner]| outer != inner);
    let wrong: Vec<String> = pairs.flat_map(|pair| broken(StackBase::Heap, &pair)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_layers_obey_every_law_in_any_order() {
    let mut wrong = Vec::new();
    for seed in 0..16 {
        let base = [StackBase::Heap, StackBase::Chunks, StackBase::Direct, StackBase::Pool][seed % 4];
        let mut random = crate::rig::Random::new(seed as u64);
        let (mut left, mut shuffled) = (layers(base), Vec::new());
        while !left.is_empty() {
            shuffled.push(left.swap_remove(random.below(left.len() as u64) as usize));
        }
        wrong.extend(broken(base, &shuffled));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_stack_prints_itself() {
    for subject in SUBJECTS {
        // A simulated device gives addresses out only once.
        let rig = crate::rig::Rig::new(1, 1 << 30);
        assert_eq!((subject.make)(&rig).to_string(), subject.text, "{}", subject.name);
    }
}
