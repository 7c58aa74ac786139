//! The judge of commands: what a command does to a game at a given time, or why nothing.
//!
//! Time is settled first: whoever calls [`decide`] with another command than [`Command::Tick`] has
//! ticked until [`Game::deadline`] lies ahead of `now`.

use std::sync::Arc;

use super::clock::{ClockStart, Span, Time};
use super::command::{Command, Request};
use super::event::{AbortedBy, Ending, Event, Kind, Moved, OfferResult};
use super::refusal::Refusal;
use super::settings::Creation;
use super::state::{Due, DueKind, Game, Status};
use crate::rules::{Move, Outcome, Reason, Side, Violation};

/// How long a side may be absent before its away countdown starts.
pub const ABSENCE_NOTICE: Span = Span::from_secs(5);

/// The event that creates a game.
#[must_use]
pub fn create(creation: Arc<Creation>, request: Option<Request>, now: Time) -> Event {
    Event { at: now, kind: Kind::Created(creation), ending: None, request }
}

/// The event of a server that is back at `now` after it was down.
#[must_use]
pub fn resume(down_since: Time, now: Time) -> Event {
    Event { at: now, kind: Kind::Resumed { down_since }, ending: None, request: None }
}

/// Judges a command: the event it causes, or why it changes nothing.
///
/// # Errors
/// The first reason that holds, in the order of `rules.md` section 7.
pub fn decide(game: &Game, command: &Command, request: Option<Request>, now: Time) -> Result<Event, Refusal> {
    let (kind, ending, at) = match command {
        Command::Tick => tick(game, now)?,
        Command::Show(side) => (show(game, *side)?, None, now),
        Command::Arrive(side) => (arrive(game, *side)?, None, now),
        Command::Depart(_) => return Err(Refusal::Nothing),
        Command::Move { side, mv, expected_ply, offer_draw } => {
            let (kind, ending) = submit(game, *side, *mv, *expected_ply, *offer_draw, now)?;
            (kind, ending, now)
        }
        Command::OfferDraw(side) => (offer_draw(game, *side)?, None, now),
        Command::TakeBackDraw(side) => (answerable(game, *side).map(|()| Kind::DrawTakenBack(*side))?, None, now),
        Command::DeclineDraw(side) => {
            (answerable(game, side.opponent()).map(|()| Kind::DrawDeclined(*side))?, None, now)
        }
        Command::AcceptDraw(side) => {
            answerable(game, side.opponent())?;
            (Kind::DrawAccepted(*side), Some(ending(game, None, Reason::Agreement, game.line().ply())), now)
        }
        Command::Leave(side) => (Kind::SeatLeft(*side), Some(leave(game, *side)?), now),
        Command::Abort { by_creator, reason } => {
            not_over(game)?;
            let by = if *by_creator { AbortedBy::Creator } else { AbortedBy::Arbiter };
            (Kind::Aborted(by), Some(aborted(game, Arc::clone(reason))), now)
        }
    };
    Ok(Event { at, kind, ending, request })
}

/// Judges a move in the order of `rules.md` section 7; the caller and repeats were seen to before.
fn submit(
    game: &Game,
    side: Side,
    mv: Move,
    expected_ply: Option<u32>,
    offer_draw: bool,
    now: Time,
) -> Result<(Kind, Option<Ending>), Refusal> {
    running(game)?;
    let ply = game.line().ply();
    let to_move = game.line().position().side_to_move();
    if to_move != side {
        return Err(Refusal::NotYourTurn { to_move });
    }
    if let Some(expected) = expected_ply.filter(|expected| *expected != ply) {
        return Err(Refusal::StalePly { expected, ply });
    }
    let allowed = match game.line().judge(mv) {
        Ok(allowed) => allowed,
        Err(violation) => return refuse(game, side, mv, violation),
    };
    let mut after = *game.line();
    after.advance(mv);
    let ending = after.ending(side).map(|(winner, reason)| ending(game, winner, reason, after.ply()));
    let (charged, grace_used) = charge(game, now);
    let offer = if offer_draw { offer_with_move(game, side, ending.is_some()) } else { OfferResult::NotAsked };
    let (captured, waived) = (allowed.captured, allowed.waived);
    Ok((Kind::Moved(Moved { side, mv, captured, waived, charged, grace_used, offer }), ending))
}

/// A refused move changes nothing, unless the game counts refusals.
fn refuse(game: &Game, side: Side, mv: Move, violation: Violation) -> Result<(Kind, Option<Ending>), Refusal> {
    let Some(limit) = game.settings().refusal_limit else {
        return Err(Refusal::Forbidden(violation));
    };
    let lost = game.refusals(side) + 1 >= limit;
    let ending = lost.then(|| ending(game, Some(side.opponent()), Reason::Forfeit, game.line().ply()));
    Ok((Kind::Refused { side, mv, violation: Box::new(violation) }, ending))
}

/// What a move that arrives at `now` costs: the time on the clock first, then the grace.
fn charge(game: &Game, now: Time) -> (Span, Span) {
    let Some((side, since)) = game.running() else {
        return (Span::ZERO, Span::ZERO);
    };
    let left = game.remaining(side, since).unwrap_or_default();
    let thought = now.since(since);
    let charged = thought.min(left);
    (charged, thought.minus(charged))
}

fn offer_with_move(game: &Game, side: Side, ends: bool) -> OfferResult {
    match can_offer(game, side) {
        Err(Refusal::DrawsOff) => OfferResult::DrawsOff,
        Ok(()) | Err(_) if ends => OfferResult::GameOver,
        Err(Refusal::AlreadyOffered { .. }) => OfferResult::AlreadyOffered,
        Err(_) => OfferResult::OfferOpen,
        Ok(()) => OfferResult::Made,
    }
}

fn offer_draw(game: &Game, side: Side) -> Result<Kind, Refusal> {
    running(game)?;
    can_offer(game, side)?;
    Ok(Kind::DrawOffered(side))
}

fn can_offer(game: &Game, side: Side) -> Result<(), Refusal> {
    if !game.settings().ruleset.agreed_draw {
        return Err(Refusal::DrawsOff);
    }
    if let Some(offer) = game.offer() {
        return Err(Refusal::OfferOpen { by: offer.side });
    }
    if game.has_offered(side) {
        return Err(Refusal::AlreadyOffered { ply: game.line().ply() });
    }
    Ok(())
}

/// Whether an offer of `maker` is open, to be answered or taken back.
fn answerable(game: &Game, maker: Side) -> Result<(), Refusal> {
    running(game)?;
    if !game.settings().ruleset.agreed_draw {
        return Err(Refusal::DrawsOff);
    }
    match game.offer() {
        Some(offer) if offer.side == maker => Ok(()),
        Some(_) | None => Err(Refusal::NoOffer),
    }
}

/// Leaving loses a running game, and calls off one that has not started.
fn leave(game: &Game, side: Side) -> Result<Ending, Refusal> {
    not_over(game)?;
    Ok(match game.status() {
        Status::Waiting => aborted(game, format!("{side} left before the start").into()),
        Status::Running | Status::Ended => ending(game, Some(side.opponent()), Reason::Left, game.line().ply()),
    })
}

fn show(game: &Game, side: Side) -> Result<Kind, Refusal> {
    let waits = game.status() == Status::Waiting
        && matches!(game.settings().clock_start, ClockStart::WhenBothShown(_))
        && !game.has_shown(side);
    if !waits {
        return Err(Refusal::Nothing);
    }
    Ok(Kind::SeatShown { side, starts: game.has_shown(side.opponent()) })
}

/// A seat that was away is back; a return from a shorter absence is no event.
fn arrive(game: &Game, side: Side) -> Result<Kind, Refusal> {
    if game.status() == Status::Running && game.is_away(side) {
        return Ok(Kind::SeatReturned(side));
    }
    Err(Refusal::Nothing)
}

/// What time alone does by `now`, dated when it was due.
fn tick(game: &Game, now: Time) -> Result<(Kind, Option<Ending>, Time), Refusal> {
    let Some(Due { at, kind }) = game.due().filter(|due| due.at <= now) else {
        return Err(Refusal::Nothing);
    };
    let ply = game.line().ply();
    let (kind, ending) = match kind {
        DueKind::Start => (Kind::Started, None),
        DueKind::JoinWindow => called_off(game, "the two seats did not both show themselves in time"),
        DueKind::Idle => called_off(game, "nothing happened for the idle limit"),
        DueKind::Flag(side) => {
            let loses = game.expiries(side) + 1 >= game.settings().ruleset.timeouts_to_lose;
            let ending = loses.then(|| ending(game, Some(side.opponent()), Reason::Timeout, ply));
            (Kind::TimeExpired(side), ending)
        }
        DueKind::AwayNotice(side) => (Kind::SeatAway(side), None),
        DueKind::AwayLimit(side) if game.is_away(side.opponent()) => {
            (Kind::AwayExpired(side), Some(aborted(game, "both sides were away".into())))
        }
        DueKind::AwayLimit(side) => {
            (Kind::AwayExpired(side), Some(ending(game, Some(side.opponent()), Reason::Left, ply)))
        }
    };
    Ok((kind, ending, at))
}

fn called_off(game: &Game, reason: &str) -> (Kind, Option<Ending>) {
    (Kind::Aborted(AbortedBy::Service), Some(aborted(game, reason.into())))
}

fn aborted(game: &Game, reason: Arc<str>) -> Ending {
    Ending { abort_reason: Some(reason), ..ending(game, None, Reason::Aborted, game.line().ply()) }
}

fn ending(game: &Game, winner: Option<Side>, reason: Reason, plies: u32) -> Ending {
    let settings = game.settings();
    let outcome = Outcome::new(winner, reason, plies, &settings.ruleset, settings.is_match);
    Ending { outcome, abort_reason: None }
}

fn not_over(game: &Game) -> Result<(), Refusal> {
    game.ending().map_or(Ok(()), |ending| Err(Refusal::GameOver(ending.clone())))
}

fn running(game: &Game) -> Result<(), Refusal> {
    not_over(game)?;
    match game.status() {
        Status::Waiting => Err(Refusal::NotStarted),
        Status::Running | Status::Ended => Ok(()),
    }
}
