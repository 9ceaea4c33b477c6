//! A silent server costs no threads. Alone in its process, because it counts them.

use std::fs;
use std::time::{Duration, Instant};

use moorline_git::{Address, Credentials, Reference, Repositories};

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

/// The number of threads of this process.
fn threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_silent_server_costs_no_threads() {
    // A socket that accepts (the kernel does) and never says anything, without a thread of the
    // test.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://127.0.0.1:{}/a.git", silent.local_addr().unwrap().port());
    let root = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(Duration::from_millis(100))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let all = Repositories::new(root.path(), None, moorline_git::HostPolicy::allow_all()).unwrap();
        let repository =
            all.repository(&Address::remote(&url).unwrap(), "", &Credentials::default()).unwrap();
        let poll = async |milliseconds| {
            let error = repository.resolve(&Reference::Head, within(milliseconds)).await.unwrap_err();
            assert_eq!(error.reason(), "RepositoryTimeout");
        };
        poll(50).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        let before = threads();
        for _ in 0..50 {
            poll(20).await;
            // One at work, and perhaps one that has just finished and is not yet known to be idle.
            assert!(threads() <= before + 2, "{} threads, {before} before", threads());
        }
        // Fifty at once, given up long before the server's own deadline.
        let asking: Vec<_> = (0..50)
            .map(|_| {
                let repository = repository.clone();
                tokio::spawn(
                    async move { repository.resolve(&Reference::Head, within(1000)).await.unwrap_err() },
                )
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(threads() <= before + 1, "{} threads, {before} before", threads());
        for one in asking {
            assert_eq!(one.await.unwrap().reason(), "RepositoryTimeout");
        }
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(threads(), before);
    });
}
