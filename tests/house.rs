//! The house's own rules, kept by reading its files: who may name whom, and what lives where.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the ground up: each may name those before it.
const ROOMS: [&str; 8] = ["rules", "game", "runtime", "service", "config", "telemetry", "app", "main"];

/// What a pure room may name from outside the house.
const RULES_MAY_NAME: [&str; 3] = ["std", "core", "super"];
const GAME_MAY_NAME: [&str; 6] = ["std", "core", "super", "crate", "sha2", "memchr"];

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The room a file belongs to: its folder under `src`, or its own name.
fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(sources()).expect("a file of the sources");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The lines of a file without its comments.
fn code_lines(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).expect("a readable file");
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim().to_owned()));
    lines.filter(|(_, line)| !line.starts_with("//")).collect()
}

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|name| *name == room)
}

#[test]
fn a_room_names_only_those_below_it() {
    let mut checked = 0;
    for path in rust_files(&sources()) {
        let room = room_of(&path);
        let Some(own) = level(&room) else { continue };
        for (number, line) in code_lines(&path) {
            for prefix in ["crate::", "jungle_referee::"] {
                for named in line.split(prefix).skip(1) {
                    let named: String = named.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    let Some(other) = level(&named) else { continue };
                    assert!(other <= own, "{}:{number}: {room} names {named}", path.display());
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 20, "only {checked} names were seen: does this test still read the sources?");
}

#[test]
fn the_rules_name_nothing_but_std_and_the_game_hardly_more() {
    let mut seen = 0;
    for (room, allowed) in [("rules", RULES_MAY_NAME.as_slice()), ("game", &GAME_MAY_NAME)] {
        for path in rust_files(&sources().join(room)) {
            let own_modules: Vec<String> = code_lines(&path)
                .iter()
                .filter_map(|(_, line)| line.strip_prefix("mod ").map(|m| m.trim_end_matches(';').to_owned()))
                .collect();
            for (number, line) in code_lines(&path) {
                let Some(named) = line.strip_prefix("use ").or_else(|| line.strip_prefix("pub use ")) else { continue };
                let root = named.split([':', ';', ' ']).next().unwrap_or_default().to_owned();
                seen += 1;
                assert!(
                    allowed.contains(&root.as_str()) || own_modules.contains(&root),
                    "{}:{number}: {room} names {root}",
                    path.display()
                );
            }
        }
    }
    assert!(seen > 20, "only {seen} imports were seen: does this test still read the sources?");
}

#[test]
fn the_wires_types_are_named_in_the_service_only() {
    for path in rust_files(&sources()) {
        if ["service", "app"].contains(&room_of(&path).as_str()) {
            continue;
        }
        for (number, line) in code_lines(&path) {
            let foreign = ["proto::", "prost", "tonic::include_proto"].iter().find(|name| line.contains(**name));
            assert!(foreign.is_none(), "{}:{number}: names {foreign:?}", path.display());
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_lives_in_it() {
    for path in rust_files(&sources()) {
        let text = fs::read_to_string(&path).expect("a readable file");
        assert!(text.starts_with("//! "), "{} does not open with //!", path.display());
    }
}

#[test]
fn every_rule_and_every_reason_of_an_outcome_is_explained_on_the_rules_page() {
    use jungle_referee::rules::{Reason, Rule};
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md")).expect("the page");
    let ids = Rule::ALL.map(Rule::id).into_iter().chain(Reason::ALL.map(Reason::id));
    for id in ids {
        assert!(page.lines().any(|line| line.trim() == format!("### {id}")), "no heading for {id}");
    }
}

/// The operator's page, which must tell of every flag and every number.
fn operators_page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md")).expect("the page")
}

#[test]
fn every_flag_of_the_server_is_explained_on_the_operators_page_with_its_variable() {
    use clap::Args as _;
    let page = operators_page();
    let command = jungle_referee::config::ServeArgs::augment_args(clap::Command::new("serve"));
    for argument in command.get_arguments() {
        let flag = argument.get_long().expect("every argument is a flag");
        let variable = argument.get_env().expect("every flag is a variable too").to_string_lossy();
        let row = format!("| `--{flag}` | `{variable}` | ");
        assert_eq!(page.matches(&row).count(), 1, "no row, or two, for --{flag}");
    }
}

#[test]
fn every_number_of_the_metrics_page_is_explained_on_the_operators_page() {
    use jungle_referee::app::Ports;
    use jungle_referee::game::Span;
    use jungle_referee::runtime::{Limits, Registry};
    use jungle_referee::telemetry::metrics::Metrics;
    let Ports { clock, ids, log } = Ports::in_memory();
    let keep_finished_for = Span::from_days(1);
    let limits = Limits { open_games: 1, watchers_a_game: 1, keep_finished_for, keep_finished: 1, calls: 1 };
    let text = Metrics::new(&Registry::new(clock, ids, log, limits), &std::sync::Arc::default()).text();
    let (text, page) = (text.expect("a text"), operators_page());
    let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    for (name, kind) in &types {
        assert_eq!(page.matches(&format!("| `{name}` | {kind} | ")).count(), 1, "no row, or two, for {name}, a {kind}");
    }
    assert!(types.len() > 15, "only {} numbers", types.len());
    // Nor does the page promise what there is not.
    let promised = page.lines().filter(|line| line.starts_with("| `jungle_")).count();
    let alerts = page.lines().filter(|line| line.starts_with("| `jungle_") && line.contains("near")).count();
    assert_eq!(promised - alerts, types.len());
}
