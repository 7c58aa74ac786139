//! The bare echo: what an empty call costs, on the same tonic, with the same settings of its server. It reads
//! the same bytes, keeps nothing, and answers as many bytes as it is asked for in the path. It also streams.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::future::{BoxFuture, Ready, ready};
use futures_util::stream;
use jungle_referee::config::Config;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::cpu::be_led;
use crate::fill::config;

/// The method that answers so many bytes.
pub(crate) fn method(size: usize) -> String {
    format!("/bench.Echo/{size}")
}

/// The method that streams what is published.
pub(crate) const WATCH: &str = "/bench.Echo/Watch";

/// The largest answer.
const LARGEST: usize = 1 << 16;
static ZEROS: [u8; LARGEST] = [0; LARGEST];

/// A message that is its first field, as bytes; others are skipped.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Canned {
    #[prost(bytes = "bytes", tag = "1")]
    first: Bytes,
}

impl Canned {
    /// The message of this size in all, or of a byte less where its length will have it so.
    fn of(size: usize) -> Self {
        let payload = match size {
            0..2 => 0,
            2..130 => size - 2,
            130..16_387 => size - 3,
            _ => size - 4,
        };
        Self { first: Bytes::from_static(&ZEROS[..payload]) }
    }
}

/// What tells the watchers of each topic.
type Topics = Arc<Mutex<HashMap<String, broadcast::Sender<Canned>>>>;

/// Serves until standard input ends.
pub(crate) async fn serve(flags: &[String]) {
    let config = config(flags);
    let listener = TcpListener::bind(config.listen).await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let topics = Topics::default();
    let server = server(config, Echo { topics: Arc::clone(&topics) }, listener);
    tokio::spawn(server);
    be_led(&address, async |words| match words {
        ["publish", size] => publish(&topics, size.parse().expect("a size")),
        _ => panic!("told {words:?}"),
    })
    .await;
}

/// Publishes one message on each topic.
fn publish(topics: &Topics, size: usize) -> String {
    let topics = topics.lock().expect("nothing panics under it");
    for topic in topics.values() {
        topic.send(Canned::of(size)).expect("somebody watches");
    }
    "done".to_owned()
}

/// The server with the settings of the referee's.
async fn server(config: Config, echo: Echo, listener: TcpListener) {
    let mut builder = Server::builder()
        .timeout(config.call_timeout)
        .max_concurrent_streams(config.max_streams_per_connection)
        .http2_keepalive_interval(Some(config.keepalive_interval))
        .http2_keepalive_timeout(Some(config.keepalive_timeout))
        .http2_max_header_list_size(16 * 1_024)
        .http2_max_local_error_reset_streams(Some(1_024))
        .http2_max_pending_accept_reset_streams(usize::try_from(config.max_streams_per_connection).ok());
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    builder.add_service(echo).serve_with_incoming(incoming).await.expect("it serves");
}

/// The service.
#[derive(Clone)]
struct Echo {
    topics: Topics,
}

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let topics = Arc::clone(&self.topics);
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Canned, Canned>::default());
            let method = request.uri().path().rsplit('/').next().unwrap_or_default();
            Ok(match method.parse() {
                Ok(size) => grpc.unary(Sized(size), request).await,
                Err(_) => grpc.server_streaming(Watched(topics), request).await,
            })
        })
    }
}

/// Answers with a message of this size.
struct Sized(usize);

impl UnaryService<Canned> for Sized {
    type Response = Canned;
    type Future = Ready<Result<Response<Canned>, Status>>;

    fn call(&mut self, _: Request<Canned>) -> Self::Future {
        ready(Ok(Response::new(Canned::of(self.0))))
    }
}

/// Answers with what is published on the topic that the request names.
struct Watched(Topics);

impl ServerStreamingService<Canned> for Watched {
    type Response = Canned;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<Canned, Status>> + Send>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Canned>) -> Self::Future {
        let topic = String::from_utf8(request.into_inner().first.to_vec()).expect("a game's id");
        let mut topics = self.0.lock().expect("nothing panics under it");
        let news = topics.entry(topic).or_insert_with(|| broadcast::Sender::new(16)).subscribe();
        // The first message says that the watch has begun, as a snapshot does.
        let told = stream::unfold((news, true), |(mut news, first)| async move {
            let message =
                if first { Ok(Canned::of(2)) } else { news.recv().await.map_err(|_| Status::data_loss("slow")) };
            Some((message, (news, false)))
        });
        ready(Ok(Response::new(Box::pin(told))))
    }
}
