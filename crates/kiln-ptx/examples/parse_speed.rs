fn main() {
    for f in std::env::args().skip(1) {
        let t = std::fs::read_to_string(&f).unwrap();
        match kiln_ptx::Module::parse(&t) {
            Ok(m) => {
                let p = m.to_string();
                std::fs::write("/tmp/scratch/rt.ptx", &p).unwrap();
                let same = match kiln_ptx::Module::parse(&p) {
                    Ok(n) => n == m,
                    Err(e) => {
                        println!("REPARSE {e}");
                        false
                    }
                };
                let o = std::process::Command::new("/tmp/cuda130/nvidia/cu13/bin/ptxas")
                    .args([
                        "-arch",
                        &m.target.architecture.replace("compute", "sm"),
                        "-o",
                        "/dev/null",
                        "-c",
                        "/tmp/scratch/rt.ptx",
                    ])
                    .output()
                    .unwrap();
                println!(
                    "{f}: ok {} functions {} forms same={same} ptxas={} {}",
                    m.functions().len(),
                    m.forms().len(),
                    o.status,
                    String::from_utf8_lossy(&o.stderr)
                )
            }
            Err(e) => println!("{f}:{e}"),
        }
    }
}
