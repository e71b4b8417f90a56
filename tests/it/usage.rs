//! What runs used: summed up, told beforehand, and compared at the end.
#![cfg(unix)]

use serde_json::{Value, json};

use crate::engines::{squad, world};
use crate::support::{Output, TestRepo};

/// Prints what Claude Code prints, with this many tokens.
const AGENT: &str = r#"#!/bin/sh
cat >/dev/null
in=$(cat ../tokens)
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\",\"session_id\":\"s\",\"total_cost_usd\":0.5,\"usage\":{\"input_tokens\":$in,\"output_tokens\":100}}"
"#;

fn team() -> TestRepo {
    let repo = world(AGENT, "");
    let user = "../home/config/squad/config.toml";
    repo.write(user, &repo.read(user).replace("prompt = \"stdin\"", "prompt = \"stdin\"\nstream = \"claude\""));
    repo
}

fn run(repo: &TestRepo, agent: &str, tokens: u64, more: &[&str]) -> Output {
    repo.write("../tokens", &tokens.to_string());
    let arguments = ["orchestrate", "--engine", "mine", "--permissions", "allow", "--agent", agent, "Explain it"];
    squad(repo, &[&arguments[..], more].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.out).expect("JSON")
}

#[test]
fn usage_is_summed_up_by_day_agent_model_and_run() {
    let repo = team();
    assert_eq!(run(&repo, "ada", 900, &[]).code, 0);
    let output = run(&repo, "bob", 400, &["--json", "--model", "m-1"]);
    let end = TestRepo::events(&output).pop().expect("an end");
    assert_eq!(end["work"][0]["model"], json!({ "engine": "mine", "asked": "m-1", "used": "m-1" }), "{output}");
    let sums = json(&repo.squad(&["log", "--usage", "--json"]))["usage"].clone();
    let of = |table: &str| -> Vec<(String, u64)> {
        let sums = sums[table].as_array().expect("a list").iter();
        let tokens = |sum: &Value| sum["usage"]["input_tokens"].as_u64().expect("a number");
        sums.map(|sum| (sum["of"].as_str().expect("a name").to_owned(), tokens(sum))).collect()
    };
    assert_eq!((&sums["total"]["input_tokens"], &sums["total"]["cost_usd"]), (&json!(1300), &json!(1.0)), "{sums}");
    assert_eq!(of("agents"), [("ada".to_owned(), 900), ("bob".to_owned(), 400)]);
    assert_eq!(of("models"), [("mine: its default".to_owned(), 900), ("mine: m-1".to_owned(), 400)]);
    assert_eq!((of("days").len(), of("runs").len()), (1, 2), "{sums}");
    let one = json(&repo.squad(&["log", "--usage", "--agent", "bob", "--json"]));
    assert_eq!(one["usage"]["total"]["input_tokens"], 400);
    let shown = repo.squad(&["log", "--usage"]);
    assert!(
        shown.out.contains("agent  ada") && shown.out.contains("900 tokens in, 100 out, $0.50; 1 message"),
        "{shown}"
    );
    // The same as a page, and of today in the status.
    let page = repo.squad(&["log", "--usage", "--html", "use.html"]);
    assert!(page.code == 0 && page.err.contains("Wrote use.html."), "{page}");
    let html = repo.read("use.html");
    for part in ["Tokens by day", "Cost by agent", "<span>bob</span>", "$0.50", "width=500 ", "1.0k tokens"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<script") && !html.contains("Forecast"), "{html}");
    assert_eq!(repo.squad(&["log", "--usage", "--html", "use.html"]).code, 2, "it is there");
    assert_eq!(repo.squad(&["log", "--html", "other.html"]).code, 2);
    let status = squad(&repo, &["status"]);
    assert!(status.out.contains("today") && status.out.contains("1.3k tokens in, 200 out, $1.00"), "{status}");
    let another_day = json(&repo.squad(&["status", "--json"]));
    assert!(another_day["today"].is_null(), "{another_day}");
    let none = json(&TestRepo::with_small_team().squad(&["log", "--usage", "--json"]));
    assert_eq!(none["usage"]["total"]["turns"], 0);
}

/// Four like runs are too few; of five there is a forecast, which others' runs do not change, and the end says how it did.
#[test]
fn five_runs_of_the_same_agents_make_a_forecast() {
    let repo = team();
    let forecast = |agent: &str| json(&run(&repo, agent, 1, &["--dry-run", "--json"]))["forecast"].clone();
    for tokens in [900, 1_900, 2_900, 3_900] {
        assert_eq!(run(&repo, "ada", tokens, &[]).code, 0);
    }
    assert_eq!(forecast("ada"), Value::Null);
    assert!(
        run(&repo, "ada", 1, &["--dry-run"]).out.ends_with("Forecast: none; fewer than 5 runs like it are known\n")
    );
    assert_eq!(run(&repo, "ada", 4_900, &[]).code, 0);
    let expected = json!({ "runs": 5, "tokens": { "median": 3_000.0, "p90": 5_000.0 }, "cost_usd": { "median": 0.5, "p90": 0.5 } });
    assert_eq!(forecast("ada"), expected);
    assert_eq!(forecast("bob"), Value::Null);
    let output = run(&repo, "ada", 8_900, &[]);
    let told = "3.0k tokens, up to 5.0k; $0.50, up to $0.50 (5 runs like it); used 9.0k, above that";
    assert!(output.err.contains(&format!("forecast   {told}")), "{output}");
    assert_eq!(repo.squad(&["log", "--usage", "--html", "use.html"]).code, 0);
    assert!(repo.read("use.html").contains("Forecast (light) against what was used"));
}

/// What a call costs: the engine's own word, else the user's price of the model, else nothing. In the outcome, the sums and
/// the budget alike.
#[test]
fn prices_are_the_engines_or_the_users_and_never_invented() {
    let repo = team();
    let user = "../home/config/squad/config.toml";
    let plain = repo.read(user);
    let price = "[prices.\"M-1\"]\ninput = 2.0\noutput = 10\ncached = 0.5\n";
    let silent = AGENT
        .replace(",\\\"total_cost_usd\\\":0.5", "")
        .replace("\\\"output_tokens\\\":100", "\\\"output_tokens\\\":100,\\\"cache_read_input_tokens\\\":400000");
    let speaks = repo.read("../bin/my-agent");
    for (program, prices, model, expected) in [
        (&speaks, price, "m-1", json!(0.5)),
        (&silent, price, "m-1", json!(2.201)),
        (&silent, "[prices.m-1]\ninput = 2\noutput = 10\n", "m-1", json!(2.801)),
        (&silent, price, "m-2", Value::Null),
        (&silent, "", "m-1", Value::Null),
    ] {
        repo.write("../bin/my-agent", program);
        repo.write(user, &format!("{plain}\n{prices}"));
        let output = run(&repo, "ada", 1_000_000, &["--json", "--model", model]);
        let end = TestRepo::events(&output).pop().expect("an end");
        let cost = &end["work"][0]["usage"]["cost_usd"];
        let is_it = cost.as_f64().zip(expected.as_f64()).map_or(*cost == expected, |(a, b)| (a - b).abs() < 1e-9);
        assert!(is_it, "{prices} {model}: {cost}, not {expected}\n{output}");
    }
    let sums = json(&repo.squad(&["log", "--usage", "--json"]))["usage"].clone();
    assert!((sums["total"]["cost_usd"].as_f64().expect("a number") - 5.502).abs() < 1e-9, "{sums}");
    // What the engine tells in the end is the truth, also where it is less.
    for (told, expected) in
        [("", 0.5), ("{ usage = { cost_usd = 0.75 } }, ", 0.75), ("{ usage = { cost_usd = 0.25 } }, ", 0.25)]
    {
        let repo = TestRepo::with_small_team();
        repo.write(user, "[prices.m-1]\ninput = 5000\noutput = 0\ncached = 0\nwritten = 10000\n");
        let used =
            "{ usage = { input_tokens = 100, output_tokens = 9, cache_read_tokens = 20, cache_write_tokens = 20 } }";
        let script =
            format!("models = [\"m-1\"]\n[[turn]]\nagent = \"ada\"\nsteps = [{used}, {told}{{ say = \"Done.\" }}]\n");
        let output = repo.rehearse(&script, &["--json", "--agent", "ada", "Explain it"]);
        let cost = TestRepo::events(&output).pop().expect("an end")["usage"]["cost_usd"].as_f64();
        assert!(cost.is_some_and(|cost| (cost - expected).abs() < 1e-9), "{told}: {output}");
    }
    // At the budget nothing new starts.
    repo.write(user, &format!("{plain}\n{price}\n[budget.repository]\ncost_usd = 2.5\n"));
    let stopped = run(&repo, "bob", 1_000, &["--model", "m-1"]);
    assert_eq!(stopped.code, 5, "{stopped}");
    for (wrong, says) in [
        ("[prices.m]\ninput = \"cheap\"\noutput = 1\n", "`prices.m.input` needs a number"),
        ("[prices.m]\ninput = 1\noutput = -1\n", "`prices.m.output` must be 0 or more, not -1"),
        ("[prices.m]\ninput = 1\n", "`prices.m` needs `input` and `output`"),
        ("[prices.m]\ninput = nan\noutput = 1\n", "must be 0 or more, not NaN"),
    ] {
        repo.write(user, &format!("{plain}\n{wrong}"));
        let refused = run(&repo, "ada", 1, &[]);
        assert!(
            refused.code == 3 && refused.err.contains(says) && refused.err.contains("config.toml:"),
            "{wrong}: {refused}"
        );
    }
    // A repository brings no prices.
    repo.write(user, &plain);
    repo.write(".squad/config.toml", price);
    let output = run(&repo, "ada", 1_000, &["--json", "--model", "m-1"]);
    assert!(TestRepo::events(&output).pop().expect("an end")["usage"]["cost_usd"].is_null(), "{output}");
}
