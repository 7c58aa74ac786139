//! Unary calls: the referee beside the bare echo, in turn, in one run.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, Parser};
use jungle_referee::service::proto as pb;
use prost::Message as _;

use crate::cpu::{Led, SERVER_CORE, this_program};
use crate::drive::{self, Connection, Run, Script};
use crate::echo;
use crate::fill::{Tokens, game_id, request_id};
use crate::lines::{Lines, PLIES, Ply};
use crate::table::{self, Sample, percentile};

/// The ply at which the games stand that are read.
pub(crate) const READ_AT: usize = 30;

/// How many games the echo is asked about.
const ECHO_GAMES: usize = 1_000;

/// How often a side is measured before its figures count: caches and the like grow warm.
const WARM_CALLS: usize = 2_000;

/// A call that is measured. Reads come first: they leave the games as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A game of thirty plies.
    GetGame,
    /// The legal moves of a game.
    LegalMoves,
    /// A move that is refused.
    Refused,
    /// A move that is accepted.
    Accepted,
}

impl Kind {
    /// Its name in the tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "SubmitMove accepted",
            Self::Refused => "SubmitMove refused",
            Self::LegalMoves => "LegalMoves",
            Self::GetGame => "GetGame, 30 plies",
        }
    }

    const fn method(self) -> &'static str {
        match self {
            Self::Accepted | Self::Refused => "/jungle.v1.RefereeService/SubmitMove",
            Self::LegalMoves => "/jungle.v1.RefereeService/LegalMoves",
            Self::GetGame => "/jungle.v1.RefereeService/GetGame",
        }
    }
}

/// How a kind is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// What is asked.
    pub(crate) kind: Kind,
    /// How many calls are in flight together.
    pub(crate) in_flight: usize,
    /// On how many connections.
    pub(crate) connections: usize,
    /// How many calls a measurement takes.
    pub(crate) calls: usize,
}

/// What is measured of the calls.
#[derive(Args)]
pub(crate) struct CallsArgs {
    /// Which calls.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "get-game,legal-moves,refused,accepted")]
    kinds: Vec<Kind>,
    /// How often each server is measured, in turn with the others.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How many calls a measurement takes.
    #[arg(long, default_value_t = 60_000)]
    calls: usize,
    /// With how many open games, a server each.
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    games: Vec<usize>,
    /// Other builds of this program, to be measured beside it: a server each.
    #[arg(long, value_delimiter = ',')]
    programs: Vec<PathBuf>,
    /// How many calls in flight.
    #[arg(long, value_delimiter = ',', default_value = "64")]
    in_flight: Vec<usize>,
    /// On how many connections.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    connections: Vec<usize>,
}

impl CallsArgs {
    /// What is measured unless something else is asked for.
    pub(crate) fn usual() -> Self {
        #[derive(Parser)]
        struct Usual {
            #[command(flatten)]
            args: CallsArgs,
        }
        Usual::parse_from(["calls"]).args
    }
}

/// Measures each kind of call at each load, and prints the table.
pub(crate) async fn all(args: &CallsArgs) {
    // A game is asked one thing at a time, and the echo's book has as many games as the usual referee.
    let fewest = args.games.iter().copied().fold(ECHO_GAMES, usize::min);
    assert!(args.in_flight.iter().all(|in_flight| *in_flight < fewest), "fewer calls in flight than games");
    let lines = Rc::new(Lines::new());
    let mut echo = Contestant::echo(&lines);
    let mut referees = Vec::new();
    for games in args.games.iter().copied() {
        referees.push(Contestant::referee(&format!("{games} games"), &this_program(), &[], games, &lines));
        for program in &args.programs {
            let name = program.file_name().expect("a file").to_string_lossy();
            referees.push(Contestant::referee(&format!("{name}, {games} games"), program, &[], games, &lines));
        }
    }
    println!("{}", table::CALLS);
    let mut kinds = args.kinds.clone();
    kinds.sort();
    for kind in kinds {
        for connections in args.connections.iter().copied() {
            for in_flight in args.in_flight.iter().copied().filter(|in_flight| *in_flight >= connections) {
                let load = Load { kind, in_flight, connections, calls: args.calls };
                compare(load, args.rounds, &mut echo, &mut referees).await;
            }
        }
    }
}

/// Measures the echo and the referees in turn, and prints their rows.
async fn compare(load: Load, rounds: usize, echo: &mut Contestant, referees: &mut [Contestant]) {
    let mut samples = vec![Vec::new(); referees.len()];
    let mut echoes = Vec::new();
    for _ in 0..rounds {
        for (referee, samples) in referees.iter_mut().zip(&mut samples) {
            samples.push(referee.measure(load, 0).await);
        }
        let size = samples[0].last().map_or(0, |sample| sample.size);
        echoes.push(echo.measure(load, size).await);
    }
    let head = |name: &str| format!("{} | {name} | {} | {}", load.kind.name(), load.in_flight, load.connections);
    println!("{}", table::row(&head(&echo.name), &echoes, &echoes, &samples[0]));
    for (referee, own) in referees.iter().zip(&samples) {
        println!("{}", table::row(&head(&referee.name), own, &echoes, &samples[0]));
    }
}

/// A server that is measured.
pub(crate) struct Contestant {
    /// Its name in the tables.
    pub(crate) name: String,
    server: Led,
    /// The games that it has; the echo has none, and is asked the same.
    book: Rc<RefCell<Book>>,
    is_echo: bool,
}

/// Which games there are, and how far each has come.
struct Book {
    first: u64,
    plies: Vec<u8>,
    busy: Vec<bool>,
    turn: usize,
    lines: Rc<Lines>,
    tokens: Tokens,
    /// How many requests there were: each has its own id.
    requests: usize,
}

impl Contestant {
    /// A referee with so many open games, each at the ply at which games are read.
    pub(crate) fn referee(name: &str, program: &Path, flags: &[&str], games: usize, lines: &Rc<Lines>) -> Self {
        let role = [&["serve-referee", "--keep-finished", "1"], flags].concat();
        let mut server = Led::start_program(program, SERVER_CORE, &role);
        server.ask(&format!("fill 0 {games} {READ_AT}"));
        Self::new(name, server, games, lines, false)
    }

    /// The bare echo.
    pub(crate) fn echo(lines: &Rc<Lines>) -> Self {
        Self::new("echo", Led::start(SERVER_CORE, &["serve-echo"]), ECHO_GAMES, lines, true)
    }

    fn new(name: &str, server: Led, games: usize, lines: &Rc<Lines>, is_echo: bool) -> Self {
        let book = Book {
            first: 0,
            plies: vec![u8::try_from(READ_AT).expect("small"); games],
            busy: vec![false; games],
            turn: 0,
            lines: Rc::clone(lines),
            tokens: Tokens::new(),
            requests: 0,
        };
        Self { name: name.to_owned(), server, book: Rc::new(RefCell::new(book)), is_echo }
    }

    /// Measures it once. The echo answers `size` bytes; a referee what it has to say.
    pub(crate) async fn measure(&mut self, load: Load, size: usize) -> Sample {
        self.make_room(load.calls + WARM_CALLS);
        let size = self.is_echo.then_some(size);
        let method = size.map_or_else(|| load.kind.method().to_owned(), echo::method);
        let mut connections = Vec::new();
        for _ in 0..load.connections {
            connections.push(Connection::open(&self.server.address, &method).await);
        }
        let mut scripts: Vec<Asked> =
            (0..load.connections).map(|_| Asked { kind: load.kind, size, book: Rc::clone(&self.book) }).collect();
        drive::run(&mut connections, &mut scripts, load.in_flight, WARM_CALLS).await;
        let before = self.server.spent();
        let run = drive::run(&mut connections, &mut scripts, load.in_flight, load.calls).await;
        sample(run, self.server.spent() - before)
    }

    /// Sees to it that no game comes to the end of its line: new ones take the place of those that might.
    fn make_room(&mut self, calls: usize) {
        let mut book = self.book.borrow_mut();
        let games = book.plies.len();
        let farthest = usize::from(*book.plies.iter().max().expect("games"));
        if farthest + calls.div_ceil(games) + 1 < PLIES {
            return;
        }
        if !self.is_echo {
            self.server.ask(&format!("end {} {games}", book.first));
            book.first += u64::try_from(games).expect("64 bits");
            self.server.ask(&format!("fill {} {games} {READ_AT}", book.first));
        }
        book.plies.fill(u8::try_from(READ_AT).expect("small"));
    }
}

fn sample(mut run: Run, spent: Duration) -> Sample {
    let calls = u32::try_from(run.each.len()).expect("a measurement's worth");
    run.each.sort_unstable();
    Sample {
        cpu: spent / calls,
        took: run.took / calls,
        busy: spent.as_secs_f64() / run.took.as_secs_f64(),
        half: percentile(&run.each, 0.5),
        most: percentile(&run.each, 0.99),
        size: run.bytes / run.each.len(),
    }
}

/// What a connection asks, and what it must hear.
struct Asked {
    kind: Kind,
    /// The size of an answer of the echo's.
    size: Option<usize>,
    book: Rc<RefCell<Book>>,
}

impl Book {
    /// Takes the next game that no call is under way for: in no order that a cache would like.
    fn take(&mut self) -> usize {
        const STRIDE: usize = 1_000_003;
        loop {
            self.turn += 1;
            let game = self.turn * STRIDE % self.plies.len();
            if !std::mem::replace(&mut self.busy[game], true) {
                return game;
            }
        }
    }

    fn number(&self, game: usize) -> u64 {
        self.first + u64::try_from(game).expect("64 bits")
    }

    fn ply(&self, game: usize) -> (usize, &Ply) {
        let ply = usize::from(self.plies[game]);
        (ply, &self.lines.of(self.number(game))[ply])
    }
}

impl Script for Asked {
    fn ask(&mut self, token: &mut String, message: &mut Vec<u8>) -> usize {
        let mut book = self.book.borrow_mut();
        book.requests += 1;
        let game = book.take();
        let (number, (ply, next)) = (book.number(game), book.ply(game));
        *token = book.tokens.mover(number, ply);
        message.clear();
        let game_id = game_id(number).to_string();
        let mv = match self.kind {
            Kind::Accepted => next.mv,
            Kind::Refused => next.refused.0,
            Kind::GetGame => {
                pb::GetGameRequest { game_id }.encode(message).expect("room");
                return game;
            }
            Kind::LegalMoves => {
                let subject = Some(pb::legal_moves_request::Subject::GameId(game_id));
                pb::LegalMovesRequest { subject, from_square: None, explain: false }.encode(message).expect("room");
                return game;
            }
        };
        let request = pb::SubmitMoveRequest {
            request_id: uuid::Uuid::from_u128(request_id(u64::MAX, book.requests)).to_string(),
            game_id,
            expected_ply: Some(u32::try_from(ply).expect("small")),
            from_square: mv.from.to_string(),
            to_square: mv.to.to_string(),
            offer_draw: false,
        };
        request.encode(message).expect("room");
        game
    }

    fn answered(&mut self, game: usize, message: &[u8]) {
        let mut book = self.book.borrow_mut();
        book.busy[game] = false;
        if let Some(size) = self.size {
            assert!(message.len().abs_diff(size) <= 1, "the echo answers what it is asked for");
        } else {
            self.kind.check(&book, game, message);
        }
        if self.kind == Kind::Accepted {
            book.plies[game] += 1;
        }
    }
}

impl Kind {
    /// Panics unless the answer is the right one for the game as it stands.
    fn check(self, book: &Book, game: usize, message: &[u8]) {
        let (ply, next) = book.ply(game);
        let line = book.lines.of(book.number(game));
        match self {
            Self::Accepted => accepted(line, ply, message),
            Self::Refused => refused(next, ply, message),
            Self::LegalMoves => legal_moves(next, ply, message),
            Self::GetGame => the_game(book.number(game), line, ply, message),
        }
    }
}

/// The sequence of the event that the move of this ply caused: the first is the creation.
fn sequence(ply: usize) -> u64 {
    u64::try_from(ply).expect("small") + 2
}

fn accepted(line: &[Ply], ply: usize, message: &[u8]) {
    use pb::submit_move_response::Verdict;
    let answer = pb::SubmitMoveResponse::decode(message).expect("an answer");
    let Some(Verdict::Accepted(accepted)) = answer.verdict else { panic!("{answer:?}") };
    assert_eq!((accepted.sequence, answer.replayed), (sequence(ply), false));
    assert!(accepted.outcome.is_none() && accepted.clock.is_some_and(|clock| clock.deadline.is_some()));
    assert_eq!(accepted.position, line[ply + 1].position);
    played(&accepted.r#move.expect("the move"), &line[ply], ply);
}

fn played(told: &pb::PlayedMove, ply: &Ply, number: usize) {
    assert_eq!(told.ply, u32::try_from(number).ok());
    same_move(&told.from_square, &told.to_square, ply.mv);
    assert_eq!(told.captured, ply.captured);
}

fn same_move(from: &str, to: &str, mv: jungle_referee::rules::Move) {
    assert!(from.parse() == Ok(mv.from) && to.parse() == Ok(mv.to), "{from}{to} is not {mv}");
}

fn refused(next: &Ply, ply: usize, message: &[u8]) {
    use pb::submit_move_response::Verdict;
    let answer = pb::SubmitMoveResponse::decode(message).expect("an answer");
    let Some(Verdict::Refused(refused)) = answer.verdict else { panic!("{answer:?}") };
    let violation = refused.violation.expect("why");
    assert_eq!(violation.rule, next.refused.1);
    assert!(!violation.sentence.is_empty() && refused.outcome.is_none());
    assert_eq!((refused.ply, refused.sequence), (u32::try_from(ply).ok(), sequence(ply) - 1));
}

fn legal_moves(next: &Ply, ply: usize, message: &[u8]) {
    let answer = pb::LegalMovesResponse::decode(message).expect("an answer");
    assert_eq!(answer.position, next.position);
    assert_eq!((answer.ply, answer.sequence), (u32::try_from(ply).ok(), Some(sequence(ply) - 1)));
    assert_eq!(answer.moves.len(), next.legal.len());
    for (told, (mv, captures)) in answer.moves.iter().zip(&next.legal) {
        same_move(&told.from_square, &told.to_square, *mv);
        assert_eq!(told.captures, *captures);
    }
}

fn the_game(number: u64, line: &[Ply], ply: usize, message: &[u8]) {
    let answer = pb::GetGameResponse::decode(message).expect("an answer").game.expect("a game");
    assert_eq!(answer.game_id, game_id(number).to_string());
    assert_eq!((answer.ply, answer.sequence), (u32::try_from(ply).ok(), sequence(ply) - 1));
    assert_eq!((answer.position.as_str(), answer.moves.len()), (line[ply].position.as_str(), ply));
    for (index, told) in answer.moves.iter().enumerate() {
        played(told, &line[index], index);
    }
    assert_eq!(answer.settings.expect("settings").external_reference, format!("{number:032}"));
}
