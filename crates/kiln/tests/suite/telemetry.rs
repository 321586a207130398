//! Counters, the page for Prometheus, spans and device time.

mod counts;
mod levels;
mod page;
mod parser;
mod process;
mod rig;
mod spans;
mod time;
