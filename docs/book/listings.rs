//! Compiles and runs every Rust listing of the book: each chapter is the documentation of a module here, so that `cargo test --doc`
//! finds its listings.
//!
//! Listings of other languages are checked elsewhere: `kir` by the tests of kiln-ir.

#![forbid(unsafe_code)]

macro_rules! chapters {
    ($($name:ident = $file:literal),* $(,)?) => {$(
        #[doc = include_str!(concat!("src/", $file))]
        pub mod $name {}
    )*};
}

chapters! {
    introduction = "introduction.md",
    first_steps = "first-steps.md",
    from_cudarc = "from-cudarc.md",
    memory = "memory.md",
    order = "order.md",
    testing = "testing.md",
    programs = "programs.md",
    graphs = "graphs.md",
    libraries = "libraries.md",
    primitives = "primitives.md",
    faults = "faults.md",
    devices = "devices.md",
    services = "services.md",
    tuning = "tuning.md",
    troubleshooting = "troubleshooting.md",
    environment = "environment.md",
    simulator = "simulator.md",
}
