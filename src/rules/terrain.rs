//! What the squares are: land, river, traps and dens, and the lines across the water.
//!
//! Here lives the map, which never changes, as tables made at compile time.
//! Who may go where lives in `movement`; what standing in a trap means, in `capture`.

use super::animal::Side;
use super::square::{Square, SquareSet};

/// What a square is (section 1).
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Side, Square, Terrain};
/// let terrain = |name: &str| name.parse::<Square>().map(Square::terrain);
/// assert_eq!(terrain("b4"), Ok(Terrain::River));
/// assert_eq!(terrain("c1"), Ok(Terrain::Trap(Side::Red)));
/// assert_eq!(terrain("d9"), Ok(Terrain::Den(Side::Blue)));
/// assert_eq!(terrain("d4"), Ok(Terrain::Land));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Terrain {
    /// Any other square.
    Land,
    /// Water: b4–c6 and e4–f6. Only the rat enters (`RIVER`).
    River,
    /// A trap of this side: what the other side's animals cannot resist in (`TRAP`).
    Trap(Side),
    /// The den of this side: closed to it (`OWN_DEN`), and the goal of the other (`DEN`).
    Den(Side),
}

const RIVER: SquareSet = {
    let mut river = SquareSet::EMPTY;
    let mut rank = 3;
    while rank <= 5 {
        river = river.with(Square::on(1, rank)).with(Square::on(2, rank));
        river = river.with(Square::on(4, rank)).with(Square::on(5, rank));
        rank += 1;
    }
    river
};
const DENS: [Square; 2] = [Square::on(3, 0), Square::on(3, 8)];
const TRAPS: [SquareSet; 2] = [traps_around(0, 1), traps_around(8, 7)];

const fn traps_around(edge: u8, before: u8) -> SquareSet {
    SquareSet::EMPTY.with(Square::on(2, edge)).with(Square::on(4, edge)).with(Square::on(3, before))
}

impl Side {
    /// This side's den: d1 or d9.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Side;
    /// assert_eq!(Side::Blue.den().to_string(), "d9");
    /// ```
    #[must_use]
    pub const fn den(self) -> Square {
        DENS[self.index()]
    }

    /// This side's three traps, around its den.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Side;
    /// let traps: Vec<String> = Side::Red.traps().iter().map(|s| s.to_string()).collect();
    /// assert_eq!(traps, ["c1", "d2", "e1"]);
    /// ```
    #[must_use]
    pub const fn traps(self) -> SquareSet {
        TRAPS[self.index()]
    }
}

impl Square {
    /// What this square is.
    #[must_use]
    pub fn terrain(self) -> Terrain {
        if self.is_river() {
            return Terrain::River;
        }
        for side in Side::ALL {
            if self == side.den() {
                return Terrain::Den(side);
            }
            if side.traps().contains(self) {
                return Terrain::Trap(side);
            }
        }
        Terrain::Land
    }

    /// Whether this square is water.
    #[must_use]
    pub const fn is_river(self) -> bool {
        RIVER.contains(self)
    }

    /// Whose den this square is, if it is one.
    #[must_use]
    pub fn den_of(self) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.den() == self)
    }

    /// Whose trap this square is, if it is one.
    #[must_use]
    pub fn trap_of(self) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.traps().contains(self))
    }

    /// Whether a jump may start here: a land square with the river in front of it (`JUMP`).
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Square;
    /// let banks: Vec<_> = Square::ALL.into_iter().filter(|s| s.is_bank()).collect();
    /// assert_eq!(banks.len(), 17);
    /// assert!(banks.iter().all(|s| !s.is_river()));
    /// ```
    #[must_use]
    pub fn is_bank(self) -> bool {
        JUMP_LINES.iter().any(|line| line.from == self)
    }
}

/// Which way a jump goes over the water.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// Across, over two squares of one rank.
    Rank,
    /// Lengthways, over three squares of one file.
    File,
}

/// A straight way over the water, from one bank square to the land behind (`JUMP`).
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Axis, JumpLine};
/// let line = JumpLine::between("b3".parse()?, "b7".parse()?).expect("a line of the b file");
/// assert_eq!(line.axis, Axis::File);
/// assert_eq!(line.over.len(), 3);
/// assert!(JumpLine::between("b3".parse()?, "b6".parse()?).is_none());
/// # Ok::<(), jungle_referee::rules::SquareError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JumpLine {
    /// The bank square where the jump starts.
    pub from: Square,
    /// The first land square behind the water.
    pub to: Square,
    /// The two or three water squares jumped over.
    pub over: SquareSet,
    /// Along a rank, or along a file.
    pub axis: Axis,
}

impl JumpLine {
    /// All twenty, each direction on its own.
    pub const ALL: [JumpLine; 20] = JUMP_LINES;

    /// The line that leads straight from one square to the other, if there is one.
    #[must_use]
    pub fn between(from: Square, to: Square) -> Option<&'static JumpLine> {
        match way(from, to) {
            Way::Jump(line) => Some(line),
            Way::Step | Way::Nowhere => None,
        }
    }
}

/// What leads from one square to another, whoever goes it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Neither a step nor a jump line.
    Nowhere,
    /// One square along a file or a rank.
    Step,
    /// Straight over the water.
    Jump(&'static JumpLine),
}

/// What leads from one square to another.
#[inline]
pub(super) fn way(from: Square, to: Square) -> Way {
    match WAYS[from.index() & 63][to.index() & 63] {
        NOWHERE => Way::Nowhere,
        STEP => Way::Step,
        line => JUMP_LINE_TABLE.get(usize::from(line - FIRST_LINE)).map_or(Way::Nowhere, Way::Jump),
    }
}

/// Where an animal on `from` might go by geometry alone, from a1 to g9:
/// the steps on the board and, for one that jumps, the jump lines too.
#[inline]
pub(super) fn targets(from: Square, jumps: bool) -> &'static [Square] {
    let around = &AROUND[from.index() & 63];
    if jumps { around.steps_and_jumps.as_slice() } else { around.steps.as_slice() }
}

const NOWHERE: u8 = 0;
const STEP: u8 = 1;
const FIRST_LINE: u8 = 2;

const JUMP_LINES: [JumpLine; 20] = jump_lines();
static JUMP_LINE_TABLE: [JumpLine; 20] = JUMP_LINES;
static WAYS: [[u8; 64]; 64] = ways();
static AROUND: [Around; 64] = arounds();

const fn jump_lines() -> [JumpLine; 20] {
    let mut lines = [line(0, 3, 3, 3); 20];
    let mut next = 0;
    let mut rank = 3;
    while rank <= 5 {
        lines[next] = line(0, rank, 3, rank);
        lines[next + 1] = line(3, rank, 0, rank);
        lines[next + 2] = line(3, rank, 6, rank);
        lines[next + 3] = line(6, rank, 3, rank);
        next += 4;
        rank += 1;
    }
    let files = [1, 2, 4, 5];
    let mut file = 0;
    while file < 4 {
        lines[next] = line(files[file], 2, files[file], 6);
        lines[next + 1] = line(files[file], 6, files[file], 2);
        next += 2;
        file += 1;
    }
    lines
}

const fn line(file: u8, rank: u8, to_file: u8, to_rank: u8) -> JumpLine {
    let axis = if rank == to_rank { Axis::Rank } else { Axis::File };
    let mut over = SquareSet::EMPTY;
    let mut index = 0;
    while index < 63 {
        let square = Square::ALL[index];
        let (f, r) = (square.file(), square.rank());
        if between(f, file, to_file) && between(r, rank, to_rank) && square.is_river() {
            over = over.with(square);
        }
        index += 1;
    }
    JumpLine { from: Square::on(file, rank), to: Square::on(to_file, to_rank), over, axis }
}

const fn between(x: u8, one: u8, other: u8) -> bool {
    (one <= x && x <= other) || (other <= x && x <= one)
}

const fn ways() -> [[u8; 64]; 64] {
    let mut ways = [[NOWHERE; 64]; 64];
    let mut from = 0;
    while from < 63 {
        let mut to = 0;
        while to < 63 {
            if is_step(Square::ALL[from], Square::ALL[to]) {
                ways[from][to] = STEP;
            }
            to += 1;
        }
        from += 1;
    }
    let mut index = 0u8;
    while index < 20 {
        let line = JUMP_LINES[index as usize];
        ways[line.from.index()][line.to.index()] = FIRST_LINE + index;
        index += 1;
    }
    ways
}

const fn is_step(from: Square, to: Square) -> bool {
    from.file().abs_diff(to.file()) + from.rank().abs_diff(to.rank()) == 1
}

/// The geometric targets around one square, each list from a1 to g9.
#[derive(Clone, Copy)]
struct Around {
    steps: Few,
    steps_and_jumps: Few,
}

/// At most six squares: four steps and, on d4–d6, two jumps.
#[derive(Clone, Copy)]
struct Few {
    squares: [Square; 6],
    length: usize,
}

impl Few {
    const NONE: Few = Few { squares: [Square::on(0, 0); 6], length: 0 };

    const fn and(mut self, square: Square) -> Few {
        self.squares[self.length] = square;
        self.length += 1;
        self
    }

    #[inline]
    fn as_slice(&self) -> &[Square] {
        self.squares.get(..self.length).unwrap_or(&self.squares)
    }
}

const fn arounds() -> [Around; 64] {
    let mut arounds = [Around { steps: Few::NONE, steps_and_jumps: Few::NONE }; 64];
    let ways = ways();
    let mut from = 0;
    while from < 63 {
        let mut to = 0;
        while to < 63 {
            let square = Square::ALL[to];
            if ways[from][to] == STEP {
                arounds[from].steps = arounds[from].steps.and(square);
            }
            if ways[from][to] != NOWHERE {
                arounds[from].steps_and_jumps = arounds[from].steps_and_jumps.and(square);
            }
            to += 1;
        }
        from += 1;
    }
    arounds
}
