//! Headless Chromium, driven over pipes by its DevTools protocol.
//!
//! In: actions of a person: open a page, press keys, change the size of the window, switch to dark
//! mode.
//! Out: the content of the page, the complaints of the browser, and screenshots. The protocol is
//! JSON with a NUL after each message; this file needs no more of it, and no crate for it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::places;
use super::programs::report_skipped;

/// Timeout for the start of the browser on a busy machine, and for a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running browser with one page; killed on drop.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    events: VecDeque<Value>,
    session: String,
    next: u64,
    _profile: tempfile::TempDir,
}

/// Path of the browser; `None` if there is none on PATH.
fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&paths).flat_map(|folder| names.map(|name| folder.join(name)));
    places.find(|place| place.is_file())
}

impl Browser {
    /// Starts a browser with an empty page; without a browser, reports the test as skipped and
    /// returns `None`.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            report_skipped("there is no chromium on PATH");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The protocol uses the descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--remote-debugging-pipe", "--lang=en"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { continue };
                if send.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let events = VecDeque::new();
        let mut browser =
            Self { child, to, from: receive, events, session: String::new(), next: 0, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(1280, 900);
        Some(browser)
    }

    /// Calls a method of the browser and waits for the response.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(b"\0").unwrap();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let message = self.message(deadline, method);
            if message["id"] == self.next {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    fn message(&mut self, deadline: Instant, what: &str) -> Value {
        let left = deadline.saturating_duration_since(Instant::now());
        self.from.recv_timeout(left).unwrap_or_else(|_| panic!("the browser is silent: {what}"))
    }

    /// Opens an address and waits until the page is loaded.
    pub fn go(&mut self, url: &str) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        let gone = self.call("Page.navigate", json!({"url": url}));
        assert!(gone.get("errorText").is_none(), "{url}: {gone}");
        self.loaded();
    }

    /// Waits until the page that is being opened is loaded.
    pub fn loaded(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(at) = self.events.iter().position(|event| event["method"] == "Page.loadEventFired") {
                self.events.remove(at);
                return;
            }
            let message = self.message(deadline, "a page that loads");
            self.events.push_back(message);
        }
    }

    /// Evaluates an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression on the page is true.
    pub fn until(&mut self, what: &str, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.value(expression) != true {
            assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses a key, such as Tab or Enter.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            other => panic!("what is {other}?"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Clicks with the mouse on what an expression finds, where a person would see it.
    pub fn click(&mut self, what: &str, element: &str) {
        let place = format!(
            "(() => {{ const it = {element}; if (!it) return null; it.scrollIntoView({{block: 'center'}}); \
            const box = it.getClientRects()[0]; const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]; \
            const top = document.elementFromPoint(x, y); return it.contains(top) ? [x, y] : null; }})()"
        );
        let place = self.value(&place);
        let (Some(x), Some(y)) = (place[0].as_f64(), place[1].as_f64()) else {
            panic!("nothing to click on: {what}: {}", self.value("document.body.innerText"))
        };
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Sends a header with each request from now on.
    pub fn header(&mut self, name: &str, value: &str) {
        self.call("Network.setExtraHTTPHeaders", json!({"headers": {name: value}}));
    }

    /// Types a text into the focused element.
    pub fn types(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Sets the size of the window.
    pub fn size(&mut self, width: u32, height: u32) {
        let mobile = width < 600;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets the colour scheme that the system prefers.
    pub fn dark(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Enables or disables the scripts of pages.
    pub fn scripts(&mut self, may_run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !may_run}));
    }

    /// Saves a screenshot of the whole page to target/pictures.
    pub fn picture(&mut self, name: &str) {
        let metrics = self.call("Page.getLayoutMetrics", json!({}));
        let size = &metrics["cssContentSize"];
        let (width, height) = (size["width"].as_f64().unwrap(), size["height"].as_f64().unwrap().min(6000.0));
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let taken = self.call(
            "Page.captureScreenshot",
            json!({"format": "png", "clip": clip, "captureBeyondViewport": true}),
        );
        let folder = places::repository().join("target/pictures");
        std::fs::create_dir_all(&folder).unwrap();
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Complaints of the browser so far: errors, warnings, and violations of the content security
    /// policy.
    pub fn complaints(&mut self) -> Vec<String> {
        // All events from before this response have arrived by then.
        self.call("Runtime.evaluate", json!({"expression": "1"}));
        let said = |event: &Value| match event["method"].as_str()? {
            "Log.entryAdded" => {
                let entry = &event["params"]["entry"];
                let bad = ["error", "warning"].contains(&entry["level"].as_str()?);
                bad.then(|| format!("{}: {} {}", entry["source"], entry["text"], entry["url"]))
            }
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => {
                let bad = ["error", "warning", "assert"].contains(&event["params"]["type"].as_str()?);
                bad.then(|| event["params"]["args"].to_string())
            }
            _ => None,
        };
        self.events.iter().filter_map(said).collect()
    }

    /// Every address that was requested so far.
    pub fn asked(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
