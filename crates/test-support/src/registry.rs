//! Registry of images and charts on loopback, in the memory of a process.

use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::programs::{command, find};

/// Time until the registry answers.
const START: Duration = Duration::from_secs(60);

/// Registry that ends with the test.
pub struct Registry {
    /// Host and port.
    pub address: String,
    process: Child,
}

impl Registry {
    /// Starts a registry; none where there is no crane.
    pub fn start() -> Option<Self> {
        let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.expect("a free port").to_string();
        let mut serve = command(&find("crane")?);
        serve.args(["registry", "serve", "--address", &address]).stdout(Stdio::null()).stderr(Stdio::null());
        let registry = Self { process: serve.spawn().expect("crane starts"), address };
        let end = Instant::now() + START;
        while TcpStream::connect(&registry.address).is_err() {
            assert!(Instant::now() < end, "the registry does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(registry)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
