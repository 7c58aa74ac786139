//! The position text: reading its form, and writing it (section 1).
//!
//! Here lives the form alone. Whether a game may start from what is written is
//! asked in `position`; squares and moves read themselves in `square` and `movement`.

use std::fmt;

use super::animal::{Piece, Side};
use super::position::Position;
use super::square::{FILES, RANKS, Square};

/// Why a text is not a position text.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{NotationError, Position};
/// let error = Position::read("e51/7/7/7/7/7/7/7/6E r 0 1").unwrap_err();
/// assert_eq!(error, NotationError::TwoDigits { rank: 9 });
/// assert_eq!(error.to_string(), "rank 9 has two digits in a row");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotationError {
    /// Not four parts with single spaces between them.
    Parts {
        /// How many parts there are.
        found: usize,
    },
    /// Not nine ranks with slashes between them.
    Ranks {
        /// How many ranks there are.
        found: usize,
    },
    /// A sign that is neither a digit 1–7 nor an animal's letter.
    Sign {
        /// The rank, 1–9.
        rank: u8,
        /// Which sign of the rank, from 1.
        place: usize,
    },
    /// Two digits in a row: an empty run is one digit.
    TwoDigits {
        /// The rank, 1–9.
        rank: u8,
    },
    /// A rank of more or fewer than seven squares.
    Width {
        /// The rank, 1–9.
        rank: u8,
    },
    /// The side to move is neither `r` nor `b`.
    SideToMove,
    /// The quiet plies are no number from 0 without leading zeros.
    QuietPlies,
    /// The round is no number from 1 to 9999 without leading zeros.
    Round,
    /// A side has an animal twice.
    Twice {
        /// The animal, and whose.
        piece: Piece,
    },
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotationError::Parts { found } => {
                write!(f, "a position has 4 parts with single spaces between them, not {found}")
            }
            NotationError::Ranks { found } => {
                write!(f, "a position has 9 ranks with slashes between them, not {found}")
            }
            NotationError::Sign { rank, place } => {
                write!(f, "sign {place} of rank {rank} is neither a digit 1-7 nor the letter of an animal")
            }
            NotationError::TwoDigits { rank } => {
                write!(f, "rank {rank} has two digits in a row")
            }
            NotationError::Width { rank } => write!(f, "rank {rank} does not have 7 squares"),
            NotationError::SideToMove => f.write_str("the side to move is r or b"),
            NotationError::QuietPlies => f.write_str("the quiet plies are a number from 0 without leading zeros"),
            NotationError::Round => f.write_str("the round is a number from 1 to 9999 without leading zeros"),
            NotationError::Twice { piece } => write!(f, "{piece} is on the board twice"),
        }
    }
}

impl std::error::Error for NotationError {}

/// What a text of the form says, not yet a position: an animal may be there twice.
pub(super) struct Written {
    cells: [Option<Piece>; 63],
    pub(super) side_to_move: Side,
    pub(super) quiet_plies: u32,
    pub(super) round: u16,
}

impl Written {
    /// The animals with their squares, from a1 to g9.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (Square, Piece)> + '_ {
        Square::ALL.into_iter().zip(self.cells).filter_map(|(square, cell)| cell.map(|piece| (square, piece)))
    }
}

/// Reads the form of section 1. A text of any length is safe.
pub(super) fn parse(text: &str) -> Result<Written, NotationError> {
    let mut parts = text.split(' ');
    let (Some(board), Some(side), Some(quiet), Some(round), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        let found = text.split(' ').count();
        return Err(NotationError::Parts { found });
    };
    Ok(Written {
        cells: parse_board(board)?,
        side_to_move: match side {
            "r" => Side::Red,
            "b" => Side::Blue,
            _ => return Err(NotationError::SideToMove),
        },
        quiet_plies: number(quiet).ok_or(NotationError::QuietPlies)?,
        round: number(round)
            .and_then(|round| u16::try_from(round).ok())
            .filter(|round| (1..=9999).contains(round))
            .ok_or(NotationError::Round)?,
    })
}

/// Room for the longest text.
const LONGEST: usize = 96;

/// Writes a position in the form of section 1.
pub(super) fn write(position: &Position) -> String {
    let mut text = String::with_capacity(LONGEST);
    for rank in (0..RANKS).rev() {
        write_rank(position, rank, &mut text);
        text.push(if rank > 0 { '/' } else { ' ' });
    }
    text.push(position.side_to_move().letter());
    text.push(' ');
    text.push_str(&position.quiet_plies().to_string());
    text.push(' ');
    text.push_str(&position.round().to_string());
    text
}

fn write_rank(position: &Position, rank: u8, text: &mut String) {
    let mut empty = 0;
    let close = |empty: &mut u8, text: &mut String| {
        if *empty > 0 {
            text.push(char::from(b'0' + *empty));
            *empty = 0;
        }
    };
    for file in 0..FILES {
        match Square::new(file, rank).and_then(|square| position.at(square)) {
            None => empty += 1,
            Some(piece) => {
                close(&mut empty, text);
                text.push(piece.letter());
            }
        }
    }
    close(&mut empty, text);
}

fn parse_board(board: &str) -> Result<[Option<Piece>; 63], NotationError> {
    let found = board.split('/').count();
    if found != usize::from(RANKS) {
        return Err(NotationError::Ranks { found });
    }
    let mut cells = [None; 63];
    for (rank, text) in (0..RANKS).rev().zip(board.split('/')) {
        parse_rank(rank, text, &mut cells)?;
    }
    Ok(cells)
}

fn parse_rank(rank: u8, text: &str, cells: &mut [Option<Piece>; 63]) -> Result<(), NotationError> {
    let name = rank + 1;
    let too_wide = NotationError::Width { rank: name };
    let mut file = 0;
    let mut after_digit = false;
    for (index, sign) in text.chars().enumerate() {
        if let Some(run @ 1..=7) = sign.to_digit(10) {
            if after_digit {
                return Err(NotationError::TwoDigits { rank: name });
            }
            file += u8::try_from(run).unwrap_or(FILES);
        } else {
            let place = index + 1;
            let piece = Piece::from_letter(sign).ok_or(NotationError::Sign { rank: name, place })?;
            let square = Square::new(file, rank).ok_or(too_wide)?;
            cells[square.index()] = Some(piece);
            file += 1;
        }
        if file > FILES {
            return Err(too_wide);
        }
        after_digit = sign.is_ascii_digit();
    }
    if file == FILES { Ok(()) } else { Err(too_wide) }
}

/// A number without sign and leading zeros; one too large for `u32` is read as `u32::MAX`.
fn number(text: &str) -> Option<u32> {
    let digits = text.as_bytes();
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !plain || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}
