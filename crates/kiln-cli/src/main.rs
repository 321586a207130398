//! The command `kiln`.

fn main() {}
