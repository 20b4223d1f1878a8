//! Requests to the authority, by what the server asks others with anyway.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use ureq::Agent;
use ureq::http::{Request, Response};

/// An answer takes so long at most, and has so many bytes.
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_BYTES: u64 = 1 << 20;

/// What asks: by TLS alone, and trusting whom this computer trusts.
pub(super) struct Client(Agent);

impl Client {
    pub(super) fn new() -> Self {
        let config = Agent::config_builder().tls_config(crate::notices::trust()).max_redirects(0);
        let config = config.https_only(true).http_status_as_error(false);
        Self(config.timeout_global(Some(PATIENCE)).build().into())
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

impl HttpClient for Client {
    fn request(&self, request: Request<BodyWrapper<Bytes>>) -> Answer {
        let agent = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let answered = tokio::task::spawn_blocking(move || {
                let answer = match body.is_empty() {
                    true => agent.run(Request::from_parts(head, ()))?,
                    false => agent.run(Request::from_parts(head, &body[..]))?,
                };
                let (head, mut body) = answer.into_parts();
                let bytes = body.with_config().limit(MOST_BYTES).read_to_vec()?;
                Ok::<_, ureq::Error>(Response::from_parts(head, Full::new(Bytes::from(bytes))))
            });
            match answered.await {
                Ok(Ok(answer)) => Ok(answer.into()),
                Ok(Err(error)) => Err(Error::Other(Box::new(error))),
                Err(error) => Err(Error::Other(Box::new(error))),
            }
        })
    }
}
