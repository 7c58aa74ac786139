//! The door of `LegalMoves`: a position and moves that lead on from it, from anybody, without a game.

use std::sync::{Arc, LazyLock};

use clap::Parser;
use futures_util::FutureExt as _;
use jungle_referee::app::Ports;
use jungle_referee::config::{Config, ServeArgs};
use jungle_referee::runtime::Registry;
use jungle_referee::service::Referee;
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::referee_service_server::RefereeService as _;
use jungle_referee::service::proto::{LegalMovesRequest, LegalMovesResponse, Move, MoveLine};
use prost::Message as _;
use tonic::{Code, Request, Status};

/// Any bytes are no request, or are answered at once: with the field that is wrong, or with a list that agrees
/// with what becomes of each move when it is made.
pub fn line_door(data: &[u8]) {
    let Ok(request) = LegalMovesRequest::decode(data) else { return };
    match ask(request.clone()) {
        Ok(reply) => {
            if let Some(Subject::Line(line)) = request.subject {
                hold_to_it(&line, &reply);
            }
        }
        Err(status) => {
            let known = matches!(status.code(), Code::InvalidArgument | Code::NotFound);
            assert!(known && !status.message().is_empty() && !status.details().is_empty(), "{status:?}");
        }
    }
}

/// The real service, asked by nobody in particular.
fn ask(request: LegalMovesRequest) -> Result<LegalMovesResponse, Status> {
    static REFEREE: LazyLock<Referee> = LazyLock::new(referee);
    let answer = REFEREE.legal_moves(Request::new(request)).now_or_never().expect("a line waits for nobody");
    answer.map(tonic::Response::into_inner)
}

/// Its settings are a server's by default.
fn referee() -> Referee {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        serve: ServeArgs,
    }
    let config = Config::from_args(&Flags::parse_from(["fuzz"]).serve).expect("the defaults are right");
    let Ports { clock, ids, log } = Ports::in_memory();
    let registry = Registry::new(clock, ids, log, config.limits);
    Referee::new(Arc::new(registry), config.keys, config.service, Arc::default())
}

/// Each candidate is made: allowed and listed, or refused and not listed.
fn hold_to_it(line: &MoveLine, reply: &LegalMovesResponse) {
    let listed: Vec<(&str, &str)> =
        reply.moves.iter().map(|mv| (mv.from_square.as_str(), mv.to_square.as_str())).collect();
    assert!(reply.outcome.is_none() || (listed.is_empty() && reply.candidates.is_empty()), "no move after the end");
    assert!(reply.outcome.is_some() || reply.ply.is_some_and(|ply| ply as usize == line.moves.len()));
    for candidate in &reply.candidates {
        let pair = (candidate.from_square.as_str(), candidate.to_square.as_str());
        let allowed = candidate.violation.is_none();
        assert_eq!(allowed, listed.contains(&pair), "{pair:?} in {line:?}");
        assert_eq!(allowed, made(line, pair).is_ok(), "{pair:?} after {line:?}");
    }
}

/// The line with one move more.
fn made(line: &MoveLine, (from, to): (&str, &str)) -> Result<LegalMovesResponse, Status> {
    let mut line = line.clone();
    line.moves.push(Move { from_square: from.to_owned(), to_square: to.to_owned() });
    ask(LegalMovesRequest { subject: Some(Subject::Line(line)), ..LegalMovesRequest::default() })
}
