#![allow(warnings, clippy::all)]
use std::sync::Arc;
use std::time::{Duration, Instant};
use kiln::group::*;
use kiln::memory::AllocTag;
use kiln::recovery::{DeviceSpec, Isolation, Phase, Process};
use kiln::sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};

const WILD: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry wild(.param .u64 out) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u32 %r1, 1;
    mov.u64 %rd1, 64;
    st.global.u32 [%rd1], %r1;
    ret;
}";
fn wild(gpu: &DeviceRuntime) -> String {
    let kernel = match gpu.kernel(WILD, "wild") { Ok(k) => k, Err(e) => return format!("kernel: {e}") };
    let out = gpu.zeros::<u32>(1).unwrap();
    let mut launch = gpu.launch(&kernel);
    launch.grid(1).block(1).write(&out);
    match unsafe { launch.submit() } { Ok(t) => match t.wait() { Ok(_) => "no fault!".into(), Err(e) => format!("{e}") }, Err(e) => format!("submit: {e}") }
}

struct Rank { name: String, job: Option<Arc<Rendezvous>>, gpu: DeviceRuntime, comm: Option<DeviceCommunicator>, count: u64, began: Instant, held: Vec<(kiln::Ticket, GpuRef<u32>)> }
impl Rank {
    fn say(&self, what: &str) { eprintln!("{:>6} ms {} {what}", self.began.elapsed().as_millis(), self.name); }
    fn coll(&self, uninit: bool) -> std::result::Result<Vec<u32>, String> {
        let comm = self.comm.as_ref().ok_or("no communicator")?;
        let buffer: GpuRef<u32> = if uninit { self.gpu.allocate::<u32>(4).map_err(|e| e.to_string())? } else { self.gpu.upload(&[comm.rank() + 1; 4]).map_err(|e| e.to_string())? };
        let t = comm.all_reduce_in_place(&buffer, Reduction::Sum).submit().map_err(|e| format!("submit: {e}"))?;
        t.wait().map_err(|e| format!("wait: {e}"))?;
        buffer.download().map_err(|e| format!("download: {e}"))
    }
    fn took(&mut self, r: kiln::group::Result<RebuiltCommunicator>) -> std::result::Result<(), String> {
        let b = r.map_err(|e| e.to_string())?;
        self.say(&format!("rebuilt: former {:?} lost {:?} replaced {:?} done {} here {} submitted {} repeatable {:?}", b.former_ranks, b.lost, b.replaced, b.done, b.done_here, b.submitted, b.repeatable));
        self.comm = Some(b.communicator);
        Ok(())
    }
    /// Ok(true): go on; Ok(false): end.
    fn step(&mut self, token: &str) -> std::result::Result<bool, String> {
        let cut = token.find(|c: char| c.is_ascii_digit()).unwrap_or(token.len());
        let (word, n) = (&token[..cut], token[cut..].parse::<u64>().unwrap_or(1));
        let me = self.comm.as_ref().map(|c| c.rank());
        match word {
            "meet" => { let job = self.job.as_ref().unwrap(); self.comm = Some(DeviceCommunicator::meet(&self.gpu, job, &limits()).map_err(|e| e.to_string())?); }
            "replace" => { let job = self.job.clone().unwrap(); let r = DeviceCommunicator::replace(&self.gpu, &job, &limits()); self.took(r)?; }
            "c" => for _ in 0..n {
                let v = self.coll(false).map_err(|e| format!("collective {}: {e}", self.count))?;
                let size = self.comm.as_ref().unwrap().size();
                if v != [size * (size + 1) / 2; 4] { panic!("WRONG VALUE {v:?}"); }
                self.count += 1;
            },
            "u" => { let v = self.coll(true)?; self.say(&format!("{v:?}")); }
            "us" => { // uninit send/recv pairs
                let comm = self.comm.as_ref().unwrap(); let b = self.gpu.allocate::<u32>(4).unwrap();
                let to = (comm.rank() + 1) % comm.size(); let from = (comm.rank() + comm.size() - 1) % comm.size();
                let r = self.gpu.zeros::<u32>(4).unwrap();
                let t = comm.send(&b, to).and(comm.recv(&r, from)).submit().map_err(|e| e.to_string())?; t.wait().map_err(|e| e.to_string())?; let _ = r.download().map(|v| eprintln!("{v:?}"));
            }
            "ug" => { let comm = self.comm.as_ref().unwrap(); let b = self.gpu.allocate::<f32>(4).unwrap(); let o = self.gpu.zeros::<f32>(4 * comm.size() as usize).unwrap();
                comm.all_gather(&b, &o).submit().map_err(|e| e.to_string())?; let v = o.download().map_err(|e| e.to_string())?; eprintln!("{v:?}"); }
            "ub" => { let comm = self.comm.as_ref().unwrap(); let b = self.gpu.allocate::<f32>(4).unwrap();
                comm.broadcast(&b, 0).submit().map_err(|e| e.to_string())?; let v = b.download().map_err(|e| e.to_string())?; eprintln!("{v:?}"); }
            "b" => { self.job.as_ref().unwrap().barrier(&format!("b{n}")).map_err(|e| format!("barrier b{n}: {e}"))?; }
            "e" => { let v = self.job.as_ref().unwrap().exchange(&format!("e{n}"), &[7]).map_err(|e| format!("exchange e{n}: {e}"))?; self.say(&format!("exchanged {}", v.iter().flatten().count())); }
            "s" => std::thread::sleep(Duration::from_millis(n)),
            "spin" => { let end = Instant::now() + Duration::from_millis(n); while Instant::now() < end { std::hint::spin_loop(); } }
            "k" => { self.say("KILLS ITSELF"); let id = std::process::id().to_string(); std::process::Command::new("kill").args(["-9", &id]).status(); std::thread::sleep(Duration::from_secs(5)); }
            "stop" => { self.say("STOPS ITSELF"); let id = std::process::id().to_string(); std::process::Command::new("kill").args(["-STOP", &id]).status(); self.say("goes on"); }
            "a" => std::process::abort(),
            "p" => panic!("planned panic"),
            "pt" => { let comm = self.comm.take().unwrap(); let _ = std::thread::spawn(move || { let _c = comm; panic!("planned panic in a thread"); }).join(); }
            "x" => { self.say("leaves"); return Ok(false); }
            "X" => { self.say("exits"); std::process::exit((n - 1) as i32); }
            "d" => { self.comm = None; }
            "D" => { self.comm = None; self.job = None; self.say("left the job"); }
            "L" => { let w = wild(&self.gpu); self.say(&format!("wild: {w}")); }
            "S" => { let r = self.gpu.shutdown(Duration::from_millis(n)); self.say(&format!("shutdown: {r:?}")); }
            "w" => { let l = self.job.as_ref().unwrap().wait_for_loss(Duration::from_secs(15)).map_err(|e| e.to_string())?; self.say(&format!("wait_for_loss: {l:?}")); }
            "ack" => { let l = self.job.as_ref().unwrap().acknowledge_losses(); self.say(&format!("ack: {l:?}")); }
            "r" => { let r = self.comm.as_ref().unwrap().rebuild(); self.took(r)?; }
            "R" => { let r = self.comm.as_ref().unwrap().rebuild_replaced(); self.took(r)?; }
            "lost" => { let l = self.comm.as_ref().unwrap().lost_rank(); self.say(&format!("lost_rank: {l:?}")); }
            "until" => { while self.comm.as_ref().unwrap().lost_rank().is_none() { std::thread::sleep(Duration::from_millis(2)); } self.step("lost")?; }
            "q" => for _ in 0..n { let comm = self.comm.as_ref().unwrap(); let b = self.gpu.upload(&[comm.rank() + 1; 4]).map_err(|e| e.to_string())?;
                let t = comm.all_reduce_in_place(&b, Reduction::Sum).submit().map_err(|e| format!("submit: {e}"))?; self.held.push((t, b)); },
            "qw" => for (t, b) in std::mem::take(&mut self.held) { self.say(&format!("held: {:?} {:?}", t.wait().map_err(|e| e.to_string()), b.download().map(|v| v[0]).map_err(|e| e.to_string()))); },
            "v" => { let me = self.gpu.clone(); let comm = self.comm.take().unwrap(); let vac = comm.vacancy(n as u32).map_err(|e| e.to_string())?; drop(comm); let r = vac.take(&me); self.took(r)?; }
            "cw" => { // a collective loop in another thread while this one waits for a loss
                let (gpu, comm) = (self.gpu.clone(), self.comm.clone().unwrap()); let began = self.began; let name = self.name.clone();
                let th = std::thread::spawn(move || { let mut i = 0u32; loop { let b = gpu.upload(&[comm.rank() + 1; 4]).unwrap();
                    let r = comm.all_reduce_in_place(&b, Reduction::Sum).submit().map_err(|e| e.to_string()).and_then(|t| t.wait().map_err(|e| e.to_string()));
                    match r { Ok(_) => { i += 1; } Err(e) => { eprintln!("{:>6} ms {name} loop told after {i}: {e}", began.elapsed().as_millis()); return i; } } } });
                let l = self.job.as_ref().unwrap().wait_for_loss(Duration::from_secs(15)).map_err(|e| e.to_string())?; self.say(&format!("wait_for_loss: {l:?}"));
                let r = self.coll(false); self.say(&format!("after: {r:?}")); if r.is_ok() { self.say("BAD: a collective was done after wait_for_loss"); }
                let _ = th.join(); }
            "cl" => { let mut i = 0; loop { match self.coll(false) { Ok(_) => i += 1, Err(e) => { self.say(&format!("told[cl] after {i}: {e}")); break; } } } }
            "bar" => { self.comm.as_ref().unwrap().barrier().submit().map_err(|e| e.to_string())?.wait().map_err(|e| e.to_string())?; }
            other => panic!("word {other}"),
        }
        Ok(true)
    }
    fn play(&mut self, plan: &str) -> i32 {
        for token in plan.split_whitespace() {
            let (tolerate, token) = match token.strip_prefix('~') { Some(t) => (true, t), None => (false, token) };
            match self.step(token) {
                Ok(true) => {}
                Ok(false) => return 0,
                Err(e) => { self.say(&format!("told[{token}]: {e}")); if !tolerate { return 1; } }
            }
        }
        self.say("done");
        0
    }
}
fn limits() -> DeviceCommunicatorConfig { DeviceCommunicatorConfig { deadline: Duration::from_secs(15) } }
fn plan_of(plans: &str, who: &str) -> String {
    for one in plans.split(';') {
        if let Some((ranks, plan)) = one.split_once(':') { if ranks.split(',').any(|r| r.trim() == who) { return plan.to_owned(); } }
    }
    for one in plans.split(';') { if let Some((ranks, plan)) = one.split_once(':') { if ranks.trim() == "*" { return plan.to_owned(); } } }
    String::new()
}
fn gpu_of(seed: u64) -> DeviceRuntime {
    if std::env::var("KILN_POLICY").is_ok() { DeviceRuntime::auto().unwrap().clone() } else {
        let m = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())).device(DeviceConfig::default()));
        let d = m.device(0).unwrap(); DeviceGroup::over([d], &RuntimeConfig::default()).unwrap().runtime(0).unwrap().clone() }
}
fn job(plans: &str) -> i32 {
    let ranks = RankEnvironment::from_process().unwrap().unwrap();
    let began = Instant::now();
    let mut config = RendezvousConfig::from_environment(&ranks).unwrap();
    config.timeout = Duration::from_secs(std::env::var("AUDIT_TIMEOUT").ok().and_then(|t| t.parse().ok()).unwrap_or(20));
    let restarts = std::env::var("KILN_RESTARTS").ok().and_then(|r| r.parse::<u32>().ok()).unwrap_or(0);
    let j = loop { match Rendezvous::join(&config) {
        Ok(j) => break Arc::new(j),
        Err(e) => { eprintln!("join: {e}"); return 9; } } };
    let who = format!("{}{}", ranks.rank, "'".repeat(restarts as usize));
    let gpu = gpu_of(u64::from(ranks.rank));
    let mut r = Rank { name: who.clone(), job: Some(j), gpu, comm: None, count: 0, began, held: vec![] };
    r.play(&plan_of(plans, &who))
}
fn threads(n: u32, plans: &str) -> i32 {
    let config = (0..n).fold(MachineConfig::seeded(n as u64).engine(Arc::new(PtxEngine::default())), |c, _| c.device(DeviceConfig::default()));
    let machine = Machine::new(config);
    let group = DeviceGroup::over((0..n).map(|o| machine.device(o).unwrap()), &RuntimeConfig::default()).unwrap();
    let comms = group.communicators(&DeviceCommunicatorConfig { deadline: Duration::from_secs(6) }).unwrap();
    let began = Instant::now();
    let handles: Vec<_> = comms.into_iter().enumerate().map(|(i, c)| {
        let gpu = group.runtime(i).unwrap().clone(); let plan = plan_of(plans, &i.to_string());
        std::thread::spawn(move || { let mut r = Rank { name: format!("t{i}"), job: None, gpu, comm: Some(c), count: 0, began, held: vec![] }; r.play(&plan) })
    }).collect();
    for (i, h) in handles.into_iter().enumerate() { eprintln!("thread {i}: {:?}", h.join().map_err(|_| "panicked")); }
    for f in machine.findings() { eprintln!("FINDING {f}"); }
    0
}
fn graphs(how: &str) -> i32 {
    let config = (0..3).fold(MachineConfig::seeded(3).engine(Arc::new(PtxEngine::default())), |c, _| c.device(DeviceConfig::default()));
    let machine = Machine::new(config);
    let group = DeviceGroup::over((0..3).map(|o| machine.device(o).unwrap()), &RuntimeConfig::default()).unwrap();
    let mut ranks = group.communicators(&DeviceCommunicatorConfig { deadline: Duration::from_secs(6) }).unwrap();
    let buffers: Vec<_> = ranks.iter().map(|r| r.runtime().upload(&[r.rank() + 1; 6]).unwrap()).collect();
    let build = |r: &DeviceCommunicator, b: &GpuRef<u32>| -> std::result::Result<kiln::Graph, String> { let mut g = r.runtime().graph();
        r.all_reduce_in_place(b, Reduction::Max).record(&mut g).map_err(|e| format!("record: {e}"))?; g.build().map_err(|e| format!("build: {e}")) };
    let graphs: Vec<_> = ranks.iter().zip(&buffers).map(|(r, b)| build(r, b).unwrap()).collect();
    for g in &graphs { g.replay().unwrap(); }
    println!("first: {:?}", buffers.iter().map(|b| b.download().unwrap()[0]).collect::<Vec<_>>());
    let mut pending = None;
    if how.contains("pending") { pending = Some(graphs[0].replay().map(|t| t)); }
    let mut half = ranks[0].runtime().graph();
    if how.contains("half") { println!("record before: {:?}", ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).record(&mut half).map(|_| ()).map_err(|e| e.to_string())); }
    if how.contains("lose") { println!("wild {}", wild(ranks[2].runtime())); }
    else if how.contains("drop") { drop(ranks.pop()); }
    else if how.contains("shut") { println!("{:?}", ranks[2].runtime().shutdown(Duration::from_millis(500))); }
    else { let lost = ranks.remove(2); let _ = std::thread::spawn(move || { let _r = lost; panic!("planned"); }).join(); }
    std::thread::sleep(Duration::from_millis(1500));
    println!("lost: {:?}", ranks[0].lost_rank());
    if let Some(p) = pending { println!("pending: {:?}", p.map_err(|e| e.to_string()).and_then(|t| t.wait().map_err(|e| e.to_string()))); }
    println!("buffer 0: {:?}", buffers[0].download().map_err(|e| e.to_string()));
    for i in 0..2 { println!("replay {i}: {:?}", graphs[i].replay().map_err(|e| e.to_string()).and_then(|t| t.wait().map_err(|e| e.to_string()))); }
    println!("record after: {:?}", build(&ranks[0], &buffers[0]).map(|_| ()));
    if how.contains("half") { println!("build after: {:?}", half.build().map_err(|e| e.to_string()).and_then(|g| g.replay().map(|_| ()).map_err(|e| e.to_string()))); }
    if how.contains("rebuild") {
        let other = ranks[1].clone();
        let th = std::thread::spawn(move || other.rebuild().map_err(|e| e.to_string()));
        let b = ranks[0].rebuild().map_err(|e| e.to_string()); let b1 = th.join().unwrap();
        println!("rebuilt {:?} {:?}", b.as_ref().map(|b| b.former_ranks.clone()), b1.as_ref().map(|b| b.former_ranks.clone()));
        let (b, b1) = (b.unwrap().communicator, b1.unwrap().communicator);
        println!("old graph: {:?}", graphs[0].replay().map(|_| ()).map_err(|e| e.to_string()));
        let x: Vec<_> = [&b, &b1].iter().map(|r| r.runtime().upload(&[r.rank() + 5; 6]).unwrap()).collect();
        let g = [build(&b, &x[0]).unwrap(), build(&b1, &x[1]).unwrap()];
        for _ in 0..2 { for g in &g { g.replay().unwrap(); } }
        println!("new graphs {:?} {:?}", x[0].download().map_err(|e| e.to_string()), x[1].download().map_err(|e| e.to_string()));
    }
    println!("device 0 ok: {:?}", group.runtime(0).unwrap().upload(&[1u32]).and_then(|b| b.download()).map_err(|e| e.to_string()));
    for f in machine.findings() { println!("FINDING {f}"); }
    0
}
fn uninit_threads() -> i32 {
    let config = (0..2).fold(MachineConfig::seeded(3), |c, _| c.device(DeviceConfig::default()));
    let machine = Machine::new(config);
    let group = DeviceGroup::over((0..2).map(|o| machine.device(o).unwrap()), &RuntimeConfig::default()).unwrap();
    let ranks = group.communicators(&Default::default()).unwrap();
    let b: Vec<_> = ranks.iter().map(|r| r.runtime().allocate::<u32>(4).unwrap()).collect();
    b[0].fill(1).unwrap();
    for (r, b) in ranks.iter().zip(&b) { println!("{:?}", r.all_reduce_in_place(b, Reduction::Sum).submit().map(|_| ()).map_err(|e| e.to_string())); }
    for b in &b { println!("{:?}", b.download().map_err(|e| e.to_string())); }
    let b: Vec<_> = ranks.iter().map(|r| r.runtime().allocate::<u32>(4).unwrap()).collect();
    let o: Vec<_> = ranks.iter().map(|r| r.runtime().zeros::<u32>(8).unwrap()).collect();
    let mut gs = vec![];
    for ((r, b), o) in ranks.iter().zip(&b).zip(&o) { let mut g = r.runtime().graph(); println!("{:?}", r.all_gather(b, o).record(&mut g).map(|_| ()).map_err(|e| e.to_string())); gs.push(g.build().unwrap()); }
    for g in &gs { println!("replay {:?}", g.replay().map(|_| ()).map_err(|e| e.to_string())); }
    for o in &o { println!("{:?}", o.download().map_err(|e| e.to_string())); }
    for f in machine.findings() { println!("FINDING {f}"); }
    0
}
fn isolated(seed: u64) -> DeviceRuntime {
    let config = RuntimeConfig { isolation: Isolation::Process(Process { standby: false, ..Process::default() }), ..RuntimeConfig::default() };
    DeviceRuntime::open(&DeviceSpec::simulated(seed), config).unwrap()
}
fn tagged(gpu: &DeviceRuntime, s: &kiln::Stream, n: usize, t: &str) -> GpuRef<u32> { gpu.allocate_tagged::<u32>(s, n, AllocTag::new(t).unwrap()).unwrap() }
fn work(gpu: &DeviceRuntime, n: u32) { let b = gpu.zeros::<u32>(1 << 16).unwrap(); for i in 0..n { b.fill(i).unwrap(); } gpu.synchronize().unwrap(); }
fn rec(how: &str, rest: &[String]) -> i32 {
    let machine = |n: u32, seed| { let m = Machine::new((0..n).fold(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())), |c, _| c.device(DeviceConfig::default())));
        DeviceGroup::over((0..n).map(|o| m.device(o).unwrap()), &RuntimeConfig::default()).unwrap() };
    match how {
        "one-machine" => { let g = machine(2, 1); let (a, b) = (g.runtime(0).unwrap(), g.runtime(1).unwrap());
            work(a, 5); let x = a.upload(&[3u32; 1 << 16]).unwrap(); let y = b.zeros::<u32>(1 << 16).unwrap();
            work(a, 20); g.copy(&x, &y).unwrap().wait().unwrap(); work(b, 5); y.fill(3).unwrap(); g.copy(&y, &x).unwrap(); x.download().unwrap();
            let ranks = g.communicators(&Default::default()).unwrap();
            for (r, b) in ranks.iter().zip([&x, &y]) { r.all_reduce_in_place(b, Reduction::Sum).submit().unwrap(); }
            g.synchronize().unwrap(); }
        "two" => { let (a, b) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
            work(&a, 30); work(&b, 2); std::thread::sleep(Duration::from_millis(20)); work(&a, 30); work(&b, 2);
            let g = DeviceGroup::new([a.clone(), b.clone()]).unwrap();
            let x = a.upload(&[3u32; 1 << 16]).unwrap(); let y = b.zeros::<u32>(1 << 16).unwrap();
            g.copy(&x, &y).unwrap().wait().unwrap(); g.copy(&y, &x).unwrap().wait().unwrap(); work(&b, 50); work(&a, 1); }
        "mixed" => { let g = machine(2, 1); let c = DeviceRuntime::simulated(9).unwrap();
            let all = DeviceGroup::new([g.runtime(0).unwrap().clone(), g.runtime(1).unwrap().clone(), c.clone()]).unwrap();
            work(g.runtime(0).unwrap(), 10); work(&c, 40); work(g.runtime(1).unwrap(), 10);
            let x = c.upload(&[3u32; 1 << 16]).unwrap(); let y = g.runtime(1).unwrap().zeros::<u32>(1 << 16).unwrap();
            all.copy(&x, &y).unwrap().wait().unwrap(); let z = g.runtime(0).unwrap().zeros::<u32>(1 << 16).unwrap(); all.copy(&y, &z).unwrap().wait().unwrap(); work(g.runtime(0).unwrap(), 10); }
        "mixed-iso" => { let a = isolated(1); let c = DeviceRuntime::simulated(9).unwrap(); work(&a, 10); work(&c, 10); std::thread::sleep(Duration::from_millis(30)); work(&a, 10); work(&c, 10); }
        "iso-many" => { let (a, c) = (isolated(1), isolated(2)); work(&a, 10); work(&c, 10); std::thread::sleep(Duration::from_millis(30)); work(&a, 10); work(&c, 10); }
        "iso-rev" => { let c = DeviceRuntime::simulated(9).unwrap(); let a = isolated(1); work(&a, 10); work(&c, 10); std::thread::sleep(Duration::from_millis(30)); work(&a, 10); work(&c, 10); }
        "lost" => { let g = machine(2, 1); let (a, b) = (g.runtime(0).unwrap(), g.runtime(1).unwrap());
            let x = a.zeros::<u32>(1 << 20).unwrap(); let y = a.zeros::<u32>(1 << 20).unwrap(); let s = a.stream().unwrap();
            work(a, 3); work(b, 3);
            for i in 0..10 { let _ = x.fill(i); let _ = y.fill_on(&s, i); }
            println!("wild {}", wild(a)); work(b, 200); println!("{:?}", a.synchronize().map_err(|e| e.to_string())); work(b, 5); }
        "two-files" => { let (a, b) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
            println!("{:?} {:?} {:?}", a.trace(&rest[0]).map_err(|e| e.to_string()), b.trace(&rest[0]).map_err(|e| e.to_string()), b.trace(&rest[1]).map_err(|e| e.to_string()));
            work(&a, 30); work(&b, 2); std::thread::sleep(Duration::from_millis(20)); work(&a, 30); work(&b, 2); }
        "machine-files" => { let g = machine(2, 1); let (a, b) = (g.runtime(0).unwrap(), g.runtime(1).unwrap());
            println!("{:?} {:?}", a.trace(&rest[0]).map_err(|e| e.to_string()), b.trace(&rest[1]).map_err(|e| e.to_string()));
            work(a, 30); work(b, 2); let x = a.upload(&[3u32; 1 << 16]).unwrap(); let y = b.zeros::<u32>(1 << 16).unwrap(); g.copy(&x, &y).unwrap(); y.fill(4).unwrap(); work(a, 30); work(b, 2); }
        "late" => { let gpu = DeviceRuntime::simulated(1).unwrap(); let s = gpu.stream().unwrap(); let a = tagged(&gpu, &s, 4 << 20, "early"); let t = gpu.stream().unwrap(); let b = tagged(&gpu, &t, 4 << 20, "bee");
            a.fill_on(&s, 1).unwrap(); a.fill_on(&s, 2).unwrap(); gpu.trace(&rest[0]).unwrap(); b.copy_from_on(&t, &a).unwrap(); gpu.synchronize().unwrap();
            drop(a); let c = tagged(&gpu, &t, 1 << 20, "cee"); c.fill_on(&t, 1).unwrap().wait().unwrap(); println!("{:?}", gpu.allocate::<u8>(1 << 40).map(|_| ()).map_err(|e| e.to_string()));
            // two streams read one, then a writer waits for both
            let (u, w) = (gpu.stream().unwrap(), gpu.stream().unwrap()); let d = tagged(&gpu, &u, 4 << 20, "dee"); let e = tagged(&gpu, &w, 4 << 20, "eee");
            d.copy_from_on(&u, &b).unwrap(); e.copy_from_on(&w, &b).unwrap(); b.fill_on(&t, 9).unwrap(); gpu.synchronize().unwrap(); }
        "takeover" | "takeover-two" => { let a = isolated(1); let other = (how == "takeover-two").then(|| isolated(2));
            let kept = a.upload(&[1u32, 2, 3]).unwrap(); work(&a, 20); if let Some(o) = &other { work(o, 5); }
            let s = a.stream().unwrap(); let x = a.zeros::<u32>(1 << 16).unwrap();
            let t: Vec<_> = (0..30).map(|i| if i % 2 == 0 { x.fill(i) } else { x.fill_on(&s, i) }).collect();
            a.isolated_device().unwrap().kill_worker();
            let ready = |st: &kiln::recovery::Status| st.generation.0 > 0 && st.phase() == Phase::Ready;
            println!("ready {}", ready(&a.watch().wait_until(ready, Some(Duration::from_secs(60)))));
            println!("kept {:?}", kept.download());
            work(&a, 20); if let Some(o) = &other { work(o, 5); }
            println!("failed tickets {}", t.into_iter().filter_map(|t| t.ok()).filter(|t| t.wait().is_err()).count());
            for p in a.post_mortems() { println!("{p:?}"); } }
        "planned" => { let gpu = DeviceRuntime::simulated(1).unwrap();
            let (s, t, u) = (gpu.stream().unwrap(), gpu.stream().unwrap(), gpu.stream().unwrap());
            let big = 4 << 20;
            let alpha = tagged(&gpu, &s, big, "alpha");
            let beta = tagged(&gpu, &t, big, "beta");
            let gamma = tagged(&gpu, &u, big, "gamma");
            let other = tagged(&gpu, &s, big, "other");
            alpha.fill_on(&s, 1).unwrap(); // PLAN-A writes alpha
            other.fill_on(&s, 9).unwrap(); // PLAN-U unrelated
            beta.copy_from_on(&t, &alpha).unwrap(); // PLAN-B beta waits for alpha (PLAN-A)
            gamma.copy_from_on(&u, &beta).unwrap(); // PLAN-C gamma waits for beta (PLAN-B)
            alpha.fill_on(&u, 2).unwrap(); // PLAN-D write after read of alpha by B: behind C
            gpu.synchronize().unwrap(); // PLAN-S
            let v = gamma.download().unwrap(); // PLAN-W
            assert_eq!(v[0], 1);
            beta.fill_on(&t, 5).unwrap().wait().unwrap(); // PLAN-T
            let leak = tagged(&gpu, &s, 1000, "leaked"); // PLAN-L
            std::mem::forget(leak); }
        "loop" => { let gpu = DeviceRuntime::simulated(1).unwrap(); println!("{}", std::process::id());
            let n: u64 = rest.first().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
            let x = tagged(&gpu, gpu.main_stream(), 1 << 10, "x"); let s = gpu.stream().unwrap(); let y = tagged(&gpu, &s, 1 << 10, "y");
            for i in 0..n { x.fill(i as u32).unwrap(); y.copy_from_on(&s, &x).unwrap(); if i % 50 == 0 { gpu.synchronize().unwrap(); } }
            if let Some(t) = gpu.flush_trace() { println!("{t:?}"); } }
        "self" => { let gpu = DeviceRuntime::simulated(1).unwrap(); for p in rest { println!("{p}: {:?}", gpu.trace(p).map_err(|e| e.to_string())); } work(&gpu, 10); println!("{:?}", gpu.flush_trace()); println!("path {:?}", gpu.trace_path()); println!("{:?}", gpu.shutdown(Duration::from_secs(1))); for p in rest { println!("after shutdown {p}: {:?}", gpu.trace(format!("{p}2")).map_err(|e| e.to_string())); } }
        "stay" => { let gpu = DeviceRuntime::simulated(1).unwrap(); let b = tagged(&gpu, gpu.main_stream(), 1 << 20, "held\u{1b}[31m"); work(&gpu, 100); std::thread::sleep(Duration::from_secs(15)); drop(b); }
        other => panic!("{other}"),
    }
    0
}
fn main() {
    kiln::worker_entry();
    let a: Vec<String> = std::env::args().skip(1).collect();
    let code = match &*a[0] {
        "job" => job(&a[1]),
        "threads" => threads(a[1].parse().unwrap(), &a[2]),
        "graphs" => graphs(&a[1]),
        "uninit" => uninit_threads(),
        "rec" => rec(&a[1], &a[2..]),
        other => panic!("{other}"),
    };
    std::process::exit(code);
}
