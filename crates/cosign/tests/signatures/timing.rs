//! The time of a verification.

use std::time::{Duration, Instant};

use crate::vectors::vector;

/// Longest time for a signature by a key.
const MAX_TIME: Duration = Duration::from_millis(2);
const RUNS: u32 = 50;

#[test]
fn a_signature_by_a_key_is_verified_in_two_milliseconds() {
    let best = |name: &str| {
        let vector = vector(name);
        let (artifact, documents, policy) = (vector.artifact(), vector.documents(), vector.policy());
        let run = |_| {
            let start = Instant::now();
            assert!(moorline_cosign::verify(&artifact, &documents, &policy, vector.now()).is_ok());
            start.elapsed()
        };
        let best = (0..RUNS).map(run).min().unwrap();
        println!("{name}: {best:?}");
        best
    };
    for name in ["key-cosign3-p256", "key-cosign3-p384", "key-cosign3-rsa", "key-cosign2-p256"] {
        assert!(best(name) < MAX_TIME, "{name}");
    }
    best("keyless-dsse");
}
