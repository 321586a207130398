//! A line on the terminal that says how far a long launch is.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kiln_ptx::exec::LaunchProgress;

/// A launch that takes less is over before a line could be read.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is written again.
const PERIOD: Duration = Duration::from_millis(200);

/// The line of one launch; it goes away with this value.
pub(crate) struct ProgressLine {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Shows how many blocks are done if the launch takes longer than a second. None if the standard error is no terminal.
    pub(crate) fn start(progress: Arc<LaunchProgress>, prefix: String) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("kiln progress".into()).spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar(prefix);
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let (done, total) = progress.blocks();
                bar.set_length(total);
                bar.set_position(done);
            }
            bar.finish_and_clear();
        });
        Some(Self { stop: Some(stop), thread: thread.ok() })
    }
}

fn bar(prefix: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}{bar:30} {pos} of {len} blocks");
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
