//! NVIDIA's libraries and NVRTC: how they are found, and what NVRTC compiles. Needs neither driver nor device.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise, and says why")]

#[macro_use]
mod nvrtc;

mod headers;
mod libraries;
