//! One job: its ranks are processes, one of them is killed, and the others say what they saw.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::plan::Plan;
use crate::{Failure, LIMIT};

/// A job that takes longer hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// What the survivors of a job saw.
pub struct JobReport {
    /// When each of them was told, after the kill.
    pub told: Vec<Duration>,
    /// Blocks that no unfinished collective was to write and that were found as they were.
    pub blocks: u64,
}

/// What a process of the job says: the rank, whether it is the replacement, and a line; none when it has said all.
type Said = (u32, bool, Option<String>);

/// The processes of a job; they end with it.
struct Processes {
    children: Vec<(u32, bool, Child)>,
    told: Sender<Said>,
    meeting_point: String,
}

/// Runs a job, and says what is wrong with it.
pub fn run(plan: &Plan) -> Result<JobReport, Failure> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let (told, hears) = channel();
    let mut processes = Processes { children: Vec::new(), told, meeting_point: format!("127.0.0.1:{port}") };
    for rank in 0..plan.ranks {
        processes.start(plan, rank)?;
    }
    let killed_at = processes.kill_in_the_middle(plan, &hears)?;
    if plan.is_replaced() {
        processes.start(&Plan { is_replacement: true, ..*plan }, plan.victim())?;
    }
    let lines = processes.all_lines(&hears)?;
    processes.all_ended_well(plan)?;
    report(plan, killed_at, &lines)
}

impl Processes {
    fn start(&mut self, plan: &Plan, rank: u32) -> Result<(), Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(plan.words())
            .env("KILN_RANK", rank.to_string())
            .env("KILN_WORLD_SIZE", plan.ranks.to_string())
            .env("KILN_MEETING_POINT", &self.meeting_point)
            // All ranks share the first GPU.
            .env("KILN_LOCAL_RANK", "0")
            .env("NCCL_HOSTID", format!("kiln-rank-{rank}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (told, is_replacement) = (self.told.clone(), plan.is_replacement);
        self.children.push((rank, is_replacement, child));
        thread::spawn(move || {
            let errors = thread::spawn(move || {
                let mut text = String::new();
                // What cannot be read is not shown.
                let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut text));
                text
            });
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
                let _ = told.send((rank, is_replacement, Some(line)));
            }
            for line in errors.join().unwrap_or_default().lines() {
                let _ = told.send((rank, is_replacement, Some(format!("error {line}"))));
            }
            let _ = told.send((rank, is_replacement, None));
        });
        Ok(())
    }

    /// Waits until the victim says that it has done so many, kills it, and says when that was.
    fn kill_in_the_middle(&mut self, plan: &Plan, hears: &Receiver<Said>) -> Result<SystemTime, Failure> {
        let end = Instant::now() + TIME_LIMIT;
        loop {
            let (rank, _, line) = next(hears, end)?;
            match line.as_deref() {
                Some("reached") if rank == plan.victim() => break,
                Some(line) if line.starts_with("error ") => {
                    return Err(format!("rank {rank}: {}", &line[6..]).into());
                }
                Some(_) => {}
                None => return Err(format!("rank {rank} ended before the kill").into()),
            }
        }
        let (_, _, victim) = self.children.get_mut(plan.victim() as usize).ok_or("there is no victim")?;
        let now = SystemTime::now();
        victim.kill()?;
        Ok(now)
    }

    /// What the processes say until all have ended.
    fn all_lines(&self, hears: &Receiver<Said>) -> Result<Vec<(u32, bool, String)>, Failure> {
        let end = Instant::now() + TIME_LIMIT;
        let (mut lines, mut open) = (Vec::new(), self.children.len());
        while open > 0 {
            match next(hears, end).map_err(|error| format!("{error}; so far: {lines:?}"))? {
                (rank, is_replacement, Some(line)) => lines.push((rank, is_replacement, line)),
                (_, _, None) => open -= 1,
            }
        }
        let errors: Vec<String> = lines
            .iter()
            .filter_map(|(rank, _, line)| Some(format!("rank {rank}: {}", line.strip_prefix("error ")?)))
            .collect();
        if errors.is_empty() { Ok(lines) } else { Err(errors.join("; ").into()) }
    }

    fn all_ended_well(&mut self, plan: &Plan) -> Result<(), Failure> {
        for (rank, is_replacement, child) in &mut self.children {
            let is_victim = *rank == plan.victim() && !*is_replacement;
            let status = child.wait()?;
            if !is_victim && !status.success() {
                return Err(format!("rank {rank} ended with {status}").into());
            }
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, _, child) in &mut self.children {
            // One that has ended is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn next(hears: &Receiver<Said>, end: Instant) -> Result<Said, Failure> {
    hears.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error {
        RecvTimeoutError::Timeout => format!("the ranks were not done within {TIME_LIMIT:?}").into(),
        RecvTimeoutError::Disconnected => "no rank runs".into(),
    })
}

/// Reads what the survivors have said.
fn report(plan: &Plan, killed_at: SystemTime, lines: &[(u32, bool, String)]) -> Result<JobReport, Failure> {
    let killed_at = killed_at.duration_since(UNIX_EPOCH)?;
    let (mut told, mut blocks, mut on) = (BTreeMap::new(), 0, 0);
    for (rank, _, line) in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["told", at] => {
                let at = Duration::from_nanos(at.parse()?);
                told.insert(*rank, at.saturating_sub(killed_at));
            }
            ["intact", number] => blocks += number.parse::<u64>()?,
            ["on"] => on += 1,
            _ => {}
        }
    }
    for survivor in (0..plan.ranks).filter(|rank| *rank != plan.victim()) {
        match told.get(&survivor) {
            None => return Err(format!("rank {survivor} was not told").into()),
            Some(late) if *late > LIMIT => {
                return Err(format!("rank {survivor} was told {late:?} after the kill").into());
            }
            Some(_) => {}
        }
    }
    let expected = plan.ranks - u32::from(!plan.is_replaced());
    match on == expected {
        true => Ok(JobReport { told: told.into_values().collect(), blocks }),
        false => Err(format!("{on} of {expected} ranks went on").into()),
    }
}
