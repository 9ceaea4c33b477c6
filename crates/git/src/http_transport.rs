//! Transport over http(s): requests are independent, and redirects stay with the host.
//!
//! In: an address with credentials, and requests.
//! Out: capabilities and responses, or an error for another status or a web page.

use std::io::Read;
use std::time::Instant;

use super::address::HttpAddress;
use super::credentials::Credentials;
use super::error::Error;
use super::http::{HttpClient, HttpResponse, SharedNetwork, fault};
use super::revision::AdvertisedRef;
use super::transport::{MAX_LISTING_BYTES, ResponseLines, Transport};
use crate::pkt_line::PktLineReader;
use crate::upload_pack;
use crate::upload_pack::ServerCapabilities;

/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 4;

const INFO_REFS: &str = "/info/refs";

/// Transport to a repository over http(s).
#[derive(Debug)]
pub(super) struct HttpTransport {
    client: HttpClient,
    written: HttpAddress,
    /// Final address after redirects.
    found: Option<HttpAddress>,
}

impl HttpTransport {
    pub(super) fn new(
        address: &HttpAddress,
        credentials: &Credentials,
        network: &SharedNetwork,
    ) -> Result<Self, Error> {
        let client = HttpClient::new(&address.host, credentials, network)?;
        Ok(Self { client, written: address.clone(), found: None })
    }
}

impl Transport for HttpTransport {
    fn server(&self) -> String {
        self.found.as_ref().unwrap_or(&self.written).server()
    }

    fn is_ready(&self) -> bool {
        self.found.is_some()
    }

    /// Requests the capabilities, following redirects.
    fn greet(&mut self, by: Instant) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), Error> {
        self.found = None;
        let mut address = self.written.clone();
        for _ in 0..=MAX_REDIRECTS {
            let query = format!("{INFO_REFS}?service=git-upload-pack");
            let answer = self.client.get(&address, &query, by)?;
            if (300..400).contains(&answer.status) {
                let refused = || Error::Redirect { server: address.server().into() };
                let location = answer.location.ok_or_else(refused)?;
                address = address.redirected(&location, INFO_REFS).ok_or_else(refused)?;
                continue;
            }
            let server = address.server();
            let answer = accepted(&address, answer)?;
            if !answer.content_type.starts_with("application/x-git-upload-pack-advertisement") {
                let what = "it sends something else than Git's listing (a web page, perhaps)";
                return Err(Error::InvalidResponse { server: server.into(), what });
            }
            let mut packets = PktLineReader::new(answer.body, MAX_LISTING_BYTES);
            let found = upload_pack::greeting(&mut packets);
            let found = found.map_err(|error| fault(&server, "bytes of refs", error))?;
            self.found = Some(address);
            return Ok(found);
        }
        Err(Error::Redirect { server: address.server().into() })
    }

    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<ResponseLines<'_>, Error> {
        let address = self.found.as_ref().unwrap_or(&self.written);
        let answer = accepted(address, self.client.post(address, &request, by)?)?;
        if !answer.content_type.starts_with("application/x-git-upload-pack-result") {
            let what = "it sends something else than Git's answer (a web page, perhaps)";
            return Err(Error::InvalidResponse { server: address.server().into(), what });
        }
        Ok(PktLineReader::new(answer.body as Box<dyn Read>, limit))
    }

    fn end(&mut self) {}
}

/// Returns the response, if its status is 200.
fn accepted(address: &HttpAddress, answer: HttpResponse) -> Result<HttpResponse, Error> {
    let server: Box<str> = address.server().into();
    match answer.status {
        200 => Ok(answer),
        status @ (401 | 403 | 407) => Err(Error::Denied { server, status }),
        404 | 410 => Err(Error::NoRepository { server, path: address.path.clone() }),
        300..=399 => Err(Error::Redirect { server }),
        status => Err(Error::Status { server, status }),
    }
}
