//! Clocks, absences, draw offers and endings of one game, at times that the tests name to the
//! millisecond.

mod game;
mod support;

use game::{S, Table, move_of, move_offering, ms, per_move, stock, t, timed, two_expiries, usual};
use jungle_referee::game::{
    ABSENCE_NOTICE, AbortedBy, ClockStart, Command, Kind, OfferResult, Refusal, Settings, Span, Status, TimeControl,
};
use jungle_referee::rules::Side::{Blue, Red};
use jungle_referee::rules::{Position, Reason, Rule, Ruleset, Side};

/// The red tiger stands before the blue den.
const BEFORE_THE_DEN: &str = "6e/3T3/7/7/7/7/7/7/6P r 0 1";

fn set_up(text: &str) -> Position {
    Position::set_up(text, &Ruleset::YESHOU).expect("a position to play from")
}

fn abort() -> Command {
    Command::Abort { by_creator: false, reason: "the hall closes".into() }
}

// Limits, grace and flags.

/// Every control with every grace: what a move costs that comes `early` milliseconds before the
/// deadline, which is `allowance` and `grace` after the start; at 0 it is too late.
#[test]
fn my_move_counts_until_the_instant_in_which_limit_and_grace_are_used_up() {
    let allowance = 10 * S;
    for control in [per_move(allowance), stock(allowance, 0), stock(allowance, 2 * S)] {
        for grace in [0, 1, 3 * S, 5 * S] {
            for offer_by in [None, Some(Red), Some(Blue)] {
                let mut table = Table::new(timed(control, grace));
                if let Some(side) = offer_by {
                    table.does(0, &Command::OfferDraw(side));
                }
                let deadline = allowance + grace;
                assert_eq!(table.game.deadline(), Some(t(deadline)));
                for arrival in [deadline - 1, deadline, deadline + 1, deadline + 3_600 * S] {
                    check_arrival(table.clone(), arrival, deadline, allowance);
                }
            }
        }
    }
}

#[track_caller]
fn check_arrival(mut table: Table, arrival: u64, deadline: u64, allowance: u64) {
    let reply = table.ask(arrival, &move_of(Red, "a3a4"));
    if arrival < deadline {
        let Ok(Kind::Moved(moved)) = reply.map(|record| record.event.kind) else { panic!("in time at {arrival}") };
        assert_eq!(moved.charged, ms(arrival.min(allowance)));
        assert_eq!(moved.grace_used, ms(arrival.saturating_sub(allowance)));
        assert_eq!(table.game.running(), Some((Blue, t(arrival))));
        return;
    }
    assert!(matches!(reply, Err(Refusal::GameOver(_))), "too late at {arrival}");
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Timeout, t(deadline))));
    assert_eq!(table.last().event.kind, Kind::TimeExpired(Red));
    assert_eq!(table.last().event.at, t(deadline));
    assert_eq!((table.game.offer(), table.left(Red, arrival)), (None, Span::ZERO));
    assert_eq!((table.game.deadline(), table.game.running()), (None, None));
}

#[test]
fn a_step_into_the_den_wins_a_moment_before_the_flag_and_loses_in_its_very_instant() {
    for (arrival, winner, reason) in [(12_999, Red, Reason::Den), (13_000, Blue, Reason::Timeout)] {
        let settings = Settings { start: set_up(BEFORE_THE_DEN), ..timed(per_move(10 * S), 3 * S) };
        let mut table = Table::new(settings);
        let _ = table.ask(arrival, &move_of(Red, "d8d9"));
        assert_eq!(table.ended(), Some((Some(winner), reason, t(arrival))));
    }
}

#[test]
fn an_early_look_at_the_clock_changes_nothing() {
    let mut table = Table::new(timed(per_move(10 * S), 0));
    assert_eq!(table.may_not(9_999, &Command::Tick), Refusal::Nothing);
    assert_eq!(table.settle(t(9_999)), 0);
    assert_eq!(table.settle(t(10_000)), 1);
    assert_eq!(table.may_not(20_000, &Command::Tick), Refusal::Nothing);
}

#[test]
fn my_move_that_arrived_in_time_counts_however_late_it_is_judged_and_the_wait_costs_nobody() {
    let mut table = Table::new(timed(per_move(10 * S), 0));
    let record = table.ask_at(t(9_999), t(60_000), &move_of(Red, "a3a4")).expect("in time");
    assert_eq!((record.event.at, record.written), (t(9_999), t(60_000)));
    let Kind::Moved(moved) = record.event.kind else { panic!("no move") };
    assert_eq!(moved.charged, ms(9_999));
    assert_eq!(table.game.deadline(), Some(t(70_000)));
    assert_eq!((table.left(Blue, 60_000), table.left(Blue, 65_000)), (ms(10 * S), ms(5 * S)));

    // Blue's answer was on its way before Blue's clock ran: it costs nothing.
    let record = table.ask_at(t(30_000), t(61_000), &move_of(Blue, "g7g6")).expect("in time");
    let Kind::Moved(moved) = record.event.kind else { panic!("no move") };
    assert_eq!((moved.charged, moved.grace_used), (Span::ZERO, Span::ZERO));
    assert_eq!(table.game.deadline(), Some(t(71_000)));
}

/// What a move costs, and what is left for the next: control, grace, thought → charged, grace used, left.
#[test]
fn my_clock_is_charged_first_then_the_grace_and_the_increment_comes_after() {
    let cases = [
        (per_move(10 * S), 0, 0, (0, 0, 10 * S)),
        (per_move(10 * S), 0, 4 * S, (4 * S, 0, 10 * S)),
        (per_move(10 * S), 2 * S, 10 * S, (10 * S, 0, 10 * S)),
        (per_move(10 * S), 2 * S, 11_999, (10 * S, 1_999, 10 * S)),
        (stock(10 * S, 0), 0, 4 * S, (4 * S, 0, 6 * S)),
        (stock(10 * S, 2 * S), 0, 0, (0, 0, 12 * S)),
        (stock(10 * S, 2 * S), 0, 4 * S, (4 * S, 0, 8 * S)),
        (stock(10 * S, 2 * S), 1, 10 * S, (10 * S, 0, 2 * S)),
        (stock(10 * S, 2 * S), 5 * S, 14_999, (10 * S, 4_999, 2 * S)),
        (stock(10 * S, 0), 5 * S, 12 * S, (10 * S, 2 * S, 0)),
    ];
    for (control, grace, thought, (charged, grace_used, left)) in cases {
        let mut table = Table::new(timed(control, grace));
        let moved = table.moves(thought, "a3a4");
        let shown = (moved.charged, moved.grace_used, table.left(Red, thought));
        assert_eq!(shown, (ms(charged), ms(grace_used), ms(left)), "{control:?} grace {grace} thought {thought}");
        assert_eq!(table.left(Blue, thought), control.initial().expect("a clock"));
    }
}

#[test]
fn my_stock_shrinks_by_what_i_think_and_grows_by_what_i_complete() {
    let mut table = Table::new(timed(stock(10 * S, 2 * S), 0));
    let mut at = 0;
    for (thought, mv, red, blue) in [
        (3 * S, "a3a4", 9 * S, 10 * S),
        (5 * S, "g7g6", 9 * S, 7 * S),
        (8 * S, "a4a5", 3 * S, 7 * S),
        (0, "g6g5", 3 * S, 9 * S),
        (1, "g3g4", 4_999, 9 * S),
    ] {
        at += thought;
        table.moves(at, mv);
        assert_eq!((table.left(Red, at), table.left(Blue, at)), (ms(red), ms(blue)), "{mv}");
    }
    assert_eq!(table.game.deadline(), Some(t(at + 9 * S)));
    // Nothing left but the grace: with none, the flag falls; the other clock stands.
    table.settle(t(at + 60 * S));
    assert_eq!(table.ended(), Some((Some(Red), Reason::Timeout, t(at + 9 * S))));
    assert_eq!(table.left(Red, at + 60 * S), ms(4_999));
}

#[test]
fn a_clock_without_time_runs_on_its_grace_and_shows_zero_all_the_while() {
    let mut table = Table::new(timed(stock(10 * S, 0), 5 * S));
    table.moves(12 * S, "a3a4");
    table.moves(12 * S, "g7g6");
    assert_eq!(table.left(Red, 12 * S), Span::ZERO);
    assert_eq!(table.game.deadline(), Some(t(17 * S)));
    for at in [13 * S, 16_999, 17_000, 90 * S] {
        assert_eq!(table.left(Red, at), Span::ZERO);
    }
    let moved = table.moves(16_999, "a4a5");
    assert_eq!((moved.charged, moved.grace_used), (Span::ZERO, ms(4_999)));
}

#[test]
fn nothing_but_a_move_of_mine_stops_my_clock() {
    let mut settings = timed(per_move(10 * S), 0);
    settings.refusal_limit = Some(9);
    let mut table = Table::new(settings);
    table.does(S, &Command::OfferDraw(Blue));
    table.does(2 * S, &Command::DeclineDraw(Red));
    table.does(3 * S, &Command::OfferDraw(Red));
    table.does(4 * S, &move_of(Red, "a3a5"));
    assert_eq!(table.may_not(5 * S, &move_of(Blue, "g7g6")), Refusal::NotYourTurn { to_move: Red });
    assert_eq!((table.left(Red, 5 * S), table.game.deadline()), (ms(5 * S), Some(t(10 * S))));
    assert_eq!(table.moves(6 * S, "a3a4").charged, ms(6 * S));
}

#[test]
fn the_clocks_stop_with_the_game_and_show_what_was_left() {
    for command in [Command::Leave(Blue), abort()] {
        let mut table = Table::new(timed(stock(10 * S, 0), 2 * S));
        table.moves(3 * S, "a3a4");
        table.does(7 * S, &command);
        assert_eq!((table.left(Red, 99 * S), table.left(Blue, 99 * S)), (ms(7 * S), ms(6 * S)));
        assert_eq!((table.game.running(), table.game.deadline()), (None, None));
    }
}

// Games without a clock.

#[test]
fn an_untimed_game_in_which_nothing_happens_is_called_off_when_its_idle_limit_has_passed() {
    let mut table = Table::new(Settings { idle_limit: ms(60 * S), ..usual() });
    assert_eq!((table.game.remaining(Red, t(0)), table.game.running()), (None, None));
    let moved = table.moves(59_999, "a3a4");
    assert_eq!((moved.charged, moved.grace_used), (Span::ZERO, Span::ZERO));
    table.does(100_000, &Command::OfferDraw(Red));
    assert_eq!(table.game.deadline(), Some(t(160_000)));
    // A refused move is no event, and a look is none.
    assert!(matches!(table.may_not(150_000, &move_of(Blue, "g7g5")), Refusal::Forbidden(_)));
    assert!(matches!(table.may_not(160_000, &move_of(Blue, "g7g6")), Refusal::GameOver(_)));
    assert_eq!(table.ended(), Some((None, Reason::Aborted, t(160_000))));
    assert_eq!(table.last().event.kind, Kind::Aborted(AbortedBy::Service));
    let ending = table.game.ending().expect("ended");
    assert_eq!(ending.abort_reason.as_deref(), Some("nothing happened for the idle limit"));
}

#[test]
fn the_idle_limit_runs_from_when_the_last_event_was_written() {
    let mut table = Table::new(Settings { idle_limit: ms(60 * S), ..usual() });
    table.ask_at(t(10 * S), t(12 * S), &move_of(Red, "a3a4")).expect("a move");
    assert_eq!(table.game.deadline(), Some(t(72 * S)));
}

#[test]
fn a_running_clock_knows_no_idle_limit() {
    let settings = Settings { idle_limit: ms(S), ..timed(per_move(3_600 * S), 0) };
    let mut table = Table::new(settings);
    assert_eq!(table.settle(t(3_599_999)), 0);
    assert_eq!(table.game.status(), Status::Running);
}

#[test]
fn players_who_come_and_go_do_not_keep_an_idle_game_alive() {
    let settings = Settings { idle_limit: ms(60 * S), away_limit: Some(ms(30 * S)), ..usual() };
    let mut table = Table::new(settings);
    for side in [Red, Blue] {
        table.game.arrive(side);
    }
    for round in 0..5 {
        let _ = table.ask(round * 10 * S + 1, &Command::Depart(Red));
        let _ = table.ask(round * 10 * S + 9 * S, &Command::Arrive(Red));
    }
    assert_eq!(table.log.len(), 11, "five absences and five returns");
    table.settle(t(200 * S));
    assert_eq!(table.ended(), Some((None, Reason::Aborted, t(60 * S))));
}

// Two expiries to lose.

#[test]
fn my_first_expiry_is_announced_and_gives_me_a_fresh_allowance_from_its_date() {
    for grace in [0, 2 * S] {
        let mut table = Table::new(two_expiries(10 * S, grace));
        table.does(S, &Command::OfferDraw(Blue));
        let before = (*table.game.line(), table.game.offer());
        let first = 10 * S + grace;
        // Noticed late, dated by the clock.
        assert_eq!(table.settle(t(first + 3 * S)), 1);
        let record = table.last().clone();
        assert_eq!((record.event.kind, record.event.at), (Kind::TimeExpired(Red), t(first)));
        assert_eq!(record.event.ending, None);
        assert_eq!((table.game.expiries(Red), table.game.expiries(Blue)), (1, 0));
        assert_eq!((*table.game.line(), table.game.offer()), before, "no ply, round or quiet count, and no offer");
        assert_eq!(table.left(Red, first + 3 * S), ms(7 * S));
        assert_eq!(table.game.deadline(), Some(t(2 * first)));

        let moved = table.moves(first + 9 * S, "a3a4");
        assert_eq!((moved.charged, moved.grace_used), (ms(9 * S), Span::ZERO));
        assert_eq!((table.game.expiries(Red), table.left(Red, first + 9 * S)), (0, ms(10 * S)));
    }
}

#[test]
fn my_second_expiry_in_a_row_loses_and_two_that_are_found_late_have_their_own_dates() {
    for grace in [0, 2 * S] {
        let mut table = Table::new(two_expiries(10 * S, grace));
        let allowance = 10 * S + grace;
        assert_eq!(table.settle(t(3_600 * S)), 2);
        let dates: Vec<_> = table.log[1..].iter().map(|record| record.event.at).collect();
        assert_eq!(dates, [t(allowance), t(2 * allowance)]);
        assert!(table.log[1..].iter().all(|record| record.event.kind == Kind::TimeExpired(Red)));
        assert_eq!(table.ended(), Some((Some(Blue), Reason::Timeout, t(2 * allowance))));
        assert_eq!((table.game.expiries(Red), table.left(Red, 3_600 * S)), (2, Span::ZERO));
    }
}

#[test]
fn a_move_in_the_fresh_allowance_counts_until_its_very_end() {
    for (arrival, in_time) in [(10_000, true), (23_999, true), (24_000, false), (24_001, false)] {
        let mut table = Table::new(two_expiries(10 * S, 2 * S));
        let reply = table.ask(arrival, &move_of(Red, "a3a4"));
        assert_eq!(reply.is_ok(), in_time, "{arrival}");
    }
    let mut table = Table::new(two_expiries(10 * S, 2 * S));
    let moved = table.moves(23_500, "a3a4");
    assert_eq!((moved.charged, moved.grace_used), (ms(10 * S), ms(1_500)));
}

#[test]
fn only_a_completed_move_of_my_own_sets_my_tally_back() {
    let mut table = Table::new(two_expiries(10 * S, 0));
    table.moves(15 * S, "a3a4");
    assert_eq!(table.game.expiries(Red), 0);
    // Blue expires once and moves; Red's next expiry is again its first.
    table.moves(30 * S, "g7g6");
    assert_eq!((table.game.expiries(Red), table.game.expiries(Blue)), (0, 0));
    table.settle(t(40 * S));
    assert_eq!((table.game.expiries(Red), table.game.status()), (1, Status::Running));
    // A draw offer and a refused move are no completed moves.
    table.does(41 * S, &Command::OfferDraw(Red));
    assert!(matches!(table.may_not(42 * S, &move_of(Red, "a4a6")), Refusal::Forbidden(_)));
    table.settle(t(50 * S));
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Timeout, t(50 * S))));
}

#[test]
fn the_opponents_expiry_is_not_the_second_of_mine() {
    let mut table = Table::new(two_expiries(10 * S, 0));
    table.moves(19_999, "a3a4");
    table.settle(t(30_000));
    assert_eq!((table.game.expiries(Red), table.game.expiries(Blue)), (0, 1));
    assert_eq!(table.game.status(), Status::Running);
}

// How a game starts.

#[test]
fn a_game_starts_at_its_creation_unless_told_otherwise() {
    let table = Table::new(timed(per_move(10 * S), 0));
    assert_eq!((table.game.status(), table.game.started_at()), (Status::Running, Some(t(0))));
    assert_eq!(table.game.running(), Some((Red, t(0))));
    assert_eq!(table.log.len(), 1);
}

#[test]
fn a_game_that_starts_at_a_given_time_waits_for_it_and_runs_when_that_is_written() {
    let start = ClockStart::At(t(60 * S));
    let mut table = Table::new(Settings { clock_start: start, idle_limit: ms(S), ..timed(per_move(10 * S), 0) });
    assert_eq!((table.game.status(), table.game.deadline()), (Status::Waiting, Some(t(60 * S))));
    assert_eq!(table.may_not(59_999, &move_of(Red, "a3a4")), Refusal::NotStarted);
    assert_eq!(table.may_not(59_999, &Command::Show(Red)), Refusal::Nothing);
    assert_eq!(table.game.status(), Status::Waiting, "the idle limit is for games that run");
    table.settle(t(60_500));
    assert_eq!((&table.last().event.kind, table.last().event.at), (&Kind::Started, t(60_000)));
    assert_eq!((table.game.started_at(), table.game.running()), (Some(t(60_000)), Some((Red, t(60_500)))));
    assert_eq!(table.game.deadline(), Some(t(70_500)));
}

#[test]
fn a_move_that_arrives_at_the_start_time_is_played() {
    let start = ClockStart::At(t(60 * S));
    let mut table = Table::new(Settings { clock_start: start, ..timed(per_move(10 * S), 0) });
    assert_eq!(table.moves(60_000, "a3a4").charged, Span::ZERO);
}

#[test]
fn a_start_time_that_passed_while_the_game_was_being_made_starts_it_at_its_creation() {
    let start = ClockStart::At(jungle_referee::game::Time::from_micros(t(0).micros() - 1));
    let mut table = Table::new(Settings { clock_start: start, ..timed(per_move(10 * S), 0) });
    table.settle(t(0));
    assert_eq!((&table.last().event.kind, table.last().event.at), (&Kind::Started, t(0)));
}

#[test]
fn the_second_seat_to_show_itself_starts_the_game_in_one_event() {
    let start = ClockStart::WhenBothShown(ms(60 * S));
    let mut table = Table::new(Settings { clock_start: start, idle_limit: ms(S), ..timed(per_move(10 * S), 0) });
    assert_eq!((table.game.status(), table.game.deadline()), (Status::Waiting, Some(t(60 * S))));
    let first = table.does(10 * S, &Command::Show(Blue));
    assert_eq!(first.event.kind, Kind::SeatShown { side: Blue, starts: false });
    assert_eq!(table.may_not(20 * S, &Command::Show(Blue)), Refusal::Nothing);
    assert_eq!(table.may_not(20 * S, &move_of(Red, "a3a4")), Refusal::NotStarted);
    let second = table.ask_at(t(59_999), t(61_000), &Command::Show(Red)).expect("within the window");
    assert_eq!(second.event.kind, Kind::SeatShown { side: Red, starts: true });
    assert_eq!((table.log.len(), table.game.status()), (3, Status::Running));
    assert_eq!((table.game.started_at(), table.game.running()), (Some(t(59_999)), Some((Red, t(61_000)))));
    assert_eq!(table.may_not(62_000, &Command::Show(Red)), Refusal::Nothing);
}

#[test]
fn whoever_comes_when_the_join_window_is_shut_finds_the_game_called_off() {
    for shown in [None, Some(Red), Some(Blue)] {
        for arrival in [60_000, 60_001, 999_000] {
            let clock_start = ClockStart::WhenBothShown(ms(60 * S));
            let mut table = Table::new(Settings { clock_start, is_match: true, ..timed(per_move(10 * S), 0) });
            if let Some(side) = shown {
                table.does(S, &Command::Show(side));
            }
            let late = shown.map_or(Red, Side::opponent);
            assert_eq!(table.may_not(arrival, &Command::Show(late)), Refusal::Nothing);
            assert_eq!(table.ended(), Some((None, Reason::Aborted, t(60_000))));
            assert_eq!(table.last().event.kind, Kind::Aborted(AbortedBy::Service));
            let ending = table.game.ending().expect("ended");
            assert!(!ending.outcome.scored);
            let reason = "the two seats did not both show themselves in time";
            assert_eq!((ending.abort_reason.as_deref(), table.game.started_at()), (Some(reason), None));
        }
    }
}

#[test]
fn before_the_start_nothing_can_be_played_offered_or_answered() {
    for clock_start in [ClockStart::At(t(60 * S)), ClockStart::WhenBothShown(ms(60 * S))] {
        let mut table = Table::new(Settings { clock_start, refusal_limit: Some(1), ..usual() });
        for command in [
            move_of(Red, "a3a4"),
            move_of(Red, "a3a9"),
            move_of(Blue, "g7g6"),
            Command::OfferDraw(Red),
            Command::TakeBackDraw(Red),
            Command::AcceptDraw(Blue),
            Command::DeclineDraw(Blue),
        ] {
            assert_eq!(table.may_not(S, &command), Refusal::NotStarted, "{command:?}");
        }
        assert_eq!(table.log.len(), 1);
    }
}

// Absences.

fn with_away_limit(limit: u64) -> Table {
    let mut table = Table::new(Settings { away_limit: Some(ms(limit)), ..timed(per_move(3_600 * S), 0) });
    for side in [Red, Blue] {
        assert_eq!(table.may_not(0, &Command::Arrive(side)), Refusal::Nothing);
    }
    table
}

#[test]
fn my_absence_is_announced_after_five_seconds_and_loses_when_the_away_limit_has_passed_since() {
    assert_eq!(ABSENCE_NOTICE, ms(5 * S));
    for side in [Red, Blue] {
        let mut table = with_away_limit(30 * S);
        assert_eq!(table.may_not(10 * S, &Command::Depart(side)), Refusal::Nothing);
        assert_eq!(table.settle(t(14_999)), 0);
        assert_eq!(table.settle(t(15_000)), 1);
        assert_eq!((&table.last().event.kind, table.last().event.at), (&Kind::SeatAway(side), t(15_000)));
        assert_eq!(table.game.away_deadline(side), Some(t(45_000)));
        assert_eq!(table.settle(t(44_999)), 0);
        assert_eq!(table.settle(t(99_000)), 1);
        assert_eq!(table.last().event.kind, Kind::AwayExpired(side));
        assert_eq!(table.ended(), Some((Some(side.opponent()), Reason::Left, t(45_000))));
        assert_eq!(table.game.away_deadline(side), None);
    }
}

#[test]
fn my_return_stops_the_countdown_and_the_next_absence_begins_it_anew() {
    let mut table = with_away_limit(30 * S);
    let _ = table.ask(10 * S, &Command::Depart(Red));
    let back = table.does(44_999, &Command::Arrive(Red));
    assert_eq!((back.event.kind, back.event.at), (Kind::SeatReturned(Red), t(44_999)));
    assert_eq!((table.game.is_away(Red), table.game.away_deadline(Red)), (false, None));
    assert_eq!(table.settle(t(100_000)), 0);
    let _ = table.ask(100_000, &Command::Depart(Red));
    table.settle(t(200_000));
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Left, t(135_000))));
}

#[test]
fn a_return_in_the_very_instant_of_the_limit_comes_too_late() {
    let mut table = with_away_limit(30 * S);
    let _ = table.ask(10 * S, &Command::Depart(Red));
    assert_eq!(table.may_not(45_000, &Command::Arrive(Red)), Refusal::Nothing);
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Left, t(45_000))));
}

#[test]
fn a_short_absence_is_nobodys_business() {
    let mut table = with_away_limit(30 * S);
    for round in 1..20 {
        let _ = table.ask(round * 10 * S, &Command::Depart(Red));
        assert_eq!(table.may_not(round * 10 * S + 4_999, &Command::Arrive(Red)), Refusal::Nothing);
    }
    assert_eq!(table.log.len(), 1);
}

#[test]
fn when_both_are_away_at_the_first_expiry_nobody_wins() {
    // Blue goes when Red's countdown runs already: at the same time, a little later, just announced.
    for blue_goes in [10 * S, 12 * S, 39_999] {
        let mut table = with_away_limit(30 * S);
        let _ = table.ask(10 * S, &Command::Depart(Red));
        let _ = table.ask(blue_goes, &Command::Depart(Blue));
        table.settle(t(999_000));
        assert_eq!(table.ended(), Some((None, Reason::Aborted, t(45_000))), "{blue_goes}");
        assert_eq!(table.last().event.kind, Kind::AwayExpired(Red));
        let ending = table.game.ending().expect("ended");
        assert_eq!(ending.abort_reason.as_deref(), Some("both sides were away"));
    }
    // Not yet announced: Blue is not away.
    for blue_goes in [40_000, 44_000] {
        let mut table = with_away_limit(30 * S);
        let _ = table.ask(10 * S, &Command::Depart(Red));
        let _ = table.ask(blue_goes, &Command::Depart(Blue));
        table.settle(t(999_000));
        assert_eq!(table.ended(), Some((Some(Blue), Reason::Left, t(45_000))), "{blue_goes}");
    }
}

#[test]
fn absence_before_the_start_does_not_count() {
    for clock_start in [ClockStart::At(t(100 * S)), ClockStart::WhenBothShown(ms(200 * S))] {
        let settings = Settings { clock_start, away_limit: Some(ms(30 * S)), ..timed(per_move(3_600 * S), 0) };
        let mut table = Table::new(settings);
        let _ = table.ask(0, &Command::Arrive(Blue));
        assert_eq!(table.settle(t(99_999)), 0);
        for side in [Red, Blue] {
            let _ = table.ask(100_000, &Command::Show(side));
        }
        assert_eq!(table.game.started_at(), Some(t(100_000)));
        assert_eq!(table.game.deadline(), Some(t(105_000)));
        table.settle(t(999_000));
        assert_eq!(table.ended(), Some((Some(Blue), Reason::Left, t(135_000))));
    }
}

#[test]
fn who_never_comes_to_a_running_game_is_away_from_its_start() {
    let mut table = Table::new(Settings { away_limit: Some(ms(30 * S)), ..timed(per_move(3_600 * S), 0) });
    let _ = table.ask(0, &Command::Arrive(Red));
    table.settle(t(999_000));
    assert_eq!(table.ended(), Some((Some(Red), Reason::Left, t(35_000))));
}

#[test]
fn moves_are_played_while_a_countdown_runs_and_do_not_stop_it() {
    let mut table = with_away_limit(30 * S);
    let _ = table.ask(10 * S, &Command::Depart(Red));
    table.moves(20 * S, "a3a4");
    table.moves(30 * S, "g7g6");
    assert_eq!(table.game.away_deadline(Red), Some(t(45_000)));
}

#[test]
fn the_countdown_ends_with_the_game() {
    let mut table = with_away_limit(30 * S);
    let _ = table.ask(10 * S, &Command::Depart(Red));
    table.does(20 * S, &Command::Leave(Blue));
    assert_eq!((table.game.is_away(Red), table.game.deadline()), (false, None));
    assert_eq!(table.may_not(21 * S, &Command::Arrive(Red)), Refusal::Nothing);
    assert_eq!(table.may_not(22 * S, &Command::Depart(Blue)), Refusal::Nothing);
    assert_eq!(table.settle(t(999_000)), 0);
}

#[test]
fn without_an_away_limit_nobody_is_ever_away() {
    let mut table = Table::new(timed(per_move(3_600 * S), 0));
    assert_eq!(table.settle(t(3_599_999)), 0);
    assert!(!table.game.is_away(Red));
}

#[test]
fn a_flag_and_an_absence_in_the_same_instant_are_a_flag() {
    let mut table = Table::new(Settings { away_limit: Some(ms(30 * S)), ..timed(per_move(35 * S), 0) });
    let _ = table.ask(0, &Command::Arrive(Red));
    table.settle(t(999_000));
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Timeout, t(35_000))));
}

// Draws.

#[test]
fn i_may_offer_a_draw_on_and_off_turn_and_either_answer_settles_it() {
    for maker in [Red, Blue] {
        let mut table = Table::new(usual());
        let offered = table.does(S, &Command::OfferDraw(maker));
        assert_eq!(offered.event.kind, Kind::DrawOffered(maker));
        assert_eq!(table.game.offer().map(|offer| (offer.side, offer.ply)), Some((maker, 0)));

        let mut declined = table.clone();
        let record = declined.does(2 * S, &Command::DeclineDraw(maker.opponent()));
        assert_eq!(record.event.kind, Kind::DrawDeclined(maker.opponent()));
        assert_eq!((declined.game.offer(), declined.game.status()), (None, Status::Running));

        let mut taken_back = table.clone();
        let record = taken_back.does(2 * S, &Command::TakeBackDraw(maker));
        assert_eq!(record.event.kind, Kind::DrawTakenBack(maker));
        assert_eq!(taken_back.game.offer(), None);
        assert_eq!(taken_back.may_not(3 * S, &Command::AcceptDraw(maker.opponent())), Refusal::NoOffer);

        let record = table.does(2 * S, &Command::AcceptDraw(maker.opponent()));
        assert_eq!(record.event.kind, Kind::DrawAccepted(maker.opponent()));
        assert_eq!(table.ended(), Some((None, Reason::Agreement, t(2 * S))));
        assert_eq!(table.game.offer(), None);
    }
}

#[test]
fn my_offer_stands_until_the_opponent_completes_a_move_not_until_i_do() {
    let mut table = Table::new(usual());
    table.does(S, &Command::OfferDraw(Red));
    table.moves(2 * S, "a3a4");
    assert_eq!(table.game.offer().map(|offer| (offer.side, offer.ply)), Some((Red, 0)));
    assert!(matches!(table.may_not(3 * S, &move_of(Blue, "g7g5")), Refusal::Forbidden(_)));
    assert!(table.game.offer().is_some(), "a refused move is no completed one");
    table.moves(4 * S, "g7g6");
    assert_eq!(table.game.offer(), None);
    assert_eq!(table.may_not(5 * S, &Command::AcceptDraw(Blue)), Refusal::NoOffer);
}

#[test]
fn i_cannot_answer_my_own_offer_nor_take_back_the_opponents() {
    let mut table = Table::new(usual());
    for command in [Command::AcceptDraw(Red), Command::DeclineDraw(Red), Command::TakeBackDraw(Red)] {
        assert_eq!(table.may_not(S, &command), Refusal::NoOffer);
    }
    table.does(S, &Command::OfferDraw(Red));
    for command in [Command::AcceptDraw(Red), Command::DeclineDraw(Red), Command::TakeBackDraw(Blue)] {
        assert_eq!(table.may_not(S, &command), Refusal::NoOffer);
    }
}

#[test]
fn one_offer_is_open_at_a_time() {
    for second in [Red, Blue] {
        let mut table = Table::new(usual());
        table.does(S, &Command::OfferDraw(Red));
        assert_eq!(table.may_not(S, &Command::OfferDraw(second)), Refusal::OfferOpen { by: Red });
    }
}

#[test]
fn each_side_has_one_offer_a_ply() {
    let mut table = Table::new(usual());
    table.does(S, &Command::OfferDraw(Red));
    table.does(S, &Command::TakeBackDraw(Red));
    assert_eq!(table.may_not(S, &Command::OfferDraw(Red)), Refusal::AlreadyOffered { ply: 0 });
    table.does(S, &Command::OfferDraw(Blue));
    table.does(S, &Command::DeclineDraw(Red));
    assert_eq!(table.may_not(S, &Command::OfferDraw(Blue)), Refusal::AlreadyOffered { ply: 0 });
    assert_eq!(table.may_not(S, &Command::OfferDraw(Red)), Refusal::AlreadyOffered { ply: 0 });
    table.moves(2 * S, "a3a4");
    for side in [Red, Blue] {
        table.does(2 * S, &Command::OfferDraw(side));
        table.does(2 * S, &Command::TakeBackDraw(side));
    }
}

/// What becomes of an offer that comes with Red's move a3a4, after what was done before.
#[test]
fn a_move_is_judged_whatever_becomes_of_the_offer_with_it() {
    let off = Ruleset { agreed_draw: false, ..Ruleset::YESHOU };
    type Case<'a> = (Ruleset, &'a [Command], OfferResult, Option<(Side, u32)>);
    let cases: [Case<'_>; 5] = [
        (Ruleset::YESHOU, &[], OfferResult::Made, Some((Red, 0))),
        (off, &[], OfferResult::DrawsOff, None),
        (Ruleset::YESHOU, &[Command::OfferDraw(Red)], OfferResult::OfferOpen, Some((Red, 0))),
        // The move is an answer to the other side's offer: it lapses.
        (Ruleset::YESHOU, &[Command::OfferDraw(Blue)], OfferResult::OfferOpen, None),
        (Ruleset::YESHOU, &[Command::OfferDraw(Red), Command::DeclineDraw(Blue)], OfferResult::AlreadyOffered, None),
    ];
    for (ruleset, before, result, open) in cases {
        let mut table = Table::new(Settings { ruleset, ..usual() });
        for command in before {
            table.does(S, command);
        }
        let record = table.does(2 * S, &move_offering(Red, "a3a4"));
        let Kind::Moved(moved) = record.event.kind else { panic!("no move") };
        assert_eq!(moved.offer, result, "{before:?}");
        assert_eq!(table.game.offer().map(|offer| (offer.side, offer.ply)), open, "{before:?}");
    }
}

#[test]
fn an_offer_with_a_move_counts_for_that_moves_ply_and_can_be_accepted() {
    let mut table = Table::new(usual());
    table.does(S, &move_offering(Red, "a3a4"));
    let mut accepted = table.clone();
    accepted.does(2 * S, &Command::AcceptDraw(Blue));
    assert_eq!(accepted.ended(), Some((None, Reason::Agreement, t(2 * S))));
    // Declined, it was the offer of ply 0; ply 1 has its own.
    table.does(2 * S, &Command::DeclineDraw(Blue));
    table.does(3 * S, &Command::OfferDraw(Red));
}

#[test]
fn an_offer_with_a_move_that_ends_the_game_or_is_refused_is_not_made() {
    let mut table = Table::new(Settings { start: set_up(BEFORE_THE_DEN), ..usual() });
    assert!(matches!(table.may_not(S, &move_offering(Red, "d8d6")), Refusal::Forbidden(_)));
    assert_eq!((table.game.offer(), table.game.has_offered(Red)), (None, false));
    let record = table.does(S, &move_offering(Red, "d8d9"));
    let Kind::Moved(moved) = record.event.kind else { panic!("no move") };
    assert_eq!((moved.offer, table.game.offer()), (OfferResult::GameOver, None));
}

#[test]
fn without_agreed_draws_nothing_is_offered_or_answered() {
    let mut table = Table::new(Settings { ruleset: Ruleset { agreed_draw: false, ..Ruleset::YESHOU }, ..usual() });
    for command in
        [Command::OfferDraw(Red), Command::TakeBackDraw(Red), Command::AcceptDraw(Blue), Command::DeclineDraw(Blue)]
    {
        assert_eq!(table.may_not(S, &command), Refusal::DrawsOff);
    }
}

#[test]
fn accepting_in_the_very_instant_of_the_flag_comes_too_late() {
    let mut table = Table::new(timed(per_move(10 * S), 0));
    table.does(S, &Command::OfferDraw(Blue));
    assert!(matches!(table.may_not(10 * S, &Command::AcceptDraw(Red)), Refusal::GameOver(_)));
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Timeout, t(10 * S))));
}

// Leaving, calling off, refusals.

#[test]
fn who_leaves_loses_and_before_the_start_calls_the_game_off() {
    for side in [Red, Blue] {
        let mut running = Table::new(usual());
        let record = running.does(S, &Command::Leave(side));
        assert_eq!(record.event.kind, Kind::SeatLeft(side));
        assert_eq!(running.ended(), Some((Some(side.opponent()), Reason::Left, t(S))));
        for clock_start in [ClockStart::At(t(60 * S)), ClockStart::WhenBothShown(ms(60 * S))] {
            let mut waiting = Table::new(Settings { clock_start, ..usual() });
            let record = waiting.does(S, &Command::Leave(side));
            assert_eq!(record.event.kind, Kind::SeatLeft(side));
            assert_eq!(waiting.ended(), Some((None, Reason::Aborted, t(S))));
            assert!(waiting.game.ending().expect("ended").abort_reason.is_some());
            assert_eq!((waiting.game.started_at(), waiting.game.deadline()), (None, None));
        }
    }
}

#[test]
fn a_game_can_be_called_off_at_any_time_and_the_reason_is_kept() {
    for clock_start in [ClockStart::AtCreation, ClockStart::At(t(60 * S)), ClockStart::WhenBothShown(ms(60 * S))] {
        for (by_creator, by) in [(false, AbortedBy::Arbiter), (true, AbortedBy::Creator)] {
            let mut table = Table::new(Settings { clock_start, ..usual() });
            let record = table.does(S, &Command::Abort { by_creator, reason: "rain".into() });
            assert_eq!(record.event.kind, Kind::Aborted(by));
            assert_eq!(table.ended(), Some((None, Reason::Aborted, t(S))));
            let ending = table.game.ending().expect("ended");
            assert_eq!((ending.abort_reason.as_deref(), ending.outcome.points()), (Some("rain"), (0, 0)));
        }
    }
}

#[test]
fn an_outcome_is_final_whatever_is_asked_and_however_much_time_passes() {
    let mut table = Table::new(Settings { away_limit: Some(ms(S)), ..timed(per_move(10 * S), 0) });
    table.does(S, &Command::Leave(Red));
    for command in [
        move_of(Red, "a3a4"),
        move_of(Blue, "g7g6"),
        Command::OfferDraw(Red),
        Command::TakeBackDraw(Red),
        Command::AcceptDraw(Blue),
        Command::DeclineDraw(Blue),
        Command::Leave(Blue),
        abort(),
    ] {
        assert!(matches!(table.may_not(2 * S, &command), Refusal::GameOver(_)), "{command:?}");
    }
    for command in [Command::Show(Red), Command::Arrive(Red), Command::Depart(Red), Command::Tick] {
        assert_eq!(table.may_not(99_999 * S, &command), Refusal::Nothing);
    }
    assert_eq!(table.log.len(), 2);
}

#[test]
fn refused_moves_count_over_the_whole_game_and_the_last_of_the_limit_loses() {
    let mut table = Table::new(Settings { refusal_limit: Some(3), ..timed(per_move(10 * S), 0) });
    let before = *table.game.line();
    let record = table.does(S, &move_of(Red, "a3a5"));
    let Kind::Refused { side, violation, .. } = record.event.kind else { panic!("no refusal") };
    assert_eq!((side, violation.rule()), (Red, Rule::Step));
    assert_eq!((*table.game.line(), table.game.deadline()), (before, Some(t(10 * S))));
    table.moves(2 * S, "a3a4");
    table.does(3 * S, &move_of(Blue, "g7g9"));
    // What is not judged by the rules does not count.
    assert_eq!(table.may_not(3 * S, &move_of(Red, "a4a9")), Refusal::NotYourTurn { to_move: Blue });
    let stale = Command::Move { side: Blue, mv: support::mv("g7g9"), expected_ply: Some(0), offer_draw: false };
    assert_eq!(table.may_not(3 * S, &stale), Refusal::StalePly { expected: 0, ply: 1 });
    table.moves(4 * S, "g7g6");
    table.does(5 * S, &move_of(Red, "d5d6"));
    assert_eq!((table.game.refusals(Red), table.game.refusals(Blue)), (2, 1));
    let last = table.does(6 * S, &move_of(Red, "a4a4"));
    assert!(matches!(last.event.kind, Kind::Refused { side: Red, .. }));
    assert_eq!(table.ended(), Some((Some(Blue), Reason::Forfeit, t(6 * S))));
    assert_eq!(table.game.refusals(Red), 3);
}

#[test]
fn without_a_refusal_limit_a_refused_move_leaves_no_trace() {
    let mut table = Table::new(timed(per_move(10 * S), 0));
    let before = table.game.clone();
    for at in 1..100 {
        assert!(matches!(table.may_not(at, &move_of(Red, "a3a5")), Refusal::Forbidden(_)));
    }
    assert_eq!(table.game, before);
}

// What a game is worth.

/// How one game comes to its end.
struct Course {
    reason: Reason,
    start: &'static str,
    no_capture_rounds: u16,
    moves: &'static str,
    /// What ends it, if no move does.
    last: Option<Command>,
    winner: Option<Side>,
}

#[test]
fn a_short_game_scores_nothing_unless_it_is_a_match_and_an_aborted_one_never_does() {
    let usual = "l5t/1d3c1/r1p1w1e/7/7/7/E1W1P1R/1C3D1/T5L r 0 1";
    let course =
        |reason, start, moves, last, winner| Course { reason, start, no_capture_rounds: 100, moves, last, winner };
    let three = "a3a4 g7g6 a4a5";
    let courses = [
        course(Reason::Den, "6e/7/3T3/7/7/7/7/7/6P r 0 1", "d7d8 g9g8 d8d9", None, Some(Red)),
        course(Reason::AllCaptured, "7/7/7/7/7/r6/7/7/C6 r 0 1", "a1a2 a4a3 a2a3", None, Some(Red)),
        course(Reason::NoMoves, "c6/LT5/7/7/7/7/7/7/7 r 0 1", "b8b9", None, Some(Red)),
        Course { no_capture_rounds: 2, ..course(Reason::NoCapture, usual, "a3a4 g7g6 a4a3 g6g7", None, None) },
        course(Reason::Timeout, usual, three, Some(Command::Tick), Some(Red)),
        course(Reason::Left, usual, three, Some(Command::Leave(Red)), Some(Blue)),
        course(Reason::Agreement, usual, three, Some(Command::AcceptDraw(Blue)), None),
        course(Reason::Forfeit, usual, three, Some(move_of(Blue, "a9a5")), Some(Red)),
        course(Reason::Aborted, usual, three, Some(abort()), None),
    ];
    assert_eq!(courses.each_ref().map(|course| course.reason), Reason::ALL);
    for course in &courses {
        for is_match in [false, true] {
            for short_game_rounds in [0, 1, 2, 10] {
                check_points(course, is_match, short_game_rounds);
            }
        }
    }
}

#[track_caller]
fn check_points(course: &Course, is_match: bool, short_game_rounds: u8) {
    let ruleset = Ruleset { short_game_rounds, no_capture_rounds: course.no_capture_rounds, ..Ruleset::YESHOU };
    let start = Position::set_up(course.start, &ruleset).expect("a start");
    let refusal_limit = Some(1);
    let mut table = Table::new(Settings { ruleset, start, is_match, refusal_limit, ..timed(per_move(10 * S), 0) });
    for mv in course.moves.split_whitespace() {
        table.moves(S, mv);
    }
    match &course.last {
        Some(Command::Tick) => drop(table.settle(t(60 * S))),
        Some(command @ Command::AcceptDraw(side)) => {
            table.does(S, &Command::OfferDraw(side.opponent()));
            table.does(S, command);
        }
        command => drop(command.as_ref().map(|command| table.does(S, command))),
    }
    let plies = course.moves.split_whitespace().count();
    let short = plies <= 2 * usize::from(short_game_rounds);
    let scored = course.reason != Reason::Aborted && (is_match || !short);
    let points = match (scored, course.winner) {
        (false, _) => (0, 0),
        (true, Some(Red)) => (2, 0),
        (true, Some(Blue)) => (0, 2),
        (true, None) => (1, 1),
    };
    let outcome = table.game.ending().expect("ended").outcome;
    let told = (outcome.reason, outcome.winner, outcome.scored, outcome.points());
    assert_eq!(told, (course.reason, course.winner, scored, points), "match {is_match}, short {short_game_rounds}");
    assert_eq!(table.last().event.ending.as_ref(), table.game.ending());
}

#[test]
fn a_forfeit_at_ply_twenty_is_of_a_short_game_and_at_ply_twenty_one_it_is_not() {
    for (plies, is_match, points) in
        [(20, false, (0, 0)), (21, false, (2, 0)), (20, true, (0, 2)), (21, true, (2, 0)), (0, false, (0, 0))]
    {
        let mut table = Table::new(Settings { refusal_limit: Some(1), is_match, ..usual() });
        table.plays_on(S, plies);
        let side = table.game.line().position().side_to_move();
        table.does(2 * S, &Command::Move { side, mv: support::mv("d5d5"), expected_ply: None, offer_draw: false });
        let outcome = table.game.ending().expect("ended").outcome;
        assert_eq!(table.game.line().ply(), plies);
        assert_eq!((outcome.reason, outcome.winner), (Reason::Forfeit, Some(side.opponent())));
        assert_eq!(outcome.points(), points, "{plies} plies, match {is_match}");
    }
}

#[test]
fn a_control_names_what_it_gives() {
    assert_eq!((TimeControl::Untimed.initial(), per_move(S).initial()), (None, Some(ms(S))));
    assert_eq!(stock(S, 5).after_move(ms(7)), ms(12));
}
