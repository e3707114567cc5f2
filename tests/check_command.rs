//! `freehold check`, by its real binary: what it says, and how it ends.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use freehold_model_check::models::catalogue::{designs, kills, systems};
use serde_json::Value;

fn freehold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_freehold")).args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    let text = out(output);
    assert_eq!(text.trim_end().lines().count(), 1, "one object: {text}");
    serde_json::from_str(&text).unwrap()
}

/// The smallest system that is pinned.
fn small() -> &'static str {
    systems().into_iter().filter(|e| e.states > 0).min_by_key(|e| e.states).unwrap().name
}

/// The largest of CI's scope, which no small limit lets through.
fn large() -> &'static str {
    systems().into_iter().max_by_key(|e| e.states).unwrap().name
}

/// A guard whose kill has a short trace.
fn guard() -> &'static str {
    kills().into_iter().filter(|k| k.guards.len() == 1).min_by_key(|k| k.steps).unwrap().guards[0]
        .code()
}

#[test]
fn a_system_passes_with_its_size_on_stdout_and_its_progress_on_stderr() {
    let output = freehold(&["check", "--model", small()]);
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    assert!(out(&output).contains(&format!("ok   {}", small())));
    assert!(out(&output).contains("exhaustive") && out(&output).contains("MiB held"));
    for said in ["states/s", "depth", "MiB"] {
        assert!(err(&output).contains(said), "{said}");
    }
}

#[test]
fn json_is_one_object_with_everything() {
    let output = freehold(&["check", "--model", small(), "--json"]);
    let value = json(&output);
    assert_eq!((&value["ok"], &value["exit_code"]), (&Value::Bool(true), &0.into()));
    let one = &value["checked"][0];
    assert_eq!((one["kind"].as_str(), one["exhaustive"].as_bool()), (Some("system"), Some(true)));
    assert!(one["states"].as_u64() > Some(0) && value["peak_bytes"].as_u64() > Some(0));
}

#[test]
fn without_a_guard_something_breaks_and_the_trace_says_how() {
    let output = freehold(&["check", "--without", guard()]);
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(
        text.contains("FAIL") && text.contains("  1. ") && text.contains("is broken"),
        "{text}"
    );
    assert!(err(&output).contains("not as promised"));

    let value = json(&freehold(&["check", "--without", guard(), "--json"]));
    assert_eq!(value["exit_code"], 1);
    let trace = &value["checked"][0]["trace"];
    assert_eq!(trace["without"][0], guard());
    assert_eq!(trace["end"]["kind"], "broken");
    assert!(!trace["steps"].as_array().unwrap().is_empty());
}

#[test]
fn a_trace_is_told_in_every_form_and_alone_on_stdout() {
    let told = |form| out(&freehold(&["check", "--without", guard(), "--trace", form]));
    assert!(told("svg").starts_with("<svg ") && told("svg").trim_end().ends_with("</svg>"));
    assert!(told("mermaid").starts_with("sequenceDiagram\n"));
    let value: Value = serde_json::from_str(&told("json")).unwrap();
    assert!(value["steps"].is_array());
    assert!(told("text").contains("  1. "));
}

#[test]
fn two_guards_may_be_taken_out_of_a_system_that_is_named() {
    let guards = ["check", "--model", small(), "--without", "not_starred", "--without", "due"];
    let output = freehold(&guards);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", err(&output));
    assert!(out(&output).contains("without not_starred + due"));
}

#[test]
fn all_goes_on_after_the_first_broken_property() {
    let value = json(&freehold(&["check", "--without", guard(), "--all", "--json"]));
    let one = json(&freehold(&["check", "--without", guard(), "--json"]));
    let count = |v: &Value| v["checked"][0]["broken"].as_array().unwrap().len();
    let states = |v: &Value| v["checked"][0]["states"].as_u64().unwrap();
    assert_eq!(count(&one), 1);
    assert!(count(&value) >= 1 && states(&value) >= states(&one));
}

#[test]
fn a_planted_design_is_caught_and_told() {
    let Some(design) = designs().into_iter().min_by_key(|d| d.steps) else { return };
    let output = freehold(&["check", "--planted", design.name]);
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    assert!(out(&output).contains(&format!("ok   planted {}", design.name)));
    assert!(out(&output).contains("  1. "));
}

#[test]
fn a_search_that_a_limit_cut_says_which_and_is_no_pass() {
    let limits = [
        (["--states", "100"], "the limit of states"),
        (["--depth", "2"], "the limit of depth"),
        (["--minutes", "0.001"], "the limit of time"),
        (["--memory", "16"], "the limit of memory"),
    ];
    for (limit, says) in limits {
        let output = freehold(&["check", "--model", large(), limit[0], limit[1]]);
        assert_eq!(output.status.code(), Some(5), "{limit:?}: {}", out(&output));
        assert!(out(&output).contains(says), "{limit:?}: {}", out(&output));
        assert!(out(&output).contains("looked at"), "what was covered: {}", out(&output));
        assert!(err(&output).contains("not through"), "{}", err(&output));
    }
    let value = json(&freehold(&["check", "--model", large(), "--states", "100", "--json"]));
    assert_eq!((&value["ok"], &value["exit_code"]), (&Value::Bool(false), &5.into()));
    assert_eq!(value["checked"][0]["cut"], "the limit of states");
}

#[test]
fn unknown_names_are_answered_with_the_nearest_and_all_the_others() {
    let output = freehold(&["check", "--without", "task_unbared"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no guard \"task_unbared\"; the nearest is \"task_unbarred\""));
    assert!(err(&output).contains("claim_lease"));

    let output = freehold(&["check", "--model", "creatoin"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no system \"creatoin\"; the nearest is \"creation"));

    let output = freehold(&["check", "--planted", "nothing-like-it"]);
    assert_eq!(output.status.code(), Some(2));
    for design in designs() {
        assert!(err(&output).contains(design.name), "{}", design.name);
    }

    let value = json(&freehold(&["check", "--model", "", "--json"]));
    assert_eq!(
        (value["error"].as_str(), value["exit_code"].as_u64()),
        (Some("unknown_name"), Some(2))
    );
}

#[test]
fn limits_out_of_range_are_refused_with_the_range() {
    let refused = [
        (["--states", "0"], "1..=300000000"),
        (["--states", "300000001"], "1..=300000000"),
        (["--depth", "0"], "1..=1000000"),
        (["--memory", "1"], "16..=1048576"),
        (["--memory", "9999999999"], "16..=1048576"),
        (["--minutes", "0"], "0.001..=10080"),
        (["--minutes", "NaN"], "0.001..=10080"),
        (["--minutes", "soon"], "no number of minutes"),
    ];
    for (limit, range) in refused {
        let output = freehold(&["check", limit[0], limit[1]]);
        assert_eq!(output.status.code(), Some(2), "{limit:?}");
        assert!(err(&output).contains(range), "{limit:?}: {}", err(&output));
    }
}

#[test]
fn what_contradicts_itself_is_a_usage_error() {
    let wrong: [&[&str]; 4] = [
        &["--planted", "x", "--model", "y"],
        &["--explore", "--all"],
        &["--explore=99999"],
        &["--trace", "pdf"],
    ];
    for arguments in wrong {
        let output = freehold(&[&["check"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = freehold(&["check", "--explore"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("choose one with --model") && err(&output).contains(small()));
}

#[test]
fn the_list_has_systems_guards_and_designs() {
    let text = out(&freehold(&["check", "--list"]));
    assert!(text.contains(small()) && text.contains(guard()));
    let value = json(&freehold(&["check", "--list", "--json"]));
    assert_eq!(value["systems"].as_array().unwrap().len(), systems().len());
    assert_eq!(value["planted"].as_array().unwrap().len(), designs().len());
}

#[test]
fn help_says_exit_codes_and_the_limit_of_memory() {
    let text = out(&freehold(&["check", "--help"]));
    for said in ["Exit codes:", "5 a limit cut the search", "[default: 4096]", "--explore"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// What a GET on the loopback answers, once something answers.
fn get(address: &str, path: &str) -> String {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(String::from_utf8_lossy(&answer).into_owned())
        });
        match answer {
            Ok(answer) if !answer.is_empty() => return answer,
            other if Instant::now() > until => panic!("nobody answers: {other:?}"),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A process that is ended whatever happens.
struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn served(arguments: &[&str]) -> (Served, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(["check", "--json"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let served = Served(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let value: Value = serde_json::from_str(&line).unwrap();
    let address = value["address"].as_str().unwrap();
    let address = address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    (served, address)
}

#[test]
fn the_explorer_answers_on_loopback_and_ends_with_its_process() {
    let (mut served, address) = served(&["--model", small(), "--explore"]);
    assert!(get(&address, "/").contains("<html") || get(&address, "/").contains("<!DOCTYPE"));
    let status = get(&address, "/.status");
    assert!(status.contains("as promised") && status.contains("at rest"), "{status}");
    assert!(get(&address, "/.states").contains("<svg"));
    let steps = get(&address, "/.states/0");
    assert!(steps.contains("\"action\""), "{steps}");
    // The port is taken: said, and no panic.
    let port = address.strip_prefix("127.0.0.1:").unwrap();
    let again = format!("--explore={port}");
    let output = freehold(&["check", "--model", small(), &again]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(err(&output).contains("cannot be had"), "{}", err(&output));

    served.0.kill().unwrap();
    served.0.wait().unwrap();
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn the_explorer_survives_a_browser_that_goes_away() {
    let (_served, address) = served(&["--model", small(), "--explore"]);
    let _ = get(&address, "/.status");
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&address).unwrap();
        // Asks and does not wait for the answer.
        let _ = stream.write_all(b"GET /.states/0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    assert!(get(&address, "/.status").contains("as promised"));
}
