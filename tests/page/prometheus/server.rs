//! A real Prometheus on the loopback, which asks a daemon every second.
//!
//! In: the program, a daemon's address, alerts. Out: what it answers to queries.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::programs::command;
use moorline_test_support::reaper::Reaper;
use moorline_test_support::running::Running;

/// A running Prometheus; killed when it is dropped.
pub(crate) struct Prometheus {
    running: Running,
    address: String,
}

impl Prometheus {
    /// Starts it in a folder of its own; `rules` is a file of alerts.
    pub(crate) async fn start(
        program: &Path,
        reaper: &Arc<Reaper>,
        folder: &Path,
        target: &str,
        rules: &str,
    ) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "moorline", "static_configs": [{"targets": [target]}]}],
        });
        std::fs::write(folder.join("prometheus.yaml"), config.to_string()).unwrap();
        std::fs::write(folder.join("rules.yaml"), rules).unwrap();
        let mut program = command(program);
        program
            .current_dir(folder)
            .args(["--config.file=prometheus.yaml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0");
        let running = Running::start(&mut program, &folder.join("prometheus.log"), reaper);
        let mut server = Self { running, address: String::new() };
        server.address = until("Prometheus listens", async || server.listens()).await;
        server
    }

    /// Returns the address on which it listens, as its log says.
    fn listens(&self) -> Option<String> {
        let log = self.running.log();
        let line = log.lines().find(|line| line.contains("\"Listening on\""))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("address=")).map(str::to_owned)
    }

    /// The answer of its API: the data, or the whole answer where there is none.
    pub(crate) fn ask(&self, path: &str) -> Result<Value, String> {
        let answer = self.get(&format!("/api/v1/{path}")).map_err(|error| error.to_string())?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let body: Value = serde_json::from_str(body).map_err(|error| format!("{error}: {answer}"))?;
        match &body["status"] {
            Value::String(status) if status == "success" => Ok(body["data"].clone()),
            _ => Err(body.to_string()),
        }
    }

    /// By the old protocol, whose answers come in one piece.
    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The series of a query now, each as labels and value.
    pub(crate) fn query(&self, expression: &str) -> Result<Vec<(Value, f64)>, String> {
        let escaped: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.ask(&format!("query?query={escaped}"))?;
        let series = data["result"].as_array().ok_or_else(|| data.to_string())?;
        let one = |series: &Value| {
            let value = series["value"][1].as_str()?.parse().ok()?;
            Some((series["metric"].clone(), value))
        };
        Ok(series.iter().filter_map(one).collect())
    }

    /// The value of a query for one series; 0 where there is none.
    pub(crate) fn value(&self, expression: &str) -> f64 {
        self.query(expression).ok().and_then(|series| series.first().map(|(_, value)| *value)).unwrap_or(0.0)
    }

    /// The alerts of this name that fire.
    pub(crate) fn firing(&self, name: &str) -> Vec<Value> {
        let data = self.ask("alerts").unwrap();
        let alerts = data["alerts"].as_array().unwrap();
        let fires = |alert: &&Value| alert["labels"]["alertname"] == name && alert["state"] == "firing";
        alerts.iter().filter(fires).cloned().collect()
    }
}
