//! Programs on a device: every route, every setting, every loop, every refusal, and the mistakes that are not made.
//!
//! What a program means is what the interpreter gives. Tests that can run on a GPU do so where there is one, and are counted as skipped
//! where there is none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod case;
mod config;
mod loops;
mod mistakes;
mod refusals;
mod rig;
mod routes;
mod steps;
mod typed;

use std::sync::Arc;

use rig::Rig;

#[test]
fn a_program_is_compiled_once_while_somebody_has_it() {
    let rig = Rig::simulated();
    let program = case::blend().program;
    let (first, second) = (rig.backend.compile(&program).unwrap(), rig.backend.compile(&program).unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    let other = first.with_block([64, 1, 1]).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
    drop((first, second, other));
    rig.finish();
}
