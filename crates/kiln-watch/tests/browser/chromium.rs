//! A headless Chromium that ends with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The variable that names the executable; `cargo xtask test` fetches it and sets this.
const VARIABLE: &str = "KILN_CHROMIUM";
/// How long it may take to start on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A browser that runs.
pub(crate) struct Chromium {
    child: Child,
    profile: PathBuf,
    pub(crate) port: u16,
}

impl Chromium {
    /// Starts one; none if there is none on this machine, which counts as skipped.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(program) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
            skip(test);
            return None;
        };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("kiln-chromium-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&profile).unwrap();
        let program = program.canonicalize().unwrap_or(program);
        let mut command = Command::new(&program);
        // What the browser leaves in the folder it runs in does not belong to the sources.
        command.current_dir(&profile);
        // Its libraries and fonts are beside it, if it was fetched.
        if let Some(folder) = program
            .parent()
            .filter(|folder| folder.join("lib").is_dir() && folder.join("fonts.conf").is_file())
        {
            command
                .env("LD_LIBRARY_PATH", folder.join("lib"))
                .env("FONTCONFIG_PATH", folder)
                .current_dir(folder);
        }
        command.args(["--headless", "--no-sandbox", "--no-zygote", "--single-process", "--disable-gpu"]);
        command.args([
            "--disable-dev-shm-usage",
            "--remote-debugging-port=0",
            "--window-size=1200,700",
            "--hide-scrollbars",
        ]);
        command.args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut browser = Self { child, profile, port: 0 };
        browser.port = browser.await_port();
        Some(browser)
    }

    /// The path of the web socket of its page.
    pub(crate) fn page(&self) -> String {
        let deadline = Instant::now() + START;
        loop {
            let pages: Value = serde_json::from_str(&get(self.port, "/json/list")).unwrap_or_default();
            let page =
                pages.as_array().and_then(|pages| pages.iter().find(|page| page["type"] == "page").cloned());
            if let Some(url) = page.as_ref().and_then(|page| page["webSocketDebuggerUrl"].as_str()) {
                let rest = url.split_once("://").unwrap().1;
                return rest[rest.find('/').unwrap()..].to_owned();
            }
            assert!(Instant::now() < deadline, "the browser has no page: {pages}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn await_port(&mut self) -> u16 {
        let deadline = Instant::now() + START;
        let file = self.profile.join("DevToolsActivePort");
        loop {
            let port = std::fs::read_to_string(&file).ok().and_then(|text| text.lines().next()?.parse().ok());
            if let Some(port) = port {
                return port;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the browser ended with {status} before it listened");
            }
            assert!(Instant::now() < deadline, "the browser does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// What is at a path; the browser leaves the connection open, so that the length counts.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(START)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").unwrap();
    let mut answer = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while answer.read_line(&mut line).unwrap() > 2 {
        let field = line.to_ascii_lowercase();
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn skip(test: &str) {
    println!("skipped: {test}: no browser; run `cargo xtask test`, or name one with {VARIABLE}");
    if let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(Path::new(&log));
        file.and_then(|mut file| file.write_all(format!("{test}: no browser\n").as_bytes())).unwrap();
    }
}
