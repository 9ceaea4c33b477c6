//! What only a real API server can prove.
mod support;

use support::control_plane::shared;
use support::credentials::ADMIN;

#[tokio::test]
async fn the_api_server_answers_with_its_version() {
    let Some(plane) = shared() else { return };
    let version = plane.client(ADMIN).await.apiserver_version().await.expect("/version");
    assert_eq!(version.git_version, "v1.36.3");
}
