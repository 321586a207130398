//! A line on the terminal that says how far a long launch is.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kiln_ptx::exec::LaunchProgress;

use crate::console::complain;

/// A launch that takes less is over before a line could be read.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same where no line can be written again.
const PATIENCE_WITHOUT_TERMINAL: Duration = Duration::from_secs(20);
/// How often the line is written again.
const PERIOD: Duration = Duration::from_millis(200);

/// The line of one launch; it goes away with this value.
pub(crate) struct ProgressLine {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Shows how far the launch is if it takes longer than a second; where the standard error is no terminal, one line after some seconds.
    pub(crate) fn start(progress: Arc<LaunchProgress>, prefix: String) -> Self {
        let (stop, stopped) = channel();
        let is_terminal = std::io::stderr().is_terminal();
        let thread =
            std::thread::Builder::new().name("kiln progress".into()).spawn(move || match is_terminal {
                true => {
                    let bar = bar(prefix);
                    follow(&progress, &stopped, PATIENCE, |done, total| {
                        bar.set_length(total);
                        bar.set_position(done);
                        bar.set_message(stage(done, total));
                    });
                    bar.finish_and_clear();
                }
                false => {
                    if stopped.recv_timeout(PATIENCE_WITHOUT_TERMINAL) == Err(RecvTimeoutError::Timeout) {
                        let (done, total) = progress.blocks();
                        let seconds = PATIENCE_WITHOUT_TERMINAL.as_secs();
                        complain(format_args!(
                            "kiln: {prefix}{} after {seconds} s; the launch goes on",
                            stage(done, total)
                        ));
                    }
                }
            });
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

/// What is being done, by the number of blocks that are done of how many.
fn stage(done: u64, total: u64) -> String {
    match (done, total) {
        (_, 0) => "compiling, and copying arrays to the simulated device".to_owned(),
        (done, total) if done >= total => format!("{total} of {total} blocks, reading results"),
        _ => format!("{done} of {total} blocks"),
    }
}

/// Shows how many blocks are done of how many, again and again from some time on, until the launch is over.
fn follow(
    progress: &LaunchProgress,
    stopped: &Receiver<()>,
    patience: Duration,
    mut show: impl FnMut(u64, u64),
) {
    let mut wait = patience;
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let (done, total) = progress.blocks();
        show(done, total);
        wait = PERIOD.min(patience);
    }
}

fn bar(prefix: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}{bar:30} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_prefix(prefix)
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_ptx::PtxModule;
    use kiln_ptx::exec::{ExecProgram, LaunchShape, Options, SimpleMemory};

    use super::*;

    #[test]
    fn the_blocks_that_are_done_are_shown_until_the_launch_is_over() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r; mov.u32 %r, 1; ret; }";
        let program = ExecProgram::new(PtxModule::parse(text).unwrap());
        let progress = LaunchProgress::default();
        let options = Options { progress: Some(&progress), ..Options::default() };
        let shape = LaunchShape::linear(3, 1);
        program.entry("k").unwrap().launch(&shape, &[], &[], &SimpleMemory::new(), &options).unwrap();
        let (stop, stopped) = channel();
        let mut stop = Some(stop);
        let mut shown = Vec::new();
        follow(&progress, &stopped, Duration::from_millis(1), |done, total| {
            shown.push((done, total));
            if shown.len() == 2 {
                stop.take();
            }
        });
        assert_eq!(shown, [(3, 3), (3, 3)]);
        // A launch that is over before the line could be read shows nothing.
        let (stop, stopped) = channel();
        drop(stop);
        follow(&progress, &stopped, Duration::from_secs(3600), |_, _| panic!("shown"));
        let bar = bar("seed 1 of 4: ".to_owned());
        assert_eq!(bar.prefix(), "seed 1 of 4: ");
        assert_eq!(stage(1, 3), "1 of 3 blocks");
        assert!(stage(3, 3).ends_with("reading results") && stage(0, 0).contains("copying arrays"));
    }
}
