//! Connections and one request on one of them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::net::TcpStream;

use super::completion::{self, Completion};
use super::endpoint::Endpoint;
use super::failure::{Cause, RequestFailure};
use super::sse::{MAX_EVENT_BYTES, SseParser};
use super::stamped::{Stamped, Stamps};
use crate::clock::Clock;

/// Most bytes that are read of an answer that is not 2xx.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Model's name at the server.
    pub model: &'a str,
    /// The prompt.
    pub prompt: &'a str,
    /// Most output tokens.
    pub output_tokens: u32,
    /// Whether the answer comes in pieces.
    pub stream: bool,
}

/// Times of a request as they become known, in nanoseconds on the run's clock.
pub trait Marks {
    /// The last byte of the request was given to the socket.
    fn sent(&mut self, t_ns: u64);
    /// A piece with text was read from the socket.
    fn chunk(&mut self, t_ns: u64);
}

/// A successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Prompt tokens by the server's count.
    pub prompt_tokens: Option<u32>,
    /// Output tokens: the server's count, else one for each piece with text.
    pub output_tokens: u32,
    /// Whether the server counted.
    pub counted_by_server: bool,
    /// When the last byte of the answer was read.
    pub last_ns: u64,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    stamps: Rc<Stamps>,
}

/// A client of one endpoint, for one thread. Connections are kept and used again, the last one first.
pub struct Client {
    endpoint: Endpoint,
    clock: Clock,
    authorization: Option<HeaderValue>,
    extra: Map<String, Value>,
    timeout: Duration,
    idle: RefCell<Vec<Connection>>,
}

impl Client {
    /// A client that adds `extra` to each body and gives a request up after `timeout`.
    pub fn new(endpoint: Endpoint, clock: Clock, (extra, timeout): (Map<String, Value>, Duration)) -> Self {
        Self {
            endpoint,
            clock,
            authorization: None,
            extra,
            timeout,
            idle: RefCell::default(),
        }
    }

    /// Sends a key with each request. Returns `false` where it holds bytes that no header can.
    pub fn set_key(&mut self, key: &str) -> bool {
        let header = HeaderValue::from_str(&format!("Bearer {key}"));
        self.authorization = header.ok().map(|mut header| {
            header.set_sensitive(true);
            header
        });
        self.authorization.is_some()
    }

    /// Sends a request and reads its answer to the end. Nothing is tried twice.
    ///
    /// # Errors
    /// Whatever is short of success: a status of 2xx, a complete answer with at least one token, nothing malformed and no
    /// error reported inside it.
    pub async fn complete(&self, call: Call<'_>, marks: &mut dyn Marks) -> Result<Answer, RequestFailure> {
        match tokio::time::timeout(self.timeout, self.exchange(call, marks)).await {
            Ok(ended) => ended,
            Err(_) => Err(RequestFailure::new(
                Cause::Timeout,
                format_args!("no complete answer in {} s", self.timeout.as_secs_f64()),
            )),
        }
    }

    async fn exchange(&self, call: Call<'_>, marks: &mut dyn Marks) -> Result<Answer, RequestFailure> {
        let request = self.request(&call)?;
        let mut connection = self.connection().await?;
        let broken = |error: hyper::Error| RequestFailure::new(Cause::Broken, chain(&error));
        connection.sender.ready().await.map_err(broken)?;
        let response = connection.sender.send_request(request).await.map_err(broken)?;
        marks.sent(connection.stamps.written_ns.get());
        let response = accept(response, call.stream).await?;
        let completion = read(response.into_body(), (call.stream, &connection.stamps), marks).await?;
        let last_ns = connection.stamps.read_ns.get();
        if !connection.sender.is_closed() {
            self.idle.borrow_mut().push(connection);
        }
        completion.end()?;
        let usage = completion.usage.filter(|usage| usage.completion_tokens > 0);
        Ok(Answer {
            prompt_tokens: completion.usage.map(|usage| usage.prompt_tokens),
            output_tokens: usage.map_or(completion.chunks, |usage| usage.completion_tokens),
            counted_by_server: usage.is_some(),
            last_ns,
        })
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Full<Bytes>>, RequestFailure> {
        let body = completion::body(&self.endpoint.path, call, &self.extra);
        let accepted = if call.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let mut request = Request::post(&self.endpoint.path)
            .header(HOST, &self.endpoint.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, accepted)
            .header(ACCEPT_ENCODING, "identity");
        if let Some(key) = &self.authorization {
            request = request.header(AUTHORIZATION, key);
        }
        let malformed = |error| RequestFailure::new(Cause::Malformed, error);
        request.body(Full::new(Bytes::from(body))).map_err(malformed)
    }

    /// An idle connection that the server has not closed, or a new one.
    async fn connection(&self) -> Result<Connection, RequestFailure> {
        while let Some(connection) = { self.idle.borrow_mut().pop() } {
            if !connection.sender.is_closed() {
                return Ok(connection);
            }
        }
        let Endpoint { host, port, .. } = &self.endpoint;
        let failed = |error: &dyn std::error::Error| {
            RequestFailure::new(Cause::Connect, format_args!("{host}:{port}: {}", chain(error)))
        };
        let socket = TcpStream::connect((host.as_str(), *port))
            .await
            .map_err(|error| failed(&error))?;
        socket.set_nodelay(true).map_err(|error| failed(&error))?;
        let (socket, stamps) = Stamped::new(socket, self.clock.clone());
        let (sender, driver) = handshake(TokioIo::new(socket))
            .await
            .map_err(|error| failed(&error))?;
        // Its failure is told to the request that is on it.
        tokio::task::spawn_local(async move {
            let _ = driver.await;
        });
        Ok(Connection { sender, stamps })
    }
}

/// Refuses an answer by its head.
async fn accept(response: Response<Incoming>, stream: bool) -> Result<Response<Incoming>, RequestFailure> {
    let status = response.status();
    if !status.is_success() {
        let body = Limited::new(response.into_body(), MAX_REFUSAL_BYTES)
            .collect()
            .await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        return Err(RequestFailure::new(
            Cause::Status(status.as_u16()),
            completion::excerpt(&body),
        ));
    }
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    let (kind, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
    let wanted = if stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    if !kind.starts_with(wanted) || !matches!(encoding, "" | "identity") {
        let text = format!("the answer is {kind:?} {encoding}, not {wanted}");
        return Err(RequestFailure::new(Cause::ContentType, text.trim_end()));
    }
    Ok(response)
}

async fn read(
    mut body: Incoming,
    (stream, stamps): (bool, &Stamps),
    marks: &mut dyn Marks,
) -> Result<Completion, RequestFailure> {
    let mut completion = Completion::default();
    if !stream {
        let whole = Limited::new(body, MAX_EVENT_BYTES).collect().await;
        let whole = whole.map_err(|error| RequestFailure::new(Cause::Broken, error))?;
        completion.take(&whole.to_bytes())?;
        return Ok(completion);
    }
    let mut parser = SseParser::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RequestFailure::new(Cause::Broken, chain(&error)))?;
        let Some(bytes) = frame.data_ref() else { continue };
        let t_ns = stamps.read_ns.get();
        let mut taken = Ok(());
        let each = |event: super::SseEvent| {
            if taken.is_ok() {
                taken = completion.take(&event.data).map(|text| {
                    if text {
                        marks.chunk(t_ns)
                    }
                });
            }
        };
        let fed = parser.feed(bytes, each);
        fed.map_err(|error| RequestFailure::new(Cause::Malformed, error))?;
        taken?;
    }
    Ok(completion)
}

/// An error with its causes: hyper's own texts say little without them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}
