//! The view on a terminal: its own screen, drawn anew at each look, and given back at the end.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::Seen;
use super::gpu_figures::Gpus;
use super::text::{self, Line, Look};
use crate::failure::Failure;

/// The other screen of a terminal, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first place, before the lines; to the end of the line; to the end of the screen.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[0m\x1b[K";
const CLEAR_REST: &str = "\x1b[J";
const TITLE: &str = "kiln top (q ends)";

/// What keys ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    End,
    Scroll(isize),
    Nothing,
}

/// Whether a signal ends the command, so that nothing more is drawn.
static ENDS: AtomicBool = AtomicBool::new(false);

/// How long a terminal may take to be given back when a signal has come; one that is stopped takes for ever.
const GIVE_BACK: Duration = Duration::from_millis(500);

/// Shows what is seen until the user ends it, or a signal, before which the terminal is given back.
///
/// # Errors
/// A terminal that cannot be used; a folder that cannot be read.
pub(super) fn run(
    every: Duration,
    load: impl FnOnce() -> Gpus,
    look: impl Fn(&Gpus) -> Result<Seen, Failure>,
) -> Result<(), Failure> {
    // Before anything starts a thread, which a signal could end the process by.
    let signals = Signals::hold().map_err(refused)?;
    let gpus = load();
    let look = || look(&gpus);
    let mut lines = text::lines(&look()?);
    let screen = Screen::enter(signals).map_err(refused)?;
    let (mut first, mut next) = (0_usize, Instant::now() + every);
    loop {
        first = first.min(lines.len().saturating_sub(1));
        match screen.draw(&lines, first) {
            // The terminal is gone, and with it the user.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            drawn => drawn.map_err(refused)?,
        }
        match screen.keys(next.saturating_duration_since(Instant::now())).map_err(refused)? {
            Asked::End => return Ok(()),
            Asked::Scroll(by) => first = first.saturating_add_signed(by),
            Asked::Nothing => {}
        }
        if Instant::now() >= next {
            lines = text::lines(&look()?);
            next = Instant::now() + every;
        }
    }
}

fn refused(error: io::Error) -> Failure {
    Failure::output(format!("the terminal cannot be used: {error}")).next("use `kiln top --once`")
}

/// A terminal that shows the view, until it is dropped.
struct Screen {
    before: Termios,
}

impl Screen {
    fn enter(signals: Signals) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let given_back = before.clone();
        signals.give_back_first(move || {
            ENDS.store(true, Ordering::Release);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &given_back);
            let (tell, told) = std::sync::mpsc::channel();
            let leave = move || {
                let _ = write_last(LEAVE);
                let _ = tell.send(());
            };
            if std::thread::Builder::new().spawn(leave).is_ok() {
                let _ = told.recv_timeout(GIVE_BACK);
            }
        })?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let screen = Self { before };
        write(ENTER)?;
        Ok(screen)
    }

    fn draw(&self, lines: &[Line], first: usize) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout())?;
        write(&drawn(lines, first, size.ws_col.into(), size.ws_row.into()))
    }

    /// What was asked for within a time. A change of the terminal's size ends the time.
    fn keys(&self, limit: Duration) -> io::Result<Asked> {
        let input = io::stdin();
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let mut ready = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Asked::Nothing),
            answered => answered.map_err(io::Error::from)?,
        };
        let mut bytes = [0; 64];
        match io::stdin().read(&mut bytes) {
            // The terminal was closed.
            Ok(0) => Ok(Asked::End),
            Ok(read) => Ok(asked(bytes.get(..read).unwrap_or_default())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Asked::Nothing),
            Err(_) => Ok(Asked::End),
        }
    }
}

impl Drop for Screen {
    /// The terminal is as it was before, as far as it takes that.
    fn drop(&mut self) {
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Looked at under the lock: what gives the terminal back writes last.
    if ENDS.load(Ordering::Acquire) {
        return Ok(());
    }
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn write_last(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The signals that end this command, held back until the terminal is drawn on.
#[cfg(target_os = "linux")]
struct Signals(crate::signals::SignalMask);

#[cfg(target_os = "linux")]
impl Signals {
    fn hold() -> io::Result<Self> {
        crate::signals::block().map(Self)
    }

    fn give_back_first(self, give_back: impl FnOnce() + Send + 'static) -> io::Result<()> {
        crate::signals::before_end(self.0, give_back)
    }
}

/// Elsewhere signals end it at once.
#[cfg(not(target_os = "linux"))]
struct Signals;

#[cfg(not(target_os = "linux"))]
impl Signals {
    fn hold() -> io::Result<Self> {
        Ok(Self)
    }

    fn give_back_first(self, _: impl FnOnce() + Send + 'static) -> io::Result<()> {
        Ok(())
    }
}

/// What was typed, which may be several keys: `q`, Esc and Ctrl-C end; arrows, `j` and `k`, and the keys for pages scroll.
fn asked(mut bytes: &[u8]) -> Asked {
    let mut lines = 0_isize;
    while let [first, rest @ ..] = bytes {
        let (by, behind) = match (first, rest) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let is_last = |byte: &u8| (0x40..=0x7e).contains(byte);
                let length = sequence.iter().position(is_last).map_or(sequence.len(), |at| at + 1);
                let (sequence, behind) = sequence.split_at(length);
                (scrolled(sequence), behind)
            }
            (b'q' | 3 | 0x1b, _) => return Asked::End,
            (b'j', _) => (1, rest),
            (b'k', _) => (-1, rest),
            _ => (0, rest),
        };
        (lines, bytes) = (lines.saturating_add(by), behind);
    }
    if lines == 0 { Asked::Nothing } else { Asked::Scroll(lines) }
}

/// How far a key scrolls that is more than one byte, by what follows its first two.
fn scrolled(sequence: &[u8]) -> isize {
    match sequence {
        b"B" => 1,
        b"A" => -1,
        b"6~" => 10,
        b"5~" => -10,
        _ => 0,
    }
}

/// The bytes that show the lines from one on. Whatever does not fit is left out.
fn drawn(lines: &[Line], first: usize, columns: usize, rows: usize) -> String {
    let mut shown = HOME.to_owned();
    let cut = |text: &str| text.chars().take(columns).collect::<String>();
    let title = std::iter::once((Look::Head, TITLE));
    let rest = lines.iter().skip(first).map(|line| (line.look, line.plain()));
    for (row, (look, text)) in title.chain(rest).take(rows).enumerate() {
        if row > 0 {
            shown += "\r\n";
        }
        shown += match look {
            Look::Head => "\x1b[1m",
            Look::Plain | Look::Command => "",
            Look::Alarm => "\x1b[31m",
        };
        shown += &cut(text);
        shown += CLEAR_LINE;
    }
    shown + CLEAR_REST
}

#[cfg(test)]
mod tests {
    use super::super::entry::Program;
    use super::super::programs::UnreadableEntry;
    use super::*;

    fn seen() -> Seen {
        seen_of(PROGRAM)
    }

    const PROGRAM: &str = r#"{"format":1,"process":77,"started":0,"program":"train","updated_ms":0,"runtimes":[
            {"kind":"cuda","ordinal":0,"name":"H200","uuid":"GPU-1","state":"lost","faults":2,"limit_bytes":1000,
             "live_bytes":500,"peak_bytes":700,"held_bytes":800,"streams":3,"submissions":12,
             "submissions_per_second":6.5,"tags":[{"tag":"weights","bytes":400},{"tag":"","bytes":100}]}]}"#;

    fn seen_of(program: &str) -> Seen {
        let programs = Program::read(program.as_bytes(), 77).into_iter().collect();
        let file = "/run/user/1000/kiln/78.json".to_owned();
        let why = "it is not what a kiln program writes; remove it".to_owned();
        Seen {
            programs,
            gpus: Vec::new(),
            gpus_absent: Some("NVML is not installed".to_owned()),
            folder: "/run/user/1000/kiln".to_owned(),
            folder_wrong: None,
            unreadable: 1,
            unreadable_entries: vec![UnreadableEntry { process: 78, file, why }],
            not_seen: Vec::new(),
        }
    }

    /// The rows as a reader sees them.
    fn rows(columns: usize, rows: usize, first: usize) -> Vec<String> {
        let mut text = drawn(&text::lines(&seen()), first, columns, rows);
        for escape in [HOME, CLEAR_LINE, CLEAR_REST, "\x1b[1m", "\x1b[31m"] {
            text = text.replace(escape, "");
        }
        assert!(!text.contains('\x1b'), "{text:?}");
        text.split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn names_of_programs_devices_and_tags_do_not_reach_the_terminal_as_they_are() {
        let mut odd = PROGRAM.to_owned();
        for name in ["train", "H200", "weights"] {
            odd = odd.replace(name, &format!(r"{name}\n\u001b[2J\u009b1m"));
        }
        for line in text::lines(&seen_of(&odd)) {
            assert!(!line.plain().contains(char::is_control), "{:?}", line.plain());
        }
        let shown = drawn(&text::lines(&seen_of(&odd)), 0, 200, 12);
        for name in ["train", "H200", "weights"] {
            assert!(shown.contains(&format!(r"{name}\n\x1b[2J\x9b1m")), "{name}: {shown:?}");
        }
    }

    #[test]
    fn programs_tags_losses_and_absent_figures_are_shown() {
        let all = rows(100, 12, 0).join("\n");
        for said in [
            TITLE,
            "train (process 77)",
            "cuda 0 (H200): lost, 3 streams, 6 submissions/s, 12 so far",
            "lost 2 times",
            "[##########..........] 500 bytes of ",
            "[################....] weights",
            "without a tag",
            "78.json could not be read: it is not what",
            "No figures of GPUs: NVML is not installed",
        ] {
            assert!(all.contains(said), "{said}:\n{all}");
        }
        assert!(rows(100, 12, 2)[1].contains("lost 2 times"), "scrolled: {:?}", rows(100, 12, 2));
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_on() {
        for columns in [0, 1, 2, 7, 300] {
            for height in [0, 1, 2, 5, 100] {
                for first in [0, 5, 1000] {
                    let rows = rows(columns, height, first);
                    assert!(
                        rows.len() <= height.max(1) && rows.iter().all(|row| row.chars().count() <= columns)
                    );
                }
            }
        }
    }

    #[test]
    fn keys_end_and_scroll() {
        assert_eq!((asked(b"q"), asked(b"\x03"), asked(b"\x1b")), (Asked::End, Asked::End, Asked::End));
        assert_eq!((asked(b"\x1b[B"), asked(b"k")), (Asked::Scroll(1), Asked::Scroll(-1)));
        assert_eq!((asked(b""), asked(b"x\x1b[200~")), (Asked::Nothing, Asked::Nothing));
        // Several in one piece.
        assert_eq!((asked(b"jj\x1b[Bk"), asked(b"\x1b[6~\x1bOA")), (Asked::Scroll(2), Asked::Scroll(9)));
        assert_eq!(
            (asked(b"jjq"), asked(b"x\x1b[B\x03"), asked(b"j\x1b")),
            (Asked::End, Asked::End, Asked::End)
        );
    }
}
