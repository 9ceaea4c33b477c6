//! Names of the crate `moorline-test-support`, for tests that look for them in `support`.

pub(crate) use moorline_test_support::*;
