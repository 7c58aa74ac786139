//! The calls of `RefereeService`: who asks, what is asked, and the answer.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::stream;
use prost::Message;
use tonic::{Extensions, Request, Response, Status};
use tracing::{debug, info};

use super::caller::{ConnectionInfo, Identity, Keys, WatchPlace, Watches};
use super::proto as pb;
use super::tally::Tally;
use super::{decode, encode, status};
use crate::game::{Caller, Command, Kind, Refusal};
use crate::rules::{Line, PRESETS, Side, Square};
use crate::runtime::call::{Call, of_call};
use crate::runtime::feed::WatchOptions;
use crate::runtime::slot::Reply;
use crate::runtime::{Answer, Fault, GameId, Registry, Seat, Slot, Told, View, Watch};

/// The limits that the service itself keeps.
#[derive(Clone, Copy, Debug)]
pub struct ServiceLimits {
    /// How many watches the server may have open, those of the games' seats apart.
    pub watches: usize,
    /// How many watches one connection may have open.
    pub watches_a_connection: usize,
}

/// The referee as tonic serves it.
pub struct Referee {
    registry: Arc<Registry>,
    keys: Keys,
    limits: ServiceLimits,
    tally: Arc<Tally>,
    /// The watches of those who have no seat.
    spectators: Watches,
}

/// Who a caller is to the game it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Spectator,
    Creator,
    Holder(Seat),
}

impl Role {
    /// The player's side, which any call with its token shows.
    fn side(self) -> Option<Side> {
        match self {
            Self::Holder(Seat::Player(side)) => Some(side),
            Self::Holder(Seat::Arbiter) | Self::Creator | Self::Spectator => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Spectator => "a caller without a token",
            Self::Creator => "the creator",
            Self::Holder(Seat::Arbiter) => "the arbiter",
            Self::Holder(Seat::Player(Side::Red)) => "red's seat",
            Self::Holder(Seat::Player(Side::Blue)) => "blue's seat",
        }
    }
}

/// A game, found for a caller who may see it.
struct Found {
    id: GameId,
    slot: Arc<Slot>,
    role: Role,
}

impl Found {
    /// The seat that a player's call needs.
    fn player(&self) -> Result<Side, Status> {
        match self.role {
            Role::Spectator => Err(status::token_missing()),
            Role::Creator | Role::Holder(_) => {
                self.role.side().ok_or_else(|| status::not_allowed(self.role.name(), "a seat's token"))
            }
        }
    }

    /// Has the command judged that a seat's call makes, which answers with the event it causes.
    async fn tell_of_seat(
        &self,
        method: &str,
        request_id: Option<u128>,
        body: &impl Message,
        command: impl FnOnce(Side) -> Command,
    ) -> Result<(pb::GameEvent, bool), Status> {
        let side = self.player()?;
        let request = decode::request(Caller::Seat(side), method, request_id, body);
        self.tell(command(side), request).await
    }

    /// Has a command judged, which answers with the event it causes.
    async fn tell(
        &self,
        command: Command,
        request: Option<crate::game::Request>,
    ) -> Result<(pb::GameEvent, bool), Status> {
        let reply = self.slot.ask(self.role.side(), command, request).await;
        let answer = reply.map_err(|fault| status::fault(self.id, &fault))?;
        Ok((encode::event(&answer.record, &answer.game), answer.replayed))
    }
}

impl Referee {
    /// The referee over these games.
    #[must_use]
    pub fn new(registry: Arc<Registry>, keys: Keys, limits: ServiceLimits, tally: Arc<Tally>) -> Self {
        Self { registry, keys, limits, tally, spectators: Watches::default() }
    }

    /// Finds a game for the caller that the metadata proves.
    fn find(&self, identity: Identity, id: GameId) -> Result<Found, Status> {
        if identity == Identity::Unknown {
            // Tokens of an earlier run cannot be verified any more; its games are lost, and that is the news.
            return Err(if self.registry.is_lost(id) { status::no_such_game(id) } else { status::token_invalid() });
        }
        let slot = self.registry.find(id).ok_or_else(|| status::no_such_game(id))?;
        let role = match identity {
            // Whoever holds its token may see it. Whether it has been made yet is asked in its queue.
            Identity::Holder(game, seat) if game == id => Role::Holder(seat),
            Identity::Creator => Role::Creator,
            Identity::Nobody | Identity::Unknown | Identity::Holder(..) => {
                let settings = slot.settings().filter(|settings| !settings.private);
                settings.ok_or_else(|| status::no_such_game(id))?;
                if matches!(identity, Identity::Holder(..)) {
                    return Err(status::token_of_other_game(id));
                }
                Role::Spectator
            }
        };
        Ok(Found { id, slot, role })
    }

    /// Refuses a secret that this server did not issue, on calls that name no game.
    fn known(&self, metadata: &tonic::metadata::MetadataMap) -> Result<Identity, Status> {
        match self.keys.identify(metadata) {
            Identity::Unknown => Err(status::token_invalid()),
            identity @ (Identity::Nobody | Identity::Creator | Identity::Holder(..)) => Ok(identity),
        }
    }

    /// Lets the creator pass, and everybody if the server has no creator's key.
    fn creator(&self, metadata: &tonic::metadata::MetadataMap) -> Result<(), Status> {
        match self.known(metadata)? {
            Identity::Creator => Ok(()),
            Identity::Nobody | Identity::Holder(..) | Identity::Unknown if self.keys.creator.is_none() => Ok(()),
            Identity::Nobody | Identity::Unknown => Err(status::token_missing()),
            Identity::Holder(..) => Err(status::not_allowed("the holder of a game's token", "the creator's key")),
        }
    }

    fn new_game_response(&self, id: GameId, answer: &Answer) -> pb::NewGameResponse {
        let marks = answer.record.event.marks().cloned().unwrap_or_default();
        let view = View { game: answer.game.clone(), moves: Vec::new(), marks, now: answer.record.written };
        let token = |seat| self.keys.tokens.issue(id, seat);
        pb::NewGameResponse {
            game: Some(encode::game(id, &view, None)),
            red_token: token(Seat::Player(Side::Red)),
            blue_token: token(Seat::Player(Side::Blue)),
            arbiter_token: token(Seat::Arbiter),
            replayed: answer.replayed,
        }
    }
}

#[tonic::async_trait]
impl pb::referee_service_server::RefereeService for Referee {
    async fn new_game(&self, request: Request<pb::NewGameRequest>) -> Result<Response<pb::NewGameResponse>, Status> {
        self.creator(request.metadata())?;
        let mut body = request.into_inner();
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        let request = decode::request(Caller::Creator, "NewGame", request_id, &body);
        let creation = decode::creation(body).map_err(refuse)?;
        let unmade = GameId::from_u128(0);
        let made = self.registry.new_game(creation, request).await;
        let (id, reply) = made.map_err(|fault| status::fault(unmade, &fault))?;
        let answer = reply.map_err(|fault| status::fault(id, &fault))?;
        let settings = answer.game.settings();
        let replayed = answer.replayed;
        of_call(Call::here(), || info!(game = %id, preset = settings.preset, replayed, "game created"));
        Ok(Response::new(self.new_game_response(id, &answer)))
    }

    async fn get_game(&self, request: Request<pb::GetGameRequest>) -> Result<Response<pb::GetGameResponse>, Status> {
        let id = decode::game_id(&request.get_ref().game_id).map_err(refuse)?;
        let found = self.find(self.keys.identify(request.metadata()), id)?;
        let view = found.slot.view(found.role.side()).await.map_err(|fault| status::fault(id, &fault))?;
        Ok(Response::new(pb::GetGameResponse { game: Some(encode::game(id, &view, found.role.side())) }))
    }

    async fn list_games(
        &self,
        request: Request<pb::ListGamesRequest>,
    ) -> Result<Response<pb::ListGamesResponse>, Status> {
        self.creator(request.metadata())?;
        let mut page = decode::page(request.into_inner()).map_err(refuse)?;
        // Without a key nobody is known to be the creator, and private games stay private.
        page.filter.private_too = self.keys.creator.is_some();
        let mut games = self.registry.list(&page.filter, page.after, page.size + 1);
        let more = games.len() > page.size;
        games.truncate(page.size);
        let last = games.last().filter(|_| more).map(|(id, ..)| page.token_after(*id));
        Ok(Response::new(pb::ListGamesResponse {
            games: games.iter().map(|(id, game, marks)| encode::summary(*id, game, marks)).collect(),
            next_page_token: last.unwrap_or_default(),
        }))
    }

    async fn list_rulesets(
        &self,
        request: Request<pb::ListRulesetsRequest>,
    ) -> Result<Response<pb::ListRulesetsResponse>, Status> {
        self.known(request.metadata())?;
        Ok(Response::new(pb::ListRulesetsResponse { presets: PRESETS.iter().map(encode::preset).collect() }))
    }

    async fn legal_moves(
        &self,
        request: Request<pb::LegalMovesRequest>,
    ) -> Result<Response<pb::LegalMovesResponse>, Status> {
        use pb::legal_moves_request::Subject;
        let identity = self.keys.identify(request.metadata());
        let body = request.into_inner();
        let from = body.from_square.as_deref().map(|from| decode::square("from_square", from));
        let from = from.transpose().map_err(refuse)?;
        let response = match body.subject {
            Some(Subject::GameId(id)) => {
                let id = decode::game_id(&id).map_err(refuse)?;
                let found = self.find(identity, id)?;
                let seen = found.slot.glance(found.role.side()).await.map_err(|fault| status::fault(id, &fault))?;
                pb::LegalMovesResponse {
                    sequence: Some(seen.game.sequence()),
                    clock: Some(encode::clock(&seen.game, seen.now)),
                    server_time: Some(encode::time(seen.now)),
                    ..legal_moves(seen.game.line(), encode::game_outcome(&seen.game), from, body.explain)
                }
            }
            Some(Subject::Line(_)) | None if identity == Identity::Unknown => return Err(status::token_invalid()),
            Some(Subject::Line(line)) => {
                let (line, outcome) = decode::line(line).map_err(refuse)?;
                legal_moves(&line, outcome.as_ref().map(encode::outcome), from, body.explain)
            }
            None => return Err(refuse(decode::Malformed::new("subject", "set game_id or line"))),
        };
        Ok(Response::new(response))
    }

    async fn submit_move(
        &self,
        request: Request<pb::SubmitMoveRequest>,
    ) -> Result<Response<pb::SubmitMoveResponse>, Status> {
        let identity = self.keys.identify(request.metadata());
        let mut body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        if request_id.is_some() && body.expected_ply.is_none() {
            let problem = "must be set with a request_id, so that a repeat is never judged on another board";
            return Err(refuse(decode::Malformed::new("expected_ply", problem)));
        }
        let mv = decode::a_move("", &body.from_square, &body.to_square).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let side = found.player()?;
        let request = decode::move_request(side, request_id, mv, &body);
        let command = Command::Move { side, mv, expected_ply: body.expected_ply, offer_draw: body.offer_draw };
        let reply = found.slot.ask(Some(side), command, request).await;
        verdict(id, side, reply).map(Response::new)
    }

    async fn offer_draw(
        &self,
        request: Request<pb::OfferDrawRequest>,
    ) -> Result<Response<pb::OfferDrawResponse>, Status> {
        let identity = self.keys.identify(request.metadata());
        let mut body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        let makes = decode::makes_offer(body.action).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let command = |side| if makes { Command::OfferDraw(side) } else { Command::TakeBackDraw(side) };
        let (event, replayed) = found.tell_of_seat("OfferDraw", request_id, &body, command).await?;
        Ok(Response::new(pb::OfferDrawResponse { event: Some(event), replayed }))
    }

    async fn answer_draw(
        &self,
        request: Request<pb::AnswerDrawRequest>,
    ) -> Result<Response<pb::AnswerDrawResponse>, Status> {
        let identity = self.keys.identify(request.metadata());
        let mut body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        let accepts = decode::accepts(body.answer).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let command = |side| if accepts { Command::AcceptDraw(side) } else { Command::DeclineDraw(side) };
        let (event, replayed) = found.tell_of_seat("AnswerDraw", request_id, &body, command).await?;
        Ok(Response::new(pb::AnswerDrawResponse { event: Some(event), replayed }))
    }

    async fn leave_game(
        &self,
        request: Request<pb::LeaveGameRequest>,
    ) -> Result<Response<pb::LeaveGameResponse>, Status> {
        let identity = self.keys.identify(request.metadata());
        let mut body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let (event, replayed) = found.tell_of_seat("LeaveGame", request_id, &body, Command::Leave).await?;
        Ok(Response::new(pb::LeaveGameResponse { event: Some(event), replayed }))
    }

    async fn abort_game(
        &self,
        request: Request<pb::AbortGameRequest>,
    ) -> Result<Response<pb::AbortGameResponse>, Status> {
        let identity = self.keys.identify(request.metadata());
        let mut body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let request_id = decode::request_id(&std::mem::take(&mut body.request_id)).map_err(refuse)?;
        let reason = decode::abort_reason(body.reason.clone()).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let caller = match found.role {
            Role::Creator => Caller::Creator,
            Role::Holder(Seat::Arbiter) => Caller::Arbiter,
            Role::Spectator => return Err(status::token_missing()),
            Role::Holder(Seat::Player(_)) => {
                return Err(status::not_allowed(found.role.name(), "the arbiter's token or the creator's key"));
            }
        };
        let request = decode::request(caller, "AbortGame", request_id, &body);
        let command = Command::Abort { by_creator: caller == Caller::Creator, reason: reason.into() };
        let (event, replayed) = found.tell(command, request).await?;
        Ok(Response::new(pb::AbortGameResponse { event: Some(event), replayed }))
    }

    type WatchGameStream = Pin<Box<dyn Stream<Item = Result<pb::WatchGameResponse, Status>> + Send>>;

    async fn watch_game(
        &self,
        request: Request<pb::WatchGameRequest>,
    ) -> Result<Response<Self::WatchGameStream>, Status> {
        let identity = self.keys.identify(request.metadata());
        let on_connection = self.watch_place(request.extensions())?;
        let body = request.into_inner();
        let id = decode::game_id(&body.game_id).map_err(refuse)?;
        let heartbeat = decode::heartbeat(body.heartbeat).map_err(refuse)?;
        let found = self.find(identity, id)?;
        let seat = found.role.side();
        let of_server = self.spectator_place(seat)?;
        let options = WatchOptions { after_sequence: body.after_sequence, heartbeat, seat };
        let watch = Watch::begin(&found.slot, options)
            .await
            .map_err(|fault| status::watch_fault(id, body.after_sequence.unwrap_or(0), &fault))?;
        // Boxed, since the futures about it would each have room for it: most watches only wait.
        let watch = Box::new(watch);
        let (places, tally) = ((on_connection, of_server), Arc::clone(&self.tally));
        let told = stream::unfold((watch, places, tally), move |(mut watch, places, tally)| async move {
            let message = match watch.next().await? {
                Ok(told) => Ok(pb::WatchGameResponse { message: Some(message(id, &told, seat)) }),
                Err(cut) => Err(status::cut(cut)).inspect_err(|status| tally.failed(status)),
            };
            Some((message, (watch, places, tally)))
        });
        Ok(Response::new(Box::pin(told)))
    }
}

impl Referee {
    /// A place among the connection's watches; calls that come on no connection need none.
    fn watch_place(&self, extensions: &Extensions) -> Result<Option<WatchPlace>, Status> {
        let limit = self.limits.watches_a_connection;
        let Some(connection) = extensions.get::<ConnectionInfo>() else {
            return Ok(None);
        };
        connection.watches.take_place(limit).map(Some).ok_or_else(|| status::too_many_watches(limit))
    }

    /// A place among the server's watches; a seat needs none.
    fn spectator_place(&self, seat: Option<Side>) -> Result<Option<WatchPlace>, Status> {
        let limit = self.limits.watches;
        if seat.is_some() {
            return Ok(None);
        }
        self.spectators.take_place(limit).map(Some).ok_or_else(|| status::too_many_watches_in_all(limit))
    }
}

fn refuse(malformed: decode::Malformed) -> Status {
    status::malformed(&malformed)
}

fn message(id: GameId, told: &Told, seat: Option<Side>) -> pb::watch_game_response::Message {
    use pb::watch_game_response::Message;
    match told {
        Told::Snapshot(view) => Message::Snapshot(encode::game(id, view, seat)),
        Told::Event(event) => Message::Event(encode::event(&event.0, &event.1)),
        Told::Heartbeat(view) => Message::Heartbeat(encode::heartbeat(view)),
    }
}

/// The answer to a submitted move: a verdict where it was judged, else why it was not.
fn verdict(id: GameId, side: Side, reply: Reply) -> Result<pb::SubmitMoveResponse, Status> {
    use pb::submit_move_response::Verdict;
    let (verdict, replayed) = match reply {
        Ok(answer) => {
            let Answer { game, record, replayed } = &answer;
            let verdict = match &record.event.kind {
                Kind::Moved(moved) => Verdict::Accepted(encode::accepted(record, game, moved)),
                Kind::Refused { violation, .. } => {
                    Verdict::Refused(encode::refusal(violation, game, side, record.written))
                }
                // The digest of a request holds its method: a move's id finds a move's event.
                Kind::Created(_)
                | Kind::SeatShown { .. }
                | Kind::Started
                | Kind::TimeExpired(_)
                | Kind::DrawOffered(_)
                | Kind::DrawTakenBack(_)
                | Kind::DrawDeclined(_)
                | Kind::DrawAccepted(_)
                | Kind::SeatLeft(_)
                | Kind::SeatAway(_)
                | Kind::SeatReturned(_)
                | Kind::AwayExpired(_)
                | Kind::Aborted(_)
                | Kind::Resumed { .. } => return Err(status::internal()),
            };
            (verdict, *replayed)
        }
        Err(fault) => {
            let Fault::Refused { refusal, game, at } = &fault else {
                return Err(status::fault(id, &fault));
            };
            let Refusal::Forbidden(violation) = &**refusal else {
                return Err(status::fault(id, &fault));
            };
            debug!(game = %id, rule = violation.rule().id(), "move refused");
            (Verdict::Refused(encode::refusal(violation, game, side, *at)), false)
        }
    };
    Ok(pb::SubmitMoveResponse { verdict: Some(verdict), replayed })
}

fn legal_moves(
    line: &Line,
    outcome: Option<pb::Outcome>,
    from: Option<Square>,
    explain: bool,
) -> pb::LegalMovesResponse {
    let wanted = |square: Square| from.is_none_or(|from| from == square);
    let position = line.position();
    let mut response = pb::LegalMovesResponse {
        ply: Some(line.ply()),
        position: position.to_string(),
        side_to_move: encode::side(position.side_to_move()).into(),
        ..pb::LegalMovesResponse::default()
    };
    if outcome.is_some() {
        response.outcome = outcome;
        return response;
    }
    let legal = line.legal_moves();
    response.waived = legal.waived;
    response.moves = legal.moves.into_iter().filter(|legal| wanted(legal.mv.from)).map(encode::legal_move).collect();
    if explain {
        let candidates = line.candidates();
        response.candidates =
            candidates.iter().filter(|candidate| wanted(candidate.mv.from)).map(encode::candidate).collect();
    }
    response
}
