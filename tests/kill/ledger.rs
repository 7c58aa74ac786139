//! The outside ledger: what was asked of the server, and what it said. An ask is written down before it is made.

use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, GameEvent, NewGameRequest, game_event::Kind};
use tonic::{Code, Status};

use crate::server::{Client, Table, by, reason};

/// Something that changes a game, by whom, with the request id that makes it safe to ask again.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Game(NewGameRequest),
    Move(String, pb::SubmitMoveRequest),
    Offer(String, pb::OfferDrawRequest),
    Answer(String, pb::AnswerDrawRequest),
    Leave(String, pb::LeaveGameRequest),
    Abort(String, pb::AbortGameRequest),
}

/// An acknowledgement: the change was made, and which event it is.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) sequence: u64,
    pub(crate) replayed: bool,
    pub(crate) answer: Answer,
}

/// What an acknowledgement says, but for whether it says so again.
#[expect(clippy::large_enum_variant, reason = "a test has some thousands of them")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The game's id, and the tokens of Red, Blue and the arbiter.
    Created([String; 4]),
    Judged(Verdict),
    Event(Box<GameEvent>),
}

/// What came of an ask.
#[expect(clippy::large_enum_variant, reason = "a test has some thousands of them")]
#[derive(Debug)]
pub(crate) enum Outcome {
    Told(Told),
    /// It was judged, and changed nothing.
    Refused(Status),
    /// No answer came: it may have been made or not.
    Doubt,
}

impl Answer {
    pub(crate) fn table(&self) -> Table {
        let Self::Created([id, red, blue, arbiter]) = self else { panic!("no game is created by {self:?}") };
        Table { id: id.clone(), red: red.clone(), blue: blue.clone(), arbiter: arbiter.clone() }
    }

    /// Whether this event is the one that was told of.
    pub(crate) fn is_of(&self, event: &GameEvent) -> bool {
        match (self, &event.kind) {
            (Self::Created(_), Some(Kind::Created(_))) => true,
            (Self::Event(told), _) => **told == *event,
            (Self::Judged(Verdict::Accepted(told)), Some(Kind::MoveMade(made))) => {
                let same = (&told.r#move, &told.charged, &told.clock) == (&made.r#move, &made.charged, &event.clock);
                same && told.position == event.position && told.outcome == event.outcome
            }
            (Self::Judged(Verdict::Refused(told)), Some(Kind::MoveRefused(made))) => {
                told.violation == made.violation && told.refusals == Some(made.refusals)
            }
            (_, _) => false,
        }
    }
}

impl Ask {
    /// Asks; what was asked must be something that a player may ask.
    pub(crate) async fn make(&self, client: &mut Client) -> Outcome {
        match self.send(client).await {
            Ok(told) => Outcome::Told(told),
            Err(status) => match (status.code(), reason(&status).as_str()) {
                (Code::FailedPrecondition | Code::Aborted, _) => Outcome::Refused(status),
                (Code::Unavailable | Code::DeadlineExceeded, _) => Outcome::Doubt,
                // A connection that broke.
                (Code::Unknown | Code::Cancelled | Code::Internal, "") => Outcome::Doubt,
                (_, _) => panic!("{self:?}: {status:?}"),
            },
        }
    }

    async fn send(&self, client: &mut Client) -> Result<Told, Status> {
        let event = |event: Option<GameEvent>, replayed| {
            let event = event.expect("an event");
            Told { sequence: event.sequence, replayed, answer: Answer::Event(Box::new(event)) }
        };
        Ok(match self.clone() {
            Self::Game(request) => {
                let made = client.new_game(request).await?.into_inner();
                let Table { id, red, blue, arbiter } = Table::of(&made);
                Told { sequence: 1, replayed: made.replayed, answer: Answer::Created([id, red, blue, arbiter]) }
            }
            Self::Move(token, request) => {
                let reply = client.submit_move(by(&token, request)).await?.into_inner();
                let verdict = reply.verdict.expect("a verdict");
                let sequence = match &verdict {
                    Verdict::Accepted(accepted) => accepted.sequence,
                    Verdict::Refused(refused) => refused.sequence,
                };
                Told { sequence, replayed: reply.replayed, answer: Answer::Judged(verdict) }
            }
            Self::Offer(token, request) => {
                let reply = client.offer_draw(by(&token, request)).await?.into_inner();
                event(reply.event, reply.replayed)
            }
            Self::Answer(token, request) => {
                let reply = client.answer_draw(by(&token, request)).await?.into_inner();
                event(reply.event, reply.replayed)
            }
            Self::Leave(token, request) => {
                let reply = client.leave_game(by(&token, request)).await?.into_inner();
                event(reply.event, reply.replayed)
            }
            Self::Abort(token, request) => {
                let reply = client.abort_game(by(&token, request)).await?.into_inner();
                event(reply.event, reply.replayed)
            }
        })
    }
}

/// Whether somebody's call caused an event: time and the server itself cause the others.
pub(crate) fn is_called_for(event: &GameEvent) -> bool {
    !matches!(event.kind, Some(Kind::Resumed(_) | Kind::TimeExpired(_)))
}
