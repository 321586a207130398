fn main() {
    for f in std::env::args().skip(1) {
        let t = std::fs::read_to_string(&f).unwrap();
        match kiln_ptx::Module::parse(&t) {
            Ok(m) => println!("{f}: ok {} functions {} forms", m.functions().len(), m.forms().len()),
            Err(e) => println!("{f}:{e}"),
        }
    }
}
