//! The example whose ranks are processes: under every launcher, and with a rank that is killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::group::{
    CommunicatorRankLost, DeviceCommunicator, DeviceCommunicatorConfig, DeviceGroup, MeetingPoint, Reduction,
    Rendezvous, RendezvousConfig, RendezvousError,
};
use kiln::sim::{DeviceConfig, Machine, MachineConfig};

mod example_program;
mod machine_load;

use example_program::example_program;
use machine_load::Load;

/// A port of this host that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(20);
    config
}

/// The example, which joins as its environment says.
fn rank_process(variables: &[(&str, String)], arguments: &[&str]) -> Child {
    Command::new(example_program("ranks"))
        .args(arguments)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value.as_str())))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn by_hand(port: u16, rank: u32, size: u32) -> Vec<(&'static str, String)> {
    vec![
        ("KILN_RANK", rank.to_string()),
        ("KILN_WORLD_SIZE", size.to_string()),
        ("KILN_MEETING_POINT", format!("127.0.0.1:{port}")),
    ]
}

type Variables = fn(u32) -> Vec<(&'static str, String)>;

/// What each launcher says to a rank of two.
const LAUNCHERS: [(&str, Variables); 5] = [
    ("torchrun", |rank| {
        vec![
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "2".into()),
            ("LOCAL_RANK", rank.to_string()),
            ("TORCHELASTIC_USE_AGENT_STORE", "True".into()),
        ]
    }),
    ("Slurm", |rank| vec![("SLURM_PROCID", rank.to_string()), ("SLURM_NTASKS", "2".into())]),
    ("Open MPI", |rank| {
        vec![("OMPI_COMM_WORLD_RANK", rank.to_string()), ("OMPI_COMM_WORLD_SIZE", "2".into())]
    }),
    ("MPICH", |rank| vec![("PMI_RANK", rank.to_string()), ("PMI_SIZE", "2".into())]),
    ("Kubernetes", |rank| vec![("JOB_COMPLETION_INDEX", rank.to_string()), ("WORLD_SIZE", "2".into())]),
];

/// Starts two ranks of the example as a launcher does. The agent of torchrun listens on the port that it names.
fn launched((name, variables): (&str, Variables), arguments: &[&str]) -> ([Child; 2], Option<TcpListener>) {
    let port = free_port();
    let local = [("MASTER_ADDR", "127.0.0.1".to_owned()), ("MASTER_PORT", port.to_string())];
    let agent = (name == "torchrun").then(|| TcpListener::bind(("127.0.0.1", port)).unwrap());
    let start = |rank| rank_process(&[variables(rank), local.to_vec()].concat(), arguments);
    ([start(0), start(1)], agent)
}

#[test]
fn one_program_meets_under_every_launcher() {
    for (name, variables) in LAUNCHERS {
        let (children, _agent) = launched((name, variables), &[]);
        for child in children {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{name}: {text}");
            assert!(text.contains("the sum of all parts is 300"), "{name}: {text}");
        }
    }
}

/// From the start of the processes to the first value that all have exchanged. A machine that lets threads wait for a processor may take as much longer as it does that, a few times over.
#[test]
fn ranks_of_one_host_are_ready_within_a_second_under_every_launcher() {
    for launcher in LAUNCHERS {
        let load = Load::measure();
        let began = Instant::now();
        let (mut children, _agent) = launched(launcher, &["--until-loss"]);
        for child in &mut children {
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            let line = lines.find(|line| line.contains("the sum of all parts is 300"));
            assert!(line.is_some(), "{}", launcher.0);
        }
        let (spent, worst) = (began.elapsed(), load.worst());
        let name = launcher.0;
        assert!(spent < Duration::from_secs(1) + 20 * worst, "{name}: {spent:?}, {worst:?} for the machine");
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn survivors_of_a_killed_rank_are_told_within_a_second_and_go_on() {
    for killed in [1, 2] {
        let port = free_port();
        let mut children: Vec<Child> =
            (0..3).map(|rank| rank_process(&by_hand(port, rank, 3), &["--until-loss"])).collect();
        let mut lines: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap))
            .collect();
        for lines in &mut lines {
            assert!(lines.nth(1).unwrap().contains("the sum of all parts is 600"));
        }
        children[killed].kill().unwrap();
        let start = Instant::now();
        for survivor in (0..3).filter(|rank| *rank != killed) {
            let lost = lines[survivor].next().unwrap();
            let expected = format!("rank {survivor}: rank {killed} is lost: its process ended");
            assert!(lost.starts_with(&expected), "{lost}");
            assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            assert_eq!(lines[survivor].next().unwrap(), format!("rank {survivor}: 2 ranks go on"));
        }
        for (rank, mut child) in children.into_iter().enumerate() {
            assert_eq!(child.wait().unwrap().success(), rank != killed);
        }
    }
}

#[test]
fn a_replacement_joins_as_the_lost_rank() {
    let port = free_port();
    let mut lost = rank_process(&by_hand(port, 1, 2), &["--until-loss"]);
    let job = Rendezvous::join(&config(port, 0, 2)).unwrap();
    job.exchange("parts", &0_u32.to_le_bytes()).unwrap();
    lost.kill().unwrap();
    lost.wait().unwrap();
    let told = job.wait_for_loss(Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!(told.rank, 1);
    let waited = job.get("never").unwrap_err();
    assert!(matches!(waited, RendezvousError::RankLost { rank: 1, .. }), "{waited}");
    let replacement = Rendezvous::join(&config(port, 1, 2)).unwrap();
    replacement.put("back", b"yes").unwrap();
    // The loss was not acknowledged, and ends what waits until this rank hears of the replacement.
    while !job.lost_ranks().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(job.get("back").unwrap(), b"yes");
    assert_eq!(job.acknowledge_losses(), []);
}

#[test]
fn ranks_that_meet_in_a_job_go_on_without_a_killed_process() {
    let port = free_port();
    let mut killed = rank_process(&by_hand(port, 2, 3), &["--until-loss"]);
    let machine = Machine::new(
        MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default()),
    );
    let devices = [machine.device(0).unwrap(), machine.device(1).unwrap()];
    let group = DeviceGroup::over(devices, &Default::default()).unwrap();
    // The deadline would be an hour.
    let settings = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let (told, hears) = std::sync::mpsc::channel();
    let survivors: Vec<_> = (0..2)
        .map(|rank| (rank, group.runtime(rank as usize).unwrap().clone(), told.clone()))
        .map(|(rank, gpu, told)| {
            std::thread::spawn(move || {
                let job = Arc::new(Rendezvous::join(&config(port, rank, 3)).unwrap());
                job.exchange("parts", &0_u32.to_le_bytes()).unwrap();
                let all = DeviceCommunicator::meet(&gpu, &job, &settings).unwrap();
                let data = gpu.upload(&[rank + 1; 4]).unwrap();
                let ticket = all.all_reduce_in_place(&data, Reduction::Sum).submit().unwrap();
                told.send(()).unwrap();
                let error = ticket.wait().unwrap_err();
                let lost = error.downcast_ref::<CommunicatorRankLost>().unwrap();
                assert!(lost.lost == 2 && lost.cause.contains("process ended"), "{error}");
                let rebuilt = all.rebuild().unwrap();
                assert_eq!((rebuilt.former_ranks, rebuilt.done, rebuilt.submitted), (vec![0, 1], 0, 1));
                data.upload(&[rank + 1; 4]).unwrap();
                rebuilt.communicator.all_reduce_in_place(&data, Reduction::Sum).submit().unwrap();
                assert_eq!(data.download().unwrap(), [3; 4]);
                job.barrier("end").unwrap();
            })
        })
        .collect();
    // It takes part in the job and not in the collective, which therefore waits.
    (0..2).for_each(|_| hears.recv().unwrap());
    let start = Instant::now();
    killed.kill().unwrap();
    killed.wait().unwrap();
    survivors.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_process_that_is_killed_is_replaced_in_the_communicator() {
    let port = free_port();
    let mut killed = rank_process(&by_hand(port, 2, 3), &["--until-loss"]);
    let config_of = |config, _| MachineConfig::device(config, DeviceConfig::default());
    let machine = Machine::new((0..3).fold(MachineConfig::seeded(1), config_of));
    let devices: Vec<_> = (0..3).map(|ordinal| machine.device(ordinal).unwrap()).collect();
    let group = DeviceGroup::over(devices, &Default::default()).unwrap();
    let settings = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let (told, hears) = std::sync::mpsc::channel();
    let survivors: Vec<_> = (0..2)
        .map(|rank| (rank, group.runtime(rank as usize).unwrap().clone(), told.clone()))
        .map(|(rank, gpu, told)| {
            std::thread::spawn(move || {
                let job = Arc::new(Rendezvous::join(&config(port, rank, 3)).unwrap());
                assert!(!job.is_replacement());
                let error = DeviceCommunicator::replace(&gpu, &job, &settings).unwrap_err();
                assert!(error.to_string().contains("replaces no lost rank"), "{error}");
                job.exchange("parts", &0_u32.to_le_bytes()).unwrap();
                let all = DeviceCommunicator::meet(&gpu, &job, &settings).unwrap();
                let (send, recv) = (gpu.upload(&[rank + 1; 4]).unwrap(), gpu.zeros::<u32>(4).unwrap());
                let ticket = all.all_reduce(&send, &recv, Reduction::Sum).submit().unwrap();
                told.send(()).unwrap();
                let error = ticket.wait().unwrap_err();
                assert!(error.downcast_ref::<CommunicatorRankLost>().is_some(), "{error}");
                assert!(all.vacancy(2).unwrap_err().to_string().contains("is a process of a job"));
                let rebuilt = all.rebuild_replaced().unwrap();
                assert_eq!((rebuilt.former_ranks.len(), &rebuilt.replaced[..]), (3, &[2][..]));
                assert_eq!(rebuilt.repeatable, [0]);
                rebuilt.repeat().unwrap()[0].1.wait().unwrap();
                assert_eq!(recv.download().unwrap(), [103; 4]);
                job.barrier("end").unwrap();
            })
        })
        .collect();
    (0..2).for_each(|_| hears.recv().unwrap());
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Its replacement comes at once: the others are still told of the loss.
    let gpu = group.runtime(2).unwrap();
    let joined = loop {
        match Rendezvous::join(&config(port, 2, 3)) {
            Err(RendezvousError::RankTaken { .. }) => std::thread::sleep(Duration::from_millis(1)),
            joined => break joined.unwrap(),
        }
    };
    let job = Arc::new(joined);
    assert!(job.is_replacement());
    let rebuilt = DeviceCommunicator::replace(gpu, &job, &settings).unwrap();
    assert_eq!((rebuilt.communicator.rank(), rebuilt.communicator.size(), rebuilt.submitted), (2, 3, 0));
    assert_eq!((rebuilt.repeatable.as_slice(), rebuilt.lost[0].rank), (&[0][..], 2));
    let (send, recv) = (gpu.upload(&[100_u32; 4]).unwrap(), gpu.zeros::<u32>(4).unwrap());
    rebuilt.communicator.all_reduce(&send, &recv, Reduction::Sum).submit().unwrap();
    assert_eq!(recv.download().unwrap(), [103; 4]);
    job.barrier("end").unwrap();
    survivors.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn without_rank_zero_the_others_end_with_an_error() {
    let port = free_port();
    let mut zero = rank_process(&by_hand(port, 0, 2), &["--until-loss"]);
    let job = Rendezvous::join(&config(port, 1, 2)).unwrap();
    zero.kill().unwrap();
    zero.wait().unwrap();
    let start = Instant::now();
    let error = job.get("never").unwrap_err();
    assert!(matches!(error, RendezvousError::StoreLost { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn every_collective_gives_the_right_result_on_simulated_devices() {
    let output = Command::new(example_program("collectives")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("right on rank 0 of 4").count(), 13, "{text}");
}

#[test]
fn every_collective_in_a_graph_gives_the_right_result_after_each_of_a_hundred_replays() {
    let output = Command::new(example_program("collectives")).arg("--graphs").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let right = text.lines().filter(|line| line.contains(" in a graph, 100 replays: right on rank 0 of 4"));
    assert_eq!(right.count(), 7, "{text}");
    assert!(text.contains("all-gather in one graph, 100 replays at once: right on rank 0 of 4"), "{text}");
}

/// The example in which a rank of each job is killed among many queued all-reduces, on simulated devices.
fn killed_rank(words: &[&str]) -> (String, bool) {
    let output = Command::new(example_program("killed_rank"))
        .args(words)
        .env("KILN_POLICY", "simulate")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.success())
}

#[test]
fn a_rank_killed_among_queued_all_reduces_is_told_within_a_second_and_the_job_goes_on() {
    for (ranks, jobs) in [("2", 2), ("3", 4)] {
        let words = ["--ranks", ranks, "--jobs", &jobs.to_string(), "--collectives", "200"];
        let (text, is_good) = killed_rank(&words);
        let last = text.lines().last().unwrap_or_default();
        assert!(is_good && last.starts_with(&format!("{jobs} good, 0 bad: ")), "{text}");
        let ends = format!("jobs that went on: {0} without the rank, {0} with a replacement", jobs / 2);
        assert!(last.ends_with(&ends), "{text}");
    }
}

#[test]
fn a_thousand_all_reduces_are_queued_when_the_rank_is_killed() {
    let (text, is_good) = killed_rank(&["--ranks", "3", "--seed", "7"]);
    assert!(is_good && text.contains("of 1000 all-reduces and replaced"), "{text}");
}

#[test]
fn the_example_of_a_killed_rank_refuses_wrong_words() {
    for (words, what) in [
        (&["--ranks", "1"][..], "--ranks takes a number from 2 to 8, not `1`"),
        (&["--jobs"], "--jobs needs a number"),
        (&["--often"], "there is no `--often`"),
    ] {
        let (text, is_good) = killed_rank(words);
        assert!(!is_good && text.contains(what), "{text}");
    }
}

#[test]
fn the_first_loss_is_blamed_also_when_the_store_goes_after_it() {
    let port = free_port();
    let mut others = [0, 2].map(|rank| rank_process(&by_hand(port, rank, 3), &["--until-loss"]));
    let job = Rendezvous::join(&config(port, 1, 3)).unwrap();
    job.exchange("parts", &0_u32.to_le_bytes()).unwrap();
    others[1].kill().unwrap();
    others[1].wait().unwrap();
    assert_eq!(job.wait_for_loss(Duration::from_secs(5)).unwrap().map(|lost| lost.rank), Some(2));
    others[0].kill().unwrap();
    others[0].wait().unwrap();
    while job.put("still there", b"").is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = job.get("never").unwrap_err();
    assert!(matches!(error, RendezvousError::RankLost { rank: 2, .. }), "{error}");
    job.acknowledge_losses();
    let error = job.get("never").unwrap_err();
    assert!(matches!(error, RendezvousError::StoreLost { .. }), "{error}");
    assert!(error.to_string().contains("start the job again"), "{error}");
}

#[test]
fn without_rank_zero_no_rank_is_told_to_rebuild() {
    let port = free_port();
    let mut zero = Command::new(example_program("killed_rank"))
        .args(["--collectives", "100000"])
        .envs(by_hand(port, 0, 2))
        .env("KILN_POLICY", "simulate")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let job = Arc::new(Rendezvous::join(&config(port, 1, 2)).unwrap());
    let gpu = kiln::DeviceRuntime::simulated(1).unwrap();
    let rank = DeviceCommunicator::meet(&gpu, &job, &Default::default()).unwrap();
    rank.barrier().submit().unwrap().wait().unwrap();
    zero.kill().unwrap();
    zero.wait().unwrap();
    let (send, recv) = (gpu.upload(&[1_u32; 16]).unwrap(), gpu.zeros::<u32>(16).unwrap());
    let error = loop {
        if let Err(error) = rank.all_reduce(&send, &recv, Reduction::Sum).submit() {
            break error;
        }
    };
    let text = error.to_string();
    assert_eq!(error.lost_rank().map(|lost| lost.lost), Some(0), "{text}");
    assert!(!text.contains("rebuild") && text.contains("start the job again"), "{text}");
    let text = rank.rebuild().unwrap_err().to_string();
    assert!(text.contains("start the job again"), "{text}");
}

#[test]
fn examples_say_what_is_wrong_in_words_and_end_with_1() {
    for name in ["ranks", "collectives", "killed_rank"] {
        let output = Command::new(example_program(name))
            .env_clear()
            .envs([("KILN_RANK", "2"), ("KILN_WORLD_SIZE", "2")])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("{name}: KILN_RANK is 2 and KILN_WORLD_SIZE is 2; ranks are counted from 0");
        assert!(text.starts_with(&expected), "{text}");
        assert_eq!(output.status.code(), Some(1));
    }
}
