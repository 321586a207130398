//! A page of the browser: what is done to it, and what it did.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::web_socket::WebSocket;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page that is open.
pub(crate) struct Page {
    socket: WebSocket,
    next: u64,
    origin: String,
    /// What the page did that it may not do.
    faults: Vec<String>,
    _browser: Chromium,
}

impl Page {
    /// Opens an address, with a colour scheme that the system prefers; none if there is no browser.
    pub(crate) fn open(test: &str, url: &str, scheme: &str) -> Option<Self> {
        let browser = Chromium::start(test)?;
        let socket = WebSocket::connect(browser.port, &browser.page());
        let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
        let mut page = Self { socket, next: 0, origin, faults: Vec::new(), _browser: browser };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        page.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
        let size = json!({ "width": 1200, "height": 700, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", &size);
        page.call("Page.navigate", &json!({ "url": url }));
        page.wait_until("typeof kilnWatch === 'object' && kilnWatch.isSettled()");
        Some(page)
    }

    /// Calls a method, and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.socket.send(&json!({ "id": id, "method": method, "params": parameters }).to_string());
        loop {
            let message: Value = serde_json::from_str(&self.socket.receive()).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.notice(&message);
        }
    }

    /// The value of an expression, which may be a promise.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", &asked);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            assert!(Instant::now() < deadline, "{expression} does not come true; {:?}", self.faults);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until everything that is seen is drawn.
    pub(crate) fn settle(&mut self) {
        self.wait_until("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(kilnWatch.isSettled()))))");
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let down = json!({ "type": "keyDown", "key": key, "text": text });
        self.call("Input.dispatchKeyEvent", &down);
        self.call("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": key }));
    }

    /// Types a text.
    pub(crate) fn enter(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": 1, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Moves the pointer without a button.
    pub(crate) fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y, "buttons": 0 }));
    }

    pub(crate) fn click(&mut self, x: f64, y: f64) {
        self.mouse("mousePressed", x, y);
        self.mouse("mouseReleased", x, y);
    }

    pub(crate) fn wheel(&mut self, x: f64, y: f64, by: f64) {
        let event = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Where on the page a time of a row is, in the middle of the row.
    pub(crate) fn place(&mut self, row: usize, ns: f64) -> (f64, f64) {
        let place = self.value(&format!(
            "(() => {{ const box = document.getElementById('timeline').getBoundingClientRect();
               const lane = kilnWatch.lanes().find((each) => each.row === {row});
               return [box.left + kilnWatch.xOf({ns}), box.top + kilnWatch.AXIS + lane.y - kilnWatch.view.scroll + kilnWatch.ROW / 2]; }})()"
        ));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    /// The colour of a pixel of a canvas: red, green, blue.
    pub(crate) fn pixel(&mut self, canvas: &str, x: f64, y: f64) -> [u64; 3] {
        let colour = self.value(&format!(
            "(() => {{ const canvas = document.querySelector('{canvas}'), box = canvas.getBoundingClientRect();
               return [...canvas.getContext('2d').getImageData({x} - box.left, {y} - box.top, 1, 1).data]; }})()"
        ));
        [0, 1, 2].map(|at| colour[at].as_u64().unwrap())
    }

    /// The page as a picture.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        crate::base64::decoded(shot["data"].as_str().unwrap())
    }

    /// The page did nothing that it may not do.
    pub(crate) fn finish(mut self) {
        self.settle();
        assert!(self.faults.is_empty(), "{:#?}", self.faults);
    }

    fn notice(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with(&format!("{}/", self.origin)) && !url.starts_with("about:") {
                    self.faults.push(format!("a request leaves the page: {url}"));
                }
            }
            "Runtime.exceptionThrown" => self.faults.push(parameters["exceptionDetails"].to_string()),
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                self.faults.push(parameters["entry"].to_string());
            }
            "Runtime.consoleAPICalled" => self.faults.push(parameters.to_string()),
            _ => {}
        }
    }
}
