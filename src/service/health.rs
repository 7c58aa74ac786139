//! The health service: `grpc.health.v1`, as tonic has it, but for the end of its watches.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::{HealthReporter, HealthService};

/// What the reporter says, served. Once the server stops, a watch that has told so ends, else every client
/// that watches its health would hold the server back for the whole grace period.
#[must_use]
pub fn health_service(reporter: &HealthReporter, stopping: watch::Receiver<bool>) -> HealthServer<impl Health> {
    HealthServer::new(EndingHealth { service: HealthService::from_health_reporter(reporter.clone()), stopping })
}

struct EndingHealth {
    service: HealthService,
    stopping: watch::Receiver<bool>,
}

#[tonic::async_trait]
impl Health for EndingHealth {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.service.check(request).await
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let statuses = self.service.watch(request).await?.into_inner();
        let told = stream::unfold(Some((statuses, self.stopping.clone())), |going_on| async move {
            let (mut statuses, mut stopping) = going_on?;
            let status = tokio::select! {
                biased;
                // Without its sender the server is at its end.
                _ = stopping.wait_for(|stopping| *stopping) => None,
                status = statuses.next() => Some(status?),
            };
            Some(match status {
                Some(status) => (status, Some((statuses, stopping))),
                None => (Ok(HealthCheckResponse { status: ServingStatus::NotServing.into() }), None),
            })
        });
        Ok(Response::new(Box::pin(told)))
    }
}
