//! Gives the shared library the name of the one it takes the place of, and keeps it loaded once it is.

#![allow(clippy::print_stdout, reason = "that is how a build script speaks to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
        // Handlers for the end of the process and for forks stay registered.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
