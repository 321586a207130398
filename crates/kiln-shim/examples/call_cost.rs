//! What a call of the driver API costs above the driver interface.
//!
//! Each row is one piece of work, done by functions of the API and by the calls of [`Driver`] that they come to, on two simulated devices of one
//! process, batches in turn. What runs the work is not timed.
//!
//! ```text
//! cargo run --release --package kiln-shim --example call_cost                    # a table: nanoseconds, medians
//! call_cost "launch, 5 parameters" api 100000                                    # one of them alone, for tools that count instructions
//! ```

#![cfg_attr(
    not(target_os = "linux"),
    allow(unused_crate_dependencies, reason = "the library is for Linux alone")
)]
#![allow(clippy::print_stdout, reason = "the program prints a table")]

#[cfg(target_os = "linux")]
mod call_cost {
    pub(crate) mod api;
    pub(crate) mod below;
    pub(crate) mod table;
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [] => call_cost::table::print(),
        [work, side, times] => call_cost::table::repeat(work, side, times.parse()?),
        _ => Err("give nothing, or the name of a row, `api` or `below`, and how often".into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the library is for Linux alone");
}
