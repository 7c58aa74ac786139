//! From the house's types to the wire's. Nothing here can fail.

use prost_types::{Duration, Timestamp};

use super::proto as pb;
use crate::game::{
    AbortedBy, ClockStart, Ending, Game, Kind, Marks, Moved, Offer, OfferResult, Record, Settings, Span, Status, Time,
    TimeControl, ruleset_hash,
};
use crate::rules::{
    Allowed, Animal, Candidate, JumpBlockers, Ladder, LegalMove, Move, Outcome, Piece, Preset, Reason, Rule, Ruleset,
    Side, Square, TigerJump, Violation,
};
use crate::runtime::{GameId, View};

pub(super) fn time(time: Time) -> Timestamp {
    let (seconds, nanos) = split(time.micros());
    Timestamp { seconds, nanos }
}

pub(super) fn span(span: Span) -> Duration {
    let (seconds, nanos) = split(span.micros());
    Duration { seconds, nanos }
}

fn split(micros: u64) -> (i64, i32) {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX);
    let nanos = i32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0);
    (seconds, nanos)
}

pub(super) fn side(side: Side) -> pb::Side {
    match side {
        Side::Red => pb::Side::Red,
        Side::Blue => pb::Side::Blue,
    }
}

fn maybe_side(of: Option<Side>) -> i32 {
    of.map_or(pb::Side::Unspecified, side).into()
}

/// A side's name in the metadata of errors.
pub(super) fn winner_name(side: Option<Side>) -> &'static str {
    match side {
        Some(Side::Red) => "RED",
        Some(Side::Blue) => "BLUE",
        None => "NONE",
    }
}

fn animal(animal: Animal) -> pb::Animal {
    match animal {
        Animal::Elephant => pb::Animal::Elephant,
        Animal::Lion => pb::Animal::Lion,
        Animal::Tiger => pb::Animal::Tiger,
        Animal::Leopard => pb::Animal::Leopard,
        Animal::Wolf => pb::Animal::Wolf,
        Animal::Fox => pb::Animal::Fox,
        Animal::Dog => pb::Animal::Dog,
        Animal::Cat => pb::Animal::Cat,
        Animal::Rat => pb::Animal::Rat,
    }
}

fn maybe_animal(of: Option<Animal>) -> i32 {
    of.map_or(pb::Animal::Unspecified, animal).into()
}

fn square(square: Square) -> String {
    square.name().to_owned()
}

fn piece((square, piece): (Square, Piece)) -> pb::Piece {
    pb::Piece { square: self::square(square), side: side(piece.side).into(), animal: animal(piece.animal).into() }
}

fn a_move(mv: Move) -> pb::Move {
    pb::Move { from_square: square(mv.from), to_square: square(mv.to) }
}

fn played(ply: u32, moved: &Moved) -> pb::PlayedMove {
    pb::PlayedMove {
        ply: Some(ply),
        from_square: square(moved.mv.from),
        to_square: square(moved.mv.to),
        captured: maybe_animal(moved.captured),
        waived: moved.waived,
    }
}

fn ladder(ladder: Ladder) -> pb::Ladder {
    match ladder {
        Ladder::WolfOverDog => pb::Ladder::WolfOverDog,
        Ladder::DogOverWolf => pb::Ladder::DogOverWolf,
        Ladder::DogOverFox => pb::Ladder::DogOverFox,
    }
}

fn jump_blockers(blockers: JumpBlockers) -> pb::JumpBlockers {
    match blockers {
        JumpBlockers::AnyRat => pb::JumpBlockers::AnyRat,
        JumpBlockers::EnemyRat => pb::JumpBlockers::EnemyRat,
    }
}

fn tiger_jump(jump: TigerJump) -> pb::TigerJump {
    match jump {
        TigerJump::Both => pb::TigerJump::Both,
        TigerJump::AcrossOnly => pb::TigerJump::AcrossOnly,
    }
}

fn ruleset(preset: &str, ruleset: &Ruleset) -> pb::Ruleset {
    pb::Ruleset {
        preset: preset.to_owned(),
        hash: ruleset_hash(ruleset),
        ladder: ladder(ruleset.ladder).into(),
        rats_capture_across_bank: ruleset.rats_capture_across_bank,
        jump_blockers: jump_blockers(ruleset.jump_blockers).into(),
        tiger_jump: tiger_jump(ruleset.tiger_jump).into(),
        trapped_may_capture: ruleset.trapped_may_capture,
        agreed_draw: ruleset.agreed_draw,
        timeouts_to_lose: ruleset.timeouts_to_lose.into(),
        no_capture_rounds: ruleset.no_capture_rounds.into(),
        short_game_rounds: ruleset.short_game_rounds.into(),
        seven_three: ruleset.seven_three,
        seventeen_five: ruleset.seventeen_five,
    }
}

pub(super) fn preset(preset: &Preset) -> pb::RulesetPreset {
    pb::RulesetPreset { ruleset: Some(ruleset(preset.name, &preset.ruleset)), summary: preset.summary.to_owned() }
}

fn time_control(control: TimeControl) -> Option<pb::TimeControl> {
    use pb::time_control::{Increment, Kind, PerMove};
    let kind = match control {
        TimeControl::Untimed => return None,
        TimeControl::PerMove(limit) => Kind::PerMove(PerMove { limit: Some(span(limit)) }),
        TimeControl::Increment { initial, increment } => {
            Kind::Increment(Increment { initial: Some(span(initial)), increment: Some(span(increment)) })
        }
    };
    Some(pb::TimeControl { kind: Some(kind) })
}

fn clock_start(start: ClockStart) -> Option<pb::ClockStart> {
    use pb::clock_start::Kind;
    let kind = match start {
        ClockStart::AtCreation => return None,
        ClockStart::At(at) => Kind::At(time(at)),
        ClockStart::WhenBothShown(window) => Kind::JoinWindow(span(window)),
    };
    Some(pb::ClockStart { kind: Some(kind) })
}

fn settings(settings: &Settings, marks: &Marks) -> pb::GameSettings {
    pb::GameSettings {
        ruleset: Some(ruleset(settings.preset, &settings.ruleset)),
        start_position: settings.start.to_string(),
        time_control: time_control(settings.time_control),
        grace: Some(span(settings.grace)),
        clock_start: clock_start(settings.clock_start),
        is_match: settings.is_match,
        refusal_limit: settings.refusal_limit,
        away_limit: settings.away_limit.map(span),
        idle_limit: Some(span(settings.idle_limit)),
        private: settings.private,
        labels: marks.labels.clone(),
        external_reference: marks.external_reference.clone(),
    }
}

fn status(status: Status) -> pb::GameStatus {
    match status {
        Status::Waiting => pb::GameStatus::Waiting,
        Status::Running => pb::GameStatus::Running,
        Status::Ended => pb::GameStatus::Ended,
    }
}

fn reason(reason: Reason) -> pb::OutcomeReason {
    match reason {
        Reason::Den => pb::OutcomeReason::Den,
        Reason::AllCaptured => pb::OutcomeReason::AllCaptured,
        Reason::NoMoves => pb::OutcomeReason::NoMoves,
        Reason::NoCapture => pb::OutcomeReason::NoCapture,
        Reason::Timeout => pb::OutcomeReason::Timeout,
        Reason::Left => pb::OutcomeReason::Left,
        Reason::Agreement => pb::OutcomeReason::Agreement,
        Reason::Forfeit => pb::OutcomeReason::Forfeit,
        Reason::Aborted => pb::OutcomeReason::Aborted,
    }
}

pub(super) fn outcome(outcome: &Outcome) -> pb::Outcome {
    let (red, blue) = outcome.points();
    pb::Outcome {
        winner: maybe_side(outcome.winner),
        reason: reason(outcome.reason).into(),
        scored: Some(outcome.scored),
        red_points: Some(f64::from(red) / 2.0),
        blue_points: Some(f64::from(blue) / 2.0),
        abort_reason: String::new(),
    }
}

fn ending(ending: &Ending) -> pb::Outcome {
    let abort_reason = ending.abort_reason.as_deref().unwrap_or_default().to_owned();
    pb::Outcome { abort_reason, ..outcome(&ending.outcome) }
}

pub(super) fn clock(game: &Game, now: Time) -> pb::Clock {
    let tally = game.settings().ruleset.timeouts_to_lose > 1;
    pb::Clock {
        red_remaining: game.remaining(Side::Red, now).map(span),
        blue_remaining: game.remaining(Side::Blue, now).map(span),
        running_side: maybe_side(game.running().map(|(side, _)| side)),
        deadline: game.clock_due().map(|due| time(due.at)),
        red_expiries: tally.then(|| game.expiries(Side::Red).into()),
        blue_expiries: tally.then(|| game.expiries(Side::Blue).into()),
    }
}

fn offer(offer: Offer) -> pb::DrawOffer {
    pb::DrawOffer { side: side(offer.side).into(), ply: Some(offer.ply) }
}

fn presence(game: &Game) -> pb::Presence {
    pb::Presence {
        red_present: game.is_present(Side::Red),
        blue_present: game.is_present(Side::Blue),
        red_away_deadline: game.away_deadline(Side::Red).map(time),
        blue_away_deadline: game.away_deadline(Side::Blue).map(time),
    }
}

/// A side's refused moves, in a game that counts them.
fn refusals(game: &Game, side: Side) -> Option<u32> {
    game.settings().refusal_limit.map(|_| game.refusals(side))
}

pub(super) fn game(id: GameId, view: &View, asked_by: Option<Side>) -> pb::Game {
    let View { game, moves, marks, now } = view;
    pb::Game {
        game_id: id.to_string(),
        status: status(game.status()).into(),
        sequence: game.sequence(),
        ply: Some(game.line().ply()),
        position: game.line().position().to_string(),
        side_to_move: side(game.line().position().side_to_move()).into(),
        moves: (0..).zip(moves).map(|(ply, moved)| played(ply, moved)).collect(),
        clock: Some(clock(game, *now)),
        open_offer: game.offer().map(offer),
        presence: Some(presence(game)),
        outcome: game.ending().map(ending),
        settings: Some(settings(game.settings(), marks)),
        server_time: Some(time(*now)),
        created_at: Some(time(game.created_at())),
        started_at: game.started_at().map(time),
        ended_at: game.ended_at().map(time),
        red_refusals: refusals(game, Side::Red),
        blue_refusals: refusals(game, Side::Blue),
        your_side: maybe_side(asked_by),
    }
}

pub(super) fn summary(id: GameId, game: &Game, marks: &Marks) -> pb::GameSummary {
    let settings = game.settings();
    pb::GameSummary {
        game_id: id.to_string(),
        status: status(game.status()).into(),
        sequence: game.sequence(),
        ply: Some(game.line().ply()),
        preset: settings.preset.to_owned(),
        ruleset_hash: ruleset_hash(&settings.ruleset),
        is_match: settings.is_match,
        private: settings.private,
        labels: marks.labels.clone(),
        external_reference: marks.external_reference.clone(),
        created_at: Some(time(game.created_at())),
        ended_at: game.ended_at().map(time),
        outcome: game.ending().map(ending),
    }
}

pub(super) fn heartbeat(view: &View) -> pb::Heartbeat {
    pb::Heartbeat {
        server_time: Some(time(view.now)),
        sequence: view.game.sequence(),
        clock: Some(clock(&view.game, view.now)),
        presence: Some(presence(&view.game)),
    }
}

/// An event, with the game as it left it.
pub(super) fn event(record: &Record, game: &Game) -> pb::GameEvent {
    let position = game.line().position();
    pb::GameEvent {
        sequence: record.sequence,
        time: Some(time(record.event.at)),
        status: status(game.status()).into(),
        ply: Some(game.line().ply()),
        side_to_move: side(position.side_to_move()).into(),
        position: position.to_string(),
        clock: Some(clock(game, record.written)),
        open_offer: game.offer().map(offer),
        outcome: record.event.ending.as_ref().map(ending),
        kind: Some(kind(record, game)),
    }
}

fn kind(record: &Record, game: &Game) -> pb::game_event::Kind {
    use pb::game_event as ev;
    let event = &record.event;
    let name = |of: Side| i32::from(side(of));
    match &event.kind {
        Kind::Created(creation) => {
            ev::Kind::Created(ev::Created { settings: Some(settings(&creation.settings, &creation.marks)) })
        }
        Kind::SeatShown { side, starts } => ev::Kind::SeatShown(ev::SeatShown { side: name(*side), starts: *starts }),
        Kind::Started => ev::Kind::Started(ev::Started {}),
        Kind::Moved(moved) => ev::Kind::MoveMade(ev::MoveMade {
            r#move: Some(played(game.line().ply().saturating_sub(1), moved)),
            side: name(moved.side),
            charged: Some(span(moved.charged)),
            grace_used: Some(span(moved.grace_used)),
            offer: offer_result(moved.offer).into(),
        }),
        Kind::Refused { side, mv, violation: why } => ev::Kind::MoveRefused(ev::MoveRefused {
            side: name(*side),
            r#move: Some(a_move(*mv)),
            violation: Some(violation(why)),
            refusals: game.refusals(*side),
        }),
        Kind::TimeExpired(side) => {
            ev::Kind::TimeExpired(ev::TimeExpired { side: name(*side), expiries: game.expiries(*side).into() })
        }
        Kind::DrawOffered(side) => ev::Kind::DrawOffered(ev::DrawOffered { side: name(*side) }),
        Kind::DrawTakenBack(side) => ev::Kind::DrawTakenBack(ev::DrawTakenBack { side: name(*side) }),
        Kind::DrawDeclined(side) => ev::Kind::DrawDeclined(ev::DrawDeclined { side: name(*side) }),
        Kind::DrawAccepted(side) => ev::Kind::DrawAccepted(ev::DrawAccepted { side: name(*side) }),
        Kind::SeatLeft(side) => ev::Kind::SeatLeft(ev::SeatLeft { side: name(*side) }),
        Kind::SeatAway(side) => ev::Kind::SeatAway(ev::SeatAway { side: name(*side) }),
        Kind::SeatReturned(side) => ev::Kind::SeatReturned(ev::SeatReturned { side: name(*side) }),
        Kind::AwayExpired(side) => ev::Kind::AwayExpired(ev::AwayExpired { side: name(*side) }),
        Kind::Aborted(by) => ev::Kind::Aborted(ev::Aborted {
            by: aborted_by(*by).into(),
            reason: event
                .ending
                .as_ref()
                .and_then(|ending| ending.abort_reason.as_deref())
                .unwrap_or_default()
                .to_owned(),
        }),
        Kind::Resumed { down_since } => ev::Kind::Resumed(ev::Resumed {
            down_since: Some(time(*down_since)),
            credited: Some(span(record.written.since(*down_since))),
        }),
    }
}

fn aborted_by(by: AbortedBy) -> pb::AbortedBy {
    match by {
        AbortedBy::Arbiter => pb::AbortedBy::Arbiter,
        AbortedBy::Creator => pb::AbortedBy::Creator,
        AbortedBy::Service => pb::AbortedBy::Service,
    }
}

fn offer_result(result: OfferResult) -> pb::OfferResult {
    match result {
        OfferResult::NotAsked => pb::OfferResult::Unspecified,
        OfferResult::Made => pb::OfferResult::Made,
        OfferResult::DrawsOff => pb::OfferResult::DrawsOff,
        OfferResult::OfferOpen => pb::OfferResult::OfferOpen,
        OfferResult::AlreadyOffered => pb::OfferResult::AlreadyOffered,
        OfferResult::GameOver => pb::OfferResult::GameOver,
    }
}

fn rule(rule: Rule) -> pb::Rule {
    match rule {
        Rule::NoAnimal => pb::Rule::NoAnimal,
        Rule::NotYourAnimal => pb::Rule::NotYourAnimal,
        Rule::Step => pb::Rule::Step,
        Rule::River => pb::Rule::River,
        Rule::Jump => pb::Rule::Jump,
        Rule::JumpBlocked => pb::Rule::JumpBlocked,
        Rule::OwnDen => pb::Rule::OwnDen,
        Rule::OwnPiece => pb::Rule::OwnPiece,
        Rule::Trapped => pb::Rule::Trapped,
        Rule::Bank => pb::Rule::Bank,
        Rule::RatElephant => pb::Rule::RatElephant,
        Rule::Strength => pb::Rule::Strength,
        Rule::SevenThree => pb::Rule::SevenThree,
        Rule::SeventeenFive => pb::Rule::SeventeenFive,
    }
}

fn violation(why: &Violation) -> pb::Violation {
    pb::Violation {
        rule: rule(why.rule()).into(),
        squares: why.squares().into_iter().map(square).collect(),
        animals: why.animals().into_iter().map(piece).collect(),
        plies: why.plies(),
        sentence: why.to_string(),
    }
}

/// The verdict on a move that was made, with the game as it left it.
pub(super) fn accepted(record: &Record, game: &Game, moved: &Moved) -> pb::MoveAccepted {
    pb::MoveAccepted {
        sequence: record.sequence,
        r#move: Some(played(game.line().ply().saturating_sub(1), moved)),
        clock: Some(clock(game, record.written)),
        charged: Some(span(moved.charged)),
        grace_used: Some(span(moved.grace_used)),
        offer: offer_result(moved.offer).into(),
        outcome: game.ending().map(ending),
        position: game.line().position().to_string(),
    }
}

/// The verdict on a move of `side` that the rules forbid, with the game after it.
pub(super) fn refusal(why: &Violation, game: &Game, side: Side, at: Time) -> pb::MoveRefusal {
    let consequence = match (game.settings().refusal_limit, game.ending()) {
        (None, _) => pb::RefusalConsequence::None,
        (Some(_), None) => pb::RefusalConsequence::Counted,
        (Some(_), Some(_)) => pb::RefusalConsequence::GameLost,
    };
    pb::MoveRefusal {
        violation: Some(violation(why)),
        consequence: consequence.into(),
        refusals: refusals(game, side),
        ply: Some(game.line().ply()),
        sequence: game.sequence(),
        clock: Some(clock(game, at)),
        outcome: game.ending().map(ending),
    }
}

pub(super) fn legal_move(legal: LegalMove) -> pb::LegalMove {
    pb::LegalMove {
        from_square: square(legal.mv.from),
        to_square: square(legal.mv.to),
        captures: maybe_animal(legal.captured),
    }
}

pub(super) fn candidate(candidate: &Candidate) -> pb::Candidate {
    let (captures, why) = match &candidate.verdict {
        Ok(Allowed { captured, .. }) => (maybe_animal(*captured), None),
        Err(why) => (maybe_animal(None), Some(violation(why))),
    };
    pb::Candidate {
        from_square: square(candidate.mv.from),
        to_square: square(candidate.mv.to),
        captures,
        violation: why,
    }
}

/// The outcome of a game as an answer's own field.
pub(super) fn game_outcome(game: &Game) -> Option<pb::Outcome> {
    game.ending().map(ending)
}
