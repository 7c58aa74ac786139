//! The metrics page: `GET /metrics` over HTTP/1.1, at an address of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tracing::{debug, info};

use crate::telemetry::metrics::{CONTENT_TYPE, Metrics};

/// How many may read the page at once; more wait.
const READERS: usize = 8;

/// How long one may take to ask for the page and to read it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after an error the next connection is taken.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Serves the page for as long as it is polled.
pub(super) async fn serve(listener: TcpListener, metrics: Metrics) {
    if let Ok(address) = listener.local_addr() {
        info!(%address, "the metrics page is served");
    }
    let (metrics, places) = (Arc::new(metrics), Arc::new(Semaphore::new(READERS)));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "a reader of the metrics page could not be taken");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let page = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request, &metrics))));
            let reading = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), page);
            // Who reads no page in time, or breaks off, may ask again.
            let _ = tokio::time::timeout(PATIENCE, reading).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<String> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match metrics.text() {
            Ok(text) => (StatusCode::OK, text),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        },
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "GET only\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "the page is /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(CONTENT_TYPE));
    response
}
