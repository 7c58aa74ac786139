//! The numbers of the metrics page: what each is called, what it means, and its labels. They are kept by
//! the runtime and the service; here they are only read, when somebody asks for the page.
//!
//! No label is an id or a secret, and each has its closed list of values.

use std::fmt::{self, Error};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry as Page;

use crate::game::Status;
use crate::rules::{Reason, Rule};
use crate::runtime::gauges::Histogram;
use crate::runtime::{Gauges, Load, Registry};
use crate::service::tally::{CALLS, Closed, Tally};

/// What the page is, as its header says.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What every name begins with.
const PREFIX: &str = "jungle";

/// How many of the unit that is counted in go to the one that is told.
const MICROSECONDS: f64 = 1e6;
const EVENTS: f64 = 1.0;

/// A value with its labels.
type Sample<const N: usize> = ([(&'static str, &'static str); N], u64);

/// The metrics page.
#[derive(Debug)]
pub struct Metrics(Page);

impl Metrics {
    /// The page of these games, and of the calls and connections that are counted here.
    #[must_use]
    pub fn new(registry: &Registry, tally: &Arc<Tally>) -> Self {
        let mut page = Page::with_prefix(PREFIX);
        page.register_collector(Box::new(Numbers {
            gauges: Arc::clone(registry.gauges()),
            load: Arc::clone(registry.load()),
            tally: Arc::clone(tally),
        }));
        Self(page)
    }

    /// The page as text, as of now.
    ///
    /// # Errors
    /// If it cannot be written, which does not happen to a text in memory.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.0)?;
        Ok(text)
    }
}

/// Where the numbers are read.
struct Numbers {
    gauges: Arc<Gauges>,
    load: Arc<Load>,
    tally: Arc<Tally>,
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers(..)")
    }
}

impl Collector for Numbers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut writer = Writer(encoder);
        self.games(&mut writer)?;
        self.moves(&mut writer)?;
        self.watches(&mut writer)?;
        self.calls(&mut writer)?;
        self.connections(&mut writer)
    }
}

impl Numbers {
    fn games(&self, page: &mut Writer<'_>) -> Result<(), Error> {
        page.gauge("build_info", "The version that runs; always 1", [([("version", env!("CARGO_PKG_VERSION"))], 1)])?;
        let statuses = [(Status::Waiting, "waiting"), (Status::Running, "running"), (Status::Ended, "ended")];
        let games = statuses.map(|(status, name)| ([("status", name)], self.gauges.games[status as usize].read()));
        page.gauge("games", "Games that are kept now", games)?;
        page.counter("games_created", "Games that were created", [([], self.gauges.created.read())])?;
        let endings = Reason::ALL.iter().zip(&self.gauges.endings);
        let endings = endings.map(|(reason, count)| ([("reason", reason.id())], count.read()));
        page.counter("games_ended", "Games that ended", endings)?;
        let help = "From a clock's end to the moment its flag was written";
        page.histogram("flag_lateness_seconds", help, &self.gauges.flag_lateness, MICROSECONDS)
    }

    fn moves(&self, page: &mut Writer<'_>) -> Result<(), Error> {
        let refused = Rule::ALL.iter().zip(&self.gauges.refused);
        let refused = refused.map(|(rule, count)| ([("rule", rule.id())], count.read()));
        let accepted = ([("rule", "ACCEPTED")], self.gauges.accepted.read());
        page.counter("verdicts", "Moves that were judged", [accepted].into_iter().chain(refused))?;
        let help = "From a command's arrival to its judgement";
        page.histogram("queue_delay_seconds", help, &self.gauges.queue_delay, MICROSECONDS)?;
        let help = "From a judgement to the moment the log had its event";
        page.histogram("append_latency_seconds", help, &self.gauges.append_latency, MICROSECONDS)?;
        let faults = [
            ([("fault", "failed")], self.gauges.appends_failed.read()),
            ([("fault", "conflict")], self.gauges.appends_in_conflict.read()),
            ([("fault", "unknown")], self.gauges.appends_unknown.read()),
        ];
        page.counter("append_faults", "Events that the log did not take as it was asked to", faults)?;
        page.counter("replays", "Calls that repeated an earlier request", [([], self.gauges.replays.read())])
    }

    fn watches(&self, page: &mut Writer<'_>) -> Result<(), Error> {
        page.gauge("watches", "Watches that are open now", [([], self.gauges.watches.read())])?;
        let help = "Events that a watch still had before it when it was told one";
        page.histogram("watch_lag_events", help, &self.gauges.watch_lag, EVENTS)
    }

    fn calls(&self, page: &mut Writer<'_>) -> Result<(), Error> {
        let calls = CALLS.iter().chain(&["other"]).zip(&self.tally.calls);
        let calls = calls.map(|(call, count)| ([("call", *call)], count.read()));
        page.counter("calls", "Calls that came", calls)?;
        let under_way = u64::try_from(self.load.calls()).unwrap_or(u64::MAX);
        page.gauge("calls_under_way", "Calls that wait for their answer now", [([], under_way)])?;
        let help = "Calls that ended before their answer";
        page.counter("calls_abandoned", help, [([], self.tally.abandoned.read())])?;
        let errors = self.tally.errors().map(|(code, reason, many)| ([("code", code), ("reason", reason)], many));
        page.counter("errors", "Calls and streams that ended with an error", errors)
    }

    fn connections(&self, page: &mut Writer<'_>) -> Result<(), Error> {
        let tally = &self.tally;
        page.gauge("connections", "Connections that are open now", [([], tally.open.read())])?;
        page.counter("connections_opened", "Connections that were taken", [([], tally.opened.read())])?;
        let closed = Closed::ALL.iter().zip(&tally.closed);
        let closed = closed.map(|(reason, count)| ([("reason", reason.id())], count.read()));
        page.counter("connections_closed", "Connections that ended", closed)?;
        let refused = [([("reason", "surplus")], tally.surplus.read()), ([("reason", "fault")], tally.untaken.read())];
        page.counter("connections_refused", "Connections that were not taken", refused)
    }
}

/// Writes numbers on the page.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn counter<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<N>>,
    ) -> Result<(), Error> {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            if N == 0 {
                family.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
            } else {
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
            }
        }
        Ok(())
    }

    fn gauge<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<N>>,
    ) -> Result<(), Error> {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            if N == 0 {
                family.encode_gauge(&value)?;
            } else {
                family.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    /// A histogram whose sizes are told in a unit that is so many of those they are counted in.
    #[expect(clippy::cast_precision_loss, reason = "a page of floating-point numbers")]
    fn histogram(&mut self, name: &str, help: &str, sizes: &Histogram, unit: f64) -> Result<(), Error> {
        let bound = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| bound as f64 / unit);
        let buckets: Vec<(f64, u64)> = sizes.buckets().map(|(upper, many)| (bound(upper), many)).collect();
        // Of one reading: a count apart could be of a later moment than the buckets.
        let count = buckets.iter().map(|(_, many)| many).sum();
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(sizes.sum() as f64 / unit, count, &buckets, None)
    }
}
