//! Misbehaving CLIs, as small shell scripts.

use std::fs;
use std::time::Duration;

use super::testing::{READ, answer, options};
use super::*;
use crate::model::AvailableModels;
use crate::sandbox::{Rules, Sandbox};

/// Starts a script as the CLI and returns the error.
async fn start(script: &str) -> EngineError {
    started(script, Timeouts::default()).await
}

/// Like [`start`], with short deadlines, for a script that does not answer.
async fn silent(script: &str) -> EngineError {
    let deadline = Duration::from_millis(700);
    started(script, Timeouts { start: deadline, request: deadline, ..Timeouts::default() }).await
}

async fn started(script: &str, timeouts: Timeouts) -> EngineError {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = options(&folder, script);
    let timeouts = Timeouts { grace: options.timeouts.grace, ..timeouts };
    Copilot::start(Options { timeouts, ..options }).await.err().expect("it cannot be used")
}

#[tokio::test]
async fn another_protocol_is_refused_with_both_versions() {
    let error = start(&format!("{}; cat >/dev/null", answer(1, r#"{"protocolVersion":9,"version":"9.0"}"#))).await;
    assert_eq!(error.to_string(), "the engine speaks protocol version 9; this squad speaks 3");
    assert!(error.hint().is_some_and(|hint| hint.contains("npm install -g @github/copilot@")), "{error:?}");
}

#[tokio::test]
async fn a_cli_that_is_too_old_is_refused_at_the_gate() {
    for (greeting, found) in [
        (r#"{"protocolVersion":3,"version":"1.0.34"}"#, "version 1.0.34"),
        (r#"{"protocolVersion":3}"#, "of an unknown version"),
    ] {
        let error = start(&format!("{}; cat >/dev/null", answer(1, greeting))).await;
        let expected = format!("the Copilot CLI is {found}; this squad needs 1.0.43 or newer");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some_and(|hint| hint.contains("@github/copilot@latest")), "{error:?}");
    }
}

/// A login in a keyring, say, which the sandbox hides.
#[tokio::test]
async fn a_login_that_the_sandbox_hides_is_not_called_missing() {
    for (outside, said) in [("true", "is logged in, but not in the sandbox `files`"), ("false", "is not logged in")] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let greeting = answer(1, r#"{"protocolVersion":3,"version":"1.0.102"}"#);
        let account = |is: &str| answer(2, &format!(r#"{{"isAuthenticated":{is}}}"#));
        let (inside, outside) = (account("false"), account(outside));
        let script = format!(
            "{READ}; {greeting}; {READ}; if [ -n \"$WITHIN\" ]; then {inside}; else {outside}; fi; cat > /dev/null"
        );
        let mut options = options(&folder, &script);
        // Takes the place of squad: it sets no bounds, but says that it would.
        let squad = folder.path().join("squad");
        crate::script::write(&squad, "#!/bin/sh\nshift 2\nWITHIN=1 exec \"$@\"\n");
        let temporary = tempfile::tempdir().expect("a temporary folder");
        options.sandbox =
            Some(Sandbox::new(&squad, rules(SandboxLevel::Files, temporary.path()), (temporary, Vec::new())));
        let error = Copilot::start(options).await.err().expect("it cannot be used");
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn rules(level: SandboxLevel, temporary: &std::path::Path) -> Rules {
    let place = temporary.to_owned();
    let (writable, read_only, hidden, hidden_in_project, readable, replaced, prepared) = Default::default();
    let (set, unset) = Default::default();
    Rules {
        level,
        writable,
        read_only,
        hidden,
        hidden_in_project,
        readable,
        temporary: place.clone(),
        replaced,
        empty: place,
        prepared,
        set,
        unset,
        own_processes: false,
        network: None,
        layers: None,
    }
}

/// The endpoint is checked while the CLI starts, so a bad one is reported however slow the start is.
#[tokio::test]
async fn a_bad_endpoint_is_reported_at_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let refusing = format!("http://127.0.0.1:{free}/v1");
    for (base_url, reason, starts) in [
        ("127.0.0.1:8080/v1", "the model endpoint `127.0.0.1:8080/v1` is not a URL", false),
        ("", "the model endpoint `` is not a URL", false),
        (&refusing, "cannot be reached: 127.0.0.1:", true),
        ("http://nowhere.invalid/v1", "the host `nowhere.invalid`", true),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mark = folder.path().join("started");
        let mut options = options(&folder, &format!("touch '{}'; cat >/dev/null", mark.display()));
        options.timeouts.start = Duration::from_secs(60);
        options.provider = Some(Provider {
            kind: ProviderKind::Openai,
            wire_api: None,
            base_url: base_url.to_owned(),
            api_key: None,
            models: Vec::new(),
            max_prompt_tokens: None,
        });
        let error = Copilot::start(options).await.err().expect("nobody is there");
        assert!(error.to_string().contains(reason) && error.hint().is_some(), "{error:?}");
        assert!(starts || !mark.exists(), "{base_url}: nothing is started");
    }
}

#[tokio::test]
async fn an_exit_is_reported_with_the_last_stderr_line() {
    let error = start("echo 'first' >&2; echo 'no such option: --server' >&2; exit 3").await.to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(error.contains("no such option: --server"), "{error}");
}

/// It is started again by whoever needs it; only a death is worth that.
#[tokio::test]
async fn a_death_at_the_start_is_told_from_a_refusal() {
    for (script, is_death) in [("exit 3", true), ("kill -KILL $$", true), ("echo 'Welcome!'; cat >/dev/null", false)] {
        assert_eq!(matches!(start(script).await, EngineError::Died { .. }), is_death, "{script}");
    }
}

#[tokio::test]
async fn garbage_is_quoted() {
    let error = start("echo 'Welcome to Copilot!'; cat >/dev/null").await.to_string();
    assert!(error.contains("it printed `Welcome to Copilot!`"), "{error}");
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let error = silent("cat >/dev/null").await.to_string();
    assert!(error.contains("no answer within 0.7 s"), "{error}");
}

#[tokio::test]
async fn a_stopped_process_is_silence_too() {
    let error = silent("kill -STOP $$").await.to_string();
    assert!(error.contains("no answer within 0.7 s"), "{error}");
}

#[tokio::test]
async fn an_absurd_length_is_refused() {
    let error = start("printf 'Content-Length: 99999999999999\\r\\n\\r\\n'; cat >/dev/null").await.to_string();
    assert!(error.contains("99999999999999 bytes"), "{error}");
}

#[tokio::test]
async fn answers_of_the_wrong_shape_are_no_protocol_version() {
    for result in ["null", "[]", "\"3\"", r#"{"protocolVersion":"3"}"#] {
        let error = start(&format!("{}; cat >/dev/null", answer(1, result))).await;
        assert!(matches!(error, EngineError::Protocol { found: None, .. }), "{result}: {error}");
    }
}

#[tokio::test]
async fn a_cli_without_a_login_says_how_to_get_one() {
    let answers =
        [answer(1, r#"{"protocolVersion":3,"version":"1.0.102"}"#), answer(2, r#"{"isAuthenticated":false}"#)];
    let error = start(&format!("{}; cat >/dev/null", answers.join("; sleep 0.3; "))).await;
    assert_eq!(error.to_string(), "the Copilot CLI is not logged in");
    let hint = error.hint().unwrap_or_default();
    assert!(
        ["/login", "COPILOT_PROVIDER_BASE_URL", "--engine rehearsal"].iter().all(|way| hint.contains(way)),
        "{hint}"
    );
}

/// The offer of a CLI that gives these answers in order.
async fn offer(models: Option<&str>) -> AvailableModels {
    let mut results = vec![r#"{"protocolVersion":3,"version":"1.0.102"}"#, r#"{"isAuthenticated":true}"#];
    results.extend(models);
    let answers: Vec<String> =
        (1..).zip(results).map(|(id, result)| format!("{READ}; {}", answer(id, result))).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut options = options(&folder, &format!("{}; cat >/dev/null", answers.join("; ")));
    if models.is_none() {
        options.timeouts.offer = Duration::from_millis(700);
    }
    let engine = Copilot::start(options).await;
    let engine = engine.expect("it can be used");
    let offer = engine.offer().await;
    engine.stop().await;
    offer
}

#[tokio::test]
async fn the_models_of_the_login_are_on_offer_but_those_its_policy_disables() {
    let list = r#"{"models":[{"id":"m-1","policy":{"state":"enabled"}},{"id":"m-2","policy":{"state":"disabled"}},{"id":"m-3"}]}"#;
    let offer = offer(Some(list)).await;
    assert_eq!(offer.models.as_deref(), Some(&["m-1".to_owned(), "m-3".to_owned()][..]));
    assert_eq!((offer.spelling("M-3"), offer.spelling("m-2"), offer.default.as_deref()), (Some("m-3"), None, None));
}

#[tokio::test]
async fn without_a_model_list_any_model_is_accepted() {
    for silent in [None, Some(r#"{"models":[]}"#), Some(r#"{"models":7}"#), Some("null")] {
        let offer = offer(silent).await;
        assert_eq!((offer.models.as_ref(), offer.spelling("any")), (None, Some("any")), "{silent:?}");
    }
}

#[tokio::test]
async fn a_cli_that_ignores_its_end_is_killed_with_its_children() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pid = folder.path().join("pid");
    let script = format!("trap '' TERM; sleep 300 & echo $! > '{}'; {}; sleep 301", pid.display(), answer(1, "{}"));
    start(&script).await;
    let pid = fs::read_to_string(pid).expect("its child's id");
    let state = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A killed process may take a moment to die, and stays a zombie if nobody reaps it.
    let is_dead = |state: &str| state.is_empty() || state.contains(") Z ");
    let since = std::time::Instant::now();
    while !is_dead(&state()) {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", state());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
