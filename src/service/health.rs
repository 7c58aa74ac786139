//! The health service: `grpc.health.v1`, as tonic has it, but for the end of its watches.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::stream::{self, StreamExt as _};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::{HealthReporter, HealthService};

/// What the reporter says, served. This server stops serving only when it stops: a watch that has told
/// so ends, else every client that watches its health would hold the server back for the whole grace period.
#[must_use]
pub fn health_service(reporter: &HealthReporter) -> HealthServer<impl Health> {
    HealthServer::new(EndingHealth(HealthService::from_health_reporter(reporter.clone())))
}

struct EndingHealth(HealthService);

#[tonic::async_trait]
impl Health for EndingHealth {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.0.check(request).await
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let statuses = self.0.watch(request).await?.into_inner();
        let told = stream::unfold(Some(statuses), |statuses| async move {
            let mut statuses = statuses?;
            let status = statuses.next().await?;
            let serves = matches!(&status, Ok(status) if status.status() == ServingStatus::Serving);
            Some((status, serves.then_some(statuses)))
        });
        Ok(Response::new(Box::pin(told)))
    }
}
